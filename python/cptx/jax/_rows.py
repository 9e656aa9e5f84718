# SPDX-License-Identifier: MIT
"""cptx.rows for JAX: norms, softmax, cross entropy, gated activations and others, over the last dimension of arrays."""

import functools
import math

import jax
import jax.numpy as jnp

from . import _ffi
from .. import _rows

SCALAR, INDEX = "scalar", "index"  # results of which a row has one: f32, int32


@_ffi.family
class RowsCall:
    """A kernel over rows.  about: kernel, n, rows, types, optional, settings; inputs and outputs: operands by name, each with the
    elements in front of its first row, the stride, and the number of its array."""

    def __init__(self, about):
        self.opt = _rows.options(about["kernel"], about["n"], *(tuple(map(tuple, about["types"])), tuple(about["optional"]),
                                                                tuple(map(tuple, about["settings"]))))
        self.about = about

    def run(self, place, operands, results):
        runner, rows = _runner(place.key), self.about["rows"]
        given = {}
        for arrays, names in ((operands, self.about["inputs"]), (results, self.about["outputs"])):
            for name, first, stride, number in names:
                x = arrays[number]
                given[name] = place.at(x) + (first * x.bytes // x.size if first else 0), stride
        size, workspace = runner.workspace(self.opt, rows), None
        if size:
            workspace = results[-1] if len(results) > 1 + max(number for *_, number in self.about["outputs"]) else None
            _ffi.check_workspace(place, size, workspace)
        runner.run(self.opt, rows, given, place.at(workspace) if size else 0, place.stream)


def _runner(key):
    return _rows.runner(key, lambda: _ffi.device(key))


def _shape(x, like):
    """Shape and type of a result: like an array, or SCALAR or INDEX of each row."""
    if like is SCALAR or like is INDEX:
        return _ffi.array(x.shape[:-1], jnp.float32 if like is SCALAR else jnp.int32)
    return _ffi.array(like.shape, like.dtype)


def _run(kernel, x, inputs, outputs, n=None, firsts=(), **settings):
    """The results of a kernel over the rows of x, in the order of `outputs`, None where that is None.

    inputs, outputs: arrays, or what results are like, by the names of operands; None: it is not there.  n: elements of a row where
    x has others beside them, and firsts: by operand, where it begins in the row of the array, whose stride is that of x.
    """
    n, width, firsts = n or x.shape[-1], x.shape[-1], dict(firsts)
    if not x.size and not (_rows.SUMS & set(outputs) and width):
        return [None if like is None else jnp.zeros(_shape(x, like).shape, _shape(x, like).dtype) for like in outputs.values()]
    inputs = {name: v for name, v in inputs.items() if v is not None}
    made = {name: _shape(x, like) for name, like in outputs.items() if like is not None}
    arrays, results = list({id(v): v for v in inputs.values()}.values()), list(made.values())

    def placed(name, number, of):
        first = firsts.get(name, 0)
        return name, first, (width if name in firsts else of.shape[-1] if name in _rows.MATRICES else 0), number
    types = {}
    for name, v in (*inputs.items(), *made.items()):
        if name in _rows.TYPED:
            types.setdefault(_rows.TYPED[name], set()).add(_ffi.type_name(name, v, ("s32", "s64") if name in ("target", "at") else
                                                                          ("f32", "f16", "bf16", "e4m3")))
    for field, kinds in types.items():
        if len(kinds) > 1:
            raise TypeError(f"{', '.join(name for name in (*inputs, *made) if _rows.TYPED.get(name) == field)} are of {', '.join(sorted(kinds))}, "
                            "but must be of one type")
    about = {"kernel": kernel, "n": n, "rows": x.size // width if width else 0, "types": sorted((f, k) for f, (k,) in types.items()),
             "optional": _rows.optional(kernel, (*inputs, *made)), "settings": sorted(settings.items()),
             "inputs": [placed(name, next(i for i, a in enumerate(arrays) if a is v), v) for name, v in inputs.items()],
             "outputs": [placed(name, i, of) for i, (name, of) in enumerate(made.items())]}
    about["outputs"], results = _merged(about["outputs"], results, firsts)
    opt = RowsCall(about).opt
    size = _runner(_ffi.default_key()).workspace(opt, about["rows"])
    got = _ffi.call(RowsCall, arrays, results + ([_ffi.array((size,), jnp.uint8)] if size else []), **about)
    found = {name: got[number] for name, _, _, number in about["outputs"]}
    return [found.get(name) for name in outputs]


def _merged(placed, results, firsts):
    """Results that are parts of the same rows become one array."""
    parts = [i for i, (name, *_) in enumerate(placed) if name in firsts]
    if len(parts) < 2:
        return placed, results
    kept = [of for i, of in enumerate(results) if i not in parts[1:]]
    return [(name, first, stride, parts[0] if i in parts else sum(j not in parts[1:] for j in range(i)))
            for i, (name, first, stride, _) in enumerate(placed)], kept


def _weights(x, **vectors):
    for name, v in vectors.items():
        if v is not None and v.shape != x.shape[-1:]:
            raise ValueError(f"{name} has the shape {v.shape}, but must have {x.shape[-1:]}")


def _second(x, x2):
    if (x2.shape, x2.dtype) != (x.shape, x.dtype):
        raise ValueError(f"x2 is {x2.dtype}{list(x2.shape)}, but must be as x is: {x.dtype}{list(x.shape)}")


def _columns(x):
    if not x.shape[-1]:
        raise ValueError(f"x has the shape {x.shape}, but its rows must have an element at least")


# ---- norms ----


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rms_norm(x, w, eps):
    return _rms_forward(x, w, eps)[0]


def _rms_forward(x, w, eps):
    y, rstd = _run("rms-norm", x, {"x": x, "w": w}, {"y": x, "rstd": SCALAR}, eps=eps)
    return y, (x, w, rstd)


def _rms_backward(eps, kept, dy):
    x, w, rstd = kept
    return tuple(_run("rms-norm-backward", x, {"x": x, "w": w, "dy": dy, "rstd": rstd}, {"dx": x, "dw": w}))


_rms_norm.defvjp(_rms_forward, _rms_backward)


def rms_norm(x, w=None, eps=1e-5):
    """x / sqrt(mean(x^2) + eps) * w."""
    _weights(x, w=w)
    return _rms_norm(x, w, float(eps))


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _add_rms_norm(x, x2, w, eps):
    return _add_forward(x, x2, w, eps)[0]


def _add_forward(x, x2, w, eps):
    y, both, rstd = _run("add-rms-norm", x, {"x": x, "x2": x2, "w": w}, {"y": x, "y2": x, "rstd": SCALAR}, eps=eps)
    return (y, both), (both, w, rstd)


def _add_backward(eps, kept, gradients):
    dx, dw = _rms_backward(eps, kept, gradients[0])
    dx = dx + gradients[1]
    return dx, dx, dw


_add_rms_norm.defvjp(_add_forward, _add_backward)


def add_rms_norm(x, residual, w=None, eps=1e-5):
    """The rms_norm of x + residual, and that sum."""
    _weights(x, w=w)
    _second(x, residual)
    return _add_rms_norm(x, residual, w, float(eps))


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _layer_norm(x, w, b, eps):
    return _layer_forward(x, w, b, eps)[0]


def _layer_forward(x, w, b, eps):
    y, mean, rstd = _run("layer-norm", x, {"x": x, "w": w, "b": b}, {"y": x, "mean": SCALAR, "rstd": SCALAR}, eps=eps)
    return y, (x, w, b, mean, rstd)


def _layer_backward(eps, kept, dy):
    x, w, b, mean, rstd = kept
    return tuple(_run("layer-norm-backward", x, {"x": x, "w": w, "dy": dy, "mean": mean, "rstd": rstd}, {"dx": x, "dw": w, "db": b}))


_layer_norm.defvjp(_layer_forward, _layer_backward)


def layer_norm(x, w=None, b=None, eps=1e-5):
    """(x - mean(x)) / sqrt(variance(x) + eps) * w + b."""
    _weights(x, w=w, b=b)
    return _layer_norm(x, w, b, float(eps))


# ---- softmax ----


def _softmax_of(kernel):
    """A function of x alone whose backward kernel wants the result."""
    @jax.custom_vjp
    def f(x):
        return _run(kernel, x, {"x": x}, {"y": x})[0]

    def forward(x):
        y = f(x)
        return y, y
    f.defvjp(forward, lambda y, dy: tuple(_run(f"{kernel}-backward", y, {"y": y, "dy": dy}, {"dx": y})))
    return f


_softmax, _log_softmax = _softmax_of("softmax"), _softmax_of("log-softmax")


def softmax(x):
    """exp(x) / sum(exp(x))."""
    return _softmax(x)


def log_softmax(x):
    """x - log(sum(exp(x)))."""
    return _log_softmax(x)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _cross_entropy(x, target, smoothing, ignored, z_loss):
    return _loss_forward(x, target, smoothing, ignored, z_loss)[0]


def _loss_settings(smoothing, ignored, z_loss):
    return {"smoothing": smoothing, "ignore": True, "ignored_label": ignored, "z_loss": z_loss}


def _loss_forward(x, target, *settings):
    loss, lse = _run("cross-entropy", x, {"x": x, "target": target}, {"loss": SCALAR, "lse": SCALAR}, **_loss_settings(*settings))
    return loss, (x, target, lse)


def _loss_backward(smoothing, ignored, z_loss, kept, dloss):
    x, target, lse = kept
    dx, = _run("cross-entropy-backward", x, {"x": x, "target": target, "lse": lse, "dloss": dloss}, {"dx": x},
               **_loss_settings(smoothing, ignored, z_loss))
    return dx, None


_cross_entropy.defvjp(_loss_forward, _loss_backward)


def cross_entropy(x, target, smoothing=0.0, ignore_index=-100, z_loss=0.0, reduction="mean"):
    """log(sum(exp(x))) - x[target] of each row, f32, with smoothed labels and z_loss * log(sum(exp(x)))^2.

    Rows whose target is ignore_index have no loss and no gradient; the mean is over the others.  reduction: "mean", "sum", or
    "none", the losses of the rows.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r}, but must be 'mean', 'sum' or 'none'")
    _columns(x)
    if target.shape != x.shape[:-1]:
        raise ValueError(f"target has the shape {target.shape}, but must have {x.shape[:-1]}")
    loss = _cross_entropy(x, target, float(smoothing), int(ignore_index), float(z_loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / (target != ignore_index).sum()


# ---- activations ----


def _gated_of(kernel, two):
    """A function of x, or of x and x2, whose backward kernel wants these once more; settings: pairs."""
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def f(settings, *xs):
        return _run(kernel, xs[0], dict(zip(("x", "x2"), xs)), {"y": xs[0]}, **dict(settings))[0]

    def backward(settings, xs, dy):
        results = {"dx": xs[0], **({"dx2": xs[1]} if two else {})}
        return tuple(_run(f"{kernel}-backward", xs[0], {"dy": dy, **dict(zip(("x", "x2"), xs))}, results, **dict(settings)))
    f.defvjp(lambda settings, *xs: (f(settings, *xs), xs), backward)
    return f


_swiglu, _geglu, _gelu = _gated_of("swiglu", True), _gated_of("geglu", True), _gated_of("gelu", False)


def swiglu(x, x2):
    """x / (1 + exp(-x)) * x2."""
    _second(x, x2)
    return _swiglu((), x, x2)


def geglu(x, x2, tanh=False):
    """gelu(x) * x2."""
    _second(x, x2)
    return _geglu((("tanh", bool(tanh)),), x, x2)


def gelu(x, tanh=False):
    """x * (1 + erf(x / sqrt(2))) / 2, or its approximation by tanh."""
    return _gelu((("tanh", bool(tanh)),), x)


# ---- rotary embedding, quantizing, and what has no gradient ----


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _rotary(x, cos, sin, pairs):
    heads, batch = x.shape[-2], math.prod(x.shape[:-3])
    if batch > 1:  # each of them begins with the first position
        cos, sin = jnp.tile(cos, (batch, 1)), jnp.tile(sin, (batch, 1))
    if pairs:
        return _run("rotary-pairs", x, {"x": x, "cos": jnp.repeat(cos, 2, -1), "sin": jnp.repeat(sin, 2, -1)}, {"y": x}, heads=heads)[0]
    half = x.shape[-1] // 2
    return _run("rotary", x, {"x": x, "x2": x, "cos": cos, "sin": sin}, {"y": x, "y2": x}, n=half, firsts={"x": 0, "x2": half, "y": 0, "y2": half},
                heads=heads)[0]


_rotary.defvjp(lambda x, cos, sin, pairs: (_rotary(x, cos, sin, pairs), (cos, sin)),
               lambda pairs, kept, dy: (_rotary(dy, kept[0], -kept[1], pairs), None, None))  # the inverse rotation


def rotary(x, cos, sin, pairs=False):
    """Rotates the pairs (i, i + half) of x, [..., positions, heads, 2 * half], by the angles whose cos and sin are given,
    [positions, half]; pairs: the pairs (2i, 2i + 1).  cos and sin have no gradients."""
    if x.ndim < 3 or x.shape[-1] % 2:
        raise ValueError(f"x has the shape {x.shape}, but must have [..., positions, heads, an even number]")
    for name, v in (("cos", cos), ("sin", sin)):
        if v.shape != (x.shape[-3], x.shape[-1] // 2):
            raise ValueError(f"{name} has the shape {v.shape}, but must have {(x.shape[-3], x.shape[-1] // 2)}")
    return _rotary(x, cos, sin, pairs)


def quantize(x, block=None):
    """Rows in float8_e4m3fn and what they are to be multiplied by, f32: max(|x|) / 448.  block: elements of a row that share a scale;
    the scales have a dimension more then."""
    _columns(x)
    _rows.check_block(block, x.shape[-1])
    blocks = x if block is None else x.reshape(*x.shape[:-1], -1, block)
    y, scale = _run("quantize", blocks, {"x": blocks}, {"y": _ffi.array(blocks.shape, jnp.float8_e4m3fn), "scale": SCALAR})
    return y.reshape(x.shape), scale


def argmax(x):
    """The first column of the largest element of each row, int32."""
    _columns(x)
    return _run("argmax", x, {"x": x}, {"at": INDEX})[0]


@jax.custom_vjp
def _transpose(x):
    return _run("transpose", x, {"x": x}, {"y": _ffi.array((x.shape[-1], math.prod(x.shape[:-1])), x.dtype)})[0]


_transpose.defvjp(lambda x: (_transpose(x), x.shape), lambda shape, dy: (dy.T.reshape(shape),))


def transpose(x):
    """The rows of x, all dimensions but the last, as columns."""
    return _transpose(x)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _top_k(x, k):
    each = (*x.shape[:-1], k)
    top, at = _run("top-k", x, {"x": x}, {"top": _ffi.array(each, jnp.float32), "at": _ffi.array(each, jnp.int32)}, k=k)
    return top.astype(x.dtype), at


def _top_k_backward(k, kept, gradients):
    x, at = kept
    n, dtop = x.shape[-1], gradients[0]
    found = jnp.where(at >= 0, dtop, 0).reshape(-1, k)  # -1 where a row had too few numbers
    rows = jnp.arange(found.shape[0])[:, None]
    return jnp.zeros((found.shape[0], n), dtop.dtype).at[rows, jnp.maximum(at.reshape(-1, k), 0)].add(found).reshape(x.shape),


_top_k.defvjp(lambda x, k: (lambda y: (y, (x, y[1])))(_top_k(x, k)), _top_k_backward)


def top_k(x, k):
    """The k largest elements of each row, the largest first, and their columns, int32; k is at most 64.  NaN is passed over."""
    if not 1 <= k <= min(64, x.shape[-1]):
        raise ValueError(f"k is {k}, but must be 1 to 64, and no more than the {x.shape[-1]} elements of a row")
    return _top_k(x, int(k))


@jax.custom_vjp
def _column_sum(x):
    return _run("column-sum", x, {"x": x}, {"dw": _ffi.array(x.shape[-1:], x.dtype)})[0]


_column_sum.defvjp(lambda x: (_column_sum(x), x.shape), lambda shape, dy: (jnp.broadcast_to(dy, shape),))


def column_sum(x):
    """The sum over all dimensions but the last, added up in f32."""
    return _column_sum(x)
