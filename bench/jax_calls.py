# SPDX-License-Identifier: MIT
"""cptx.jax beside what XLA makes of the same formulas, under jit: python3 jax_calls.py

Microseconds of a call, arms in turn, medians of 7 bursts of 20 calls that wait for one another, and of the host alone: calls of a small
array, one behind another.
"""
import statistics
import time

import jax
import jax.numpy as jnp

import cptx.jax as ours

CALLS, BURSTS = 20, 7


def seconds(f, args):
    start = time.perf_counter()
    for _ in range(CALLS):
        y = f(*args)
    jax.block_until_ready(y)
    return (time.perf_counter() - start) / CALLS


def compare(name, arms, args):
    arms = {arm: jax.jit(f) for arm, f in arms.items()}
    times = {arm: [] for arm in arms}
    for f in arms.values():
        jax.block_until_ready(f(*args))
    for _ in range(BURSTS):
        for arm, f in arms.items():
            times[arm].append(seconds(f, args) * 1e6)
    us = {arm: statistics.median(t) for arm, t in times.items()}
    print(f"{name:42s}", "  ".join(f"{arm} {t:9.1f} us" for arm, t in us.items()), f" ratio {us['jax'] / us['ours']:.3f}", flush=True)


def gradient(f, count):
    return jax.grad(lambda *args: f(*args).astype(jnp.float32).sum(), tuple(range(count)))


def rms(x, w):
    x32 = x.astype(jnp.float32)
    return (x32 * jax.lax.rsqrt((x32 * x32).mean(-1, keepdims=True) + 1e-5) * w).astype(x.dtype)


def main():
    print(jax.devices()[0].device_kind, "jax", jax.__version__, flush=True)
    draw = lambda *shape: jax.random.normal(jax.random.key(len(shape)), shape, jnp.bfloat16)  # noqa: E731
    for n in (4096, 16384, 131072):
        x, w = draw((128 << 20) // n, n), draw(n)
        compare(f"rms_norm {x.shape[0]} x {n} bf16", {"ours": ours.rms_norm, "jax": rms}, (x, w))
        compare("  its gradients", {"ours": gradient(ours.rms_norm, 2), "jax": gradient(rms, 2)}, (x, w))
        compare(f"softmax {x.shape[0]} x {n} bf16", {"ours": ours.softmax, "jax": lambda x: jax.nn.softmax(x, -1)}, (x,))
    compare("rms_norm 1 x 128: the host", {"ours": ours.rms_norm, "jax": rms}, (draw(1, 128), draw(128)))
    q, k, v = draw(1, 8192, 16, 128), draw(1, 8192, 4, 128), draw(1, 8192, 4, 128)
    attend = {"ours": lambda *x: ours.attention(*x, causal=True),
              "jax": lambda *x: jax.nn.dot_product_attention(*x, is_causal=True, implementation="cudnn")}
    compare("attention 8192, 16/4 heads of 128, causal", attend, (q, k, v))
    compare("  its gradients", {arm: gradient(f, 3) for arm, f in attend.items()}, (q, k, v))
    a, b = draw(8192, 8192), draw(8192, 8192)
    compare("gemm 8192 cubed bf16", {"ours": ours.gemm, "jax": jnp.matmul}, (a, b))


main()
