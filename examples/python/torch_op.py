# SPDX-License-Identifier: MIT
"""A kernel of cptx as an operator of PyTorch, inside torch.compile: python3 torch_op.py [DEVICE]

CPTX_LIBRARY names libcptx.so.  DEVICE is cuda:0, or the emulator for tensors of the CPU: emu:sm_90a.  Exits with 1 if a result
differs from PyTorch's.
"""

import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "..", "python")]
import cptx  # noqa: E402


def operator(device):
    """torch.ops.cptx_example.saxpy(x, y, a): a * x + y, of vectors of f32."""
    saxpy = cptx.Device(device).load_file(os.path.join(HERE, "saxpy.ptx")).kernel(
        None, "x: f32[n] const, y: f32[n], a: f32, n: u32 = n", grid="n / 256", block=256)

    @torch.library.custom_op("cptx_example::saxpy", mutates_args=())
    def op(x: torch.Tensor, y: torch.Tensor, a: float) -> torch.Tensor:
        out = y.clone()
        saxpy(x, out, a)
        return out

    @op.register_fake  # what torch.compile must know of the result
    def _(x, y, a):
        torch._check(x.shape == y.shape, lambda: f"x has the shape {x.shape}, y {y.shape}")
        return torch.empty_like(y)

    op.register_autograd(lambda ctx, gradient: (gradient * ctx.a, gradient, None), setup_context=_keep)
    return op


def _keep(ctx, inputs, output):
    ctx.a = inputs[2]


def main(device="emu:sm_90a", backend=None):
    place = "cpu" if device.startswith("emu") else device
    op = operator(device)
    backend = backend or ("aot_eager" if place == "cpu" else "inductor")  # inductor needs a C++ compiler for the CPU

    @torch.compile(backend=backend, fullgraph=True)
    def f(x, y):
        return op(torch.sin(x), y, 2.0).sum() + 1

    x = torch.linspace(0, 1, 1000, device=place, requires_grad=True)
    y = torch.ones(1000, device=place)
    got = f(x, y)
    got.backward()
    want, slope = (2 * torch.sin(x) + y).sum() + 1, 2 * torch.cos(x)
    close = torch.allclose(got, want, rtol=1e-5) and torch.allclose(x.grad, slope, rtol=1e-5)
    print(f"torch.compile ({backend}) on {place}: {got.item():.4f}, PyTorch alone {want.item():.4f}; "
          f"{'result and gradient agree' if close else 'they DIFFER'}")
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
