# SPDX-License-Identifier: MIT
"""cptx.attention: attention on PyTorch tensors of f16, bf16 or e4m3, with gradients but of e4m3, and for decoding.

    from cptx.attention import attention, decode
    o = attention(q, k, v, causal=True)              # [batch, heads, rows, head size]; fewer heads of k and v: GQA
    o = decode(q, k_cache, v_cache, lengths=n)       # one to sixteen queries against long caches

Each is a custom operator, torch.ops.cptx.attention, so that torch.compile takes it as it is.  Kernels and rules are those of
<cptx/attention.h>, <cptx/attention_backward.h> and <cptx/attention_decode.h>.  Tensors may have any strides of batch, head and
row that are multiples of 16 bytes; where elements of a row do not stand side by side, the tensor is copied first.
"""

import torch

from . import _attention, ops

__all__ = ["attention", "attention_varlen", "decode", "decode_mla"]


def _placed(x):
    """A tensor that kernels can read where it lies: itself, or a copy."""
    apart = all(n < 2 or (s and s * x.element_size() % 16 == 0) for n, s in zip(x.shape[:-1], x.stride()))
    return x if apart and (x.stride(-1) == 1 or x.shape[-1] == 1) and x.data_ptr() % 16 == 0 else x.contiguous()


def _place(x, otherwise=0):
    """Where a tensor lies, as _attention has it; otherwise: an address for one without elements."""
    rows_and_heads = x.stride()[-2::-1] if x.dim() == 4 else (x.stride(0), x.stride(1))  # packed: [rows, heads, head size]
    row, head, batch = (*rows_and_heads, 0)[:3]
    return x.data_ptr() or otherwise, batch, head, row


def _like(x, dim):
    """A new tensor of rows of `dim` elements, whose dimensions lie in the order of those of x; of e4m3 in bf16.

    Of packed sequences it begins with zeros, as the kernels leave rows alone that belong to no sequence.
    """
    dtype = torch.bfloat16 if x.dtype == torch.float8_e4m3fn else x.dtype
    if x.dim() == 3:
        return x.new_zeros(*x.shape[:-1], dim, dtype=dtype)
    if x.stride(1) < x.stride(2):
        return x.new_empty(x.shape[0], x.shape[2], x.shape[1], dim, dtype=dtype).transpose(1, 2)
    return x.new_empty(*x.shape[:-1], dim, dtype=dtype)


def _shape_of_lse(q):
    """[batch, heads, queries], or of packed sequences [heads, rows]."""
    return tuple(q.shape[:-1]) if q.dim() == 4 else (q.shape[1], q.shape[0])


def _statistics(q):
    """A new LSE; of packed sequences -infinity until a kernel writes it, which rows that belong to no sequence keep."""
    shape = _shape_of_lse(q)
    return q.new_empty(shape, dtype=torch.float32) if q.dim() == 4 else q.new_full(shape, float("-inf"), dtype=torch.float32)


def _vector(name, x, like, dtype, shape):
    if x.device != like.device or x.dtype != dtype or tuple(x.shape) != tuple(shape):
        raise ValueError(f"{name} is of {x.dtype}, has the shape {tuple(x.shape)} and is on {x.device}, but must be of {dtype}, have "
                         f"{tuple(shape)} and be on {like.device}")
    return x.contiguous()


def _of_o(name, x, q, v):
    """O, or its gradient, placed."""
    shape = (*q.shape[:-1], v.shape[-1])
    if x.device != q.device or x.dtype != q.dtype or tuple(x.shape) != shape:
        raise ValueError(f"{name} is of {x.dtype}, has the shape {tuple(x.shape)} and is on {x.device}, but must be as O is: of {q.dtype}, "
                         f"{shape}, on {q.device}")
    return _placed(x)


def _checked(q, k, v, rank, types=("f16", "bf16")):
    """The type of all three, whose shapes fit."""
    for name, x in (("k", k), ("v", v)):
        if x.device != q.device or x.dtype != q.dtype:
            raise ValueError(f"{name} is of {x.dtype} on {x.device}, but q is of {q.dtype} on {q.device}")
    if any(x.dim() != rank for x in (q, k, v)):
        raise ValueError(f"q, k and v have {q.dim()}, {k.dim()} and {v.dim()} dimensions, but must have {rank}")
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q, k and v have the shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}: k and v must differ in "
                         "the last dimension alone, and those of q and k be the same")
    return ops.type_name("q", q, types)


def _window(left, right, causal):
    """Sizes of a window; below 0: it does not end there."""
    if max(left, right) < 0:
        return {}
    left, right = (_attention.MANY if n < 0 else min(n, _attention.MANY) for n in (left, right))
    return {"window_left": left, "window_right": 0 if causal else right}


def _scale(scale):
    """The scale of scores as the problem has it, where 0 stands for the usual one."""
    if scale is not None and not scale > 0:
        raise ValueError(f"scale is {scale}, but must be above 0")
    return scale or 0.0


def _runner(kind, x):
    return _attention.runner(kind, ("cuda", x.device.index), lambda: ops.device(x))


def _start(runner, operands, sizes, settings, like):
    with torch.cuda.device(like.device):
        runner.run(operands, sizes, settings, ops.stream(like))


def _sizes(q, k, scale, paged=False):
    if q.dim() == 4 and q.shape[0] != k.shape[0] and not paged:
        raise ValueError(f"q has {q.shape[0]} batches, and k {k.shape[0]}")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} heads of Q, and {k.shape[1]} of K and V; these divide those of Q")
    axis = 2 if q.dim() == 4 else 0
    return {"batch": q.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1], "queries": q.shape[axis], "keys": k.shape[axis],
            "scale": scale}


def _sequences(q, k, cu_queries, cu_keys, max_queries, max_keys, sizes):
    """Where packed sequences begin; sets their sizes."""
    vectors = {name: _vector(name, x, q, torch.int32, cu_queries.shape[:1]) for name, x in (("cu_queries", cu_queries), ("cu_keys", cu_keys))}
    sizes.update(batch=cu_queries.shape[0] - 1, queries=max_queries, keys=max_keys, total_queries=q.shape[0], total_keys=k.shape[0])
    return vectors


# ---- gradients ----


@ops.define("attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor? cu_queries, Tensor? cu_keys, "
            "SymInt max_queries, SymInt max_keys, bool causal, bool top_left, int left, int right, float scale, float softcap, "
            "bool deterministic) -> (Tensor, Tensor, Tensor)", fake=lambda d_o, q, k, v, *_: tuple(_like(x, x.shape[-1]) for x in (q, k, v)))
def _backward(d_o, q, k, v, o, lse, cu_queries, cu_keys, max_queries, max_keys, causal, top_left, left, right, scale, softcap, deterministic):
    packed = cu_queries is not None
    kind = _checked(q, k, v, 3 if packed else 4)
    if k.shape[-1] != v.shape[-1]:
        raise ValueError(f"the gradient of attention needs one head size, but k has {k.shape[-1]}, and v {v.shape[-1]}")
    grads = [_like(x, x.shape[-1]) for x in (q, k, v)]
    if not q.numel():
        return tuple(dx.zero_() for dx in grads)
    inputs = {**dict(zip(("q", "k", "v"), map(_placed, (q, k, v)))), "o": _of_o("o", o, q, v), "d_o": _of_o("d_o", d_o, q, v)}
    lse = _vector("lse", lse, q, torch.float32, _shape_of_lse(q))
    window = _window(left, right, causal)
    settings = {"in": kind, "dim": q.shape[-1], "causal": causal, "top_left": top_left and (causal or bool(window)),
                "window": bool(window), "deterministic": deterministic, "softcap": softcap != 0, "varlen": packed}
    sizes = {**_sizes(q, k, scale), **window, "softcap": softcap}
    vectors = _sequences(q, k, cu_queries, cu_keys, max_queries, max_keys, sizes) if packed else {}
    runner = _runner(_attention.Backward, q)
    workspace = torch.empty(runner.workspace(sizes, settings), dtype=torch.uint8, device=q.device)
    addresses = {name: x.data_ptr() for name, x in vectors.items()}
    places = {name: _place(x, lse.data_ptr()) for name, x in (*inputs.items(), *zip(("dq", "dk", "dv"), grads))}
    _start(runner, {**places, **addresses, "lse": lse.data_ptr(), "workspace": workspace.data_ptr()}, sizes, settings, q)
    return tuple(grads)


def _setup(ctx, inputs, output):
    q, k, v, sinks, cu_queries, cu_keys, *longest, _, causal, top_left, left, right, scale, softcap, deterministic = inputs
    ctx.longest, ctx.settings = longest, (causal, top_left, left, right, scale, softcap, deterministic)
    ctx.save_for_backward(q, k, v, sinks, cu_queries, cu_keys, *output)
    ctx.mark_non_differentiable(output[1])


def _gradient(ctx, d_o, _):
    q, k, v, sinks, cu_queries, cu_keys, o, lse = ctx.saved_tensors
    d_sinks = None
    if sinks is not None and ctx.needs_input_grad[3]:
        share = torch.exp(sinks[:, None] - lse)  # of the sums
        delta = (d_o.float() * o.float()).sum(-1)
        parts = share * (delta if lse.dim() == 3 else delta.T)
        # rows without a sum: the share is infinite or NaN, and d_o of a row that belongs to no sequence may be anything
        d_sinks = -parts.masked_fill(lse == float("-inf"), 0).sum((0, 2) if lse.dim() == 3 else 1)
    grads = (None, None, None)
    if any(ctx.needs_input_grad[:3]):
        grads = torch.ops.cptx.attention_backward(d_o, q, k, v, o, lse, cu_queries, cu_keys, *ctx.longest, *ctx.settings)
    return (*grads, d_sinks, *(None for _ in range(12)))


# ---- forward ----


def _outputs(q, k, v, *_):
    return _like(q, v.shape[-1]), _statistics(q)


@ops.define("attention(Tensor q, Tensor k, Tensor v, Tensor? sinks, Tensor? cu_queries, Tensor? cu_keys, SymInt max_queries, "
            "SymInt max_keys, float v_scale, bool causal, bool top_left, int left, int right, float scale, float softcap, "
            "bool deterministic) -> (Tensor, Tensor)", fake=_outputs, setup=_setup, backward=_gradient)
def _attention_op(q, k, v, sinks, cu_queries, cu_keys, max_queries, max_keys, v_scale, causal, top_left, left, right, scale, softcap, _):
    packed = cu_queries is not None
    kind = _checked(q, k, v, 3 if packed else 4, ("f16", "bf16", "e4m3"))
    o, lse = _outputs(q, k, v)
    if not o.numel():
        return o, lse
    window = _window(left, right, causal)
    settings = {"in": kind, "dim": q.shape[-1], "dim_v": v.shape[-1], "causal": causal, "window": bool(window),
                "top_left": top_left and (causal or bool(window)), "softcap": softcap != 0, "sinks": sinks is not None, "varlen": packed,
                "lse": True}
    sizes = {**_sizes(q, k, scale), **window, "softcap": softcap, "v_scale": v_scale}
    tensors = [_placed(x) for x in (q, k, v)]
    operands = {name: _place(x, q.data_ptr()) for name, x in zip(("q", "k", "v", "o"), (*tensors, o))}
    vectors = _sequences(q, k, cu_queries, cu_keys, max_queries, max_keys, sizes) if packed else {}
    if sinks is not None:
        vectors["sinks"] = _vector("sinks", sinks, q, torch.float32, q.shape[1:2])
    addresses = {name: x.data_ptr() for name, x in vectors.items()}
    _start(_runner(_attention.Forward, q), {**operands, **addresses, "lse": lse.data_ptr()}, sizes, settings, q)
    return o, lse


def _call(q, k, v, packed, causal, top_left, window, scale, softcap, sinks, lse, deterministic, v_scale):
    left, right = (-1 if n is None else n for n in window or (None, None))
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    o, statistics = torch.ops.cptx.attention(q, k, v, sinks, *packed, v_scale or 0.0, causal, top_left, left, right, _scale(scale),
                                             softcap or 0.0, deterministic)
    return (o, statistics) if lse else o


def attention(q, k, v, *, causal=False, top_left=False, window=None, scale=None, softcap=None, sinks=None, lse=False,
              deterministic=None, v_scale=None):
    """softmax(scale * q @ k^T) @ v of each head; q: [batch, heads, queries, dim], k, v: [batch, kv_heads, keys, dim].

    causal: no key behind the query, of which the last stands at the last key, or with top_left the first at the first.  window:
    (left, right), keys before and behind the query's place that count, None: all.  scale: above 0; None: 1 / sqrt(dim).  softcap: scores
    become softcap * tanh(score / softcap).  sinks: f32 of each head, a logit that joins the sums.  lse: also gives the logarithms
    of the sums, f32, [batch, heads, queries], which have no gradient.  deterministic: whether gradients have the same bits
    each time; None: as torch.use_deterministic_algorithms says.  v_scale: of e4m3 (sm_89 and later), what v is to be multiplied by; o is
    bf16.  Gradients are for head sizes to 128, the same of q, k and v.
    """
    return _call(q, k, v, (None, None, 0, 0), causal, top_left, window, scale, softcap, sinks, lse, deterministic, v_scale)


def attention_varlen(q, k, v, cu_queries, cu_keys, max_queries, max_keys, *, causal=False, top_left=False, window=None, scale=None,
                     softcap=None, sinks=None, lse=False, deterministic=None, v_scale=None):
    """The same of packed sequences: q: [rows, heads, dim], k, v: [rows, kv_heads, dim].

    cu_queries, cu_keys: int32, where each sequence begins, and behind it where the last ends; max_queries, max_keys: the longest.
    lse: [heads, rows].  Rows that belong to no sequence have zeros in the result and in gradients, and lse -infinity.
    """
    return _call(q, k, v, (cu_queries, cu_keys, max_queries, max_keys), causal, top_left, window, scale, softcap, sinks, lse,
                 deterministic, v_scale)


# ---- decoding ----


@ops.define("attention_decode(Tensor q, Tensor k, Tensor v, Tensor? lengths, Tensor? pages, bool causal, int left, float scale, "
            "float softcap) -> (Tensor, Tensor)", fake=_outputs)
def _decode(q, k, v, lengths, pages, causal, left, scale, softcap):
    return _decoded(q, k, v, v.shape[-1], lengths, pages, causal, left, scale, softcap)


@ops.define("attention_decode_mla(Tensor q, Tensor cache, int dim_v, Tensor? lengths, Tensor? pages, bool causal, float scale, "
            "float softcap) -> (Tensor, Tensor)", fake=lambda q, cache, dim_v, *_: (_like(q, dim_v), _statistics(q)))
def _decode_mla(q, cache, dim_v, lengths, pages, causal, scale, softcap):
    return _decoded(q, cache, None, dim_v, lengths, pages, causal, -1, scale, softcap)


def _decoded(q, k, v, dim_v, lengths, pages, causal, left, scale, softcap):
    """v None: the first columns of k."""
    kind = _checked(q, k, k if v is None else v, 4)
    o, lse = _like(q, dim_v), _statistics(q)
    if not o.numel():
        return o, lse
    settings = {"in": kind, "dim": q.shape[-1], "dim_v": dim_v, "causal": causal, "window": left >= 0, "softcap": softcap != 0,
                "paged": pages is not None, "lse": True, "mla": v is None}
    sizes = {**_sizes(q, k, scale, pages is not None), "softcap": softcap, "window_left": min(max(left, 0), _attention.MANY)}
    if pages is not None:
        pages = _vector("pages", pages, q, torch.int32, (q.shape[0], pages.shape[-1]))
        sizes.update(page=k.shape[2], keys=k.shape[2] * pages.shape[1], page_pitch=pages.shape[1])
    tensors = {"q": q, "k": k, **({} if v is None else {"v": v})}
    operands = {name: _place(x, q.data_ptr()) for name, x in (*((n, _placed(x)) for n, x in tensors.items()), ("o", o))}
    if lengths is not None:
        lengths = _vector("lengths", lengths, q, torch.int32, q.shape[:1])
        operands["lengths"] = lengths.data_ptr()
    if pages is not None:
        operands["pages"] = pages.data_ptr()
    runner = _runner(_attention.Decode, q)
    size = runner.workspace(sizes, settings, operands)
    workspace = torch.empty(size, dtype=torch.uint8, device=q.device) if size else None
    _start(runner, {**operands, "lse": lse.data_ptr(), "workspace": workspace.data_ptr() if size else 0}, sizes, settings, q)
    return o, lse


def decode(q, k, v, *, lengths=None, pages=None, causal=True, window=None, scale=None, softcap=None, lse=False):
    """Attention of few queries, [batch, heads, 1 to 16, dim], against caches, [batch, kv_heads, keys, dim]; no gradients.

    lengths: int32, the keys of each sequence; else all.  pages: int32 [batch, n], the pages of each sequence in order; k and v are
    [pages, kv_heads, keys of a page, dim] then.  causal: the last query sees all keys, the one before it all but the last.  window:
    keys in front of the query's place that count, with causal.  scale, softcap, lse: as of attention.
    """
    o, statistics = torch.ops.cptx.attention_decode(q, k, v, lengths, pages, causal, -1 if window is None else window, _scale(scale),
                                                    softcap or 0.0)
    return (o, statistics) if lse else o


def decode_mla(q, cache, dim_v, *, lengths=None, pages=None, causal=True, scale=None, softcap=None, lse=False):
    """The same where V is the first dim_v columns of K (multi-head latent attention), on sm_90a.

    q: [batch, heads, 1 to 16, dim], dim a multiple of 64, to 576; cache: [batch, kv_heads, keys, dim], or with pages [pages, kv_heads,
    keys of a page, dim], the keys of a page a multiple of 64; dim_v: a multiple of 128, to 512.
    """
    o, statistics = torch.ops.cptx.attention_decode_mla(q, cache, dim_v, lengths, pages, causal, _scale(scale), softcap or 0.0)
    return (o, statistics) if lse else o
