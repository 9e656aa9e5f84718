#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cptx.rows with PyTorch on a GPU: results and errors beside PyTorch's, opcheck, gradcheck, torch.compile.

    CPTX_LIBRARY=libcptx.so python3 tests/python/gpu_rows.py

The last line is "rows_gpu: N passed, N failed, N skipped".  Without a GPU everything is skipped.
"""

import sys
import unittest

import runner

torch = runner.optional("torch")
GPU = torch is not None and torch.cuda.is_available()
if GPU:
    import torch.nn.functional as F

    from cptx import rows


def references():
    """By name: the call, PyTorch's, and how many tensors of rows and of weights they take."""
    return {
        "rms_norm": (lambda x, w: rows.rms_norm(x, w), lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5), 1, 1),
        "add_rms_norm": (lambda x, r, w: rows.add_rms_norm(x, r, w)[0], lambda x, r, w: F.rms_norm(x + r, x.shape[-1:], w, 1e-5), 2, 1),
        "layer_norm": (lambda x, w, b: rows.layer_norm(x, w, b), lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5), 1, 2),
        "softmax": (lambda x: rows.softmax(x), lambda x: torch.softmax(x, -1), 1, 0),
        "log_softmax": (lambda x: rows.log_softmax(x), lambda x: torch.log_softmax(x, -1), 1, 0),
        "swiglu": (lambda x, y: rows.swiglu(x, y), lambda x, y: F.silu(x) * y, 2, 0),
        "geglu": (lambda x, y: rows.geglu(x, y), lambda x, y: F.gelu(x) * y, 2, 0),
        "gelu": (lambda x: rows.gelu(x), F.gelu, 1, 0),
        "gelu by tanh": (lambda x: rows.gelu(x, tanh=True), lambda x: F.gelu(x, approximate="tanh"), 1, 0),
        "column_sum": (lambda x: rows.column_sum(x), lambda x: x.sum(0), 1, 0),
    }


def drawn(count, weights, shape, dtype, seed=1):
    g = torch.Generator("cuda").manual_seed(seed)
    def draw(s):
        return torch.randn(s, device="cuda", generator=g).to(dtype).requires_grad_()
    return [draw(shape) for _ in range(count)] + [draw(shape[-1:]) for _ in range(weights)]


def results(call, tensors, dtype):
    """A result and all gradients, for a gradient of the result that is the same for all dtypes."""
    tensors = [t.detach().to(dtype).requires_grad_() for t in tensors]
    y = call(*tensors)
    dy = torch.sin(torch.arange(y.numel(), device="cuda", dtype=torch.float32)).to(torch.bfloat16).to(y.dtype).reshape(y.shape)
    return [t.detach() for t in (y, *torch.autograd.grad(y, tensors, dy))]


@unittest.skipUnless(GPU, "there is no GPU that PyTorch sees")
class PyTorch(unittest.TestCase):
    def test_errors(self):
        """The largest error against f64 is no larger than PyTorch's."""
        for name, (ours, theirs, count, weights) in references().items():
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                for shape in ((64, 1000), (33, 4096), (5, 65536), *(((131072, 512),) if weights and dtype == torch.float32 else ())):
                    with self.subTest(name=name, dtype=dtype, shape=shape):
                        tensors = drawn(count, weights, shape, dtype)
                        exact = results(theirs, tensors, torch.float64)
                        errors = []
                        for call in (ours, theirs):
                            errors.append([float((a.double() - b).abs().max() / (b.abs().max() + 1e-30)) for a, b in
                                           zip(results(call, tensors, dtype), exact)])
                        for i, (a, b) in enumerate(zip(*errors)):
                            if a > b * 1.0:
                                print(f"{name} {dtype} {shape} {'result' if not i else f'gradient {i}'}: {a:.3g}, PyTorch's {b:.3g}")
                            self.assertLessEqual(a, max(b * 2, 3e-7 if dtype == torch.float32 else 0), i)

    def test_cross_entropy(self):
        for n, kind in ((1000, torch.int64), (131072, torch.int32)):
            x = torch.randn(32, n, device="cuda")
            target = torch.randint(0, n, (32,), device="cuda")
            target[3] = -100
            for smoothing in (0.0, 0.1):
                a, b = x.clone().requires_grad_(), x.double().requires_grad_()
                mine = rows.cross_entropy(a, target.to(kind), smoothing)
                exact = F.cross_entropy(b, target, label_smoothing=smoothing)
                mine.backward(), exact.backward()
                self.assertLess(abs(float(mine.detach()) - float(exact.detach())), 1e-5)
                self.assertLess(float((a.grad - b.grad).abs().max()), 1e-6)

    def test_rotary_and_quantize(self):
        x = torch.randn(2, 7, 3, 64, device="cuda", requires_grad=True)
        angle = torch.randn(7, 32, device="cuda")
        cos, sin = angle.cos(), angle.sin()
        y = rows.rotary(x, cos, sin)
        c, s = cos[:, None], sin[:, None]
        want = torch.cat((x[..., :32] * c - x[..., 32:] * s, x[..., 32:] * c + x[..., :32] * s), -1)
        self.assertLess(float((y - want).abs().max()), 1e-5)
        dy = torch.randn_like(y)
        mine, = torch.autograd.grad(y, x, dy)
        theirs, = torch.autograd.grad(want, x, dy)
        self.assertLess(float((mine - theirs).abs().max()), 1e-5)
        q, scale = rows.quantize(x.detach(), block=32)
        back = q.float().reshape(2, 7, 3, 2, 32) * scale[..., None]
        self.assertLess(float((back.reshape(x.shape) - x.detach()).abs().max()), 0.3)
        self.assertTrue(torch.equal(rows.argmax(x), x.argmax(-1)))

    def test_fp4(self):
        sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device="cuda")
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(33, 64, device="cuda").to(dtype)
            y, scale = rows.quantize(x, block=16, fp4=True)
            codes = torch.stack((y & 15, y >> 4), -1).reshape(x.shape).long()
            back = (sizes[codes & 7] * torch.where(codes > 7, -1, 1)).reshape(33, 4, 16) * scale[..., None]
            apart = (back.reshape(x.shape) - x.float()).abs() / scale.repeat_interleave(16, -1)
            self.assertLessEqual(float(apart.max()), 1.001)  # half of the distance of 4 and 6
            nearest = (x.float().abs() / scale.repeat_interleave(16, -1))[..., None] - sizes
            self.assertTrue(bool((apart <= nearest.abs().amin(-1) + 1e-5).all()))

    def test_rotary_of_pairs(self):
        x = torch.randn(2, 7, 3, 64, device="cuda", requires_grad=True)
        angle = torch.randn(7, 32, device="cuda")
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        first, second = x[..., ::2], x[..., 1::2]
        want = torch.stack((first * c - second * s, second * c + first * s), -1).reshape(x.shape)
        y = rows.rotary(x, angle.cos(), angle.sin(), pairs=True)
        self.assertLess(float((y - want).abs().max()), 1e-5)
        dy = torch.randn_like(y)
        mine, = torch.autograd.grad(y, x, dy)
        theirs, = torch.autograd.grad(want, x, dy)
        self.assertLess(float((mine - theirs).abs().max()), 1e-5)

    def test_transpose(self):
        for shape in ((64, 256), (3, 17, 1001), (4097, 130)):
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.randn(shape, device="cuda").to(dtype)
                self.assertTrue(torch.equal(rows.transpose(x), x.reshape(-1, shape[-1]).T))

    def test_top_k(self):
        for shape, k in (((64, 256), 8), ((9, 5000), 64), ((3, 131072), 20), ((2, 5, 17), 17)):
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.randperm(shape[-1], device="cuda")[:shape[-1]].to(torch.float32).expand(shape).contiguous()
                x = (x / 64).to(dtype).requires_grad_()
                top, at = rows.top_k(x, k)
                want = torch.topk(x, k)
                self.assertTrue(torch.equal(top, want.values))
                self.assertTrue(torch.equal(torch.gather(x, -1, at), top))
                dy = torch.randn_like(top)
                self.assertTrue(torch.equal(torch.autograd.grad(top, x, dy)[0], torch.zeros_like(x).scatter_add(-1, at, dy)))

    def test_strides_and_none(self):
        x = torch.randn(40, 3000, device="cuda")[:, 100:1124]
        self.assertLess(float((rows.softmax(x) - torch.softmax(x, -1)).abs().max()), 1e-6)
        self.assertLess(float((rows.softmax(x.T) - torch.softmax(x.T, -1)).abs().max()), 1e-6)
        empty = torch.empty(0, 16, device="cuda", requires_grad=True)
        w = torch.ones(16, device="cuda", requires_grad=True)
        y = rows.rms_norm(empty, w)
        self.assertEqual(y.shape, empty.shape)
        y.sum().backward()
        self.assertTrue(torch.equal(w.grad, torch.zeros_like(w)))

    def test_opcheck(self):
        ops, x = torch.ops.cptx, torch.randn(6, 48, device="cuda", requires_grad=True)
        x2, w, b = torch.randn_like(x, requires_grad=True), *(torch.randn(48, device="cuda", requires_grad=True) for _ in range(2))
        target = torch.randint(0, 48, (6,), device="cuda")
        cos, sin, heads = torch.randn(6, 16, device="cuda"), torch.randn(6, 16, device="cuda"), torch.randn(2, 6, 3, 32, device="cuda")
        for op, args in ((ops.rms_norm, (x, w, 1e-5)), (ops.rms_norm, (x, None, 1e-5)), (ops.add_rms_norm, (x, x2, w, 1e-5)),
                         (ops.layer_norm, (x, w, b, 1e-5)), (ops.softmax, (x,)), (ops.log_softmax, (x,)),
                         (ops.cross_entropy, (x, target, 0.1, -100, 1e-3)), (ops.swiglu, (x, x2)), (ops.geglu, (x, x2, True)),
                         (ops.gelu, (x, False)), (ops.rotary, (heads.requires_grad_(), cos, sin)), (ops.quantize, (x.detach(),)),
                         (ops.quantize_fp4, (x.detach(),)),
                         (ops.argmax, (x.detach(),)), (ops.rotary_pairs, (heads.requires_grad_(), cos, sin)), (ops.top_k, (x, 5)),
                         (ops.transpose, (x,)), (ops.column_sum, (x,))):
            with self.subTest(op=str(op)):
                torch.library.opcheck(op.default, args)

    def test_gradcheck(self):
        for name, (ours, _, count, weights) in references().items():
            with self.subTest(name=name):
                tensors = drawn(count, weights, (3, 12), torch.float32)
                self.assertTrue(torch.autograd.gradcheck(ours, tensors, eps=1e-2, atol=1e-2, rtol=1e-2))
        x, target = drawn(1, 0, (3, 12), torch.float32)[0], torch.tensor([3, -100, 7], device="cuda")
        self.assertTrue(torch.autograd.gradcheck(lambda x: rows.cross_entropy(x, target, 0.1, z_loss=1e-2), (x,), eps=1e-2, atol=1e-2,
                                                 rtol=1e-2))

    def test_compile(self):
        def block(x, w, gate):
            return rows.swiglu(rows.rms_norm(x * 2, w), gate)
        x, gate, w = drawn(2, 1, (16, 256), torch.float32)
        compiled = torch.compile(block, fullgraph=True)
        mine, theirs = (torch.autograd.grad(f(x, w, gate).sum(), (x, w, gate)) for f in (compiled, block))
        for a, b in zip(mine, theirs):
            self.assertLess(float((a - b).abs().max()), 1e-4)


if __name__ == "__main__":
    sys.exit(runner.main("rows_gpu", (PyTorch,)))
