#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of SASS, ours beside nvcc's, for the same algorithm (v4, v5, v6 of examples/blackwell).

   bench/sass_counts.py BUILD [sm_100a]

BUILD: a build folder with the examples.  Needs nvcc, ptxas and nvdisasm (CUDA_HOME/bin, or PATH).  Prints a table of the main
loop of each role: the innermost loop that loads (UTMALDG), that multiplies (UTCHMMA), and the way out, from the first load of
tensor memory (LDTM) to the last store (STG).  "K tiles" is how many a turn makes: nvcc has a second row where it unrolls the
loop if it may.  Exit status 1 if one of ours has more instructions for a K tile than the better one of nvcc's.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
COUNTED = ["UTCHMMA", "UTMALDG", "UTCBAR", "SYNCS", "LDTM", "STG", "F2FP", "BRA", "NOP"]


def tool(name):
    path = os.path.join(HOME, name)
    return path if os.path.exists(path) else name


def fail(why):
    print(why, file=sys.stderr)
    sys.exit(2)


def run(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as why:
        fail(f"{words[0]}: {why.strerror}")
    if done.returncode:
        fail(f"{' '.join(words)}:\n{done.stderr}")
    return done.stdout


def disassembled(cubin):
    """(address, opcode, target of a branch or None) of each instruction, and the labels' addresses."""
    code, labels, waiting = [], {}, []
    for line in run(tool("nvdisasm"), "-c", cubin).splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        insn = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line)
        if label:
            waiting.append(label.group(1))
        elif insn:
            at = int(insn.group(1), 16)
            labels.update((name, at) for name in waiting)
            waiting = []
            to = re.search(r"`\((\.L_x_\d+)\)", insn.group(3))
            code.append((at, insn.group(2), to and to.group(1)))
    return code, labels


def innermost(code, labels, opcode):
    """The loop with the fewest instructions for one of those: from the target of a branch back to the branch."""
    loops = []
    for at, name, to in code:
        if to and name.startswith("BRA") and labels.get(to, at) < at:
            body = [c for c in code if labels[to] <= c[0] <= at]
            count = sum(c[1].startswith(opcode) for c in body)
            if count:
                loops.append((len(body) / count, body))
    return min(loops, default=(0, []))[1]


def way_out(code):
    at = [i for i, c in enumerate(code) if c[1].startswith("LDTM")]
    end = [i for i, c in enumerate(code) if c[1].startswith("STG")]
    return code[at[0] : end[-1] + 1]


def roles(cubin):
    code, labels = disassembled(cubin)
    return {"load": innermost(code, labels, "UTMALDG"), "multiply": innermost(code, labels, "UTCHMMA"), "way out": way_out(code)}


def turns(role, body):
    unit = {"load": ("UTMALDG", 2), "multiply": ("UTCHMMA", 4)}.get(role)
    return sum(c[1].startswith(unit[0]) for c in body) // unit[1] if unit else 0


def row(rung, role, who, body):
    count = collections.Counter(c[1].split(".")[0] for c in body)
    rest = len(body) - sum(count[c] for c in COUNTED)
    return f"| {rung} | {role} | {who} | {turns(role, body) or ''} | {len(body)} | " + " | ".join(str(count[c]) for c in COUNTED) + f" | {rest} |"


def each(role, body):
    """Instructions for a K tile."""
    return len(body) / (turns(role, body) or 1)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, arch = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "sm_100a"
    more = 0
    print("| rung | role | compiler | K tiles | all | " + " | ".join(COUNTED) + " | rest |")
    print("|" + "---|" * (len(COUNTED) + 6))
    with tempfile.TemporaryDirectory() as folder:
        for rung in ["v4", "v5", "v6"]:
            ptx, ours, theirs = (os.path.join(folder, rung + end) for end in (".ptx", ".cubin", ".nvcc.cubin"))
            with open(ptx, "w", encoding="utf-8") as f:
                f.write(run(os.path.join(build, "examples", "blackwell", "tcgen05_" + rung), "--ptx", "--target", arch))
            run(tool("ptxas"), "-arch=" + arch, "-o", ours, ptx)
            nvcc = [tool("nvcc"), "-arch=" + arch, "-cubin", "-O3", "-o", theirs, os.path.join(HERE, "nvcc", rung + ".cu")]
            a, b, c = roles(ours), (run(*nvcc), roles(theirs))[1], (run(*nvcc, "-DUNROLLED"), roles(theirs))[1]
            for role in a:
                print(row(rung, role, "cptx", a[role]))
                print(row(rung, role, "nvcc", b[role]))
                if turns(role, c[role]) > 1:
                    print(row(rung, role, "nvcc, unrolled", c[role]))
                more += each(role, a[role]) > min(each(role, b[role]), each(role, c[role]))
    sys.exit(more > 0)


if __name__ == "__main__":
    main()
