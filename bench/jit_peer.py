# SPDX-License-Identifier: MIT
"""A peer of bench_jit: pyptx builds and prints kernels of N instructions, fma and add in turns (jit_peer.py [N]...); CPU time, best of three."""
import sys
import time

from pyptx import kernel, ptx, reg
from pyptx.types import f32


def make(n):
    @kernel(arch="sm_80", grid=(1, 1, 1), block=(256, 1, 1))
    def trace():
        a = reg.scalar(f32, init=1.0)
        for _ in range(n // 2):
            b, c = reg.scalar(f32), reg.scalar(f32)
            ptx.inst.fma.rn.ftz.f32(b, a, a, a)
            ptx.inst.add.ftz.f32(c, a, b)
            a = c
        ptx.ret()

    return trace


def main():
    for n in [int(a) for a in sys.argv[1:]] or [100, 1000, 10000]:
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            text = make(n).ptx()
            best = min(best, time.process_time() - start)
        lines = text.count("fma.rn") + text.count("add.ftz")
        assert lines == n // 2 * 2, lines
        print(f"pyptx: {n} instructions, {best / n * 1e9:.0f} ns each")


main()
