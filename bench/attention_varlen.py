#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention of packed sequences, forward and backward, beside PyTorch's varlen_attn (FlashAttention), in one process, arms in turns.

   PYTHONPATH=python python3 bench/attention_varlen.py [--case DIM:HEADS:KV_HEADS:full|causal:LENGTH[+LENGTH]...]... [--rounds N]

Needs PyTorch 2.10 or later on a GPU, and CPTX_LIBRARY (python/README.md).  bf16.  Each arm runs in bursts of about 20 ms with a pause
in front; figures are medians of rounds, in TFLOP/s of 4 * DIM (backward: 10 * DIM) for each score that counts.  O and the gradients
are compared, all elements, with those of each sequence alone in f32; "error" is the largest difference as a part of the largest element.
"""

import argparse
import statistics
import sys
import time

import torch
from attention import burst
from cptx.attention import attention_varlen
from torch.nn.attention.varlen import varlen_attn

BURST_MS, PAUSE_S, MOST_ERROR = 20, 0.03, 0.03


def peer(q, k, v, cu, longest, causal):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) if group > 1 else x for x in (k, v))
    try:
        return varlen_attn(q, k, v, cu, cu, longest, longest, is_causal=causal)
    except TypeError:  # later versions say it by a window
        return varlen_attn(q, k, v, cu, cu, longest, longest, window_size=(-1, 0) if causal else (-1, -1))


def ours(q, k, v, cu, longest, causal):
    return attention_varlen(q, k, v, cu, cu, longest, longest, causal=causal)


def exact(q, k, v, cu, causal, d_o):
    """O and the gradients in f32, sequence by sequence and head by head."""
    group, results = q.shape[1] // k.shape[1], [torch.zeros_like(x, dtype=torch.float32) for x in (q, q, k, v)]
    for first, end in zip(cu[:-1].tolist(), cu[1:].tolist()):
        for h in range(q.shape[1]):
            one = [x[first:end, n].float().requires_grad_() for x, n in ((q, h), (k, h // group), (v, h // group))]
            s = one[0] @ one[1].T / q.shape[-1] ** 0.5
            if causal:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu_(1), float("-inf"))
            o = s.softmax(-1) @ one[2]
            grads = torch.autograd.grad(o, one, d_o[first:end, h].float())
            results[0][first:end, h], results[1][first:end, h] = o.detach(), grads[0]
            results[2][first:end, h // group] += grads[1]
            results[3][first:end, h // group] += grads[2]
    return results


class Arm:
    def __init__(self, call, tensors, cu, longest, causal, d_o):
        self.tensors, self.d_o = [x.detach().requires_grad_() for x in tensors], d_o
        self.call = lambda: call(*self.tensors, cu, longest, causal)
        self.out = self.call()

    def forward(self, times):
        with torch.no_grad():
            for _ in range(times):
                self.call()

    def backward(self, times):
        for _ in range(times):
            self.grads = torch.autograd.grad(self.out, self.tensors, self.d_o, retain_graph=True)


def measure(dim, heads, kv_heads, causal, lengths, rounds):
    torch.manual_seed(1)
    cu = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device="cuda")
    drawn = [torch.randn(sum(lengths), n, dim, device="cuda", dtype=torch.bfloat16) for n in (heads, kv_heads, kv_heads, heads)]
    tensors, d_o = drawn[:3], drawn[3]
    right = exact(*tensors, cu, causal, d_o)
    arms, error = {}, {}
    for name, call in (("cptx", ours), ("varlen_attn", peer)):
        arms[name] = arm = Arm(call, tensors, cu, max(lengths), causal, d_o)
        arm.backward(1)
        error[name] = [((x.detach().float() - y).abs().max() / y.abs().max()).item() for x, y in zip((arm.out, *arm.grads), right)]
        if not max(error[name]) < MOST_ERROR:
            raise SystemExit(f"{name} is wrong: {error[name]}")
    scores = heads * sum(n * n for n in lengths) / (2 if causal else 1)
    for what, flop in (("forward", 4 * dim * scores), ("backward", 10 * dim * scores)):
        times = {name: [] for name in arms}
        runs = {name: max(1, round(BURST_MS / burst(getattr(arm, what), 1))) for name, arm in arms.items()}
        for _ in range(rounds):
            for name, arm in arms.items():
                time.sleep(PAUSE_S)
                getattr(arm, what)(1)
                times[name].append(burst(getattr(arm, what), runs[name]))
        for name in arms:
            ratio = statistics.median(times["varlen_attn"]) / statistics.median(times[name])
            print(f"  {what:9s} {name:12s} {flop / statistics.median(times[name]) * 1e-9:7.1f} TFLOP/s  {ratio:.3f} of varlen_attn  "
                  f"error {' '.join(f'{e:.4f}' for e in (error[name][:1] if what == 'forward' else error[name][1:]))}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", action="append", default=[])
    p.add_argument("--rounds", type=int, default=7)
    args = p.parse_args()
    ragged = "+".join(str(512 * n) for n in (8, 1, 3, 5, 2, 7, 6))
    cases = args.case or [f"{d}:16:{g}:causal:{lengths}" for d in (128, 64) for g in (16, 4) for lengths in (ragged, "4096+4096+4096+4096")]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for text in cases:
        print(text)
        dim, heads, kv_heads, mask, lengths = text.split(":")
        measure(int(dim), int(heads), int(kv_heads), mask == "causal", [int(n) for n in lengths.split("+")], args.rounds)
        sys.stdout.flush()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
