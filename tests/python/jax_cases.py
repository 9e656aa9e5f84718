# SPDX-License-Identifier: MIT
"""What test_jax.py and gpu_jax.py check, in small and in large: cptx.jax beside formulas of JAX."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import cptx.jax as ours
from cptx.jax import _ffi


def drawn(shape, dtype=jnp.float32, seed=1):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32).astype(dtype)


def apart(a, b):
    """The largest difference, over the largest element."""
    a, b = (np.asarray(x.astype(jnp.float32), np.float64) for x in (a, b))
    return float(np.max(np.abs(a - b), initial=0) / (np.max(np.abs(b), initial=0) + 1e-30))


def gradients(f, args, dtype):
    """A result under jit, and the gradients of all arguments for one of the result that is the same for all."""
    args = [a.astype(dtype) for a in args]
    y, pull = jax.vjp(jax.jit(f), *args)
    dy = jnp.sin(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape).astype(y.dtype)
    return (y, *pull(dy))


def compare(test, mine, theirs, args, dtype, bound):
    """Against the formula in f32."""
    got, want = gradients(mine, args, dtype), gradients(theirs, [a.astype(dtype) for a in args], jnp.float32)
    for i, (a, b) in enumerate(zip(got, want)):
        test.assertEqual(a.shape, b.shape, i)
        test.assertLess(apart(a, b), bound, "result" if not i else f"gradient {i}")


def rms(x, w=1.0):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def layer(x, w=1.0, b=0.0):
    d = x - x.mean(-1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b


# By name: ours, the formula, arguments of the rows' shape, and vectors.
ROWS = {
    "rms_norm": (ours.rms_norm, rms, 1, 1),
    "rms_norm without weights": (ours.rms_norm, rms, 1, 0),
    "add_rms_norm": (lambda x, r, w: sum(ours.add_rms_norm(x, r, w)), lambda x, r, w: rms(x + r, w) + x + r, 2, 1),
    "layer_norm": (ours.layer_norm, layer, 1, 2),
    "layer_norm without weights": (ours.layer_norm, layer, 1, 0),
    "softmax": (ours.softmax, lambda x: jax.nn.softmax(x, -1), 1, 0),
    "log_softmax": (ours.log_softmax, lambda x: jax.nn.log_softmax(x, -1), 1, 0),
    "swiglu": (ours.swiglu, lambda x, y: jax.nn.silu(x) * y, 2, 0),
    "geglu": (ours.geglu, lambda x, y: jax.nn.gelu(x, approximate=False) * y, 2, 0),
    "gelu": (ours.gelu, lambda x: jax.nn.gelu(x, approximate=False), 1, 0),
    "gelu by tanh": (lambda x: ours.gelu(x, tanh=True), jax.nn.gelu, 1, 0),
    "column_sum": (ours.column_sum, lambda x: x.sum(tuple(range(x.ndim - 1))), 1, 0),
    "transpose": (ours.transpose, lambda x: x.reshape(-1, x.shape[-1]).T, 1, 0),
}


def check_rows(test, shape, dtype, bound):
    for name, (mine, theirs, count, vectors) in ROWS.items():
        with test.subTest(name=name, shape=shape, dtype=np.dtype(dtype).name):
            args = [drawn(shape, dtype, i) for i in range(count)] + [drawn(shape[-1:], dtype, 9 + i) for i in range(vectors)]
            compare(test, mine, theirs, args, dtype, bound)


def check_cross_entropy(test, rows, n):
    x, target = drawn((rows, n)), jnp.asarray(np.random.default_rng(2).integers(0, n, rows), jnp.int32).at[1].set(-100)
    for smoothing, z_loss in ((0.0, 0.0), (0.1, 0.01)):
        def theirs(x):
            lse = jax.scipy.special.logsumexp(x, -1)
            picked = jnp.take_along_axis(x, jnp.maximum(target, 0)[:, None], -1)[:, 0]
            loss = lse - (1 - smoothing) * picked - smoothing * x.mean(-1) + z_loss * lse**2
            return jnp.where(target >= 0, loss, 0).sum() / (target >= 0).sum()
        compare(test, lambda x: ours.cross_entropy(x, target, smoothing, z_loss=z_loss), theirs, [x], jnp.float32, 3e-6)


def check_rotary(test, shape):
    angle = drawn((shape[-3], shape[-1] // 2), seed=4)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    c, s, half = cos[:, None], sin[:, None], shape[-1] // 2

    def halves(x):
        return jnp.concatenate((x[..., :half] * c - x[..., half:] * s, x[..., half:] * c + x[..., :half] * s), -1)

    def pairs(x):
        return jnp.stack((x[..., ::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., ::2] * s), -1).reshape(x.shape)
    for flag, theirs in ((False, halves), (True, pairs)):
        with test.subTest(pairs=flag):
            compare(test, functools.partial(ours.rotary, cos=cos, sin=sin, pairs=flag), theirs, [drawn(shape)], jnp.float32, 1e-6)


def check_the_rest(test, rows, n):
    """Quantizing, argmax, top-k with its gradient."""
    x = drawn((rows, n))
    for block in (None, n // 4):
        y, scale = jax.jit(functools.partial(ours.quantize, block=block))(x)
        back = y.astype(jnp.float32).reshape(rows, -1, block or n) * scale.reshape(rows, -1, 1)
        test.assertLess(apart(back.reshape(x.shape), x), 0.04)
        test.assertEqual(scale.shape, (rows,) if block is None else (rows, 4))
    test.assertTrue(bool((ours.argmax(x) == jnp.argmax(x, -1)).all()))
    top, at = ours.top_k(x, 5)
    want, columns = jax.lax.top_k(x, 5)
    test.assertTrue(bool((top == want).all() and (at == columns).all()))
    compare(test, lambda x: ours.top_k(x, 5)[0], lambda x: jax.lax.top_k(x, 5)[0], [x], jnp.float32, 1e-7)


def attention(q, k, v, sinks, causal=False, window=None):
    """The formula; the last query stands at the last key."""
    q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
    k, v = (jnp.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, precision="highest") / math.sqrt(q.shape[-1])
    at, key = jnp.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1], jnp.arange(k.shape[1])
    seen = (key <= at if causal else key >= 0) & (key >= at - (window[0] if window else k.shape[1]))
    s = jnp.where(seen, s, -jnp.inf)
    if sinks is not None:
        s = jnp.concatenate((s, jnp.broadcast_to(sinks[None, :, None, None], (*s.shape[:-1], 1))), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1)[..., :k.shape[1]], v, precision="highest")


def check_attention(test, shape, keys, kv_heads, options, bound=0.02):
    options = dict(options)
    sinks = (drawn(shape[2:3], seed=8),) if options.pop("sinks", False) else ()
    q, k, v = (drawn(s, jnp.bfloat16, i) for i, s in enumerate((shape, *[(shape[0], keys, kv_heads, shape[-1])] * 2)))
    mine = jax.jit(lambda q, k, v, *sinks: ours.attention(q, k, v, sinks=sinks[0] if sinks else None, deterministic=True, **options))
    with test.subTest(options=options, sinks=bool(sinks)):
        y, pull = jax.vjp(mine, q, k, v, *sinks)
        want, pull_theirs = jax.vjp(lambda q, k, v, *sinks: attention(q, k, v, sinks[0] if sinks else None, **options), q, k, v, *sinks)
        dy = drawn(y.shape, y.dtype, 7)
        for name, a, b in zip(("o", "dq", "dk", "dv", "d_sinks"), (y, *pull(dy)), (want, *pull_theirs(dy.astype(jnp.float32)))):
            test.assertLess(apart(a, b), bound, name)
    _, lse = ours.attention(q, k, v, lse=True)
    test.assertEqual((lse.shape, lse.dtype), ((shape[0], shape[2], shape[1]), jnp.float32))


def check_varlen(test, dim, lengths=(3, 0, 5)):
    """Packed sequences beside each for itself, and rows in front of the first one and behind the last.  lengths: none is 1, whose dq is 0."""
    cu = jnp.asarray(np.cumsum((1, *lengths)), jnp.int32)
    q, k, v = (drawn((int(cu[-1]) + 2, heads, dim), jnp.bfloat16, heads + i) for i, heads in enumerate((2, 1, 1)))

    def mine(q, k, v):
        return ours.attention_varlen(q, k, v, cu, cu, max(lengths), max(lengths), causal=True)
    y, pull = jax.vjp(jax.jit(mine), q, k, v)
    dy = drawn(y.shape, y.dtype, 7)
    got = pull(dy)
    for a in (y, *got):
        test.assertTrue(bool((a[0] == 0).all() and (a[-2:] == 0).all()))
    for i, n in enumerate(lengths):
        part = slice(int(cu[i]), int(cu[i]) + n)
        if n:
            want, pull_one = jax.vjp(lambda *x: attention(*(t[None] for t in x), None, causal=True)[0], q[part], k[part], v[part])
            for name, a, b in zip(("o", "dq", "dk", "dv"), (y, *got), (want, *pull_one(dy[part].astype(jnp.float32)))):
                test.assertLess(apart(a[part], b), 0.02, f"{name} of sequence {i}")


def check_gemm(test, m, n, k):
    matmul = functools.partial(jnp.matmul, precision="highest")
    for dtype, bound in ((jnp.float16, 2e-3), (jnp.bfloat16, 0.01)):
        a, b, bias, c = drawn((m, k), dtype, 1), drawn((k, n), dtype, 2), drawn((n,), seed=3), drawn((m, n), dtype, 4)
        with test.subTest(dtype=np.dtype(dtype).name):
            compare(test, ours.gemm, matmul, [a, b], dtype, bound)
            got = jax.jit(lambda *x: ours.gemm(x[0], x[1], x[3], alpha=0.5, beta=2.0, bias=x[2]))(a, b, bias, c)
            test.assertLess(apart(got, 0.5 * matmul(a, b) + 2 * c + bias), bound)
    a, b, c = drawn((m, k), jnp.bfloat16, 1), drawn((k, n), jnp.bfloat16, 2), drawn((m, n), seed=4)
    f32 = jnp.float32
    y, pull = jax.vjp(lambda *x: ours.gemm(*x, beta=0.5, dtype=f32), a, b, c)
    want, pull_theirs = jax.vjp(lambda a, b, c: matmul(a.astype(f32), b.astype(f32)) + 0.5 * c, a, b, c)
    for got, theirs in zip((y, *pull(c)), (want, *pull_theirs(c))):  # a result of another type than its operands
        test.assertEqual(got.dtype, theirs.dtype)
        test.assertLess(apart(got, theirs), 0.01)
    a, b = drawn((3, m, k), jnp.bfloat16, 1), drawn((3, k, n), jnp.bfloat16, 2)
    compare(test, ours.gemm, matmul, [a, b], jnp.bfloat16, 0.01)
    test.assertTrue(bool((ours.gemm(jnp.zeros((2, 0), jnp.bfloat16), jnp.zeros((0, 3), jnp.bfloat16), bias=jnp.ones(3)) == 1).all()))
    eight = ours.gemm(drawn((m, 32)).astype(jnp.float8_e4m3fn), drawn((32, n)).astype(jnp.float8_e4m3fn))
    test.assertEqual(eight.dtype, jnp.bfloat16)


def check_transformations(test, n):
    """vmap, scan and remat around calls; results of a program with several of them."""
    x, w = drawn((3, 4, n)), drawn((n,), seed=2)
    test.assertLess(apart(jax.jit(jax.vmap(lambda x: ours.rms_norm(x, w)))(x), rms(x, w)), 1e-6)

    def through(norm, w):
        step = jax.checkpoint(lambda x, _: (x + norm(x, w), None))
        return jax.lax.scan(step, x, None, length=3)[0].sum()
    got, want = (jax.jit(jax.grad(functools.partial(through, norm)))(w) for norm in (ours.rms_norm, rms))
    test.assertLess(apart(got, want), 1e-5)
    test.assertTrue(bool((ours.rms_norm(x, w, eps=np.float32(0.5)) == ours.rms_norm(x, w, eps=0.5)).all()))  # what JSON does not know
    y = jax.jit(lambda x: ours.gelu(ours.swiglu(ours.softmax(x), x) + ours.layer_norm(x)))(x)
    test.assertLess(apart(y, jax.nn.gelu(jax.nn.silu(jax.nn.softmax(x, -1)) * x + layer(x), approximate=False)), 1e-5)


def check_refusals(test):
    x, q, at = jnp.zeros((2, 8)), jnp.zeros((1, 9, 4, 64), jnp.bfloat16), jnp.zeros(1, jnp.int32)
    ends = jnp.asarray((0, 9), jnp.int32)
    for kind, words, call in (
            (ValueError, r"x2 is bfloat16\[2, 8\], but must be as x is: float32", lambda: ours.swiglu(x, x.astype(jnp.bfloat16))),
            (ValueError, r"w has the shape \(2,\), but must have \(8,\)", lambda: ours.rms_norm(x, x[:, 0])),
            (TypeError, "w, b are of bf16, f32, but must be of one type", lambda: ours.layer_norm(x, x[0].astype(jnp.bfloat16), x[0])),
            (TypeError, "x is of int32, but must be of", lambda: ours.softmax(x.astype(jnp.int32))),
            (ValueError, "k is 9, but must be 1 to 64, and no more than the 8", lambda: ours.top_k(x, 9)),
            (ValueError, "4 heads of Q, and 3 of K and V", lambda: ours.attention(q, q[:, :, :3], q[:, :, :3])),
            (ValueError, "scale is 0, but must be above 0", lambda: ours.attention(q, q, q, scale=0)),
            (ValueError, "softcap is -1, but must be above 0", lambda: ours.attention(q, q, q, softcap=-1)),
            (ValueError, "v_scale is -1, but must be above 0", lambda: ours.attention(q, q, q, v_scale=-1)),
            (ValueError, r"window is \(-2, None\), but must be \(left, right\), each from 0 on", lambda: ours.attention(q, q, q, window=(-2, None))),
            (ValueError, r"cu_queries is int32\[1\], but must be", lambda: ours.attention_varlen(q[0], q[0], q[0], at, at, 9, 9)),
            (ValueError, "max_keys is -1, but must be", lambda: ours.attention_varlen(q[0], q[0], q[0], ends, ends, 9, -1)),
            (ValueError, "block is 3, but must divide the 8 columns", lambda: ours.quantize(x, block=3)),
            (ValueError, "k is of float16, but q is of bfloat16", lambda: ours.attention(q, q.astype(jnp.float16), q)),
            (TypeError, "a is of float32, but must be of float16, bfloat16", lambda: ours.gemm(x, x)),
            (ValueError, r"a has the shape \(2, 8\), and b \(2, 8\)", lambda: ours.gemm(x.astype(jnp.float16), x.astype(jnp.float16))),
            (ValueError, "beta is given, but no c", lambda: ours.gemm(q[0, 0], q[0, 0].T, beta=1))):
        with test.subTest(words=words), test.assertRaisesRegex(kind, words):
            call()
    with test.assertRaisesRegex(Exception, "rows: .eps is -1"):  # what the library refuses, with its words
        ours.rms_norm(x, eps=-1.0)
    with test.assertRaisesRegex(Exception, "the call has no attribute"):  # of a program that another one wrote
        jax.block_until_ready(jax.ffi.ffi_call(_ffi.TARGET, [_ffi.array((2,), jnp.float32)])(x))
