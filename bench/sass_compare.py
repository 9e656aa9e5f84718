#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Machine code of the GEMM generators of two builds: is any kernel worse than it was?

   bench/sass_compare.py BEFORE NOW [--arch sm_90a,sm_80] [--sets 40] [--seed 1]
   bench/sass_compare.py BEFORE NOW -- -a sm_90a -M sync -t 128x256x32 -w 2x4 -g 1

BEFORE, NOW: build folders; of each the command `cptx gemm` prints the kernels.  For each architecture so many sets of options
are drawn that both take, or the set behind -- is compared alone.  Needs ptxas and nvdisasm (CUDA_HOME/bin, or PATH).

A line for each set that is worse in something (--all 1: for each set), and for each architecture one with sums: instructions of
the mainloop (the loop that is densest in tensor-core instructions; NOW's as if it had as many of these as BEFORE's), registers of
a thread, registers that a multiprocessor allocates for it (multiples of 8), bytes spilled, instructions in all, CTAs that a
multiprocessor holds (shared memory and threads are those of NOW's launch).  Exit status 1 if a mainloop is longer, more is spilled
or fewer CTAs fit.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from sass_counts import disassembled, tool

MMA = ("HMMA", "IMMA", "QMMA", "OMMA", "HGMMA", "QGMMA", "UTCHMMA", "UTCQMMA", "UTCOMMA", "UTCIMMA")
COLUMNS = ["mainloop", "registers", "allocated", "spilled", "instructions", "CTAs"]
BAD = ["mainloop", "spilled", "CTAs"]
GRANULE = 8  # registers of a thread are allocated by eights


def mainloop(code, labels):
    """(instructions, those of tensor cores): of the loop that is densest in these; of a kernel without one all."""
    best = (len(code), 0)
    for at, name, to in code:
        if to and name.startswith("BRA") and labels.get(to, at) < at:
            body = [c for c in code if labels[to] <= c[0] <= at]
            count = sum(c[1].split(".")[0] in MMA for c in body)
            if count * best[0] > best[1] * len(body):
                best = (len(body), count)
    return best


def smem_of(build, options, folder):
    """Bytes of dynamic shared memory of a launch; None: the build refuses the options."""
    done = subprocess.run(
        [os.path.join(build, "cptx"), "gemm", "-o", os.path.join(folder, "k.ptx"), *options], capture_output=True, text=True, check=False
    )
    found = re.search(r"(\d+) bytes of dynamic shared memory", done.stdout)
    return None if done.returncode else int(found.group(1)) if found else 0


def ctas_of(cptx, cubin, smem):
    """CTAs that a multiprocessor holds, as `cptx inspect` counts them."""
    done = subprocess.run([cptx, "inspect", "-j", "--smem", str(smem), cubin], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["kernels"][0]["occupancy"]["ctas"]


def judged(build, options, folder, cptx, smem):
    """What COLUMNS says of the kernel.  cptx: the command that counts CTAs."""
    ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    if smem_of(build, options, folder) is None:
        return None
    arch = options[options.index("-a") + 1]
    done = subprocess.run([tool("ptxas"), "-v", "-arch=" + arch, "-o", cubin, ptx], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(options)}: {done.stderr}")
    registers, spilled = [sum(map(int, re.findall(r"(\d+) " + what, done.stderr))) for what in ("registers", "bytes spill stores")]
    code, labels = disassembled(cubin)
    loop, products = mainloop(code, labels)
    allocated = -(-registers // GRANULE) * GRANULE
    return dict(zip(COLUMNS, [loop, registers, allocated, spilled, len(code), ctas_of(cptx, cubin, smem)]), products=products)


def judged_both(builds, options, folder):
    smem = smem_of(builds[1], options, folder) if smem_of(builds[0], options, folder) is not None else None
    if smem is None:
        return None
    before, now = (judged(b, options, folder, os.path.join(builds[1], "cptx"), smem) for b in builds)
    if not before:
        return None
    if now["products"] and before["products"]:
        now["mainloop"] = round(now["mainloop"] * before["products"] / now["products"])
    return before, now


def is_worse(column, before, now):
    return now[column] < before[column] if column == "CTAs" else now[column] > before[column]


def some(r, *flags):
    return [f for f in flags if r.random() < 0.25]


def drawn(r, arch):
    """Options at random; many sets are refused."""
    out = ["-u", r.choice(["f32", "bf16", "f16"]), "-s", str(r.randint(2, 5)), "-y", r.choice(["tt", "tn", "nt", "nn"])]
    out += some(r, "-K", "-I") + (["-A", "0.5"] if r.random() < 0.25 else []) + (["-B", "2"] if r.random() < 0.25 else [])
    out += r.choice([["-G"], ["-b", "2"], [], [], []])
    tile, warps = r.choice([64, 128, 256]), f"{r.choice([1, 2, 4])}x{r.choice([1, 2, 4])}"
    if arch == "sm_90a":
        out += ["-i", r.choice(["bf16", "f16", "e4m3", "e4m3,e5m2"]), "-t", f"{tile}x{8 * r.randint(1, 32)}x64"]
        out += r.choice([["-c", "2x1"], ["-c", "1x2"], ["-S"], [], []])
    elif arch == "sm_100a":
        out += ["-i", r.choice(["bf16", "f16", "e4m3", "e2m1", "s8", "tf32"]), "-t", f"{128 * r.randint(1, 2)}x{32 * r.randint(1, 8)}x64"]
        out += r.choice([["-c", "2x1"], ["-c", "1x2"], ["-S"], ["-m"], []])
    elif arch == "sm_120a":
        kind = r.choice([["e4m3", "ue8m0"], ["e2m1", "ue4m3"], ["e4m3,e2m1", "ue8m0"], ["e2m1", "ue8m0"]])
        out += ["-i", kind[0], "-x", kind[1], "-t", f"{r.choice([64, 128])}x{r.choice([64, 128])}x128", "-w", warps]
    else:  # the plain product: mma.sync without scale factors had no other options before the kit
        out = out[:4] + ["-M", "sync", "-i", r.choice(["bf16", "f16"]), "-t", f"{tile}x{r.choice([64, 128, 256])}x{r.choice([32, 64])}", "-w", warps]
    types, at = out[out.index("-i") + 1], out.index("-t") + 1
    if types not in ("bf16", "f16"):  # 128 bytes along K, where e2m1 may be packed
        k = 32 if types == "tf32" else r.choice([128, 256]) if types == "e2m1" else 128
        out[at] = f"{out[at].rsplit('x', 1)[0]}x{k}"
    return ["-a", arch, *out]


def row(name, before, now):
    return name + ": " + ", ".join(f"{c} {before[c]} -> {now[c]}" for c in COLUMNS)


def compare(builds, arch, sets, seed, everything):
    r, total = random.Random(seed), [dict.fromkeys(COLUMNS, 0) for _ in builds]
    worse, n, tries = dict.fromkeys(COLUMNS, 0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while n < sets and tries < 100 * sets:
            tries += 1
            options = drawn(r, arch)
            both = judged_both(builds, options, folder)
            if not both:
                continue
            before, now = both
            n += 1
            for c in COLUMNS:
                total[0][c], total[1][c] = total[0][c] + before[c], total[1][c] + now[c]
                worse[c] += is_worse(c, before, now)
            if everything or any(is_worse(c, before, now) for c in COLUMNS if c != "instructions"):
                print(row(" ".join(options), before, now), flush=True)
    print(row(f"{arch}, {n} sets", *total), "; worse in", ", ".join(f"{worse[c]} {c}" for c in COLUMNS), flush=True)
    return sum(worse[c] for c in BAD)


def main():
    words = sys.argv[1:]
    alone = words[words.index("--") + 1 :] if "--" in words else None
    words = words[: words.index("--")] if alone is not None else words
    option = {"--arch": "sm_80,sm_90a,sm_100a,sm_120a", "--sets": "40", "--seed": "1", "--all": "0"}
    while len(words) > 2 and words[-2] in option:
        option[words[-2]] = words[-1]
        words = words[:-2]
    if len(words) != 2:
        sys.exit(__doc__)
    if alone is not None:
        with tempfile.TemporaryDirectory() as folder:
            both = judged_both(words, alone, folder)
        if not both:
            sys.exit("cptx gemm of one of the builds refuses these options")
        print(row(" ".join(alone), *both))
        sys.exit(any(is_worse(c, *both) for c in BAD))
    of = [compare(words, a, int(option["--sets"]), int(option["--seed"]), int(option["--all"])) for a in option["--arch"].split(",")]
    sys.exit(sum(of) > 0)


if __name__ == "__main__":
    main()
