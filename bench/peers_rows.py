# SPDX-License-Identifier: MIT
"""The peers of bench_row_kernels in the same session: torch, eager and compiled.  python3 peers_rows.py [MB]

GB/s of the bytes that must be read and written, from CUDA events around 24 calls on three sets of buffers in turn; median of 9.
"""
import statistics
import sys

import torch
import torch.nn.functional as F

SETS, RUNS, BURSTS = 3, 24, 9


def measure(call):
    for i in range(SETS):
        call(i)
    times = []
    for _ in range(BURSTS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(RUNS):
            call(i % SETS)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / RUNS)
    return statistics.median(times)


def main(mb="256"):
    kernels = {"rms-norm": (lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5), 2),
               "softmax": (lambda x, w: torch.softmax(x, -1), 2)}
    for name, (f, matrices) in kernels.items():
        for dtype in (torch.bfloat16, torch.float32):
            for n in (4096, 16384, 65536, 262144):
                rows = (int(mb) << 20) // n // dtype.itemsize
                x = [torch.randn(rows, n, device="cuda", dtype=dtype) for _ in range(SETS)]
                w, kept = torch.randn(n, device="cuda", dtype=dtype), [None] * SETS
                for how, g in (("eager", f), ("compile", torch.compile(f, dynamic=False))):
                    try:
                        def call(i):
                            kept[i] = g(x[i], w)
                        ms = measure(call)
                        print(f"{name:10s} {str(dtype)[6:]:8s} {rows:6d} x {n:6d} {how:8s} {ms * 1e3:8.2f} us "
                              f"{(int(mb) << 20) * matrices / ms * 1e-6:6.0f} GB/s", flush=True)
                    except Exception as e:  # a peer that cannot do it
                        print(f"{name} {n} {how}: {type(e).__name__}: {str(e)[:80]}", flush=True)


main(*sys.argv[1:])
