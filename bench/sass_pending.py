#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads of shared memory that mbarrier.arrive does not wait for, in machine code.

   bench/sass_pending.py FILE.cubin|FILE.ptx ...

An arrival gives a stage back, and TMA may fill it anew; ptxas 13.0 does not order it behind LDS and LDSM.  This follows the
scoreboards of each kernel (sm_70 to sm_12x) along all its branches, and prints each arrival without bytes (mbarrier.arrive) and the loads
that may be pending there: no instruction has waited for their
scoreboard or named one of their registers, nor is there a fence.proxy.async.  PTX is assembled for the target that it
names.  Needs nvdisasm, and for PTX ptxas (CUDA_HOME/bin, or PATH).  Exit status 1: some arrival has pending loads.
"""
import os
import re
import subprocess
import sys
import tempfile

from sass_counts import run, tool

INSN = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?);?\s+/\* 0x([0-9a-f]{16}) \*/")
HIGH = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/")
NONE = 7  # no scoreboard


class Insn:
    """An instruction with what its control bits say: the scoreboard that a result sets, those that it waits for."""

    def __init__(self, at, guard, name, rest):
        self.at, self.guard, self.name, self.rest = at, guard, name, rest
        self.sets, self.waits = NONE, 0

    def control(self, high):
        self.sets, self.waits = high >> 46 & 7, high >> 52 & 63


def kernels(cubin):
    """Yields (name, instructions, address of each label) of each kernel."""
    name, code, labels, waiting = None, [], {}, []
    for line in run(tool("nvdisasm"), "-c", "-hex", cubin).splitlines():
        section, label = re.match(r"\s*\.section\s+\.text\.([\w$]+)", line), re.match(r"(\.L_x_\d+):", line)
        insn, high = INSN.match(line), HIGH.match(line)
        if section:
            if code:
                yield name, code, labels
            name, code, labels, waiting = section.group(1), [], {}, []
        elif label:
            waiting.append(label.group(1))
        elif insn:
            labels.update((w, len(code)) for w in waiting)
            waiting = []
            code.append(Insn(int(insn.group(1), 16), insn.group(2), insn.group(3), insn.group(4)))
        elif high and code:
            code[-1].control(int(high.group(1), 16))
    if code:
        yield name, code, labels


def successors(code, labels, i):
    insn, out = code[i], []
    to = re.search(r"`\((\.L_x_\d+)\)", insn.rest) if insn.name.startswith(("BRA", "BSSY", "CALL", "WARPSYNC")) else None
    leaves = insn.name.split(".")[0] in ("BRA", "EXIT", "RET") and not insn.guard and not re.match(r"!?U?P", insn.rest)
    if to and insn.name.startswith("BRA") and to.group(1) in labels:
        out.append(labels[to.group(1)])
    if not leaves and i + 1 < len(code):
        out.append(i + 1)
    return out


def registers(insn):
    """Those that a load of shared memory sets."""
    first, width = re.match(r"R(\d+)", insn.rest), re.search(r"\.(64|128)\b|M\w*88\.(\d)", insn.name)
    count = 1 if not width else int(width.group(1)) // 32 if width.group(1) else int(width.group(2))
    return range(int(first.group(1)), int(first.group(1)) + count) if first else range(0)


def is_load(insn):
    return re.match(r"LDS(M|\.|$)", insn.name)


def behind(code, i, pending):
    """Loads that are pending behind an instruction, of those in front of it: in front of its own work, and behind that."""
    insn, waits = code[i], code[i].waits
    if insn.name.startswith("FENCE.VIEW.ASYNC"):  # behind a MEMBAR
        return frozenset(), frozenset()
    drained = re.match(r"SB(\d), 0x0\b", insn.rest) if insn.name == "DEPBAR.LE" else None
    waits |= 1 << int(drained.group(1)) if drained else 0
    named = {int(r) for r in re.findall(r"\bR(\d+)\b", insn.rest)}
    left = frozenset(p for p in pending if not waits >> code[p].sets & 1 and named.isdisjoint(registers(code[p])))
    return left, left | {i} if is_load(insn) else left


def found(code, labels):
    """Of each arrival the loads that may be pending, as (arrival, loads)."""
    front, arrivals, todo = {0: frozenset()}, {}, [0]
    while todo:
        i = todo.pop()
        at, after = behind(code, i, front[i])
        if code[i].name.startswith("SYNCS.ARRIVE") and "A1T0" in code[i].name:
            arrivals[i] = at
        for j in successors(code, labels, i):
            more = front.get(j, frozenset()) | after
            if j not in front or more != front[j]:
                front[j] = more
                todo.append(j)
    return sorted(arrivals.items())


def report(path, cubin):
    bad = 0
    for name, code, labels in kernels(cubin):
        for i, pending in found(code, labels):
            loads = ", ".join(f"{code[p].name} {code[p].rest} at 0x{code[p].at:x}" for p in sorted(pending))
            print(f"{path}: {name}: {code[i].name} at 0x{code[i].at:x}: " + (f"{len(pending)} pending: {loads}" if pending else "nothing pending"))
            bad += bool(pending)
    return bad


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    bad = 0
    for path in sys.argv[1:]:
        if not path.endswith(".ptx"):
            bad += report(path, path)
            continue
        with tempfile.TemporaryDirectory() as folder, open(path, encoding="utf-8") as text:
            cubin = os.path.join(folder, "k.cubin")
            run(tool("ptxas"), "-arch=" + re.search(r"^\.target\s+(\w+)", text.read(), re.M).group(1), "-o", cubin, path)
            bad += report(path, cubin)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
