# SPDX-License-Identifier: MIT
"""y = a * x + y inside jax.jit: python3 saxpy.py [DEVICE]

CPTX_LIBRARY names libcptx.so, CPTX_INCLUDE the folders of its headers, with a colon between them.  DEVICE is cuda:0, or the
emulator, for which JAX runs on the CPU: emu:sm_90a.
"""

import os
import sys

import jax
import jax.numpy as jnp

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "..", "python")]
import cptx  # noqa: E402
import ffi  # noqa: E402


def jax_device(device):
    """Where arrays have to be for a device of cptx: JAX prefers a GPU, if there is one."""
    name, _, number = device.partition(":")
    return jax.devices("cpu")[0] if name == "emu" else jax.devices("gpu")[int(number or 0)]


def main(device="emu:sm_90a"):
    with jax.default_device(jax_device(device)):
        return run(device)


def run(device):
    ffi.start(os.environ["CPTX_LIBRARY"])
    saxpy = cptx.Device(device).load_file(os.path.join(HERE, "..", "python", "saxpy.ptx")).kernel(
        None, "x: f32[n] const, y: f32[n], a: f32, n: u32 = n", grid="n / 256", block=256)

    @jax.jit
    def f(x, y):
        (z,) = ffi.call(saxpy, [jax.ShapeDtypeStruct(y.shape, y.dtype)], jnp.sin(x), y, alias={1: 0}, a=2.0)
        return z + 1

    x, y = jnp.arange(1000, dtype=jnp.float32), jnp.ones(1000, dtype=jnp.float32)
    z, want = f(x, y), 2 * jnp.sin(x) + y + 1
    wrong = int((abs(z - want) > 1e-6 * abs(want)).sum())
    print(f"{', '.join(map(str, z.devices()))}: {wrong} of {x.size} elements are wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
