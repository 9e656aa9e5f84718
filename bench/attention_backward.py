#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention backward beside PyTorch's scaled_dot_product_attention by cuDNN and by FlashAttention, in one process, arms in turns.

   python3 bench/attention_backward.py [--case DIM:HEADS:KV_HEADS:BATCH:QUERIES:KEYS:full|causal]...
                                       [--shape MMA[:fixed][:BQxBK[xSTAGES]]]... [--rounds N] [--json FILE]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of attention_backward.c (meson compile -C build
bench_attention_backward).  bf16.  MMA: sync, wgmma; fixed: deterministic.  Each arm runs in bursts of about 20 ms with a pause in
front; figures are medians of rounds, in TFLOP/s of 10 * DIM for each score (causal: half of all).  Gradients are compared with
PyTorch's; "error" is the root mean square beside f32, as a multiple of that of cuDNN (or FlashAttention).
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch
from attention import BACKENDS, burst, parse
from torch.nn.attention import sdpa_kernel

BURST_MS, PAUSE_S = 20, 0.03
MMAS = {"sync": 0, "wgmma": 1}


class Ours:
    """Kernels of cptx for the tensors of a case."""

    lib = None

    def __init__(self, case, tensors, shape):
        if not Ours.lib:
            Ours.lib = ctypes.CDLL(os.environ["CPTX_BENCH"])
            Ours.lib.backward_new.restype = ctypes.c_void_p
            Ours.lib.backward_error.restype = ctypes.c_char_p
            Ours.lib.backward_error.argtypes = Ours.lib.backward_free.argtypes = [ctypes.c_void_p]
            Ours.lib.backward_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
            Ours.lib.backward_run_one.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.grads = [torch.full_like(tensors[i], float("nan")) for i in range(3)]
        words = shape.split(":")
        tile = [int(n) for n in words[-1].split("x")] if words[-1][0].isdigit() else []
        numbers = [MMAS[words[0]], case["dim"], case["batch"], case["heads"], case["kv_heads"], case["queries"], case["keys"],
                   case["causal"], "fixed" in words] + tile + [0] * (3 - len(tile))
        at = [x.data_ptr() for x in tensors + self.grads]
        self.handle = Ours.lib.backward_new(b"cuda:0", (ctypes.c_uint32 * 12)(*numbers), (ctypes.c_uint64 * 9)(*at))
        error = Ours.lib.backward_error(self.handle)
        if error:
            raise RuntimeError(error.decode())

    def __call__(self, times):
        if Ours.lib.backward_run(self.handle, times):
            raise RuntimeError("a launch failed")

    def parts(self):
        """Microseconds of each launch alone."""
        one = lambda i: burst(lambda n: Ours.lib.backward_run_one(self.handle, i, n), 10) * 1e3
        return "  " + " + ".join(f"{one(i):.0f}" for i in range(3)) + " us"

    def free(self):
        Ours.lib.backward_free(self.handle)


class Peer:
    """The backward of scaled_dot_product_attention by one backend; K and V are repeated where it does not take groups."""

    def __init__(self, case, q, k, v, d_o, backend):
        self.note, self.d_o = "", d_o
        group = case["heads"] // case["kv_heads"]
        try:
            self.begin(case, q, k, v, backend, group > 1)
        except RuntimeError:
            self.note = "  (K and V repeated)"
            self.begin(case, q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), backend, False)

    def begin(self, case, q, k, v, backend, gqa):
        self.inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        with sdpa_kernel(backend):
            self.out = torch.nn.functional.scaled_dot_product_attention(*self.inputs, is_causal=case["causal"], enable_gqa=gqa)
        self(1)

    def __call__(self, times):
        for _ in range(times):
            self.grads = torch.autograd.grad(self.out, self.inputs, self.d_o, retain_graph=True)

    def parts(self):
        return self.note

    def free(self):
        self.out = self.grads = self.inputs = None


def forward(case, q, k, v):
    """O, and LSE in f32, head by head."""
    group = case["heads"] // case["kv_heads"]
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda", dtype=torch.float32)
    mask = torch.ones(case["queries"], case["keys"], device="cuda", dtype=torch.bool).triu_(1) if case["causal"] else None
    for b in range(case["batch"]):
        for h in range(case["heads"]):
            s = q[b, h].float() @ k[b, h // group].float().T / case["dim"] ** 0.5
            if mask is not None:
                s.masked_fill_(mask, float("-inf"))
            lse[b, h] = s.logsumexp(-1)
            out[b, h] = (s.sub_(lse[b, h][:, None]).exp_() @ v[b, h // group].float()).to(out.dtype)
    return out, lse


def exact(case, q, k, v, d_o, kv_head):
    """Gradients of a head of K and V, and of the heads of Q that share it, in f32 by PyTorch."""
    group = case["heads"] // case["kv_heads"]
    inputs = [q[0, kv_head * group:(kv_head + 1) * group].float(), k[0, kv_head].float(), v[0, kv_head].float()]
    grads = [torch.zeros_like(x) for x in inputs]
    for g in range(group):
        one = [(inputs[0][g] if i == 0 else inputs[i]).detach().requires_grad_() for i in range(3)]
        s = one[0] @ one[1].T / case["dim"] ** 0.5
        if case["causal"]:
            s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu_(1), float("-inf"))
        got = torch.autograd.grad(s.softmax(-1) @ one[2], one, d_o[0, kv_head * group + g].float())
        grads[0][g] = got[0]
        grads[1] += got[1]
        grads[2] += got[2]
    return grads


def error_of(case, grads, right, kv_head):
    group = case["heads"] // case["kv_heads"]
    dq = grads[0][0, kv_head * group:(kv_head + 1) * group].float()
    of = [dq]
    for g in grads[1:]:
        repeated = g.shape[1] != case["kv_heads"]
        of.append(g[0, kv_head * group:(kv_head + 1) * group].float().sum(0) if repeated else g[0, kv_head].float())
    return [((a - b).square().mean() / b.square().mean()).sqrt().item() for a, b in zip(of, right)]


def measure(case, shapes, rounds):
    torch.manual_seed(1)
    size = lambda heads, rows: (case["batch"], heads, rows, case["dim"])
    q, d_o = (torch.randn(size(case["heads"], case["queries"]), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k, v = (torch.randn(size(case["kv_heads"], case["keys"]), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out, lse = forward(case, q, k, v)
    arms = {}
    for shape in shapes or ["sync"]:
        try:
            arms["cptx " + shape] = Ours(case, [q, k, v, out, d_o, lse], shape)
        except RuntimeError as why:
            print(f"  {shape}: {why}")
    for name, backend in BACKENDS.items():
        try:
            arms[name] = Peer(case, q, k, v, d_o, backend)
        except RuntimeError as why:
            print(f"  {name}: {str(why).splitlines()[0]}")
    flop = 10 * case["dim"] * case["batch"] * case["heads"] * case["queries"] * case["keys"] / (2 if case["causal"] else 1)
    kv_head = case["kv_heads"] - 1
    right = exact(case, q, k, v, d_o, kv_head)
    times, error = {name: [] for name in arms}, {}
    for name, arm in arms.items():
        arm(2)
        torch.cuda.synchronize()
        error[name] = error_of(case, arm.grads, right, kv_head)
        if not max(error[name]) < 0.02:
            raise SystemExit(f"{name} is wrong: {error[name]}")
    runs = {name: max(1, round(BURST_MS / burst(arm, 1))) for name, arm in arms.items()}
    for _ in range(rounds):
        for name, arm in arms.items():
            time.sleep(PAUSE_S)
            arm(1)
            times[name].append(burst(arm, runs[name]))
    base = error.get("cudnn") or error.get("flash")
    result = {name: {"tflops": flop / statistics.median(t) * 1e-9, "note": arms[name].parts(),
                     "error": [a / b for a, b in zip(error[name], base)] if base else error[name]} for name, t in times.items()}
    for arm in arms.values():
        arm.free()
    return result


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", action="append", default=[])
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--json")
    args = p.parse_args()
    cases = args.case or [f"{d}:{h}:{g}:{8192 // n * 2}:{n}:{n}:{mask}" for d, h, g in ((128, 16, 16), (64, 32, 32))
                          for mask in ("causal", "full") for n in (2048, 8192)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    results = {}
    for text in cases:
        print(text)
        results[text] = measure(parse(text), args.shape, args.rounds)
        for name, r in results[text].items():
            print(f"  {name:24s} {r['tflops']:7.1f} TFLOP/s  error {' '.join(f'{e:.3f}' for e in r['error'])}{r['note']}")
        sys.stdout.flush()
        torch.cuda.empty_cache()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
