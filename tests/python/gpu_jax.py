#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cptx.jax on a GPU: results and gradients beside formulas of JAX, under jit.

    CPTX_LIBRARY=libcptx.so python3 tests/python/gpu_jax.py

The last line is "jax_gpu: N passed, N failed, N skipped".  Without a GPU everything is skipped.  bench/jax_calls.py measures.
"""

import os
import sys
import unittest

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")  # which takes ten times as long as all that is tested here
import runner  # noqa: E402

jax = runner.optional("jax")


def has_gpu():
    try:
        return jax is not None and jax.devices()[0].platform == "gpu"
    except RuntimeError as e:
        print(f"JAX finds no device: {e}")
        return False


GPU = has_gpu()
if GPU:
    import jax_cases


@unittest.skipUnless(GPU, "there is no GPU that JAX sees")
class Jax(unittest.TestCase):
    def test_rows(self):
        jax_cases.check_rows(self, (64, 1000), jax.numpy.float32, 1e-5)
        for shape in ((3, 11, 4096), (3, 131072)):
            jax_cases.check_rows(self, shape, jax.numpy.bfloat16, 0.02)

    def test_other_rows(self):
        for n in (1000, 32768, 131072):
            jax_cases.check_cross_entropy(self, 32, n)
        jax_cases.check_rotary(self, (2, 70, 3, 128))
        jax_cases.check_the_rest(self, 33, 4096)

    def test_attention(self):
        for dim in (64, 128):
            for options in ({}, {"causal": True}, {"causal": True, "window": (100, None)}, {"sinks": True, "causal": True}):
                jax_cases.check_attention(self, (2, 300, 8, dim), 333, 2, options)
        jax_cases.check_varlen(self, 128, (100, 0, 257, 5))

    def test_gemm(self):
        jax_cases.check_gemm(self, 512, 384, 256)

    def test_transformations(self):
        jax_cases.check_transformations(self, 2048)

    def test_refusals(self):
        jax_cases.check_refusals(self)


if __name__ == "__main__":
    sys.exit(runner.main("jax_gpu", (Jax,)))
