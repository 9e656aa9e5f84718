# SPDX-License-Identifier: MIT
"""The peers of bench_gemm and bench_rows in the same session: torch, and pyptx where it is installed.

Prints the same figures, timed the same way: CUDA events around 60 calls captured in a CUDA graph where that works (so that
Python's launch cost stays out), three sets of buffers in turn, median of 15 bursts.
"""
import statistics
import time

import torch
import torch.nn.functional as F

ROWS, N, SETS, RUNS, BURSTS = 2048, 8192, 3, 60, 15


def measure(call, sets=SETS, runs=RUNS):
    for i in range(sets):
        call(i)
    torch.cuda.synchronize()
    how = "graph"
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(runs):
                call(i % sets)
        run = graph.replay
    except Exception:  # a library that launches on a stream of its own
        torch.cuda.synchronize()
        how = "eager"

        def run():
            for i in range(runs):
                call(i % sets)

    times = []
    for _ in range(BURSTS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        run()
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / runs)
        time.sleep(0.02)
    return statistics.median(times), how


def rows(name, calls, matrices):
    for peer, call in calls.items():
        try:
            ms, how = measure(call)
            print(f"{name:9s} f32 {ROWS} x {N}  {peer:6s} {ms * 1e3:8.2f} us {ROWS * N * 4 * matrices / ms * 1e-6:6.0f} GB/s ({how})")
        except Exception as e:
            print(f"{name:9s} {peer}: {type(e).__name__}: {e}")


def main():
    x = [torch.randn(ROWS, N, device="cuda") for _ in range(SETS)]
    b = [torch.randn(ROWS, N, device="cuda") for _ in range(SETS)]
    w = torch.randn(N, device="cuda")
    kept = [None] * SETS  # so that results go to several buffers in turn, as ours do

    def keep(f):
        def call(i):
            kept[i] = f(i)

        return call

    norm = {"torch": keep(lambda i: F.rms_norm(x[i], (N,), w, 1e-5))}
    soft = {"torch": keep(lambda i: torch.softmax(x[i], -1))}
    glu = {"torch": keep(lambda i: F.silu(x[i]) * b[i])}
    try:
        from pyptx.examples.hopper.rms_norm import build_rms_norm
        from pyptx.examples.hopper.softmax import build_softmax
        from pyptx.examples.hopper.swiglu import build_fused_silu_mul

        kn, ks, kg = build_rms_norm(ROWS, N), build_softmax(ROWS, N), build_fused_silu_mul(ROWS, N)
        norm["pyptx"] = keep(lambda i: kn(x[i], w))
        soft["pyptx"] = keep(lambda i: ks(x[i]))
        glu["pyptx"] = keep(lambda i: kg(x[i], b[i]))
    except Exception as e:
        print(f"no pyptx: {type(e).__name__}: {e}")
    rows("rms_norm", norm, 2)
    rows("softmax", soft, 2)
    rows("swiglu", glu, 3)
    try:
        from pyptx.examples.ampere.gemm_highperf_ampere import build_gemm_highperf

        n = 4096
        k = build_gemm_highperf(n, n, n)
        A = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
        B = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
        start = time.time()
        k(A, B)
        torch.cuda.synchronize()
        first = time.time() - start
        ms, how = measure(lambda i: k(A, B), 1, 10)
        print(f"{n} cubed, bf16 -> f32: pyptx (Ampere) {2e-9 * n**3 / ms:.1f} TFLOP/s ({how}; first call {first:.1f} s)")
    except Exception as e:
        print(f"pyptx gemm: {type(e).__name__}: {e}")


main()
