#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types, gathered and scattered rows of experts, and quantized results of the GEMMs beside PyTorch, arms in turns.

   python3 bench/gemm_more.py [--rounds N] [--parts experts,types,sparse]

Needs PyTorch on a GPU, and CPTX_BENCH, the shared object of gemm_experts.c.  Every element is compared: integers exactly, others
with f32 or f64 within what their rounding explains.  Times are medians of rounds of bursts of about 8 ms.
"""

import argparse
import statistics
import time

import torch

from gemm_experts import BF16, BLOCK, BURST_MS, E4M3, PAUSE_S, Kernel, burst

ADDRESSES = ("a", "b", "d", "scale_a", "scale_b", "counts", "gather", "scatter", "weights", "scale_d", "meta")


class Ours(Kernel):
    """The first choice for options and sizes, and operands by their names."""

    def __init__(self, options, sizes, **tensors):
        super().__init__(options, 0, sizes, [tensors[name].data_ptr() if name in tensors else 0 for name in ADDRESSES])
        self.kept = tensors


def repeated(call):
    return lambda times: [call() for _ in range(times)]


def report(name, arms, flop, wrong, rounds):
    for f in arms.values():
        f(3)
    runs = {a: max(1, min(400, round(BURST_MS / max(burst(f, 2), 1e-3)))) for a, f in arms.items()}
    times = {a: [] for a in arms}
    for _ in range(rounds):
        for a, f in arms.items():
            time.sleep(PAUSE_S)
            times[a].append(burst(f, runs[a]))
    ms = {a: statistics.median(t) for a, t in times.items()}
    first = next(iter(arms))
    text = ", ".join(f"{a} {1e3 * t:.1f} us ({flop / t * 1e-9:.0f} TOP/s, {t / ms[first]:.3f})" for a, t in ms.items())
    print(f"{name}: {text}, {wrong} elements wrong", flush=True)


def far(got, want, relative, absolute):
    return (~((got - want).abs() <= want.abs() * relative + absolute)).sum().item()


def types(rounds):
    g = torch.Generator(device="cuda").manual_seed(5)
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192)):
        a = torch.randint(-128, 128, (m, k), device="cuda", dtype=torch.int8, generator=g)
        b = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8, generator=g)
        want = torch._int_mm(a, b.T)
        for mma in ("wgmma", "mma.sync"):
            d = torch.zeros(m, n, device="cuda", dtype=torch.int32)
            arm = Ours(f"mma={mma} a=s8 b=s8 out=s32" + (" tma=1" if mma == "mma.sync" else ""), (m, n, k, 0, 0), a=a, b=b, d=d)
            arm(1)
            torch.cuda.synchronize()
            report(f"s8 {m}x{n}x{k} {mma} {arm.name}", {"cptx": arm, "torch._int_mm": repeated(lambda: torch._int_mm(a, b.T))},
                   2.0 * m * n * k, (d != want).sum().item(), rounds)
        x, y = torch.randn(m, k, device="cuda", generator=g), torch.randn(n, k, device="cuda", generator=g)
        want = x.double() @ y.double().T if m < 8192 else None
        torch.backends.cuda.matmul.allow_tf32 = True
        want = want if want is not None else (x @ y.T).double()
        for mma in ("wgmma", "mma.sync"):
            d = torch.zeros(m, n, device="cuda")
            arm = Ours(f"mma={mma} a=tf32 b=tf32 out=f32" + (" tma=1" if mma == "mma.sync" else ""), (m, n, k, 0, 0), a=x, b=y, d=d)
            arm(1)
            torch.cuda.synchronize()
            wrong = far(d.double(), want, 0, 8 * k**0.5 * 2**-11)
            report(f"tf32 {m}x{n}x{k} {mma} {arm.name}", {"cptx": arm, "torch": repeated(lambda: x @ y.T)}, 2.0 * m * n * k, wrong,
                   rounds)
        p, q = (torch.randint(-2, 3, (r, k), device="cuda", generator=g).to(E4M3) for r in (m, n))
        one, d = torch.tensor(1.0, device="cuda"), torch.zeros(m, n, device="cuda", dtype=BF16)
        peer = lambda: torch._scaled_mm(p, q.T, scale_a=one, scale_b=one, out_dtype=BF16, use_fast_accum=True)
        want = (p.float() @ q.float().T).to(BF16)
        for mma in ("wgmma", "mma.sync"):
            arm = Ours(f"mma={mma} a=e4m3 b=e4m3 out=bf16" + (" tma=1" if mma == "mma.sync" else ""), (m, n, k, 0, 0), a=p, b=q, d=d)
            arm(1)
            torch.cuda.synchronize()
            report(f"e4m3 {m}x{n}x{k} {mma} {arm.name}", {"cptx": arm, "torch._scaled_mm": repeated(peer)}, 2.0 * m * n * k,
                   (d != want).sum().item(), rounds)


def sparse(rounds):
    """A of which two of four neighbours are 0, beside the same product with a dense A, and PyTorch's (cuSPARSELt)."""
    g = torch.Generator(device="cuda").manual_seed(8)
    pack = Kernel.load().experts_pack
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192)):
        for name, dtype in (("bf16", BF16), ("e4m3", E4M3), ("s8", torch.int8)):
            x, y = (torch.randint(-2, 3, (r, k), device="cuda", generator=g).float() for r in (m, n))
            x[:, 1::4] = 0
            x[:, 2::8] = 0
            x[:, 3::8] = 0
            x[:, 4::8] = 0
            a, b = x.to(dtype), y.to(dtype)
            size = a.element_size()
            values = torch.zeros(m, (k + 63) // 64 * 32 * size, dtype=torch.uint8)
            meta = torch.zeros((m + 15) // 16 * ((k + 63) // 64) * 32, dtype=torch.int32)
            host = a.cpu().view(torch.uint8)
            if pack(name.encode(), values.data_ptr(), meta.data_ptr(), host.data_ptr(), m, k):
                raise RuntimeError("not packed")
            values, meta, want = values.cuda(), meta.cuda(), x @ y.T
            peers, out = {}, "out=s32" if name == "s8" else "out=bf16"
            kind = torch.int32 if name == "s8" else BF16
            if name == "bf16":
                try:
                    packed = torch.sparse.to_sparse_semi_structured(a)
                    packed @ b.T
                    peers["torch, semi-structured"] = repeated(lambda: packed @ b.T)
                except Exception as e:  # pylint: disable=broad-except
                    print(f"no peer: {e}", flush=True)
            for mma in ("wgmma", "mma.sync"):
                tma = " tma=1" if mma == "mma.sync" else ""
                d, e = (torch.zeros(m, n, device="cuda", dtype=kind) for _ in range(2))
                arm = Ours(f"mma={mma} a={name} b={name} {out} sparse=1{tma}", (m, n, k, 0, 0), a=values, b=b, d=d, meta=meta)
                dense = Ours(f"mma={mma} a={name} b={name} {out}{tma}", (m, n, k, 0, 0), a=a, b=b, d=e)
                arm(1), dense(1)
                torch.cuda.synchronize()
                wrong = (d != want.to(kind)).sum().item() + (e != want.to(kind)).sum().item()
                report(f"sparse {name} {m}x{n}x{k} {mma} {arm.name}; dense {dense.name}", {"cptx": arm, "cptx, dense": dense, **peers},
                       2.0 * m * n * k, wrong, rounds)


def experts(rounds):
    """Tokens of which each has `top` experts: gathered, multiplied, gated and quantized; multiplied, weighed and added."""
    g, cpu = torch.Generator(device="cuda").manual_seed(6), torch.Generator().manual_seed(6)
    tokens, top, groups, hidden, inner = 8192, 2, 8, 4096, 2048
    chosen = torch.stack([torch.randperm(groups, generator=cpu)[:top] for _ in range(tokens)]).flatten()
    order = torch.argsort(chosen, stable=True).cuda()
    counts = torch.bincount(chosen, minlength=groups).to(torch.int32).cuda()
    rows, ends = tokens * top, counts.cumsum(0, dtype=torch.int32)
    token = (order // top).to(torch.int32)
    weight = torch.rand(rows, device="cuda", generator=g)
    x = torch.randn(tokens, hidden, device="cuda", dtype=BF16, generator=g)
    w1 = torch.randn(groups, 2 * inner, hidden, device="cuda", dtype=BF16, generator=g) / hidden**0.5
    w2 = torch.randn(groups, hidden, inner, device="cuda", dtype=BF16, generator=g) / inner**0.5
    size, flop = (rows, 2 * inner, hidden, groups, rows // groups), 2.0 * rows * 2 * inner * hidden
    common = "mma=wgmma a=bf16 b=bf16 experts=contiguous"

    sorted_x, at = x[token.long()].contiguous(), {"b": w1, "counts": counts}
    d0, d1 = (torch.zeros(rows, 2 * inner, device="cuda", dtype=BF16) for _ in range(2))
    plain, gathered = Ours(f"{common} out=bf16", size, a=sorted_x, d=d0, **at), Ours(f"{common} out=bf16 gather=1", size, a=x, d=d1,
                                                                                    gather=token, **at)
    plain(1), gathered(1)
    torch.cuda.synchronize()

    def copied(times):
        for _ in range(times):
            torch.index_select(x, 0, token, out=sorted_x)
            plain(1)

    def by_torch():
        return torch._grouped_mm(torch.index_select(x, 0, token), w1.transpose(1, 2), offs=ends)
    wrong = far(d1.float(), by_torch().float(), 2**-7, 2e-2)
    report(f"gather, {tokens} tokens x {top} of {groups}, N {2 * inner}, K {hidden}: {gathered.name}",
           {"cptx gathers": gathered, "cptx sorted": plain, "cptx index_select": copied, "torch index_select, _grouped_mm": repeated(by_torch)},
           flop, wrong + (d0 != d1).sum().item(), rounds)

    q, scale = torch.zeros(rows, inner, device="cuda", dtype=E4M3), torch.zeros(inner // BLOCK, (rows + 3) // 4 * 4, device="cuda")
    quantizes = Ours(f"{common} out=e4m3 gather=1 swiglu=1 scale_out=f32", size, a=x, d=q, gather=token, scale_d=scale, **at)
    quantizes(1)
    torch.cuda.synchronize()

    def gated(y):
        y = y.float().view(rows, inner // 8, 2, 8)
        return (torch.nn.functional.silu(y[:, :, 0]) * y[:, :, 1]).reshape(rows, inner)

    def gated_by_torch():
        v = gated(by_torch()).view(rows, inner // BLOCK, BLOCK)
        factor = v.abs().amax(2, keepdim=True) / 448
        return (v / factor).to(E4M3), factor
    got = (q.float().view(rows, inner // BLOCK, BLOCK) * scale[:, :rows].T[:, :, None]).view(rows, inner)
    wrong = far(got, gated(d0), 0.08, 2e-2)
    report(f"gather, SwiGLU, quantized to e4m3: {quantizes.name}", {"cptx": quantizes, "torch": repeated(gated_by_torch)}, flop, wrong,
           rounds)

    h, size, flop = got.to(BF16), (rows, hidden, inner, groups, rows // groups), 2.0 * rows * inner * hidden
    out, d2 = torch.zeros(tokens, hidden, device="cuda"), torch.zeros(rows, hidden, device="cuda", dtype=BF16)
    at = {"a": h, "b": w2, "counts": counts}
    scatters = Ours(f"{common} out=f32 scatter=1", size, d=out, scatter=token, weights=weight, **at)
    plain = Ours(f"{common} out=bf16", size, d=d2, **at)
    scatters(1), plain(1)
    torch.cuda.synchronize()
    add = lambda y: torch.zeros(tokens, hidden, device="cuda").index_add_(0, token, y.float() * weight[:, None])
    wrong = far(out, add(d2), 2**-7, 2e-2)

    def zeroed(times):
        for _ in range(times):
            out.zero_()
            scatters(1)

    def added(times):
        for _ in range(times):
            plain(1)
            add(d2)
    report(f"scatter, N {hidden}, K {inner}: {scatters.name}",
           {"cptx zeroes, scatters": zeroed, "cptx sorted (no sum of experts)": plain, "cptx sorted, index_add_": added,
            "torch _grouped_mm, index_add_": repeated(lambda: add(torch._grouped_mm(h, w2.transpose(1, 2), offs=ends)))},
           flop, wrong, rounds)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--parts", help="experts, types, sparse")
    q = p.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
    for part in (q.parts or "experts,types,sparse").split(","):
        {"experts": experts, "types": types, "sparse": sparse}[part](q.rounds)


if __name__ == "__main__":
    main()
