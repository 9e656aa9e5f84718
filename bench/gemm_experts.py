#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Experts and block-scaled fp8 beside PyTorch's grouped and scaled products, in one process, arms in turns.

   python3 bench/gemm_experts.py [--only bf16|fp8|dense|gradients|graph]... [--choices N] [--shape OPTIONS]... [--rounds N] [--json FILE]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of gemm_experts.c (meson compile -C build bench_gemm_experts).  The
peers: torch._grouped_mm for bf16 (also of weight gradients, whose rows lie along K), torch._scaled_grouped_mm (a factor for each row and column) for experts in fp8, torch._scaled_mm
with factors of 1 x 128 and 128 x 128 (cublasLt) for dense fp8.  PyTorch has no masked form: its arm gets the same rows sorted by
expert.  TFLOP/s of the rows that there are; medians of rounds of bursts of about 8 ms behind a pause.  Every element is compared
with f32, and rows that are no expert's must stay as they were.  --choices: so many shapes that the model likes best; --shape: others,
as "bm=128 bn=128 stages=5".  graph: a captured launch is replayed with other counts.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import torch

BURST_MS, PAUSE_S, BLOCK, POISON, ADDRESSES = 8, 0.02, 128, 12352.0, 11
SIDES = [(6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048)]
CONTIGUOUS, MASKED = [(4, 8192), (8, 4096)], [(32, 192), (6, 1024), (32, 20)]
DENSE = [(4096, 6144, 7168), (4096, 7168, 3072), (4096, 4096, 4096), (4096, 4096, 2048), (8192, 8192, 8192), (128, 7168, 4096)]
E4M3, BF16 = torch.float8_e4m3fn, torch.bfloat16


class Kernel:
    """A kernel for options as records of the tuning database have them, and a launch; sizes: M, N, K, experts, rows expected of
    one; at: device addresses, as gemm_experts.c lists them, the last of which may be left out."""

    lib = None

    @staticmethod
    def load():
        if not Kernel.lib:
            Kernel.lib = ctypes.CDLL(os.environ["CPTX_BENCH"])
            Kernel.lib.experts_new.restype = ctypes.c_void_p
            Kernel.lib.experts_error.restype = Kernel.lib.experts_shape.restype = ctypes.c_char_p
            for call in ("experts_error", "experts_shape", "experts_free"):
                getattr(Kernel.lib, call).argtypes = [ctypes.c_void_p]
            Kernel.lib.experts_run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
            Kernel.lib.experts_pack.argtypes = [ctypes.c_char_p] + 5 * [ctypes.c_uint64]
        return Kernel.lib

    def __init__(self, options, choice, sizes, at):
        Kernel.load()
        at = list(at) + [0] * (ADDRESSES - len(at))
        self.handle = Kernel.lib.experts_new(b"cuda:0", options.encode(), choice, (ctypes.c_uint64 * 5)(*sizes),
                                             (ctypes.c_uint64 * ADDRESSES)(*at))
        error = Kernel.lib.experts_error(self.handle)
        if error:
            raise RuntimeError(error.decode())
        self.name = Kernel.lib.experts_shape(self.handle).decode()

    def __call__(self, times):
        if Kernel.lib.experts_run(self.handle, times, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream or None)):
            raise RuntimeError("a launch failed")

    def close(self):
        Kernel.lib.experts_free(self.handle)


class Ours(Kernel):
    """A kernel of cptx for a case; experts: "", "contiguous" or "masked"."""

    def __init__(self, case, choice=0, shape=""):
        kind = "e4m3" if case.fp8 else "bf16"
        text = f"mma=wgmma a={kind} b={kind} out=bf16"
        text += " scale=f32" if case.fp8 else ""
        text += f" experts={case.experts}" if case.experts else ""
        text += " a_m_major=1 b_n_major=1" if case.experts == "along-k" else ""
        at = [0 if x is None else x.data_ptr() for x in (case.a, case.b, case.out, case.scale_a, case.scale_b, case.counts)]
        super().__init__(f"{text} {shape}".strip(), choice, [case.m, case.n, case.k, case.groups, case.expected], at)


def quantized(x, rows):
    """e4m3, and factors in f32, one for `rows` x 128; x: (..., R, K).  Factors: (..., ceil(R / rows), K / 128)."""
    *lead, r, k = x.shape
    pad = -r % rows
    y = torch.nn.functional.pad(x.float(), (0, 0, 0, pad)).reshape(*lead, (r + pad) // rows, rows, k // BLOCK, BLOCK)
    factor = y.abs().amax(dim=(-3, -1)).clamp(min=1e-4) / 448
    q = (y / factor[..., :, None, :, None]).to(E4M3).reshape(*lead, r + pad, k)[..., :r, :].contiguous()
    return q, factor.contiguous()


class Case:
    """Operands of a problem, and what torch makes of them."""

    def __init__(self, experts, groups, rows, n, k, fp8, room=0):
        gen = torch.Generator(device="cuda").manual_seed(groups * 7 + n + k)
        normal = lambda *size: torch.randn(*size, device="cuda", dtype=BF16, generator=gen)
        self.experts, self.groups, self.n, self.k, self.fp8, self.expected = experts, groups, n, k, fp8, rows
        share = torch.rand(groups, generator=torch.Generator().manual_seed(3)) * 0.6 + 0.7
        self.rows = [max(1, int(rows * s)) for s in share] if experts else [rows]
        self.m = room if experts == "masked" else sum(self.rows)
        total = groups * room if experts == "masked" else self.m
        self.first = [g * room if experts == "masked" else sum(self.rows[:g]) for g in range(len(self.rows))]
        a, b = normal(total, k), normal(groups, n, k)
        self.out = torch.full((total, n), POISON, device="cuda", dtype=BF16)
        self.counts = torch.tensor(self.rows, device="cuda", dtype=torch.int32) if experts else None
        self.a, self.b, self.scale_a, self.scale_b, self.factors = a, b, None, None, None
        if fp8:
            self.a, fa = quantized(a, 1)
            self.b, fb = zip(*(quantized(b[g], BLOCK) for g in range(groups)))
            self.b, fb = torch.stack([x.view(torch.uint8) for x in self.b]).view(E4M3), torch.stack(fb)
            pitch = (total + 3) & ~3
            self.scale_a = torch.zeros(k // BLOCK, pitch, device="cuda")
            self.scale_a[:, :total] = fa.T
            self.scale_b, self.factors = fb.contiguous(), (fa, fb)
        self.flop = 2.0 * sum(self.rows) * n * k
        self.name = f"{experts or 'dense'} {groups} x {rows}, N {n}, K {k}, {'fp8' if fp8 else 'bf16'}"

    def pieces(self):
        return [(g, slice(f, f + r)) for g, (f, r) in enumerate(zip(self.first, self.rows))]

    def plain(self, g, rows):
        """A and B of an expert in f32."""
        a, b = self.a[rows].float(), self.b[g].float()
        if self.fp8:
            fa, fb = self.factors
            a = a * fa[rows].repeat_interleave(BLOCK, 1)
            b = b * fb[g].repeat_interleave(BLOCK, 0)[: self.n].repeat_interleave(BLOCK, 1)
        return a, b

    def wrong(self):
        """Elements that differ from f32 by more than bf16 and the order of sums explain, and touched rows of nobody."""
        left, wrong = torch.ones(self.out.shape[0], dtype=torch.bool, device="cuda"), 0
        torch.backends.cuda.matmul.allow_tf32 = False
        for g, rows in self.pieces():
            a, b = self.plain(g, rows)
            want = a @ b.T
            allowed = want.abs() * 2**-7 + 2e-4 * a.norm(dim=1)[:, None] * b.norm(dim=1)[None, :]
            wrong += ((self.out[rows].float() - want).abs() > allowed).sum().item()
            wrong += self.out[rows].isnan().sum().item()
            left[rows] = False
        return wrong + (self.out[left] != POISON).sum().item()


class Gradients:
    """Weight gradients of experts: rows of A and B along K, and a D for each."""

    def __init__(self, groups, rows, m, n):
        gen = torch.Generator(device="cuda").manual_seed(groups + m + n)
        share = torch.rand(groups, generator=torch.Generator().manual_seed(3)) * 0.6 + 0.7
        self.experts, self.groups, self.m, self.n, self.expected, self.fp8 = "along-k", groups, m, n, rows, False
        self.rows = [max(8, int(rows * s) // 8 * 8) for s in share]  # PyTorch wants multiples of 16 bytes
        self.k = sum(self.rows)
        self.a = torch.randn(self.k, m, device="cuda", dtype=BF16, generator=gen)
        self.b = torch.randn(self.k, n, device="cuda", dtype=BF16, generator=gen)
        self.out = torch.full((groups, m, n), POISON, device="cuda", dtype=BF16)
        self.counts = torch.tensor(self.rows, device="cuda", dtype=torch.int32)
        self.scale_a = self.scale_b = None
        self.flop = 2.0 * self.k * m * n
        self.name = f"gradients {groups} x {rows}, M {m}, N {n}, bf16"

    def wrong(self):
        first, wrong = 0, 0
        for g, r in enumerate(self.rows):
            a, b = self.a[first:first + r].float(), self.b[first:first + r].float()
            want = a.T @ b
            allowed = want.abs() * 2**-7 + 2e-4 * a.norm(dim=0)[:, None] * b.norm(dim=0)[None, :]
            wrong += ((self.out[g].float() - want).abs() > allowed).sum().item() + self.out[g].isnan().sum().item()
            first += r
        return wrong


def packed_rows(case):
    """The rows of all experts behind one another."""
    a = case.a.view(torch.uint8) if case.fp8 else case.a
    return torch.cat([a[rows] for _, rows in case.pieces()]).contiguous().view(case.a.dtype)


def peer_of(case):
    """PyTorch's arm: a function without arguments, and its name."""
    ends = torch.tensor(case.rows, device="cuda", dtype=torch.int32).cumsum(0, dtype=torch.int32)
    if isinstance(case, Gradients):
        return lambda: torch._grouped_mm(case.a.T, case.b, offs=ends), "torch._grouped_mm along K"
    a = packed_rows(case)
    b = case.b.transpose(-2, -1)
    if case.experts and not case.fp8:
        return lambda: torch._grouped_mm(a, b, offs=ends), "torch._grouped_mm"
    if case.experts:
        sa, sb = torch.ones(a.shape[0], device="cuda"), torch.ones(case.groups, case.n, device="cuda")
        return lambda: torch._scaled_grouped_mm(a, b, sa, sb, offs=ends, out_dtype=BF16), "torch._scaled_grouped_mm by rows"
    fa, fb = case.factors
    sa = fa.T.contiguous().T
    rows = fb.shape[2]
    padded = torch.zeros(fb.shape[1], (rows + 3) // 4 * 4, device="cuda")
    padded[:, :rows] = fb[0]
    sb = padded.T[:rows]
    return lambda: torch._scaled_mm(a, b[0], scale_a=sa, scale_b=sb, out_dtype=BF16), "torch._scaled_mm by blocks (cublasLt)"


def burst(arm, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    arm(times)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / times


def measure(case, choices, shapes, rounds):
    arms, wrong = {}, 0
    for choice, shape in [(i, "") for i in range(choices)] + [(0, s) for s in shapes]:
        try:
            arm = Ours(case, choice, shape)
        except RuntimeError as why:
            print(f"  {shape or choice}: {str(why).splitlines()[0]}", flush=True)
            continue
        case.out.fill_(POISON)
        arm(1)
        torch.cuda.synchronize()
        wrong += case.wrong()
        arms[f"cptx {len(arms)}: {arm.name}"] = arm
    peer = None
    try:
        call, peer = peer_of(case)
        got = call()
        arms[peer] = lambda times: [call() for _ in range(times)]
        if not case.experts:
            mine, case.out = case.out, got
            if case.wrong():
                print(f"  {peer}: {case.wrong()} elements are wrong", flush=True)
            case.out = mine
    except Exception as why:  # what PyTorch has here depends on its version and card
        print(f"  no peer: {str(why).splitlines()[0]}", flush=True)
    times = {name: [] for name in arms}
    runs = {name: max(1, min(400, round(BURST_MS / max(burst(arm, 2), 1e-3)))) for name, arm in arms.items()}
    for _ in range(rounds):
        for name, arm in arms.items():
            time.sleep(PAUSE_S)
            times[name].append(burst(arm, runs[name]))
    result = {name: case.flop / statistics.median(t) * 1e-9 for name, t in times.items()}
    for arm in arms.values():
        if isinstance(arm, Ours):
            arm.close()
    return result, peer, wrong


def report(case, result, peer, wrong):
    ours = {name: v for name, v in result.items() if name != peer}
    if not ours:
        return None
    first, best = next(iter(ours)), max(ours, key=ours.get)
    base = result.get(peer)
    ratio = lambda v: f"{v / base:.3f}" if base else "-"
    print(f"{case.name}: first {ours[first]:.1f} ({ratio(ours[first])}), best {ours[best]:.1f} ({ratio(ours[best])}) by {best}, "
          f"{peer} {base or 0:.1f} TFLOP/s{f', {wrong} ELEMENTS ARE WRONG' if wrong else ''}", flush=True)
    return (ours[first] / base, ours[best] / base) if base else None


def geometric(values):
    return statistics.geometric_mean(values) if values else 0


def graph_replay():
    """A launch captured once, and replayed with other counts, which only the device has."""
    for experts, room in (("contiguous", 0), ("masked", 512)):
        for fp8 in (False, True):
            case = Case(experts, 8, 200, 1024, 1024, fp8, room)
            arm, graph = Ours(case), torch.cuda.CUDAGraph()
            arm(1)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                arm(1)
            all_rows = sum(case.rows)
            trials = [case.rows, case.rows[::-1], [0] * 7 + [min(all_rows, room or all_rows)], [1] * 8, [0] * 8]
            wrong = 0
            for rows in trials:
                case.rows = rows
                case.first = [g * room if room else sum(rows[:g]) for g in range(8)]
                case.counts.copy_(torch.tensor(rows, dtype=torch.int32))
                case.out.fill_(POISON)
                graph.replay()
                torch.cuda.synchronize()
                wrong += case.wrong()
            print(f"graph, {experts}, {'fp8' if fp8 else 'bf16'}: {len(trials)} replays with other counts, {wrong} elements wrong",
                  flush=True)
            arm.close()


def cases_of(what):
    fp8 = what != "bf16"
    if what == "dense":
        return [lambda s=s: Case("", 1, s[0], s[1], s[2], True) for s in DENSE]
    if what == "gradients":
        return [lambda g=g, n=n, k=k: Gradients(*g, n, k) for g in CONTIGUOUS for n, k in SIDES]
    cases = [lambda g=g, n=n, k=k: Case("contiguous", *g, n, k, fp8) for g in CONTIGUOUS for n, k in SIDES]
    return cases + [lambda g=g, n=n, k=k: Case("masked", *g, n, k, fp8, 2048 if g[1] > 512 else 512) for g in MASKED for n, k in SIDES]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only", action="append", choices=["bf16", "fp8", "dense", "gradients", "graph"])
    p.add_argument("--choices", type=int, default=3)
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--budget", type=float, default=1e9, help="seconds after which no case is begun")
    p.add_argument("--json")
    q = p.parse_args()
    begun, kept = time.time(), {}
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
    for what in q.only or ["graph", "dense", "bf16", "fp8", "gradients"]:
        if what == "graph":
            graph_replay()
            continue
        ratios = []
        for make in cases_of(what):
            if time.time() - begun > q.budget:
                print("  out of time", flush=True)
                break
            case = make()
            result, peer, wrong = measure(case, q.choices, q.shape, q.rounds)
            kept[case.name] = result
            ratios.append(report(case, result, peer, wrong))
            del case
            torch.cuda.empty_cache()
        ratios = [r for r in ratios if r]
        if ratios:
            print(f"{what}: of the peer in geometric mean first {geometric([r[0] for r in ratios]):.3f}, "
                  f"best {geometric([r[1] for r in ratios]):.3f}, least {min(r[0] for r in ratios):.3f}, "
                  f"{min(r[1] for r in ratios):.3f}", flush=True)
    if q.json:
        with open(q.json, "w") as f:
            json.dump(kept, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
