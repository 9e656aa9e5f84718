# SPDX-License-Identifier: MIT
"""A kernel on arrays of NumPy, by the emulator, which finds what is wrong with it too: python3 numpy_saxpy.py

CPTX_LIBRARY names libcptx.so.  Exits with 1 if a result differs from NumPy's.
"""

import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "..", "python")]
import cptx  # noqa: E402

SIGNATURE = "x: f32[n] const, y: f32[n], a: f32, n: u32 = n"


def main():
    device = cptx.Device("emu:sm_90a")
    program = device.load_file(os.path.join(HERE, "saxpy.ptx"))
    saxpy = program.kernel("saxpy", SIGNATURE, grid="n / 256", block=256)

    x, y = numpy.arange(1000, dtype="f4"), numpy.ones(1000, "f4")
    saxpy(x, y, 2.0)  # where the arrays lie, without a copy
    same = bool((y == 2 * x + 1).all())
    print(f"y = 2 * x + 1 of {len(y)} elements: {'every one is right' if same else 'they DIFFER'}")

    try:
        saxpy(x, y[:999], 2.0)
    except ValueError as e:
        print(f"refused: {e}")
    careless = program.kernel("saxpy", SIGNATURE.replace("y: f32[n]", "y: f32[_]"), grid="n / 256", block=256)
    try:
        careless(x, numpy.ones(999, "f4"), 2.0)  # the signature lets it through, and the kernel writes one too many
        same = False
    except cptx.Error as e:
        print(f"found: {e}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
