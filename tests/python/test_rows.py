# SPDX-License-Identifier: MIT
"""The row kernels by device addresses, on the emulator; with PyTorch on a GPU: gpu_rows.py."""

import ctypes
import math
import sys
import threading
import time
import types
import unittest
from unittest import mock

import runner

import cptx
from cptx import _abi, _rows, _runner
from cptx._abi import lib


def move(call, device, to, start, size):
    err = _abi.ErrorInfo()
    call(device._handle, to, start, size, ctypes.byref(err))
    assert not err.code, err.text


class Rows(unittest.TestCase):
    def setUp(self):
        self.device = cptx.Device("emu:sm_90a")
        self.runner = _rows.Runner(self.device)

    def tensor(self, shape, values=None):
        """Memory of the emulator, with values, as a cptx.Tensor."""
        t = self.device.empty(shape, "f32")
        if values is not None:
            floats = (ctypes.c_float * len(values))(*values)
            move(lib.cptx_mem_write, self.device, t._ptr, floats, ctypes.sizeof(floats))
        return t

    def floats(self, t):
        got = (ctypes.c_float * math.prod(t.shape))()
        move(lib.cptx_mem_read, self.device, got, t._ptr, ctypes.sizeof(got))
        return got

    def test_softmax(self):
        rows, n = 5, 40
        values = [math.sin(i) * 4 for i in range(rows * n)]
        x = self.tensor((rows, n), values)
        y = self.tensor((rows, n))
        self.runner.run(_rows.options("softmax", n, (("in", "f32"),), ()), rows, {"x": (x._ptr, 0), "y": (y._ptr, n)})
        got = self.floats(y)
        for r in range(rows):
            part = [math.exp(v) for v in values[r * n:(r + 1) * n]]
            for c in range(n):
                self.assertAlmostEqual(got[r * n + c], part[c] / sum(part), delta=1e-6)

    def test_sums_and_settings(self):
        rows, n, eps = 6, 32, 0.5
        values, gradients = [math.cos(i * 1.3) for i in range(rows * n)], [math.sin(i * 0.7) for i in range(rows * n)]
        x = self.tensor((rows, n), values)
        dy = self.tensor((rows, n), gradients)
        w = self.tensor((n,), [1.0] * n)
        dx = self.tensor((rows, n))
        dw = self.tensor((n,))
        opt = _rows.options("rms-norm-backward", n, (("in", "f32"),), ("w", "dw"), (("eps", eps),))
        space = self.tensor((self.runner.workspace(opt, rows) // 4,))
        self.runner.run(opt, rows, {name: (t._ptr, 0) for name, t in (("x", x), ("dy", dy), ("w", w), ("dx", dx), ("dw", dw))}, space._ptr)
        with mock.patch.object(_rows, "WORKSPACES", 3):
            sizes = [self.runner.workspace(opt, n) for n in (1, 2, 3, 4, 4, rows)]
        self.assertEqual(sizes, [self.runner.workspace(opt, n) for n in (1, 2, 3, 4, 4, rows)])
        self.assertLessEqual(len(self.runner._workspaces), 6)
        got = self.floats(dw)
        scale = [1 / math.sqrt(sum(v * v for v in values[r * n:(r + 1) * n]) / n + eps) for r in range(rows)]
        for c in range(n):
            want = sum(values[r * n + c] * gradients[r * n + c] * scale[r] for r in range(rows))
            self.assertAlmostEqual(got[c], want, delta=1e-5)

    def test_refusals(self):
        with self.assertRaisesRegex(ValueError, "there is no row kernel \"softmin\""):
            _rows.options("softmin", 4, (), ())
        self.assertEqual(_rows.optional("layer-norm", ("x", "w", "y", "rstd")), ("w", "rstd"))
        with self.assertRaisesRegex(ValueError, "softmax has no operand w: it has x, y and may have lse"):
            _rows.optional("softmax", ("x", "w", "y"))
        opt = _rows.options("softmax", 8, (("in", "f32"),), ())
        with self.assertRaisesRegex(cptx.ArgumentError, "the problem has no address of y"):
            self.runner.run(opt, 1, {"x": (16, 0)})


class Shared(unittest.TestCase):
    def test_once(self):
        """Threads that want the same at the same time get the same, and what is made may want another."""
        made, got = [], []

        def make():
            made.append(_runner.once(Shared, "inner", lambda: time.sleep(0.05) or 1))
            return len(made)
        with mock.patch.object(_runner, "_made", {}):
            threads = [threading.Thread(target=lambda: got.append(_runner.once(Shared, "outer", make))) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(10)
        self.assertEqual((made, got), ([1], [1] * 4))


torch = runner.optional("torch")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Shapes(unittest.TestCase):
    """What the operators say of shapes and types without a GPU."""

    @classmethod
    def setUpClass(cls):
        runner.operators_on_cpu("cptx.rows")

    def test_fake(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        import cptx.rows
        with FakeTensorMode():
            x, w = torch.empty(4, 6, 32, dtype=torch.bfloat16, device="cuda"), torch.empty(32, device="cuda")
            y, rstd = torch.ops.cptx.rms_norm(x, w, 1e-5)
            self.assertEqual((y.shape, y.dtype, rstd.shape), (x.shape, x.dtype, x.shape[:-1]))
            q, scale = cptx.rows.quantize(x, block=16)
            self.assertEqual((q.shape, scale.shape), (x.shape, (4, 6, 2)))

    def test_refusals(self):
        from cptx import rows
        x, none, angles = torch.zeros(2, 3, 8), torch.zeros(2, 0), torch.zeros(2, 4)
        for kind, words, call in (
                (TypeError, "x2 is of torch.bfloat16, but x is of torch.float32", lambda: rows.swiglu(x, x.bfloat16())),
                (TypeError, "x2 is of torch.float16", lambda: rows.add_rms_norm(x, x.half())),
                (TypeError, "sin is of torch.float16, but cos is of torch.float32", lambda: rows.rotary(x, angles, angles.half())),
                (ValueError, "k is 0, but must be 1 to 64, and no more than the 8", lambda: rows.top_k(x, 0)),
                (ValueError, "k is 9", lambda: rows.top_k(x, 9)),
                (ValueError, "k is 65", lambda: rows.top_k(torch.zeros(1, 99), 65)),
                (ValueError, "k is 1, .* the 0 elements", lambda: rows.top_k(none, 1)),
                (ValueError, r"x has the shape \(2, 0\)", lambda: rows.argmax(none)),
                (ValueError, r"x has the shape \(2, 0\)", lambda: rows.cross_entropy(none, torch.zeros(2, dtype=torch.int64))),
                (ValueError, r"x has the shape \(2, 0\)", lambda: rows.quantize(none)),
                (ValueError, r"x has the shape \(2, 0\)", lambda: rows.quantize(none, fp4=True)),
                (ValueError, "block is 3, but must divide the 8 columns", lambda: rows.quantize(x, block=3))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()

    def test_gradients_without_a_kernel(self):
        from cptx import rows
        ctx = types.SimpleNamespace(saved_tensors=(torch.tensor([[2, -1]]),), shape=(1, 3))
        dx, _ = rows._top_k_backward(ctx, torch.tensor([[3.0, math.inf]]), None)
        self.assertEqual(dx.tolist(), [[0, 0, 3]])  # what was not found has no gradient, infinite as it is
        x, dy = torch.zeros(2, 3, 4, requires_grad=True), torch.arange(24.0).reshape(4, 6)
        with mock.patch.object(rows, "_run"):
            dx, = torch.autograd.grad(rows.transpose(x), x, dy)
        self.assertTrue(torch.equal(dx, dy.t().reshape(2, 3, 4)))


if __name__ == "__main__":
    sys.exit(runner.main("rows", (Rows, Shared, Shapes)))
