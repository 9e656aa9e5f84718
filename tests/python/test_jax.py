# SPDX-License-Identifier: MIT
"""cptx.jax on arrays of the CPU, which the emulator computes: results and gradients beside those of JAX; on a GPU: gpu_jax.py."""

import sys
import unittest

import runner

jax = runner.optional("jax")
if jax:
    import jax_cases


@unittest.skipUnless(jax, "JAX is not installed")
class Jax(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cpu = jax.default_device(jax.devices("cpu")[0])  # where there is a GPU, JAX would take it
        cpu.__enter__()
        cls.addClassCleanup(cpu.__exit__, None, None, None)

    def test_rows(self):
        """Also of a row whose vectors are not whole, and of rows with a dimension more."""
        jax_cases.check_rows(self, (2, 3, 67), jax.numpy.float32, 3e-6)
        jax_cases.check_rows(self, (4, 64), jax.numpy.bfloat16, 0.02)

    def test_other_rows(self):
        jax_cases.check_cross_entropy(self, 6, 50)
        jax_cases.check_rotary(self, (2, 3, 2, 16))
        jax_cases.check_the_rest(self, 5, 64)

    def test_attention(self):
        for options in ({"causal": True, "window": (2, None)}, {"sinks": True}):
            jax_cases.check_attention(self, (1, 5, 2, 16), 7, 1, options)
        jax_cases.check_varlen(self, 16)

    def test_gemm(self):
        jax_cases.check_gemm(self, 24, 40, 16)

    def test_transformations(self):
        jax_cases.check_transformations(self, 16)

    def test_refusals(self):
        jax_cases.check_refusals(self)


if __name__ == "__main__":
    sys.exit(runner.main("jax", (Jax,)))
