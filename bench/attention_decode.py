#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention for decoding beside a copy of memory and PyTorch's scaled_dot_product_attention, in one process, arms in turns.

   python3 bench/attention_decode.py [--case DIM:HEADS:KV_HEADS:BATCH:QUERIES:KEYS[:PAGE]]...
                                     [--shape ROWSxBKxWARPSxSTAGES[xSPLITS]]... [--rounds N] [--no-peers] [--json FILE]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of attention_decode.c (meson compile -C build bench_attention_decode).
bf16.  Figures are medians of rounds, in GB/s of K and V; that of the copy counts what it reads and writes, of as many bytes in
all.  O is compared with PyTorch's in f32.  A head size of 576 is that of multi-head latent attention, whose V is the first 512
columns of K.  Without --case: D128, 64 heads, 8 of K and V, batches of 16 and 64, 4k to 64k.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch
from attention import BACKENDS, burst
from torch.nn.attention import sdpa_kernel

BURST_MS, PAUSE_S = 10, 0.02
MLA_DIM, MLA_DIM_V = 576, 512


class Ours:
    """Kernels of cptx for the tensors of a case."""

    lib = None

    def __init__(self, case, q, k, v, shape=()):
        if not Ours.lib:
            Ours.lib = ctypes.CDLL(os.environ["CPTX_BENCH"])
            Ours.lib.decode_new.restype = ctypes.c_void_p
            for name in ("decode_error", "decode_shape"):
                getattr(Ours.lib, name).restype = ctypes.c_char_p
                getattr(Ours.lib, name).argtypes = [ctypes.c_void_p]
            Ours.lib.decode_free.argtypes = [ctypes.c_void_p]
            Ours.lib.decode_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.out = q.new_full((*q.shape[:-1], v.shape[-1]), float("nan"))
        page, self.keep = case["page"], []
        if page:  # pages in any order, each whole in one place
            n = case["batch"] * case["keys"] // page
            order = torch.randperm(n, device="cuda", dtype=torch.int64)
            in_pages = lambda x: torch.empty(n, case["kv_heads"], page, case["dim"], device="cuda", dtype=x.dtype).index_copy_(
                0, order, x.unflatten(2, (-1, page)).transpose(1, 2).reshape(n, case["kv_heads"], page, case["dim"]))
            k, v = in_pages(k), in_pages(v) if case["dim"] != MLA_DIM else v
            self.keep = [k, v, order.int()]
        numbers = [case["dim"], case["batch"], case["heads"], case["kv_heads"], case["queries"], case["keys"], page]
        numbers += list(shape) + [0] * (5 - len(shape))
        at = [x.data_ptr() for x in (q, k, v, self.out)] + [0, self.keep[2].data_ptr() if page else 0]
        self.handle = Ours.lib.decode_new(b"cuda:0", (ctypes.c_uint32 * len(numbers))(*numbers), (ctypes.c_uint64 * 6)(*at))
        error = Ours.lib.decode_error(self.handle)
        if error:
            raise RuntimeError(error.decode())
        self.note = "  " + Ours.lib.decode_shape(self.handle).decode()

    def __call__(self, times):
        if Ours.lib.decode_run(self.handle, times):
            raise RuntimeError("a launch failed")

    def free(self):
        Ours.lib.decode_free(self.handle)


class Peer:
    """scaled_dot_product_attention by one backend, groups of heads as they are."""

    note = ""

    def __init__(self, case, q, k, v, backend):
        self.q, self.k, self.v, self.backend, self.gqa = q, k, v, backend, case["heads"] != case["kv_heads"]
        self(1)

    def __call__(self, times):
        with sdpa_kernel(self.backend):
            for _ in range(times):
                self.out = torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, enable_gqa=self.gqa)

    def free(self):
        pass


class Copy:
    """As many bytes as the cache has, half of them read and half written."""

    note = ""

    def __init__(self, n):
        self.a, self.b = (torch.zeros(n // 2, device="cuda", dtype=torch.uint8) for _ in range(2))

    def __call__(self, times):
        for _ in range(times):
            self.b.copy_(self.a)

    def free(self):
        self.a = self.b = None


def exact(case, q, k, v, head):
    """O of one head of the last sequence in f32 by PyTorch."""
    kv = head // (case["heads"] // case["kv_heads"])
    s = q[-1, head].float() @ k[-1, kv].float().T / case["dim"] ** 0.5
    if case["queries"] > 1:
        s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(case["keys"] - case["queries"] + 1), float("-inf"))
    return s.softmax(-1) @ v[-1, kv].float()


def measure(case, shapes, rounds, peers):
    torch.manual_seed(1)
    size = lambda heads, rows: (case["batch"], heads, rows, case["dim"])
    q = torch.randn(size(case["heads"], case["queries"]), device="cuda", dtype=torch.bfloat16)
    k, v = (torch.empty(size(case["kv_heads"], case["keys"]), device="cuda", dtype=torch.bfloat16).normal_() for _ in range(2))
    bytes_ = 2 * k.numel() * 2
    if case["dim"] == MLA_DIM:
        v, bytes_ = k[..., :MLA_DIM_V], bytes_ // 2
    arms = {"copy": Copy(bytes_)}
    for shape in shapes or [()]:
        name = "cptx" + (" " + "x".join(map(str, shape)) if shape else "")
        try:
            arms[name] = Ours(case, q, k, v, shape)
        except RuntimeError as why:
            print(f"  {name}: {why}")
    for name, backend in BACKENDS.items() if peers and case["queries"] == 1 else ():
        try:
            arms[name] = Peer(case, q, k, v, backend)
        except RuntimeError as why:
            print(f"  {name}: {str(why).splitlines()[0]}")
    right = exact(case, q, k, v, case["heads"] - 1)
    times = {name: [] for name in arms}
    for name, arm in arms.items():
        arm(2)
        torch.cuda.synchronize()
        if name.startswith("cptx"):
            off = (arm.out[-1, -1].float() - right).abs().max().item() / right.abs().max().item()
            if not off < 0.02:
                raise SystemExit(f"{name} is wrong: off by {off} of the largest element")
    runs = {name: max(1, round(BURST_MS / burst(arm, 1))) for name, arm in arms.items()}
    for _ in range(rounds):
        for name, arm in arms.items():
            time.sleep(PAUSE_S)
            arm(1)
            times[name].append(burst(arm, runs[name]))
    result = {name: {"gbs": bytes_ / statistics.median(t) * 1e-6, "us": statistics.median(t) * 1e3, "note": arms[name].note}
              for name, t in times.items()}
    for arm in arms.values():
        arm.free()
    return result


def parse(text):
    names = ("dim", "heads", "kv_heads", "batch", "queries", "keys", "page")
    return {"page": 0} | dict(zip(names, map(int, text.split(":"))))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", action="append", default=[])
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--json")
    args = p.parse_args()
    cases = args.case or [f"128:64:8:{b}:1:{n}" for b in (16, 64) for n in (4096, 16384, 65536)]
    shapes = [tuple(map(int, s.split("x"))) for s in args.shape]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    results = {}
    for text in cases:
        print(text)
        results[text] = measure(parse(text), shapes, args.rounds, not args.no_peers)
        for name, r in results[text].items():
            ratio = r["gbs"] / results[text]["copy"]["gbs"]
            print(f"  {name:24s} {r['us']:9.1f} us {r['gbs']:7.0f} GB/s  {ratio:.3f} of copy{r['note']}")
        sys.stdout.flush()
        torch.cuda.empty_cache()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
