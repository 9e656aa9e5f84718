#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The softmax loop of attention for sm_100a in SASS: ours beside FlashAttention 4's algorithm in plain CUDA C by nvcc.

   bench/softmax_counts.py BUILD [sm_100a]

BUILD: a build folder with the command.  Needs nvcc, ptxas and nvdisasm (CUDA_HOME/bin, or PATH).  Prints what the loop over blocks
without a mask has for each of a block's 128 scores of a row, by kinds of instructions, for sm_100a also with the exponentials of
sm_103a.  Exit status 1 if ours is longer.
"""
import collections
import os
import sys
import tempfile

from sass_counts import HERE, disassembled, innermost, run, tool

KEYS = 128
KINDS = ["MUFU", "FFMA2", "FADD2", "FMNMX3", "FMNMX", "F2FP", "LDTM", "STTM", "SYNCS", "NOP"]


def row(who, body):
    count = collections.Counter(c[1].split(".")[0] for c in body)
    rest = len(body) - sum(count[k] for k in KINDS)
    return f"| {who} | {len(body)} | {len(body) / KEYS:.3f} | " + " | ".join(str(count[k]) for k in KINDS) + f" | {rest} |"


def loop_of(cubin):
    return innermost(*disassembled(cubin), "MUFU.EX2")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, arch = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "sm_100a"
    longer = False
    print("| compiler | loop | for a score | " + " | ".join(KINDS) + " | rest |")
    print("|" + "---|" * (len(KINDS) + 4))
    with tempfile.TemporaryDirectory() as folder:
        ptx, ours, theirs = (os.path.join(folder, "softmax" + end) for end in (".ptx", ".cubin", ".nvcc.cubin"))
        for fast, names in ([], ""), (["--fast-ex2"], ", ex2 alone"):
            run(os.path.join(build, "cptx"), "attention", "--mma", "tcgen05", "--arch", arch, "--tile", "256x128", *fast, "-o", ptx)
            run(tool("ptxas"), "-arch=" + arch, "-O3", "-o", ours, ptx)
            run(tool("nvcc"), "-arch=" + arch, "-ftz=true", "-cubin", "-O3", *(["-DFAST_EX2"] if fast else []), "-o", theirs,
                os.path.join(HERE, "nvcc", "softmax.cu"))
            a, b = loop_of(ours), loop_of(theirs)
            print(row("cptx" + names, a))
            print(row("nvcc" + names, b))
            longer |= len(a) > len(b)
    sys.exit(longer)


if __name__ == "__main__":
    main()
