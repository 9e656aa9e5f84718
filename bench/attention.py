#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention forward beside PyTorch's scaled_dot_product_attention by cuDNN and by FlashAttention, in one process, arms in turns.

   python3 bench/attention.py [--case DIM:HEADS:KV_HEADS:BATCH:QUERIES:KEYS:full|causal]... [--shape [sync:|tma:|fp8:|packN:]BQxBK[xWARPS]]...
                              [--rounds N] [--math] [--json FILE]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of attention.c (meson compile -C build bench_attention).  bf16.  Each
arm runs in bursts of about 10 ms with a pause in front; figures are medians of rounds, in TFLOP/s of 4 * DIM for each score
(causal: half of all).  O is compared with that of PyTorch; "error" is the root mean square beside f64, as a multiple of that
of cuDNN (or FlashAttention).  --math: PyTorch's math backend, with f32 between its products and with the operands' type, is an
arm, too.  Without --case: D128, 64 heads, 8 of K and V, 2k to 16k.  A shape is of wgmma, or, with "sync:", of mma.sync with
cp.async, with "tma:" of mma.sync with TMA; 0x0 is the usual one.  With "fp8:" (by mma.sync "fp8sync:" and "fp8tma:") Q, K and
V are the same numbers rounded to e4m3, beside PyTorch's kernels of bf16, and cuDNN's of e4m3 where its frontend is installed;
O is bf16.  With "pack4:" four heads share a tile, as few queries of groups of heads want it.
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


class Math(Peer):
    """The math backend, with f32 or the operands' type between its products."""

    def __init__(self, case, q, k, v, halves):
        self.halves = halves
        super().__init__(case, q, k, v, SDPBackend.MATH)

    def __call__(self, times):
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(self.halves)
        super().__call__(times)


class PeerFp8:
    """cuDNN's attention of e4m3, by its frontend: O is e4m3, too, and all scales are 1."""

    note = " (O in e4m3)"

    def __init__(self, case, q, k, v):
        import cudnn  # pip install nvidia-cudnn-frontend
        kind = cudnn.data_type
        q, k, v = (x.to(torch.float8_e4m3fn) for x in (q, k, v))
        self.out, one, amax = torch.empty_like(q), torch.ones(1, 1, 1, 1, device="cuda"), torch.empty(2, 1, 1, 1, device="cuda")
        self.handle = cudnn.create_handle()
        cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        self.graph = g = cudnn.pygraph(io_data_type=kind.FP8_E4M3, intermediate_data_type=kind.FLOAT,
                                       compute_data_type=kind.FLOAT, handle=self.handle)
        inputs = {x: g.tensor(dim=list(x.shape), stride=list(x.stride()), data_type=kind.FP8_E4M3) for x in (q, k, v)}
        scales = {name: g.tensor(dim=[1] * 4, stride=[1] * 4, data_type=kind.FLOAT)
                  for name in ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")}
        o, _, amax_s, amax_o = g.sdpa_fp8(*inputs.values(), **scales, is_inference=True, attn_scale=case["dim"] ** -0.5,
                                          use_causal_mask=case["causal"])
        o.set_output(True).set_dim(list(q.shape)).set_stride(list(q.stride())).set_data_type(kind.FP8_E4M3)
        for x in (amax_s, amax_o):
            x.set_output(True).set_dim([1] * 4).set_stride([1] * 4).set_data_type(kind.FLOAT)
        g.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.pack = {t: x.view(torch.uint8) for x, t in inputs.items()} | {t: one for t in scales.values()}
        self.pack |= {o: self.out.view(torch.uint8), amax_s: amax[:1], amax_o: amax[1:]}
        self.workspace = torch.empty(max(1, g.get_workspace_size()), device="cuda", dtype=torch.uint8)
        self(1)

    def __call__(self, times):
        for _ in range(times):
            self.graph.execute(self.pack, self.workspace, handle=self.handle)


def burst(arm, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    arm(times)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / times


def exact(case, q, k, v, heads):
    """O of some heads in f64 by PyTorch."""
    group, out = case["heads"] // case["kv_heads"], []
    for h in heads:
        s = q[0, h].double() @ k[0, h // group].double().T / case["dim"] ** 0.5
        if case["causal"]:
            s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), float("-inf"))
        out.append(s.softmax(-1) @ v[0, h // group].double())
    return torch.stack(out)


def measure(case, shapes, rounds, math):
    torch.manual_seed(1)
    size = lambda heads, rows: (case["batch"], heads, rows, case["dim"])
    q, k, v = (torch.randn(size(h, n), device="cuda", dtype=torch.bfloat16) for h, n in (
        (case["heads"], case["queries"]), (case["kv_heads"], case["keys"]), (case["kv_heads"], case["keys"])))
    arms = {}
    for name in shapes or [""]:
        try:
            arms[("cptx " + name).strip()] = Ours(case, q, k, v, shape_of(name), 2 if name.startswith("fp8") else 0)
        except RuntimeError as why:
            print(f"  {name}: {why}")
    for name, backend in BACKENDS.items():
        try:
            arms[name] = Peer(case, q, k, v, backend)
        except RuntimeError as why:
            print(f"  {name}: {str(why).splitlines()[0]}")
    if math:
        arms |= {"math": Math(case, q, k, v, False), "math, 16 bits": Math(case, q, k, v, True)}
    if any(name.startswith("fp8") for name in shapes):
        try:
            arms["cudnn fp8"] = PeerFp8(case, q, k, v)
        except Exception as why:  # the frontend has errors of its own
            print(f"  cudnn fp8: {type(why).__name__}: {str(why).splitlines()[0]}")
    flop = 4 * case["dim"] * case["batch"] * case["heads"] * case["queries"] * case["keys"] / (2 if case["causal"] else 1)
    heads = [0, case["heads"] - 1]
    right = exact(case, q, k, v, heads) if case["queries"] <= 8192 else None
    times, error = {name: [] for name in arms}, {}
    for name, arm in arms.items():
        arm(2)
        torch.cuda.synchronize()
        if right is not None:
            error[name] = (arm.out[0, heads].double() - right).square().mean().sqrt().item()
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
    return (*n, *[0] * (3 - len(n)), kind.endswith(("sync", "tma")), kind.endswith("tma"), int(kind[4:]) if kind.startswith("pack") else 0)


def parse(text):
    dim, heads, kv_heads, batch, queries, keys, mask = text.split(":")
    case = dict(zip(("dim", "heads", "kv_heads", "batch", "queries", "keys"), map(int, (dim, heads, kv_heads, batch, queries, keys))))
    return case | {"causal": mask == "causal", "name": text}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", action="append", default=[])
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--math", action="store_true")
    p.add_argument("--json")
    args = p.parse_args()
    cases = args.case or [f"128:64:8:1:{n}:{n}:{mask}" for mask in ("causal", "full") for n in (2048, 4096, 8192, 16384)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    results = {}
    for text in cases:
        print(text)
        results[text] = measure(parse(text), args.shape, args.rounds, args.math)
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
