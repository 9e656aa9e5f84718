#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads of shared memory that mbarrier.arrive does not wait for, in machine code.

   bench/sass_pending.py FILE.cubin|FILE.ptx ...

An arrival gives a stage back, and TMA may fill it anew; ptxas 13.0 does not order it behind LDS and LDSM.  This follows the
scoreboards of each kernel (sm_70 to sm_12x) along all its branches, and prints each arrival without bytes (mbarrier.arrive) and the loads
that may be pending there: no instruction has waited for their
scoreboard or named one of their registers, nor is there a fence.proxy.async.  Which memory a load reads it does not know:
one of the stage that the arrival gives back is a fault, one of other memory, such as a reduction's own scratch behind
bar.sync, is none, and is printed in the same way.  PTX is assembled for the target that it names.  Needs nvdisasm, and for
PTX ptxas (CUDA_HOME/bin, or PATH).

Exit status 0: no load is pending at any arrival.  1: some are, and are to be looked at; the kernel may be right.  2: a file
could not be read, or an arrival is reached only by what this does not follow, such as calls and computed branches.
"""
import os
import re
import subprocess
import sys
import tempfile

from sass_counts import fail, run, tool

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


def is_arrival(insn):
    return insn.name.startswith("SYNCS.ARRIVE") and "A1T0" in insn.name


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
    """Of each arrival the loads that may be pending, as (arrival, loads); loads: None where it is not reached."""
    front, arrivals, todo = {0: frozenset()}, {i: None for i, insn in enumerate(code) if is_arrival(insn)}, [0]
    while todo:
        i = todo.pop()
        at, after = behind(code, i, front[i])
        if is_arrival(code[i]):
            arrivals[i] = at
        for j in successors(code, labels, i):
            more = front.get(j, frozenset()) | after
            if j not in front or more != front[j]:
                front[j] = more
                todo.append(j)
    return sorted(arrivals.items())


def report(path, cubin):
    """Prints the arrivals of a file; the exit status that it calls for."""
    status = 0
    for name, code, labels in kernels(cubin):
        for i, pending in found(code, labels):
            loads = ", ".join(f"{code[p].name} {code[p].rest.strip()} at 0x{code[p].at:x}" for p in sorted(pending or []))
            said = "not reached by the branches that are followed" if pending is None else f"{len(pending)} pending: {loads}" if pending else "nothing pending"
            print(f"{path}: {name}: {code[i].name} at 0x{code[i].at:x}: {said}")
            status = max(status, 2 if pending is None else 1 if pending else 0)
    return status


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    status = 0
    for path in sys.argv[1:]:
        if not path.endswith(".ptx"):
            status = max(status, report(path, path))
            continue
        try:
            with open(path, encoding="utf-8") as text:
                target = re.search(r"^\.target\s+(\w+)", text.read(), re.M)
        except (OSError, UnicodeDecodeError) as why:
            fail(f"{path}: {why}")
        if not target:
            fail(f"{path} has no .target")
        with tempfile.TemporaryDirectory() as folder:
            cubin = os.path.join(folder, "k.cubin")
            run(tool("ptxas"), "-arch=" + target.group(1), "-o", cubin, path)
            status = max(status, report(path, cubin))
    sys.exit(status)


if __name__ == "__main__":
    main()
