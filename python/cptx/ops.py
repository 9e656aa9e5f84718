# SPDX-License-Identifier: MIT
"""PyTorch's custom operators of cptx, torch.ops.cptx.NAME: under torch.compile, with gradients.

A family of kernels defines its operators by `define` when its module is imported:

    @ops.define("double(Tensor x) -> Tensor", fake=lambda x: torch.empty_like(x))
    def double(x):
        ...launches on ops.stream(x)...

Work goes to the current stream of the tensors' device.
"""

import torch

from . import Device

LIBRARY = torch.library.Library("cptx", "FRAGMENT")
# Names of types as PTX has them.
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2",
         torch.int32: "s32", torch.int64: "s64", torch.float64: "f64", torch.uint8: "u8"}


def define(schema, fake, setup=None, backward=None, device="CUDA"):
    """A decorator: the function is torch.ops.cptx.NAME, of a schema "NAME(Tensor x, ...) -> Tensor", for tensors of GPUs.

    fake gives what the function gives, of the right shapes and types and without values.  setup(ctx, inputs, output) keeps
    what backward(ctx, *gradients) needs; without backward the operator has no gradient.  The operator is returned.
    """
    name = schema.partition("(")[0].strip()

    def decorate(function):
        LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        LIBRARY.impl(name, function, device)
        torch.library.register_fake(f"cptx::{name}", fake, lib=LIBRARY)
        if backward:
            torch.library.register_autograd(f"cptx::{name}", backward, setup_context=setup, lib=LIBRARY)
        return getattr(torch.ops.cptx, name)

    return decorate


def device(x):
    """The cptx.Device of a tensor's GPU, in the context that PyTorch uses there."""
    with torch.cuda.device(x.device):
        torch.cuda.current_stream()  # makes the context
        return Device.current()


def stream(x):
    """The address of the current stream of a tensor's GPU."""
    return torch.cuda.current_stream(x.device).cuda_stream


def type_name(name, x, allowed=("f32", "f16", "bf16")):
    """The type of a tensor's elements as PTX has it."""
    kind = TYPES.get(x.dtype)
    if kind not in allowed:
        raise TypeError(f"{name} is of {x.dtype}, but must be of {', '.join(str(t) for t, k in TYPES.items() if k in allowed)}")
    return kind
