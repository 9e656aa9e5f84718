#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a launch from Python costs the host above the prepared launch of C: python3 python_launch.py [cuda:0] [JSON-FILE]

Needs PyTorch on a GPU, CPTX_LIBRARY (libcptx.so) and CPTX_BENCH (the shared object of python_launch.c).  Medians of rounds of 200
launches of a small saxpy on PyTorch's current stream, in turns, with the queue empty before each round.
"""

import ctypes
import json
import os
import statistics
import sys
import time

import torch

sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")]
import cptx  # noqa: E402
from cptx import _arrays  # noqa: E402

SAXPY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "python", "saxpy.ptx")
LAUNCHES, ROUNDS = 200, 101


def ways(device):
    """Name and a function that launches 200 times and returns ns a launch."""
    program = device.load_file(SAXPY)
    n = 1024
    x, y = torch.ones(n, device=f"cuda:{device.ordinal}"), torch.ones(n, device=f"cuda:{device.ordinal}")
    shape = "x: f32[n] const, y: f32[n], a: f32, n: u32 = n"
    tensors = program.kernel("saxpy", shape, grid="n / 256", block=256)
    numbers = program.kernel("saxpy", "x: u64, y: u64, a: f32, n: u32", grid="n / 256", block=256)
    bench = ctypes.CDLL(os.environ["CPTX_BENCH"]).bench_prepared
    bench.restype = ctypes.c_double
    bench.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p]

    def of(call):
        def timed():
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(LAUNCHES):
                call()
            return (time.perf_counter_ns() - start) / LAUNCHES
        return timed

    def prepared():
        return bench(device._handle, program._handle, x.data_ptr(), y.data_ptr(), n, torch.cuda.current_stream().cuda_stream)

    def capsules():
        with _arrays.without_apis():
            return of(lambda: tensors(x, y, 2.0))()

    torch_add = torch.add
    return [
        ("C: prepared launch", prepared),
        ("tensors, by their C exchange API", of(lambda: tensors(x, y, 2.0))),
        ("addresses, by data_ptr()", of(lambda: numbers(x.data_ptr(), y.data_ptr(), 2.0, n))),
        ("tensors, by __dlpack__ capsules", capsules),
        ("for comparison: torch.add(x, y, out=y)", of(lambda: torch_add(x, y, out=y))),
    ]


def measure(name="cuda:0"):
    device = cptx.Device(name)
    torch.cuda.set_device(device.ordinal)
    all_ways = ways(device)
    times = {what: [] for what, _ in all_ways}
    for _ in range(ROUNDS + 5):
        for what, timed in all_ways:
            times[what].append(timed())
    return device, {what: statistics.median(t[5:]) for what, t in times.items()}


def main(name="cuda:0", path=None):
    device, medians = measure(name)
    base = medians["C: prepared launch"]
    print(f"{device.name}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    for what, ns in medians.items():
        print(f"{what:42s} {ns / 1000:8.2f} us  {(ns - base) / 1000:+8.2f} us")
    if path:
        with open(path, "w") as f:
            json.dump(medians, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
