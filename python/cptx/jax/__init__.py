# SPDX-License-Identifier: MIT
"""cptx.jax: the row kernels, attention and matrix products on arrays of JAX, with gradients, inside of jax.jit and out of it.

    import cptx.jax
    y = cptx.jax.rms_norm(x, w)                            # over the last dimension of x; f32, float16 or bfloat16
    o = cptx.jax.attention(q, k, v, causal=True)           # [batch, rows, heads, head size], as jax.nn.dot_product_attention
    d = cptx.jax.gemm(a, b)                                # a @ b

Each is a call through XLA's FFI with a rule of differentiation (jax.custom_vjp); jax.vmap makes a call for each element.  Arrays of a
GPU are computed there, on XLA's stream; those of the CPU by the emulator, to test programs without a GPU: that is slow.  Kernels and
rules are those of <cptx/rows.h>, <cptx/attention.h>, <cptx/attention_backward.h> and <cptx/gemm.h>.
"""

from ._attention import attention, attention_varlen
from ._gemm import gemm
from ._rows import (add_rms_norm, argmax, column_sum, cross_entropy, geglu, gelu, layer_norm, log_softmax, quantize, rms_norm, rotary, softmax,
                   swiglu, top_k, transpose)

__all__ = ["add_rms_norm", "argmax", "attention", "attention_varlen", "column_sum", "cross_entropy", "geglu", "gelu", "gemm", "layer_norm",
           "log_softmax", "quantize", "rms_norm", "rotary", "softmax", "swiglu", "top_k", "transpose"]
