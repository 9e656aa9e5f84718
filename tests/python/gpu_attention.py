#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cptx.attention with PyTorch on a GPU: results and errors beside PyTorch's, opcheck, gradcheck, torch.compile.

    CPTX_LIBRARY=libcptx.so python3 tests/python/gpu_attention.py

The last line is "attention_gpu: N passed, N failed, N skipped".  Without a GPU everything is skipped.
"""

import sys
import unittest
from unittest import mock

import runner

torch = runner.optional("torch")
GPU = torch is not None and torch.cuda.is_available()
if GPU:
    from cptx.attention import attention, attention_varlen, decode, decode_mla


def reference(q, k, v, causal=False, window=None, softcap=None, scale=None, sinks=None):
    """In the type of the operands, by PyTorch's own operators; the last query stands at the last key."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    place = torch.arange(q.shape[2], device=q.device)[:, None] + k.shape[2] - q.shape[2]
    key = torch.arange(k.shape[2], device=q.device)[None, :]
    counts = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    if causal:
        counts &= key <= place
    if window:
        counts &= (key >= place - window[0]) & (key <= place + window[1])
    s = s.masked_fill(~counts, float("-inf"))
    if sinks is not None:
        s = torch.cat((s, sinks.to(s.dtype)[None, :, None, None].expand(*s.shape[:3], 1)), -1)
    p = torch.softmax(s.float() if s.dtype != torch.float64 else s, -1).to(v.dtype)
    return (p[..., :k.shape[2]] if sinks is not None else p) @ v


def drawn(shapes, dtype, seed=1):
    g = torch.Generator("cuda").manual_seed(seed)
    return [torch.randn(s, device="cuda", generator=g).to(dtype).requires_grad_() for s in shapes]


def results(call, tensors, dtype, d_o=None):
    """O, and all gradients for d_o."""
    tensors = [t.detach().to(dtype).requires_grad_(d_o is not None) for t in tensors]
    o = call(*tensors)
    return [t.detach() for t in (o, *(torch.autograd.grad(o, tensors, d_o.to(dtype)) if d_o is not None else ()))]


def error(a, exact):
    return float((a.double() - exact).abs().max() / (exact.abs().max() + 1e-30))


@unittest.skipUnless(GPU, "there is no GPU that PyTorch sees")
class PyTorch(unittest.TestCase):
    def assert_as_good(self, ours, theirs, tensors, dtype, d_o=None, what=""):
        """The largest error against f64 is no more than that of PyTorch's operators in the same type (and half as much again,
        for the largest of many is a matter of luck)."""
        exact = results(theirs, tensors, torch.float64, d_o)
        mine, other = (results(f, tensors, dtype, d_o) for f in (ours, theirs))
        for name, a, b, x in zip(("o", "dq", "dk", "dv"), mine, other, exact):
            self.assertLessEqual(error(a, x), error(b, x) * 1.5, f"{what} {name}")

    def test_errors(self):
        for dtype in (torch.float16, torch.bfloat16):
            for what, shapes, settings, differentiable in (
                    ("full", ((2, 4, 300, 128), (2, 4, 260, 128)), {}, True),
                    ("causal, GQA", ((1, 6, 513, 64), (1, 2, 700, 64)), {"causal": True}, True),
                    ("window, heads of 40", ((1, 2, 300, 40), (1, 2, 300, 40)), {"window": (50, 20)}, True),
                    ("soft cap", ((1, 2, 200, 96), (1, 2, 300, 96)), {"softcap": 3.0, "scale": 0.2}, True),
                    ("heads of 256", ((1, 2, 100, 256), (1, 1, 200, 256)), {"causal": True}, False)):
                with self.subTest(what=what, dtype=dtype):
                    q, k, v = drawn((shapes[0], shapes[1], shapes[1]), dtype)
                    d_o = torch.randn(q.shape, device="cuda").to(dtype) if differentiable else None
                    self.assert_as_good(lambda q, k, v: attention(q, k, v, **settings), lambda q, k, v: reference(q, k, v, **settings),
                                        (q, k, v), dtype, d_o, what)

    def test_sinks_and_lse(self):
        q, k, v = (x.detach() for x in drawn(((1, 4, 90, 64), (1, 2, 70, 64), (1, 2, 70, 64)), torch.bfloat16))
        sinks = torch.randn(4, device="cuda")
        d_o = torch.randn_like(q)
        grads = []
        for call, dtype in ((attention, torch.bfloat16), (reference, torch.float64)):
            x = [t.detach().to(dtype).requires_grad_() for t in (q, k, v)] + [sinks.clone().requires_grad_()]
            grads.append(torch.autograd.grad(call(*x[:3], sinks=x[3]), x, d_o.to(dtype)))
        for a, b in zip(*grads):
            self.assertLess(error(a, b.double()), 0.03)
        alone = sinks.clone().requires_grad_()
        o = attention(q, k, v, sinks=alone)
        with mock.patch.object(torch.ops.cptx, "attention_backward", side_effect=AssertionError("nothing but sinks has a gradient")):
            d_sinks, = torch.autograd.grad(o, alone, d_o)
        self.assertTrue(torch.equal(d_sinks, grads[0][3]))
        self.assertLess(error(o.detach(), reference(q.double(), k.double(), v.double(), sinks=sinks)), 0.02)
        _, lse = attention(q, k, v, lse=True)
        exact = torch.logsumexp(q.double() @ k.repeat_interleave(2, 1).double().transpose(-1, -2) / 8, -1)
        self.assertLess(float((lse - exact).abs().max()), 1e-3)

    def test_strides(self):
        """Heads beside one another, as models have them, a batch that is expanded, and nothing at all."""
        q, k, v = (x.detach().transpose(1, 2) for x in drawn(((2, 65, 4, 64), (2, 80, 4, 64), (2, 80, 4, 64)), torch.float16))
        q, k, v = (x.requires_grad_() for x in (q, k, v))
        o = attention(q, k, v)
        self.assertEqual(o.stride(), q.stride())
        same = attention(*(x.contiguous() for x in (q, k, v)))
        self.assertTrue(torch.equal(o, same))
        one = k[:1].detach()
        self.assertTrue(torch.equal(attention(q, one.expand(2, -1, -1, -1), v), attention(q, one.repeat(2, 1, 1, 1), v)))
        o.sum().backward()
        self.assertEqual((q.grad.shape, k.grad.shape), (q.shape, k.shape))
        self.assertEqual(attention(q[:0], k[:0], v[:0]).shape, (0, 4, 65, 64))
        self.assertFalse(attention(q, k[:, :, :0], v[:, :, :0]).any())
        dk, = torch.autograd.grad(attention(q[:, :, :0], k, v).sum(), k)
        self.assertFalse(dk.any())

    def test_packed(self):
        lengths, rows = (30, 0, 171), 201
        q, k, v = drawn(((rows, 4, 64), (rows, 2, 64), (rows, 2, 64)), torch.bfloat16)
        cu = torch.tensor([0, 30, 30, 201], dtype=torch.int32, device="cuda")
        o, lse = attention_varlen(q, k, v, cu, cu, 171, 171, causal=True, lse=True, deterministic=True)
        d_o = torch.randn(o.shape, device="cuda").bfloat16()
        grads = torch.autograd.grad(o, (q, k, v), d_o)
        for first, n in zip((0, 30, 30), lengths):
            if n:
                alone = [x[first:first + n].transpose(0, 1)[None].detach().requires_grad_() for x in (q, k, v)]
                one, l = attention(*alone, causal=True, lse=True, deterministic=True)
                for dx, packed in zip(torch.autograd.grad(one, alone, d_o[first:first + n].transpose(0, 1)[None]), grads):
                    self.assertTrue(torch.equal(packed[first:first + n], dx[0].transpose(0, 1)))
                self.assertTrue(torch.equal(o[first:first + n], one[0].transpose(0, 1)))
                self.assertTrue(torch.equal(lse[:, first:first + n], l[0]))

    def test_rows_of_no_sequence(self):
        """Rows in front of the first sequence and behind the last: zeros in O and gradients, LSE of -infinity, and no part in the
        sinks' gradient, whatever memory had before."""
        rows, first, n = 150, 7, 100
        q, k, v = drawn(((rows, 4, 64), (rows, 2, 64), (rows, 2, 64)), torch.bfloat16)
        sinks = torch.randn(4, device="cuda").requires_grad_()
        cu = torch.tensor([first, first + n], dtype=torch.int32, device="cuda")
        inside = torch.zeros(rows, dtype=torch.bool, device="cuda")
        inside[first:first + n] = True
        junk = [torch.full((rows, 4, 64), float("nan"), dtype=torch.bfloat16, device="cuda") for _ in range(8)]
        del junk  # the allocator gives it to the results
        o, lse = attention_varlen(q, k, v, cu, cu, n, n, causal=True, sinks=sinks, lse=True, deterministic=True)
        d_o = torch.randn(o.shape, device="cuda").bfloat16()
        grads = torch.autograd.grad(o, (q, k, v, sinks), d_o)
        alone = [x[inside].transpose(0, 1)[None].detach().requires_grad_() for x in (q, k, v)] + [sinks.detach().requires_grad_()]
        one, l = attention(*alone[:3], sinks=alone[3], causal=True, lse=True, deterministic=True)
        want = torch.autograd.grad(one, alone, d_o[inside].transpose(0, 1)[None])
        for x, y in ((o, one.detach()), *zip(grads[:3], want[:3])):
            self.assertFalse(x[~inside].any())
            self.assertTrue(torch.equal(x[inside], y[0].transpose(0, 1)))
        self.assertTrue((lse[:, ~inside] == float("-inf")).all())
        self.assertTrue(torch.equal(lse[:, inside], l[0]))
        self.assertLess(error(grads[3], want[3].double()), 1e-4)

    def test_decode(self):
        q, k, v = (x.detach() for x in drawn(((3, 8, 2, 128), (3, 2, 320, 128), (3, 2, 320, 128)), torch.bfloat16))
        lengths = torch.tensor([320, 77, 2], dtype=torch.int32, device="cuda")
        o = decode(q, k, v, lengths=lengths)
        pages = torch.randperm(60, device="cuda", dtype=torch.int32).reshape(3, 20)
        paged = [torch.empty(60, 2, 16, 128, dtype=x.dtype, device="cuda") for x in (k, v)]
        for to, x in zip(paged, (k, v)):
            to[pages.flatten().long()] = x.reshape(3, 2, 20, 16, 128).transpose(1, 2).reshape(60, 2, 16, 128)
        self.assertTrue(torch.equal(o, decode(q, *paged, lengths=lengths, pages=pages)))
        for i, n in enumerate(lengths.tolist()):
            exact = reference(*(x[i:i + 1].double() for x in (q, k[:, :, :n], v[:, :, :n])), causal=True)
            self.assertLess(error(o[i:i + 1], exact), 0.02)

    @unittest.skipUnless(GPU and torch.cuda.get_device_capability() == (9, 0), "MLA is for sm_90a")
    def test_decode_mla(self):
        """Keys behind the last of a sequence are NaN."""
        q, cache = (x.detach() for x in drawn(((3, 24, 2, 576), (3, 1, 320, 576)), torch.bfloat16))
        counts = [320, 77, 2]
        lengths = torch.tensor(counts, dtype=torch.int32, device="cuda")
        for i, n in enumerate(counts):
            cache[i, :, n:] = float("nan")
        o = decode_mla(q, cache, 512, lengths=lengths, scale=0.05)
        pages = torch.randperm(15, device="cuda", dtype=torch.int32).reshape(3, 5)
        paged = torch.empty(15, 1, 64, 576, dtype=cache.dtype, device="cuda")
        paged[pages.flatten().long()] = cache.reshape(15, 1, 64, 576)
        self.assertTrue(torch.equal(o, decode_mla(q, paged, 512, lengths=lengths, pages=pages, scale=0.05)))
        for i, n in enumerate(counts):
            k = cache[i:i + 1, :, :n].double()
            self.assertLess(error(o[i:i + 1], reference(q[i:i + 1].double(), k, k[..., :512], causal=True, scale=0.05)), 0.02)

    @unittest.skipUnless(GPU and torch.cuda.get_device_capability() == (9, 0), "e4m3 is for sm_90a")
    def test_e4m3(self):
        """As far from f64 as eight bits are: within 6 % of the largest."""
        q, k, v = (x.detach().to(torch.float8_e4m3fn) for x in drawn(((2, 4, 150, 128), (2, 2, 300, 128), (2, 2, 300, 128)), torch.float32))
        o = attention(q, k, v, causal=True, scale=0.05, v_scale=0.5)
        self.assertEqual(o.dtype, torch.bfloat16)
        self.assertLess(error(o, reference(q.double(), k.double(), v.double() * 0.5, causal=True, scale=0.05)), 0.06)
        lengths = torch.tensor([0, 150], dtype=torch.int32, device="cuda"), torch.tensor([0, 300], dtype=torch.int32, device="cuda")
        packed = attention_varlen(*(x[0].transpose(0, 1).contiguous() for x in (q, k, v)), *lengths, 150, 300, causal=True, scale=0.05, v_scale=0.5)
        self.assertTrue(torch.equal(packed.transpose(0, 1), o[0]))

    def test_refusals(self):
        q, k, v = drawn(((1, 2, 9, 64),) * 3, torch.bfloat16)
        for words, call in (("float32", lambda: attention(*(x.float() for x in (q, k, v)))),
                            ("the last dimension alone", lambda: attention(q, k[..., :32], v)),
                            ("2 heads of Q, and 3", lambda: attention(q, *(x.repeat(1, 2, 1, 1)[:, :3] for x in (k, v)))),
                            ("pages must be|pages is of", lambda: decode(q, k, v, pages=torch.zeros(1, 4, device="cuda")))):
            with self.assertRaisesRegex((ValueError, TypeError), words):
                call()

    def test_opcheck(self):
        q, k, v = drawn(((2, 4, 20, 64), (2, 2, 30, 64), (2, 2, 30, 64)), torch.bfloat16)
        plain = [x.detach() for x in (q, k, v)]
        sinks, cu = torch.randn(4, device="cuda"), torch.tensor([0, 8, 20], dtype=torch.int32, device="cuda")
        packed = [torch.randn(20, 4, 64, device="cuda").half() for _ in range(3)]
        lengths = torch.tensor([30, 7], dtype=torch.int32, device="cuda")
        settings = (0.0, True, False, -1, -1, 0.0, 0.0, True)
        o, lse = torch.ops.cptx.attention(*plain, None, None, None, 0, 0, *settings)
        differentiable = [x.clone().requires_grad_() for x in (*packed, sinks)]
        packed_o, packed_lse = torch.ops.cptx.attention(*packed, None, cu, cu, 12, 12, *settings)
        mla = [torch.randn(shape, device="cuda").bfloat16() for shape in ((2, 4, 1, 192), (2, 1, 30, 192))]
        of_mla = [("attention_decode_mla", (*mla, 128, lengths, None, True, 0.0, 0.0))] if torch.cuda.get_device_capability() == (9, 0) else []
        for op, args in (*of_mla, ("attention", (q, k, v, None, None, None, 0, 0, *settings)),
                         ("attention", (*plain, sinks, None, None, 0, 0, *settings)),
                         ("attention", (*packed, None, cu, cu, 12, 12, *settings)),
                         ("attention", (*differentiable, cu, cu, 12, 12, *settings)),
                         ("attention_backward", (torch.ones_like(packed_o), *packed, packed_o, packed_lse, cu, cu, 12, 12, True, False, -1, -1,
                                                 0.0, 0.0, True)),
                         ("attention_backward", (torch.ones_like(o), *plain, o, lse, None, None, 0, 0, True, False, -1, -1, 0.0, 0.0, True)),
                         ("attention_decode", (*(x[:, :, :n] for x, n in zip(plain, (2, 30, 30))), lengths, None, True, -1, 0.0, 0.0))):
            with self.subTest(op=op):
                torch.library.opcheck(getattr(torch.ops.cptx, op).default, args)

    def test_gradcheck(self):
        """Differences of f16, so with a wide step and a wide bound."""
        tensors = [x.detach().requires_grad_() for x in drawn(((1, 2, 3, 8), (1, 1, 4, 8), (1, 1, 4, 8)), torch.float32)]
        for settings in ({}, {"causal": True}, {"window": (1, 1)}, {"softcap": 1.5}):
            with self.subTest(settings=settings):
                call = lambda *x: attention(*(t.half() for t in x), deterministic=True, **settings).float()  # noqa: E731
                self.assertTrue(torch.autograd.gradcheck(call, tensors, eps=6e-2, atol=4e-2, rtol=4e-2, nondet_tol=0))

    def test_compile(self):
        def block(x, w):
            q, k, v = (x @ w).reshape(2, -1, 3, 4, 64).permute(2, 0, 3, 1, 4)
            return attention(q, k, v, causal=True).transpose(1, 2).reshape(2, -1, 256)
        x, w = drawn(((2, 150, 128), (128, 768)), torch.bfloat16)
        w = (w / 12).detach().requires_grad_()
        compiled = torch.compile(block, fullgraph=True)
        mine, theirs = (torch.autograd.grad(f(x, w).float().square().sum(), (x, w)) for f in (compiled, block))
        for a, b in zip(mine, theirs):
            self.assertLess(error(a, b.double()), 2e-2)


if __name__ == "__main__":
    sys.exit(runner.main("attention_gpu", (PyTorch,)))
