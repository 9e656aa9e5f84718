# SPDX-License-Identifier: MIT
"""cptx.gemm for JAX, with gradients."""

import functools

import jax
import jax.numpy as jnp

from . import _ffi
from .. import _gemm


class _Turned:
    """A Buffer with its last two dimensions changed."""

    def __init__(self, x):
        self.address, self.type, self.size, self.bytes = x.address, x.type, x.size, x.bytes
        self.shape, self.strides = ((*of[:-2], of[-1], of[-2]) for of in (x.shape, x.strides))


@_ffi.family
class GemmCall:
    """A product.  about: names, of the operands in order, turned: those that are read transposed, alpha, beta."""

    def __init__(self, about):
        self.about = about

    def run(self, place, operands, results):
        given = {name: _Turned(x) if name in self.about["turned"] else x for name, x in zip(self.about["names"], operands)}
        _gemm.start(place.device, {**given, "d": results[0]}, place.at, place.stream, self.about["alpha"], self.about["beta"])


def _product(operands, dtype, turned=(), alpha=1.0, beta=0.0):
    """alpha * a @ b + beta * c + bias; operands: arrays by name; turned: names of those that are stored transposed."""
    a, b = ((*x.shape[:-2], x.shape[-1], x.shape[-2]) if name in turned else x.shape for name, x in operands.items() if name in "ab")
    shape = (*a[:-2], a[-2], b[-1])
    operands = {name: x for name, x in operands.items() if x is not None}
    if not all(shape) or not a[-1]:
        rest = jnp.zeros(shape, dtype) if not beta else (beta * operands["c"]).astype(dtype)
        return rest + operands["bias"].astype(dtype) if "bias" in operands else rest
    return _ffi.call(GemmCall, operands.values(), [_ffi.array(shape, dtype)], names=list(operands), turned=list(turned), alpha=alpha, beta=beta)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5, 6))
def _gemm_of(a, b, c, bias, dtype, alpha, beta):
    turned = ("b",) if b.dtype.itemsize == 1 else ()  # elements of 8 bits are multiplied along K alone
    return _product({"a": a, "b": jnp.swapaxes(b, -1, -2) if turned else b, "c": c, "bias": bias}, dtype, turned, alpha, beta)


def _backward(dtype, alpha, beta, kept, dd):
    a, b, c, bias = kept
    da = _product({"a": dd.astype(b.dtype), "b": b}, a.dtype, ("b",), alpha)  # operands of a product are of one type
    db = _product({"a": a, "b": dd.astype(a.dtype)}, b.dtype, ("a",), alpha)
    dc = None if c is None else (beta * dd).astype(c.dtype)
    return da, db, dc, None if bias is None else dd.astype(jnp.float32).sum(tuple(range(dd.ndim - 1)))


_gemm_of.defvjp(lambda a, b, c, bias, *settings: (_gemm_of(a, b, c, bias, *settings), (a, b, c, bias)), _backward)


def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, bias=None, dtype=None):
    """alpha * a @ b + beta * c + bias, a of M x K and b of K x N elements, or a batch of them, of float16, bfloat16 or float8.

    dtype: of the result: float32, bfloat16 or float16; default: that of a, or bfloat16 where a has 8 bits, which has no gradients.  c: like
    the result, where beta is given; bias: N float32.  Gradients are computed in the types of a and b.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    for name, x in (("a", a), ("b", b)):
        _ffi.type_name(name, x, ("f16", "bf16", "e4m3", "e5m2"))
    if a.ndim not in (2, 3) or b.ndim != a.ndim or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"a has the shape {a.shape}, and b {b.shape}: two dimensions, or three with the batch in front, the columns of a are the "
                         "rows of b")
    if bool(beta) != (c is not None):
        raise ValueError("beta is given, but no c" if beta else "c is given, but no beta")
    dtype = jnp.dtype(dtype or (a.dtype if a.dtype.itemsize > 1 else jnp.bfloat16))
    return _gemm_of(a, b, c, bias, dtype, float(alpha), float(beta))
