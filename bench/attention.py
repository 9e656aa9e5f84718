#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention forward beside PyTorch's scaled_dot_product_attention by cuDNN and by FlashAttention, in one process, arms in turns.

   python3 bench/attention.py [--case DIM:HEADS:KV_HEADS:BATCH:QUERIES:KEYS:full|causal]... [--shape [sync:|tma:|fp8:|packN:]BQxBK[xWARPS]]...
                              [--rounds N]
                              [--json FILE]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of attention.c (meson compile -C build bench_attention).  bf16.  Each
arm runs in bursts of about 10 ms with a pause in front; figures are medians of rounds, in TFLOP/s of 4 * DIM for each score
(causal: half of all).  O is compared with that of PyTorch; "error" is the root mean square beside f32, as a multiple of that
of cuDNN (or FlashAttention).  Without --case: D128, 64 heads, 8 of K and V, 2k to 16k.  A shape is of wgmma, or, with "sync:",
of mma.sync with cp.async, with "tma:" of mma.sync with TMA; 0x0 is the usual one.  With "fp8:" it is of wgmma, and Q, K and V
are the same numbers rounded to e4m3 (PyTorch's kernels take none, so beside theirs of bf16); O is bf16.  With "pack4:" four heads
share a tile, as few queries of groups of heads want it.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BURST_MS, PAUSE_S = 10, 0.02
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


class Ours:
    """A kernel of cptx for the tensors of a case."""

    lib = None

    def __init__(self, case, q, k, v, shape=(0, 0, 0, 0, 0, 0), kind=0):
        if not Ours.lib:
            Ours.lib = ctypes.CDLL(os.environ["CPTX_BENCH"])
            Ours.lib.attention_new.restype = ctypes.c_void_p
            Ours.lib.attention_error.restype = ctypes.c_char_p
            Ours.lib.attention_error.argtypes = Ours.lib.attention_free.argtypes = [ctypes.c_void_p]
            Ours.lib.attention_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.out = torch.full_like(q, float("nan"))
        if kind == 2:
            q, k, v = (x.to(torch.float8_e4m3fn) for x in (q, k, v))
        self.kept = q, k, v
        numbers = [kind, case["dim"], 0, case["causal"], *shape[:2], 0, *shape[2:], case["batch"], case["heads"], case["kv_heads"],
                   case["queries"], case["keys"]]
        at = [x.data_ptr() for x in (q, k, v, self.out)]
        self.handle = Ours.lib.attention_new(b"cuda:0", (ctypes.c_uint32 * len(numbers))(*numbers), (ctypes.c_uint64 * 4)(*at))
        error = Ours.lib.attention_error(self.handle)
        if error:
            raise RuntimeError(error.decode())

    def __call__(self, times):
        if Ours.lib.attention_run(self.handle, times):
            raise RuntimeError("a launch failed")


class Peer:
    """scaled_dot_product_attention by one backend; K and V are repeated where it does not take groups of heads."""

    def __init__(self, case, q, k, v, backend):
        self.args = {"is_causal": case["causal"], "enable_gqa": case["kv_heads"] != case["heads"]}
        self.q, self.k, self.v, self.backend, self.note = q, k, v, backend, ""
        try:
            self(1)
        except RuntimeError:
            group = case["heads"] // case["kv_heads"]
            self.k, self.v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            self.args["enable_gqa"], self.note = False, " (K and V repeated)"
            self(1)

    def __call__(self, times):
        with sdpa_kernel(self.backend):
            for _ in range(times):
                self.out = torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, **self.args)


def burst(arm, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    arm(times)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / times


def exact(case, q, k, v, heads):
    """O of some heads in f32 by PyTorch."""
    group, out = case["heads"] // case["kv_heads"], []
    for h in heads:
        s = q[0, h].float() @ k[0, h // group].float().T / case["dim"] ** 0.5
        if case["causal"]:
            s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), float("-inf"))
        out.append(s.softmax(-1) @ v[0, h // group].float())
    return torch.stack(out)


def measure(case, shapes, rounds):
    torch.manual_seed(1)
    size = lambda heads, rows: (case["batch"], heads, rows, case["dim"])
    q, k, v = (torch.randn(size(h, n), device="cuda", dtype=torch.bfloat16) for h, n in (
        (case["heads"], case["queries"]), (case["kv_heads"], case["keys"]), (case["kv_heads"], case["keys"])))
    arms = {}
    for name in shapes or [""]:
        try:
            arms[("cptx " + name).strip()] = Ours(case, q, k, v, shape_of(name), 2 if name.startswith("fp8:") else 0)
        except RuntimeError as why:
            print(f"  {name}: {why}")
    for name, backend in BACKENDS.items():
        try:
            arms[name] = Peer(case, q, k, v, backend)
        except RuntimeError as why:
            print(f"  {name}: {str(why).splitlines()[0]}")
    flop = 4 * case["dim"] * case["batch"] * case["heads"] * case["queries"] * case["keys"] / (2 if case["causal"] else 1)
    heads = [0, case["heads"] - 1]
    right = exact(case, q, k, v, heads) if case["queries"] <= 8192 else None
    times, error = {name: [] for name in arms}, {}
    for name, arm in arms.items():
        arm(2)
        torch.cuda.synchronize()
        if right is not None:
            error[name] = (arm.out[0, heads].float() - right).square().mean().sqrt().item()
    runs = max(1, round(BURST_MS / burst(next(iter(arms.values())), 1)))
    for _ in range(rounds):
        for name, arm in arms.items():
            time.sleep(PAUSE_S)
            arm(1)
            times[name].append(burst(arm, runs))
    base = error.get("cudnn") or error.get("flash")
    return {name: {"tflops": flop / statistics.median(t) * 1e-9, "note": getattr(arms[name], "note", ""),
                   "error": error[name] / base if base else None} for name, t in times.items()}


def shape_of(name):
    """bq, bk, warps, by mma.sync, by TMA, heads in a tile; 0: the usual ones."""
    kind, _, sizes = name.rpartition(":")
    n = [int(s) for s in sizes.split("x")] if sizes else []
    return (*n, *[0] * (3 - len(n)), kind in ("sync", "tma"), kind == "tma", int(kind[4:]) if kind.startswith("pack") else 0)


def parse(text):
    dim, heads, kv_heads, batch, queries, keys, mask = text.split(":")
    case = dict(zip(("dim", "heads", "kv_heads", "batch", "queries", "keys"), map(int, (dim, heads, kv_heads, batch, queries, keys))))
    return case | {"causal": mask == "causal", "name": text}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", action="append", default=[])
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--json")
    args = p.parse_args()
    cases = args.case or [f"128:64:8:1:{n}:{n}:{mask}" for mask in ("causal", "full") for n in (2048, 4096, 8192, 16384)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    results = {}
    for text in cases:
        print(text)
        results[text] = measure(parse(text), args.shape, args.rounds)
        for name, r in results[text].items():
            error = f"  error {r['error']:.3f}" if r["error"] else ""
            print(f"  {name:20s} {r['tflops']:7.1f} TFLOP/s{error}{r['note']}")
        sys.stdout.flush()
        torch.cuda.empty_cache()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
