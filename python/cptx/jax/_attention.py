# SPDX-License-Identifier: MIT
"""cptx.attention for JAX, with gradients."""

import functools
import operator

import jax
import jax.numpy as jnp

from . import _ffi
from .. import _attention

KINDS = {"forward": _attention.Forward, "backward": _attention.Backward}


def _place(address, shape):
    """Where [batch, rows, heads, dim], or packed [rows, heads, dim], lies as _attention has it."""
    row = shape[-2] * shape[-1]
    return address, (shape[-4] and shape[-3] * row if len(shape) == 4 else 0), shape[-1], row


@_ffi.family
class AttentionCall:
    """A kernel of attention.  about: kind, settings, sizes, inputs and outputs: names of the operands in order."""

    def __init__(self, about):
        self.about = about

    def run(self, place, operands, results):
        about, given = self.about, {}
        for name, x in (*zip(about["inputs"], operands), *zip(about["outputs"], results)):
            given[name] = place.at(x) if len(x.shape) < 3 or name == "lse" else _place(place.at(x), x.shape)
        runner = _attention.runner(KINDS[about["kind"]], place.key, lambda: place.device)
        if "workspace" in about["outputs"]:
            _ffi.check_workspace(place, runner.workspace(about["sizes"], about["settings"]), results[-1])
        runner.run(given, about["sizes"], about["settings"], place.stream)


def _checked(q, k, v, packed, types):
    rank = 3 if packed else 4
    for name, x in (("k", k), ("v", v)):
        if x.dtype != q.dtype:
            raise ValueError(f"{name} is of {x.dtype}, but q is of {q.dtype}")
    if any(x.ndim != rank for x in (q, k, v)):
        raise ValueError(f"q, k and v have {q.ndim}, {k.ndim} and {v.ndim} dimensions, but must have {rank}")
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1] or (not packed and q.shape[0] != k.shape[0]):
        raise ValueError(f"q, k and v have the shapes {q.shape}, {k.shape} and {v.shape}: k and v must differ in the last dimension alone, those "
                         "of q and k be the same, and all have as many batches")
    if not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(f"{q.shape[-2]} heads of Q, and {k.shape[-2]} of K and V; these divide those of Q")
    return _ffi.type_name("q", q, types)


def _described(q, k, packed, longest, causal, top_left, window, scale, softcap):
    """Settings and sizes that forward and backward share; packed: how many sequences there are, 0: none are packed."""
    left, right = window if window is not None else (None, None)
    ends = left is not None or right is not None
    left, right = (_attention.MANY if n is None else min(n, _attention.MANY) for n in (left, right))
    settings = {"dim": q.shape[-1], "causal": causal, "window": ends, "top_left": top_left and (causal or ends), "softcap": softcap != 0,
                "varlen": bool(packed)}
    sizes = {"batch": packed or q.shape[0], "heads": q.shape[-2], "kv_heads": k.shape[-2], "scale": scale, "softcap": softcap,
             "queries": longest[0] if packed else q.shape[1], "keys": longest[1] if packed else k.shape[1]}
    if ends:
        sizes |= {"window_left": left, "window_right": 0 if causal else right}
    if packed:
        sizes |= {"total_queries": q.shape[0], "total_keys": k.shape[0]}
    return settings, sizes


def _shape_of_lse(q):
    return (q.shape[0], q.shape[2], q.shape[1]) if q.ndim == 4 else (q.shape[1], q.shape[0])


def _owned(cu, rows):
    """Which rows belong to a sequence."""
    at = jnp.arange(rows)
    return (at >= cu[0]) & (at < cu[-1])


@functools.partial(jax.custom_vjp, nondiff_argnums=(6,))
def _attend(q, k, v, sinks, cu_queries, cu_keys, static):
    return _forward(q, k, v, sinks, cu_queries, cu_keys, static)[0]


def _forward(q, k, v, sinks, cu_queries, cu_keys, static):
    *settings, v_scale, _ = static
    packed = 0 if cu_queries is None else cu_queries.shape[0] - 1
    kind = _checked(q, k, v, packed, ("f16", "bf16", "e4m3"))
    options, sizes = _described(q, k, packed, *settings)
    results = [_ffi.array((*q.shape[:-1], v.shape[-1]), jnp.bfloat16 if kind == "e4m3" else q.dtype), _ffi.array(_shape_of_lse(q), jnp.float32)]
    given = {"q": q, "k": k, "v": v, "sinks": sinks, "cu_queries": cu_queries, "cu_keys": cu_keys}
    given = {name: x for name, x in given.items() if x is not None}
    if not all(results[0].shape):
        o, lse = jnp.zeros(results[0].shape, results[0].dtype), jnp.full(results[1].shape, -jnp.inf, jnp.float32)
    else:
        o, lse = _ffi.call(AttentionCall, given.values(), results, kind="forward", inputs=list(given), outputs=["o", "lse"],
                           sizes={**sizes, "v_scale": v_scale},
                           settings={**options, "in": kind, "dim_v": v.shape[-1], "sinks": sinks is not None, "lse": True})
    if packed:  # the kernel leaves the others alone
        there = _owned(cu_queries, q.shape[0])
        o, lse = jnp.where(there[:, None, None], o, 0), jnp.where(there, lse, -jnp.inf)
    return (o, lse), (q, k, v, sinks, cu_queries, cu_keys, o, lse)


def _backward(static, kept, gradients):
    q, k, v, sinks, cu_queries, cu_keys, o, lse = kept
    *settings, _, deterministic = static
    d_o, packed = gradients[0], 0 if cu_queries is None else cu_queries.shape[0] - 1
    kind = _checked(q, k, v, packed, ("f16", "bf16"))
    if k.shape[-1] != v.shape[-1]:
        raise ValueError(f"the gradient of attention needs one head size, but k has {k.shape[-1]}, and v {v.shape[-1]}")
    d_sinks = None
    if sinks is not None:
        share = jnp.exp(sinks[:, None] - lse)  # of the sums
        parts = share * jnp.swapaxes((d_o.astype(jnp.float32) * o.astype(jnp.float32)).sum(-1), -1, -2)
        parts = jnp.where(lse == -jnp.inf, 0, parts)  # rows without a sum, whose share is infinite or NaN
        d_sinks = -parts.sum((0, 2) if q.ndim == 4 else 1)
    if not q.size or not k.size:
        return tuple(jnp.zeros_like(x) for x in (q, k, v)) + (d_sinks, None, None)
    options, sizes = _described(q, k, packed, *settings)
    options |= {"in": kind, "deterministic": deterministic}
    key = _ffi.default_key()
    size = _attention.runner(_attention.Backward, key, lambda: _ffi.device(key)).workspace(sizes, options)
    given = {"q": q, "k": k, "v": v, "o": o, "d_o": d_o, "lse": lse, "cu_queries": cu_queries, "cu_keys": cu_keys}
    given = {name: x for name, x in given.items() if x is not None}
    results = [_ffi.array(x.shape, x.dtype) for x in (q, k, v)] + [_ffi.array((max(size, 1),), jnp.uint8)]
    dq, dk, dv, _ = _ffi.call(AttentionCall, given.values(), results, kind="backward", inputs=list(given), outputs=["dq", "dk", "dv", "workspace"],
                              sizes=sizes, settings=options)
    if packed:
        of_q, of_k = (_owned(cu, x.shape[0])[:, None, None] for cu, x in ((cu_queries, q), (cu_keys, k)))
        dq, dk, dv = jnp.where(of_q, dq, 0), jnp.where(of_k, dk, 0), jnp.where(of_k, dv, 0)
    return dq, dk, dv, d_sinks, None, None


_attend.defvjp(_forward, _backward)


def _call(q, k, v, sinks, cu, longest, causal, top_left, window, scale, softcap, lse, deterministic, v_scale):
    if scale is not None and not scale > 0:
        raise ValueError(f"scale is {scale}, but must be above 0")
    if softcap is not None and not softcap >= 0:
        raise ValueError(f"softcap is {softcap}, but must be above 0, or 0 or None: without one")
    if v_scale is not None and not v_scale > 0:
        raise ValueError(f"v_scale is {v_scale}, but must be above 0")
    if window is not None:
        window = tuple(None if n is None else operator.index(n) for n in window)
        if len(window) != 2 or any(n is not None and n < 0 for n in window):
            raise ValueError(f"window is {window}, but must be (left, right), each from 0 on, or None: it does not end there")
    if sinks is not None and (sinks.shape, sinks.dtype) != (q.shape[-2:-1], jnp.float32):
        raise ValueError(f"sinks are {sinks.dtype}{list(sinks.shape)}, but must be float32{list(q.shape[-2:-1])}")
    static = (longest, bool(causal), bool(top_left), window, float(scale or 0), float(softcap or 0), float(v_scale or 0),
              bool(deterministic))
    o, statistics = _attend(q, k, v, sinks, *cu, static)
    return (o, jax.lax.stop_gradient(statistics)) if lse else o


def attention(q, k, v, *, causal=False, top_left=False, window=None, scale=None, softcap=None, sinks=None, lse=False, deterministic=False,
              v_scale=None):
    """softmax(scale * q @ k^T) @ v of each head; q: [batch, queries, heads, dim], k, v: [batch, keys, kv_heads, dim]; fewer heads of k and v: GQA.

    causal: no key behind the query, of which the last stands at the last key, or with top_left the first at the first.  window: (left,
    right), keys before and behind the query's place that count, None: all.  scale: above 0; None: 1 / sqrt(dim).  softcap: scores become
    softcap * tanh(score / softcap).  sinks: float32 of each head, a logit that joins the sums.  lse: also gives the logarithms of the
    sums, float32, [batch, heads, queries], which have no gradient.  deterministic: gradients have the same bits each time.  v_scale: of
    float8_e4m3fn (sm_90a), what v is to be multiplied by; o is bfloat16.  Gradients are for head sizes to 128, the same of q, k and v.
    """
    return _call(q, k, v, sinks, (None, None), (0, 0), causal, top_left, window, scale, softcap, lse, deterministic, v_scale)


def attention_varlen(q, k, v, cu_queries, cu_keys, max_queries, max_keys, *, causal=False, top_left=False, window=None, scale=None,
                     softcap=None, sinks=None, lse=False, deterministic=False, v_scale=None):
    """The same of packed sequences: q: [rows, heads, dim], k, v: [rows, kv_heads, dim].

    cu_queries, cu_keys: int32, where each sequence begins, and behind it where the last ends; max_queries, max_keys: the longest.
    lse: [heads, rows].  Rows that belong to no sequence have zeros in the result and in gradients, and lse -infinity.
    """
    for name, x in (("cu_queries", cu_queries), ("cu_keys", cu_keys)):
        if x.dtype != jnp.int32 or x.shape != cu_queries.shape or x.ndim != 1 or x.shape[0] < 2:
            raise ValueError(f"{name} is {x.dtype}{list(x.shape)}, but must be int32, one dimension, as long as the other, with where a sequence "
                             "begins and where the last ends")
    for name, n in (("max_queries", max_queries), ("max_keys", max_keys)):
        if n < 0:
            raise ValueError(f"{name} is {n}, but must be the rows of the longest sequence")
    return _call(q, k, v, sinks, (cu_queries, cu_keys), (int(max_queries), int(max_keys)), causal, top_left, window, scale, softcap, lse,
                 deterministic, v_scale)
