# SPDX-License-Identifier: MIT
"""PyTorch and JAX on the CPU, with the emulator: tensors, torch.compile, jax.jit through XLA's FFI."""

import gc
import os
import sys
import unittest

import runner

import cptx
from cptx import _arrays

torch, jax, numpy = runner.optional("torch"), runner.optional("jax"), runner.optional("numpy")


@unittest.skipUnless(torch, "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cptx.Device("emu:sm_90a")
        cls.saxpy = runner.saxpy(cls.device)

    def test_results(self):
        x, y = torch.arange(1000, dtype=torch.float32), torch.ones(1000)
        self.saxpy(x, y, 2.0)
        self.assertTrue(torch.equal(y, 2 * x + 1))
        self.saxpy(x, y, 2.0, grid=(4,), stream=0)
        self.assertTrue(torch.equal(y, 4 * x + 1))
        with self.assertRaisesRegex(cptx.Error, r"argument \"y\" is f64\[1000\]"):
            self.saxpy(x, y.double(), 2.0)
        with self.assertRaisesRegex(cptx.Error, r"strides \[2\]"):
            self.saxpy(x[::2], y[:500], 2.0)

    def test_changed_between_calls(self):
        """Each launch looks at the tensors as they are then."""
        x, y = torch.ones(10), torch.ones(10)
        self.saxpy(x, y, 2.0)
        y.resize_(5)
        with self.assertRaisesRegex(cptx.Error, r"argument \"y\" is f32\[5\]"):
            self.saxpy(x, y, 2.0)
        x.resize_(5)
        y.set_(torch.zeros(5))
        self.saxpy(x, y, 2.0)
        self.assertTrue(torch.equal(y, torch.full((5,), 2.0)))

    def test_capsules(self):
        """The way of frameworks without the exchange API."""
        x, y = torch.arange(10, dtype=torch.float32), torch.ones(10)
        with _arrays.without_apis():
            self.saxpy(x, y, 2.0)
        self.assertTrue(torch.equal(y, 2 * x + 1))

    def test_views_and_gradients(self):
        x, y = torch.arange(4, dtype=torch.float32), torch.ones(4)
        self.saxpy(x.clone().requires_grad_(), y, 2.0)
        self.assertTrue(torch.equal(y, 2 * x + 1))
        with self.assertRaisesRegex(ValueError, r"give x.resolve_neg\(\)"):
            self.saxpy(torch._neg_view(x), y, 2.0)
        with self.assertRaisesRegex(ValueError, r"give x.detach\(\)"):
            self.saxpy(x, torch.ones(4, requires_grad=True), 2.0)
        bits = self.device.load_file(runner.SAXPY).kernel("saxpy", "x: b64[n] const, y: b64[n], a: f32, n: u32 = n", grid="1", block=64)
        with self.assertRaisesRegex(ValueError, r"give x.resolve_conj\(\)"):
            bits(torch.ones(4, dtype=torch.complex64).conj(), torch.ones(4, dtype=torch.complex64), 2.0)

    def test_out(self):
        y = torch.from_dlpack(self.device.empty((4, 5), "f32"))
        self.assertEqual(y.shape, (4, 5))
        y.fill_(3)
        self.saxpy(torch.ones(20), y.view(20), 1.0)
        self.assertTrue((y == 4).all())
        del y
        gc.collect()
        self.assertEqual(cptx._exported, {})

    def test_version_counter(self):
        x, y, w = torch.ones(10), torch.ones(10), torch.ones(10, requires_grad=True)
        product, before = (w * y).sum(), (x._version, y._version)  # whose gradient is y
        self.saxpy(x, y, 2.0)
        self.assertEqual((x._version, y._version), (before[0], before[1] + 1))
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            product.backward()
        with torch.inference_mode():
            self.saxpy(x, torch.ones(10), 2.0)

    def test_compile(self):
        if not hasattr(torch.library, "custom_op"):
            self.skipTest("this PyTorch has no torch.library.custom_op (before 2.4)")
        import torch_op
        self.assertEqual(torch_op.main("emu:sm_90a", "aot_eager"), 0)

    def test_stable_abi(self):
        import torch_stable
        if torch_stable.lacks():
            self.skipTest(torch_stable.lacks())
        self.assertEqual(torch_stable.main("cpu"), 0)
        f = torch.ops.cptx_stable.silu_mul
        with self.assertRaisesRegex(RuntimeError, "takes float32 tensors"):
            f(torch.ones(4).double(), torch.ones(4))
        with self.assertRaisesRegex(RuntimeError, "takes tensors of one shape"):
            f(torch.ones(4), torch.ones(5))


@unittest.skipUnless(jax, "JAX is not installed")
class Jax(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cptx.Device("emu:sm_90a")
        cls.saxpy = runner.saxpy(cls.device)
        cpu = jax.default_device(jax.devices("cpu")[0])  # where there is a GPU, JAX would take it
        cpu.__enter__()
        cls.addClassCleanup(cpu.__exit__, None, None, None)

    def test_const_arrays(self):
        y = numpy.ones(100, "f4")
        self.saxpy(jax.numpy.arange(100, dtype="float32"), y, 2.0)
        numpy.testing.assert_array_equal(y, 2 * numpy.arange(100) + 1)

    def test_ffi(self):
        import ffi
        if not ffi.compiler():
            self.skipTest("there is no C compiler for examples/xla/handler.c")
        ffi.start(os.environ["CPTX_LIBRARY"])
        import saxpy
        self.assertEqual(saxpy.main("emu:sm_90a"), 0)
        x = jax.numpy.ones(8, dtype="float32")
        shape = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
        with self.assertRaisesRegex(Exception, "argument \"x\" is s32"):
            ffi.call(self.saxpy, shape, x.astype("int32"), x, alias={1: 0}, a=1.0)[0].block_until_ready()
        with self.assertRaisesRegex(Exception, "an attribute \"a\""):
            ffi.call(self.saxpy, shape, x, x, alias={1: 0})[0].block_until_ready()
        f = jax.ffi.ffi_call("cptx_launch", shape)
        with self.assertRaisesRegex(Exception, "a number that cptx_xla_add gave in this process"):
            f(x, launch=numpy.int64(self.saxpy.handle), a=1.0)[0].block_until_ready()
        with self.assertRaisesRegex(Exception, "no operand for argument \"x\""):
            ffi.call(self.saxpy, shape, a=1.0)[0].block_until_ready()


if __name__ == "__main__":
    sys.exit(runner.main("python frameworks", [PyTorch, Jax]))
