# SPDX-License-Identifier: MIT
"""cptx.rows: kernels over the rows of PyTorch tensors, with gradients: norms, softmax, cross entropy, gated activations.

    import cptx.rows
    y = cptx.rows.rms_norm(x, w)              # over the last dimension of x; f32, f16 or bf16, computed in f32
    loss = cptx.rows.cross_entropy(logits, labels, smoothing=0.1)

Each is a custom operator, torch.ops.cptx.NAME, so that torch.compile takes it as it is.  Kernels and rules are those of
<cptx/rows.h>: a row has 1 to 262,144 elements.  Rows may have any stride; where elements of a row do not stand side by side,
the tensor is copied first.
"""

import math

import torch

from . import _rows, ops

__all__ = ["add_rms_norm", "argmax", "column_sum", "cross_entropy", "geglu", "gelu", "layer_norm", "log_softmax", "quantize",
           "rms_norm", "rotary", "softmax", "swiglu", "top_k", "transpose"]


def _matrix(x):
    """A tensor as rows: a view, or a copy where there is none."""
    rows = x.reshape(-1, x.shape[-1])
    dense = rows.stride(-1) == 1 or rows.shape[-1] == 1
    apart = rows.stride(0) or rows.shape[0] <= 1  # not one row that is expanded
    return rows if dense and apart else rows.contiguous()


def _out(x, dtype=None):
    return torch.empty(x.shape, dtype=dtype or x.dtype, device=x.device)


def _scalars(x, dtype=torch.float32):
    return torch.empty(x.shape[:-1], dtype=dtype, device=x.device)


def _checked(name, x, like, shape):
    if x.device != like.device:
        raise ValueError(f"{name} is on {x.device}, but must be on {like.device}")
    if tuple(x.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {tuple(x.shape)}, but must have {tuple(shape)}")
    return x


def _second(x2, x):
    """x2, which goes with x element by element, and is read as the type of x."""
    if x2.dtype != x.dtype:
        raise TypeError(f"x2 is of {x2.dtype}, but x is of {x.dtype}")
    return _checked("x2", x2, x, x.shape)


def _columns(x):
    """Refuses rows without elements, of which results that are scalars would stay unset."""
    if not x.shape[-1]:
        raise ValueError(f"x has the shape {tuple(x.shape)}, but its rows must have an element at least")


def _run(kernel, like, given, types=(), settings=()):
    """Starts a kernel over the rows of `like`; given: tensors by the names of operands."""
    rows = math.prod(like.shape[:-1])
    kept, operands = [], {}
    for name, x in given.items():
        x = _matrix(x) if name in _rows.MATRICES else x.contiguous()
        kept.append(x)
        operands[name] = (x.data_ptr(), x.stride(0) if name in _rows.MATRICES and x.shape[0] > 1 else 0)
    if like.shape[-1] == 0 or (not rows and not _rows.SUMS & set(given)):
        return
    opt = _rows.options(kernel, like.shape[-1], (("in", ops.type_name("x", like)), *types), _rows.optional(kernel, given), tuple(settings))
    runner = _rows.runner(("cuda", like.device.index), lambda: ops.device(like))
    with torch.cuda.device(like.device):
        size = runner.workspace(opt, rows)
        workspace = torch.empty(size, dtype=torch.uint8, device=like.device) if size else None
        runner.run(opt, rows, operands, workspace.data_ptr() if size else 0, ops.stream(like))


def _weights(x, w, b=None):
    """The type of weights, which w and b share."""
    for name, v in (("w", w), ("b", b)):
        if v is not None:
            _checked(name, v, x, x.shape[-1:])
    if w is not None and b is not None and w.dtype != b.dtype:
        raise TypeError(f"w is of {w.dtype} and b of {b.dtype}, but they must be of one type")
    v = w if w is not None else b
    return () if v is None else (("weight", ops.type_name("w", v)),)


def _there(**tensors):
    return {name: x for name, x in tensors.items() if x is not None}


def _like(x, v):
    """A gradient of a vector that may not be there: then it has no elements."""
    return _out(v) if v is not None else x.new_empty(0)


# ---- norms ----


@ops.define("rms_norm_backward(Tensor dy, Tensor x, Tensor? w, Tensor rstd) -> (Tensor, Tensor)",
            fake=lambda dy, x, w, rstd: (_out(x), _like(x, w)))
def _rms_norm_backward(dy, x, w, rstd):
    dx, dw = _out(x), _like(x, w)
    given = {"x": x, "dy": dy, "dx": dx, "rstd": rstd, **({"w": w, "dw": dw} if w is not None else {})}
    _run("rms-norm-backward", x, given, (("out", ops.type_name("dy", dy)), *_weights(x, w)))
    return dx, dw


def _rms_setup(ctx, inputs, output):
    x, w, ctx.eps = inputs
    ctx.save_for_backward(x, w, output[1])


def _rms_backward(ctx, dy, _):
    x, w, rstd = ctx.saved_tensors
    dx, dw = torch.ops.cptx.rms_norm_backward(dy, x, w, rstd)
    return dx, dw if w is not None else None, None


@ops.define("rms_norm(Tensor x, Tensor? w, float eps) -> (Tensor, Tensor)", fake=lambda x, w, eps: (_out(x), _scalars(x)),
            setup=_rms_setup, backward=_rms_backward)
def _rms_norm(x, w, eps):
    y, rstd = _out(x), _scalars(x)
    _run("rms-norm", x, {"x": x, "y": y, "rstd": rstd, **_there(w=w)}, _weights(x, w), (("eps", eps),))
    return y, rstd


def rms_norm(x, w=None, eps=1e-5):
    """x / sqrt(mean(x^2) + eps) * w."""
    return torch.ops.cptx.rms_norm(x, w, eps)[0]


def _add_setup(ctx, inputs, output):
    _, _, w, _ = inputs
    ctx.save_for_backward(output[1], w, output[2])


def _add_backward(ctx, dy, dsum, _):
    both, w, rstd = ctx.saved_tensors
    dx, dw = torch.ops.cptx.rms_norm_backward(dy, both, w, rstd)
    dx = dx + dsum
    return dx, dx, dw if w is not None else None, None


@ops.define("add_rms_norm(Tensor x, Tensor x2, Tensor? w, float eps) -> (Tensor, Tensor, Tensor)",
            fake=lambda x, x2, w, eps: (_out(x), _out(x), _scalars(x)), setup=_add_setup, backward=_add_backward)
def _add_rms_norm(x, x2, w, eps):
    _second(x2, x)
    y, both, rstd = _out(x), _out(x), _scalars(x)
    _run("add-rms-norm", x, {"x": x, "x2": x2, "y": y, "y2": both, "rstd": rstd, **_there(w=w)}, _weights(x, w), (("eps", eps),))
    return y, both, rstd


def add_rms_norm(x, residual, w=None, eps=1e-5):
    """The rms_norm of x + residual, and that sum."""
    return torch.ops.cptx.add_rms_norm(x, residual, w, eps)[:2]


@ops.define("layer_norm_backward(Tensor dy, Tensor x, Tensor? w, Tensor? b, Tensor mean, Tensor rstd) -> (Tensor, Tensor, Tensor)",
            fake=lambda dy, x, w, b, mean, rstd: (_out(x), _like(x, w), _like(x, b)))
def _layer_norm_backward(dy, x, w, b, mean, rstd):
    dx, dw, db = _out(x), _like(x, w), _like(x, b)
    vectors = {**({"w": w, "dw": dw} if w is not None else {}), **({"db": db} if b is not None else {})}
    _run("layer-norm-backward", x, {"x": x, "dy": dy, "dx": dx, "mean": mean, "rstd": rstd, **vectors},
         (("out", ops.type_name("dy", dy)), *_weights(x, w, b)))
    return dx, dw, db


def _layer_setup(ctx, inputs, output):
    x, w, b, _ = inputs
    ctx.save_for_backward(x, w, b, *output[1:])


def _layer_backward(ctx, dy, *_):
    x, w, b, mean, rstd = ctx.saved_tensors
    dx, dw, db = torch.ops.cptx.layer_norm_backward(dy, x, w, b, mean, rstd)
    return dx, dw if w is not None else None, db if b is not None else None, None


@ops.define("layer_norm(Tensor x, Tensor? w, Tensor? b, float eps) -> (Tensor, Tensor, Tensor)",
            fake=lambda x, w, b, eps: (_out(x), _scalars(x), _scalars(x)), setup=_layer_setup, backward=_layer_backward)
def _layer_norm(x, w, b, eps):
    y, mean, rstd = _out(x), _scalars(x), _scalars(x)
    _run("layer-norm", x, {"x": x, "y": y, "mean": mean, "rstd": rstd, **_there(w=w, b=b)}, _weights(x, w, b), (("eps", eps),))
    return y, mean, rstd


def layer_norm(x, w=None, b=None, eps=1e-5):
    """(x - mean(x)) / sqrt(variance(x) + eps) * w + b."""
    return torch.ops.cptx.layer_norm(x, w, b, eps)[0]


# ---- softmax ----


def _softmax_ops(name, kernel):
    """An operator of x alone whose backward kernel wants the result: softmax, or its logarithm."""

    @ops.define(f"{name}_backward(Tensor dy, Tensor y) -> Tensor", fake=lambda dy, y: _out(y))
    def backward(dy, y):
        dx = _out(y)
        _run(f"{kernel}-backward", y, {"y": y, "dy": _checked("dy", dy, y, y.shape).to(y.dtype), "dx": dx})
        return dx

    @ops.define(f"{name}(Tensor x) -> Tensor", fake=_out, setup=lambda ctx, inputs, output: ctx.save_for_backward(output),
                backward=lambda ctx, dy: backward(dy, *ctx.saved_tensors))
    def forward(x):
        y = _out(x)
        _run(kernel, x, {"x": x, "y": y})
        return y


_softmax_ops("softmax", "softmax")
_softmax_ops("log_softmax", "log-softmax")


def softmax(x):
    """exp(x) / sum(exp(x))."""
    return torch.ops.cptx.softmax(x)


def log_softmax(x):
    """x - log(sum(exp(x)))."""
    return torch.ops.cptx.log_softmax(x)


def _loss_settings(smoothing, ignored, z_loss):
    return (("smoothing", smoothing), ("ignore", True), ("ignored_label", ignored), ("z_loss", z_loss))


@ops.define("cross_entropy_backward(Tensor dloss, Tensor x, Tensor target, Tensor lse, float smoothing, int ignored, float z_loss)"
            " -> Tensor", fake=lambda dloss, x, *_: _out(x))
def _cross_entropy_backward(dloss, x, target, lse, smoothing, ignored, z_loss):
    dx = _out(x)
    _run("cross-entropy-backward", x, {"x": x, "target": target, "lse": lse, "dloss": dloss, "dx": dx},
         (("index", ops.type_name("target", target, ("s32", "s64"))),), _loss_settings(smoothing, ignored, z_loss))
    return dx


def _loss_setup(ctx, inputs, output):
    x, target, *ctx.settings = inputs
    ctx.save_for_backward(x, target, output[1])


def _loss_backward(ctx, dloss, _):
    return torch.ops.cptx.cross_entropy_backward(dloss, *ctx.saved_tensors, *ctx.settings), None, None, None, None


@ops.define("cross_entropy(Tensor x, Tensor target, float smoothing, int ignored, float z_loss) -> (Tensor, Tensor)",
            fake=lambda x, *_: (_scalars(x), _scalars(x)), setup=_loss_setup, backward=_loss_backward)
def _cross_entropy(x, target, smoothing, ignored, z_loss):
    _columns(x)
    _checked("target", target, x, x.shape[:-1])
    loss, lse = _scalars(x), _scalars(x)
    _run("cross-entropy", x, {"x": x, "target": target, "loss": loss, "lse": lse},
         (("index", ops.type_name("target", target, ("s32", "s64"))),), _loss_settings(smoothing, ignored, z_loss))
    return loss, lse


def cross_entropy(x, target, smoothing=0.0, ignore_index=-100, z_loss=0.0, reduction="mean"):
    """log(sum(exp(x))) - x[target] of each row, f32, with smoothed labels and z_loss * log(sum(exp(x)))^2.

    Rows whose target is ignore_index have no loss and no gradient; the mean is over the others.  reduction: "mean", "sum", or
    "none", the losses of the rows.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r}, but must be 'mean', 'sum' or 'none'")
    loss = torch.ops.cptx.cross_entropy(x, target, smoothing, ignore_index, z_loss)[0]
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / (target != ignore_index).sum()


# ---- activations ----


def _gated_ops(name, two, tanh):
    """An operator of x, or of x and x2, whose backward kernel wants these once more."""
    tensors, flag = ("Tensor x, Tensor x2" if two else "Tensor x"), (", bool tanh" if tanh else "")
    settings = (lambda rest: (("tanh", rest[0]),)) if tanh else (lambda rest: ())
    split = lambda args: (args[:2], args[2:]) if two else (args[:1], args[1:])  # noqa: E731
    results = "(Tensor, Tensor)" if two else "Tensor"

    @ops.define(f"{name}_backward(Tensor dy, {tensors}{flag}) -> {results}",
                fake=lambda dy, x, *rest: (_out(x), _out(x)) if two else _out(x))
    def backward(dy, *args):
        xs, rest = split(args)
        dxs = [_out(x) for x in xs]
        _run(f"{name}-backward", xs[0], {"dy": dy, **dict(zip(("x", "x2"), xs)), **dict(zip(("dx", "dx2"), dxs))},
             (("out", ops.type_name("dy", dy)),), settings(rest))
        return tuple(dxs) if two else dxs[0]

    def setup(ctx, inputs, output):
        xs, ctx.rest = split(inputs)
        ctx.save_for_backward(*xs)

    def gradient(ctx, dy):
        dxs = backward(dy, *ctx.saved_tensors, *ctx.rest)
        return (*(dxs if two else (dxs,)), *(None for _ in ctx.rest))

    @ops.define(f"{name}({tensors}{flag}) -> Tensor", fake=lambda x, *rest: _out(x), setup=setup, backward=gradient)
    def forward(*args):
        xs, rest = split(args)
        for x in xs[1:]:
            _second(x, xs[0])
        y = _out(xs[0])
        _run(name, xs[0], {**dict(zip(("x", "x2"), xs)), "y": y}, settings=settings(rest))
        return y


_gated_ops("swiglu", two=True, tanh=False)
_gated_ops("geglu", two=True, tanh=True)
_gated_ops("gelu", two=False, tanh=True)


def swiglu(x, x2):
    """x / (1 + exp(-x)) * x2."""
    return torch.ops.cptx.swiglu(x, x2)


def geglu(x, x2, tanh=False):
    """gelu(x) * x2."""
    return torch.ops.cptx.geglu(x, x2, tanh)


def gelu(x, tanh=False):
    """x * (1 + erf(x / sqrt(2))) / 2, or its approximation by tanh."""
    return torch.ops.cptx.gelu(x, tanh)


# ---- rotary embedding, quantizing, and what has no gradient ----


def _rotary_backward(ctx, dy):
    cos, sin = ctx.saved_tensors  # the inverse rotation
    return torch.ops.cptx.rotary(dy, cos, -sin), None, None


def _check_angles(x, cos, sin):
    if x.dim() < 3 or x.shape[-1] % 2:
        raise ValueError(f"x has the shape {tuple(x.shape)}, but must have [..., positions, heads, an even number]")
    for name, v in (("cos", cos), ("sin", sin)):
        _checked(name, v, x, (x.shape[-3], x.shape[-1] // 2))
    if sin.dtype != cos.dtype:
        raise TypeError(f"sin is of {sin.dtype}, but cos is of {cos.dtype}")


@ops.define("rotary(Tensor x, Tensor cos, Tensor sin) -> Tensor", fake=lambda x, cos, sin: _out(x),
            setup=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[1:]), backward=_rotary_backward)
def _rotary(x, cos, sin):
    _check_angles(x, cos, sin)
    half = x.shape[-1] // 2
    y, heads, batch = _out(x), x.shape[-2], math.prod(x.shape[:-3])
    x, rows = _matrix(x), _matrix(y)
    one = math.prod(y.shape[-3:-1])
    for i in range(batch):  # each of them begins with the first position
        part = slice(i * one, (i + 1) * one)
        _run("rotary", x[part, :half], {"x": x[part, :half], "x2": x[part, half:], "cos": cos, "sin": sin, "y": rows[part, :half],
                                        "y2": rows[part, half:]}, (("weight", ops.type_name("cos", cos)),), (("heads", heads),))
    return y


def _rotary_pairs_backward(ctx, dy):
    cos, sin = ctx.saved_tensors
    return torch.ops.cptx.rotary_pairs(dy, cos, -sin), None, None


@ops.define("rotary_pairs(Tensor x, Tensor cos, Tensor sin) -> Tensor", fake=lambda x, cos, sin: _out(x),
            setup=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[1:]), backward=_rotary_pairs_backward)
def _rotary_pairs(x, cos, sin):
    _check_angles(x, cos, sin)
    y, heads, batch = _out(x), x.shape[-2], math.prod(x.shape[:-3])
    x, rows, cos, sin = _matrix(x), _matrix(y), cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    one = math.prod(y.shape[-3:-1])
    for i in range(batch):  # each of them begins with the first position
        part = slice(i * one, (i + 1) * one)
        _run("rotary-pairs", x[part], {"x": x[part], "cos": cos, "sin": sin, "y": rows[part]}, (("weight", ops.type_name("cos", cos)),),
             (("heads", heads),))
    return y


def rotary(x, cos, sin, pairs=False):
    """Rotates the pairs (i, i + half) of x, [..., positions, heads, 2 * half], by the angles whose cos and sin are given,
    [positions, half]; pairs: the pairs (2i, 2i + 1)."""
    return (torch.ops.cptx.rotary_pairs if pairs else torch.ops.cptx.rotary)(x, cos, sin)


@ops.define("quantize(Tensor x) -> (Tensor, Tensor)", fake=lambda x: (_out(x, torch.float8_e4m3fn), _scalars(x)))
def _quantize(x):
    _columns(x)
    y, scale = _out(x, torch.float8_e4m3fn), _scalars(x)
    _run("quantize", x, {"x": x, "y": y, "scale": scale})
    return y, scale


@ops.define("quantize_fp4(Tensor x) -> (Tensor, Tensor)",
            fake=lambda x: (x.new_empty((*x.shape[:-1], x.shape[-1] // 2), dtype=torch.uint8), _scalars(x)))
def _quantize_fp4(x):
    _columns(x)
    y, scale = x.new_empty((*x.shape[:-1], x.shape[-1] // 2), dtype=torch.uint8), _scalars(x)
    _run("quantize", x.contiguous(), {"x": x.contiguous(), "y": y, "scale": scale}, (("out", "e2m1"),))
    return y, scale


def quantize(x, block=None, fp4=False):
    """Rows in float8_e4m3fn and what they are to be multiplied by, f32: max(|x|) / 448.  block: elements of a row that share a
    scale; the scales have a dimension more then.  fp4: in e2m1, two in a byte of uint8, the first one in its lower half; the
    scale is max(|x|) / 6, and a row or block has a multiple of 8 elements."""
    op, each = (torch.ops.cptx.quantize_fp4, 2) if fp4 else (torch.ops.cptx.quantize, 1)
    if block is None:
        return op(x)
    _rows.check_block(block, x.shape[-1])
    y, scale = op(x.reshape(*x.shape[:-1], -1, block))
    return y.reshape(*x.shape[:-1], x.shape[-1] // each), scale


@ops.define("argmax(Tensor x) -> Tensor", fake=lambda x: _scalars(x, torch.int64))
def _argmax(x):
    _columns(x)
    at = _scalars(x, torch.int64)
    _run("argmax", x, {"x": x, "at": at})
    return at


def argmax(x):
    """The first column of the largest element of each row, int64."""
    return torch.ops.cptx.argmax(x)


@ops.define("transpose(Tensor x) -> Tensor", fake=lambda x: x.new_empty((x.shape[-1], math.prod(x.shape[:-1]))),
            setup=lambda ctx, inputs, output: setattr(ctx, "shape", inputs[0].shape),
            backward=lambda ctx, dy: dy.t().reshape(ctx.shape))
def _transpose(x):
    y = x.new_empty((x.shape[-1], math.prod(x.shape[:-1])))
    _run("transpose", x, {"x": x, "y": y})
    return y


def transpose(x):
    """The rows of x, all dimensions but the last, as columns: a dense matrix."""
    return torch.ops.cptx.transpose(x)


def _top_k_setup(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])
    ctx.shape = inputs[0].shape


def _top_k_backward(ctx, dtop, _):
    at, = ctx.saved_tensors  # -1 where a row had too few numbers
    found = torch.where(at >= 0, dtop, 0)
    return torch.zeros(ctx.shape, dtype=dtop.dtype, device=dtop.device).scatter_add(-1, at.clamp(min=0), found), None


@ops.define("top_k(Tensor x, int k) -> (Tensor, Tensor)", fake=lambda x, k: (x.new_empty((*x.shape[:-1], k)),
                                                                            x.new_empty((*x.shape[:-1], k), dtype=torch.int64)),
            setup=_top_k_setup, backward=_top_k_backward)
def _top_k(x, k):
    if not 1 <= k <= min(64, x.shape[-1]):
        raise ValueError(f"k is {k}, but must be 1 to 64, and no more than the {x.shape[-1]} elements of a row")
    top = torch.empty((*x.shape[:-1], k), dtype=torch.float32, device=x.device)
    at = torch.empty(top.shape, dtype=torch.int64, device=x.device)
    _run("top-k", x, {"x": x, "top": top, "at": at}, settings=(("k", k),))
    return top.to(x.dtype), at


def top_k(x, k):
    """The k largest elements of each row, the largest first, and their columns, int64; k is at most 64.  NaN is passed over."""
    return torch.ops.cptx.top_k(x, k)


@ops.define("column_sum(Tensor x) -> Tensor", fake=lambda x: x.new_empty(x.shape[-1:]),
            setup=lambda ctx, inputs, output: setattr(ctx, "shape", inputs[0].shape),
            backward=lambda ctx, dy: dy.expand(ctx.shape))
def _column_sum(x):
    dw = x.new_empty(x.shape[-1:])
    _run("column-sum", x, {"x": x, "dw": dw})
    return dw


def column_sum(x):
    """The sum over all dimensions but the last, added up in f32."""
    return torch.ops.cptx.column_sum(x)
