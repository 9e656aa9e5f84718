# SPDX-License-Identifier: MIT
"""cptx.jax on arrays of the CPU, which the emulator computes: results and gradients beside those of JAX; on a GPU: gpu_jax.py."""

import ctypes
import sys
import unittest
from unittest import mock

import runner

jax = runner.optional("jax")
if jax:
    import jax_cases
    import cptx
    from cptx.jax import _attention, _ffi, _rows


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

    def test_devices(self):
        """What does not fit to where a program runs: a workspace for another device, an FFI of an older XLA."""
        class Other:
            def workspace(self, *about):
                return 100
        place = _ffi.Place(cptx.Device(_ffi.EMULATOR), ("emu", _ffi.EMULATOR), 0, lambda x: x.address)
        few = [_ffi.Buffer(16, (n,), "u8", 1) for n in (1, 1, 1, 64)]
        backward = {"kind": "backward", "inputs": [], "outputs": ["dq", "dk", "dv", "workspace"], "sizes": {}, "settings": {}}
        rows = {"kernel": "column-sum", "n": 8, "rows": 1, "types": [("in", "f32")], "optional": [], "settings": [], "inputs": [],
                "outputs": [("dw", 0, 0, 0)]}
        with mock.patch.object(_attention._attention, "runner", lambda *about: Other()), mock.patch.object(_rows, "_runner", lambda *about: Other()):
            for call, there, results in ((_attention.AttentionCall(backward), 64, few), (_rows.RowsCall(rows), 64, few[2:]),
                                         (_rows.RowsCall(rows), 0, [_ffi.Buffer(16, (128,), "f32", 4)])):
                with self.assertRaisesRegex(ValueError, f"needs 100 bytes of workspace and has {there}"):
                    call.run(place, [], results)
        api = _ffi._Api(size=_ffi._Api.functions.offset + 8 * _ffi.DEVICE_ORDINAL_GET)
        with self.assertRaisesRegex(RuntimeError, "has no function 17: a newer jaxlib is needed"):
            _ffi._ask(_ffi._Frame(api=ctypes.addressof(api)), _ffi.DEVICE_ORDINAL_GET, ctypes.c_int32)


if __name__ == "__main__":
    sys.exit(runner.main("jax", (Jax,)))
