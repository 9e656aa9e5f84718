#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All of the Python module on a GPU: PyTorch, torch.compile, CUDA graphs, JAX through XLA's FFI, and what a call costs.

    CPTX_LIBRARY=libcptx.so CPTX_INCLUDE=include:build/include CPTX_BENCH=python_launch.so python3 tests/python/gpu.py

The last line is "N passed, N failed, N skipped".  Without a GPU everything is skipped.
"""

import gc
import os
import sys
import unittest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch wants memory too

import runner  # noqa: E402

import cptx  # noqa: E402
from cptx import _arrays  # noqa: E402

torch, jax, cupy = runner.optional("torch"), runner.optional("jax"), runner.optional("cupy")
GPU = torch is not None and torch.cuda.is_available()


@unittest.skipUnless(GPU, "there is no GPU that PyTorch sees")
class PyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cptx.Device("cuda:0")
        cls.saxpy = runner.saxpy(cls.device)

    def vectors(self, n=100000):
        return torch.arange(n, dtype=torch.float32, device="cuda"), torch.ones(n, device="cuda")

    def test_results(self):
        x, y = self.vectors()
        self.saxpy(x, y, 2.0)
        self.assertTrue(torch.equal(y, 2 * x + 1))

    def test_context_is_shared(self):
        torch.cuda.current_stream().synchronize()
        device = cptx.Device.current()
        self.assertEqual(device.ordinal, torch.cuda.current_device())
        self.assertEqual(cptx.lib.cptx_device_context(device._handle), cptx.lib.cptx_device_context(self.device._handle))
        x, y = self.vectors()
        runner.saxpy(device)(x, y, 2.0)
        self.assertTrue(torch.equal(y, 2 * x + 1))

    def test_current_stream(self):
        """Ordered behind slow work of a side stream: on another stream the kernel would read what is not written yet."""
        for way in ("exchange API", "capsules", "given"):
            x, y = self.vectors()
            x.zero_()
            torch.cuda.synchronize()
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                torch.cuda._sleep(200_000_000)
                x.fill_(5)
                if way == "exchange API":
                    self.saxpy(x, y, 2.0)
                elif way == "given":
                    self.saxpy(x, y, 2.0, stream=side)
                else:
                    with _arrays.without_apis():
                        self.saxpy(x, y, 2.0)
                still_busy = not side.query()
            side.synchronize()
            self.assertTrue(still_busy, f"{way}: the call waited")
            self.assertTrue((y == 11).all(), way)

    def test_exchange_api_is_there(self):
        if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
            self.skipTest(f"PyTorch {torch.__version__} has no __dlpack_c_exchange_api__")
        self.assertNotEqual(_arrays.exchange_api(torch.Tensor), 0)

    def test_graph(self):
        x, y = self.vectors(1000)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.saxpy(x, y, 0.0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.saxpy(x, y, 1.0)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(y, 3 * x + 1))

    def test_refusals(self):
        x, y = self.vectors(1000)
        for args, part in (((x.double(), y, 1.0), r"is f64\[1000\]"), ((x.cpu(), y, 1.0), "on the CPU, but must be"),
                           ((x, y[:10], 1.0), "dimension 0 is 10, but n is 1000"), ((x[::2], y[:500], 1.0), r"strides \[2\]"),
                           ((x.bfloat16(), y, 1.0), r"is bf16\[1000\]")):
            with self.assertRaisesRegex(cptx.Error, part):
                self.saxpy(*args)
        if torch.cuda.device_count() > 1:
            with self.assertRaisesRegex(cptx.Error, "another GPU"):
                self.saxpy(x.to("cuda:1"), y, 1.0)
        self.saxpy(x, y, 1.0)
        self.assertTrue(torch.equal(y, x + 1))

    def test_pinned(self):
        x, y = torch.arange(1000, dtype=torch.float32).pin_memory(), torch.ones(1000, device="cuda")
        try:
            self.saxpy(x, y, 2.0)
        except cptx.Error as e:  # PyTorch says of pinned memory that it is the CPU's
            self.assertIn("on the CPU", str(e))
            self.skipTest("PyTorch gives pinned memory as memory of the CPU, which a kernel's argument cannot be")
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(y.cpu(), 2 * x + 1))

    def test_out(self):
        y = torch.from_dlpack(self.device.empty((30, 40), "f32"))
        self.assertEqual((y.device.type, tuple(y.shape)), ("cuda", (30, 40)))
        y.fill_(1)
        self.saxpy(torch.ones(1200, device="cuda"), y.view(-1), 2.0)
        self.assertTrue((y == 3).all())
        del y
        gc.collect()
        self.assertEqual(cptx._exported, {})

    def test_memory_does_not_grow(self):
        x, y = self.vectors(1000)
        self.saxpy(x, y, 0.0)
        torch.cuda.synchronize()
        references, before = sys.getrefcount(x), torch.cuda.mem_get_info()[0]
        for _ in range(20000):
            self.saxpy(x, y, 0.0)
        for _ in range(500):
            torch.from_dlpack(self.device.empty((1 << 20,), "f32"))
        torch.cuda.synchronize()
        self.assertEqual(sys.getrefcount(x), references)
        self.assertLess(before - torch.cuda.mem_get_info()[0], 64 << 20)

    def test_compile(self):
        import torch_op
        self.assertEqual(torch_op.main("cuda:0", "inductor"), 0)

    def test_stable_abi(self):
        import torch_stable
        if torch_stable.lacks():
            self.skipTest(torch_stable.lacks())
        self.assertEqual(torch_stable.main("cuda"), 0)


@unittest.skipUnless(GPU and cupy, "there is no CuPy, or no GPU")
class CuPy(unittest.TestCase):
    def test_cuda_array_interface(self):
        class Only:
            def __init__(self, x):
                self.__cuda_array_interface__ = x.__cuda_array_interface__

        saxpy = runner.saxpy(cptx.Device("cuda:0"))
        x, y = cupy.arange(1000, dtype="f4"), cupy.ones(1000, "f4")
        saxpy(x, y, 2.0)
        saxpy(Only(x), Only(y), 2.0)
        cupy.cuda.runtime.deviceSynchronize()
        self.assertTrue((y == 4 * x + 1).all())


def jax_has_gpu():
    try:
        return jax is not None and jax.devices()[0].platform == "gpu"
    except RuntimeError as e:
        print(f"JAX finds no device: {e}")
        return False


@unittest.skipUnless(GPU and jax_has_gpu(), "there is no GPU that JAX sees")
class Jax(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import ffi
        cls.ffi = ffi
        ffi.start(os.environ["CPTX_LIBRARY"])
        cls.saxpy = runner.saxpy(cptx.Device("cuda:0"))

    def test_jit(self):
        import saxpy
        self.assertEqual(saxpy.main("cuda:0"), 0)

    def test_order_on_the_stream(self):
        """Many calls, each behind the one before, in one program: they are ordered only by XLA's stream."""
        def f(x, y):
            for i in range(50):
                (y,) = self.ffi.call(self.saxpy, [jax.ShapeDtypeStruct(y.shape, y.dtype)], x, y, alias={1: 0}, a=float(i))
                x = x + 1
            return y

        x, y = jax.numpy.zeros(1 << 20, "float32"), jax.numpy.zeros(1 << 20, "float32")
        got = jax.jit(f)(x, y)
        self.assertTrue(bool((got == sum(i * i for i in range(50))).all()))

    def test_refusal(self):
        x = jax.numpy.ones(8, dtype="float32")
        with self.assertRaisesRegex(Exception, "argument \"x\" is s32"):
            self.ffi.call(self.saxpy, [jax.ShapeDtypeStruct(x.shape, x.dtype)], x.astype("int32"), x, alias={1: 0},
                          a=1.0)[0].block_until_ready()

    def test_const_array_of_jax(self):
        x, y = jax.numpy.arange(1000, dtype="float32"), torch.ones(1000, device="cuda")
        self.saxpy(x, y, 2.0)
        self.assertTrue(torch.equal(y, 2 * torch.arange(1000, device="cuda", dtype=torch.float32) + 1))


def print_overheads():
    if not GPU or not os.environ.get("CPTX_BENCH"):
        print("overheads: not measured; that takes a GPU, and CPTX_BENCH, the shared object of bench/python_launch.c")
        return
    sys.path.append(os.path.join(runner.ROOT, "bench"))
    import python_launch
    python_launch.main("cuda:0")


if __name__ == "__main__":
    print_overheads()
    sys.exit(runner.main("python gpu", [PyTorch, CuPy, Jax]))
