# SPDX-License-Identifier: MIT
"""The peer of bench_gemm_sm90 that Python alone runs: pyptx's Hopper GEMM beside torch (cuBLAS), in alternated bursts.

  python3 bench/peers_gemm.py [SIZE]...      default: 2048 4096 6144 8192 16384, cubed, bf16

Timed as bench_gemm_sm90 does: operands in turn, bursts of about 8 ms behind 20 ms of rest, median of 5.  Bursts are CUDA graphs
where that works, so that Python's launches stay out.
"""
import statistics
import sys
import time

import torch
from pyptx.examples.hopper import gemm_highperf_hopper as hopper

SETS, ROUNDS = 4, 5


def burst(call, runs):
    """A function that runs `call` so many times, and how."""
    for i in range(SETS):
        call(i)
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(runs):
                call(i % SETS)
        graph.replay()
        torch.cuda.synchronize()
        return graph.replay, "graph"
    except Exception:
        torch.cuda.synchronize()
        return lambda: [call(i % SETS) for i in range(runs)], "eager"


def timed(run, runs):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    time.sleep(0.02)
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / runs


def size(n):
    a = [torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(SETS)]
    b = [torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(SETS)]
    out = [None] * SETS
    tiles_m, tiles_n = n // (hopper.BM * hopper.CLUSTER_M), n // hopper.BN
    schedule = torch.tensor(hopper.create_hilbert_schedule(tiles_m, tiles_n), device="cuda", dtype=torch.int32)

    def pyptx(i):
        out[i] = hopper.gemm_warp_specialized(a[i], b[i], schedule)

    def torch_(i):
        out[i] = a[i] @ b[i].T

    pyptx(0)
    torch.cuda.synchronize()
    got = out[0].float().flatten().sort().values  # it may be the transpose
    torch_(0)
    want = out[0].float().flatten().sort().values
    wrong = not torch.allclose(got, want, atol=1.0, rtol=2e-2)
    runs = min(200, int(6000 / (2e-9 * n**3)) + 3)
    arms = {"pyptx": burst(pyptx, runs), "cuBLAS": burst(torch_, runs)}
    times = {name: [] for name in arms}
    for _ in range(ROUNDS):
        for name, (run, _how) in arms.items():
            times[name].append(timed(run, runs))
    p, c = (statistics.median(times[name]) for name in ("pyptx", "cuBLAS"))
    flop = 2e-9 * n**3
    print(f"{n:5d} cubed: pyptx {flop / p:6.1f} TFLOP/s ({arms['pyptx'][1]}), cuBLAS {flop / c:6.1f} ({arms['cuBLAS'][1]}), "
          f"ratio {c / p:.3f}{', AND IT IS WRONG' if wrong else ''}", flush=True)


for text in sys.argv[1:] or ["2048", "4096", "6144", "8192", "16384"]:
    size(int(text))
