# SPDX-License-Identifier: MIT
"""cptx.rows beside a copy of as many bytes and PyTorch, eager and compiled: python3 rows.py [--mb 256] [--compile] [--peers] [--kernels a,b]
[--lengths 4096,65536] [--types bf16,f32]

GB/s of the bytes that must be read and written at least, and what part of the copy's rate that is.  The arms take turns in each
burst: CUDA events around a graph of calls on three sets of buffers; the median of the bursts.  --compile: torch.compile, too, which takes
seconds for each line.  --peers: Liger's kernels and cuDNN's norms, too, where the packages liger-kernel and nvidia-cudnn-frontend are.
"""
import argparse
import functools
import statistics

import torch
import torch.nn.functional as F

import cptx.rows as rows

SETS, RUNS, BURSTS = 3, 9, 7
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
# By name: ours, PyTorch's, tensors of rows, of weights, matrices that are moved.
FORWARD = {
    "rms-norm": (lambda x, w: torch.ops.cptx.rms_norm(x, w, 1e-5), lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5), 1, 1, 2),
    "layer-norm": (lambda x, w, b: torch.ops.cptx.layer_norm(x, w, b, 1e-5), lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5), 1, 2, 2),
    "softmax": (rows.softmax, lambda x: torch.softmax(x, -1), 1, 0, 2),
    "cross-entropy": (lambda x, t: torch.ops.cptx.cross_entropy(x, t, 0.0, -100, 0.0), lambda x, t: F.cross_entropy(x.float(), t, reduction="none"), 1, "target", 1),
    "swiglu": (rows.swiglu, lambda x, y: F.silu(x) * y, 2, 0, 3),
    "gelu": (rows.gelu, F.gelu, 1, 0, 2),
    "top-k": (lambda x: rows.top_k(x, 8), lambda x: torch.topk(x, 8), 1, 0, 1),
}
# Matrices that backward moves: gradients and results in, gradients out.
BACKWARD = {"rms-norm": 3, "layer-norm": 3, "softmax": 3, "swiglu": 5, "gelu": 3, "cross-entropy": 2}


@functools.lru_cache(None)
def peers():
    """By kernel: other libraries' functions of the same arguments, by name."""
    found = {}
    try:
        from liger_kernel.transformers import functional as liger
        found["rms-norm"] = {"liger": lambda x, w: liger.liger_rms_norm(x, w, 1e-5, in_place=False)}
        found["layer-norm"] = {"liger": lambda x, w, b: liger.liger_layer_norm(x, w, b, 1e-5)}
        found["softmax"] = {"liger": liger.liger_softmax}
        found["swiglu"] = {"liger": liger.liger_swiglu}
    except ImportError as e:
        print(f"no Liger: {e}", flush=True)
    try:
        from cudnn.ops import norm
        found.setdefault("rms-norm", {})["cudnn"] = lambda x, w: norm.rms_norm(x, w, eps=1e-5)
        found.setdefault("layer-norm", {})["cudnn"] = lambda x, w, b: norm.layer_norm(x, x.shape[-1:], w, b, eps=1e-5)
    except ImportError as e:
        print(f"no cuDNN: {e}", flush=True)
    return found


@functools.lru_cache(None)
def stream():
    """Where all graphs are captured: autograd goes backward on the stream of the forward pass."""
    return torch.cuda.Stream()


def captured(call):
    """A CUDA graph of RUNS calls, so that what the host does for each does not count."""
    torch.cuda.synchronize()
    with torch.cuda.stream(stream()):
        for i in range(SETS):
            call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream()):
        for i in range(RUNS):
            call(i % SETS)
    return graph


def measure(arms):
    """Milliseconds by arm, each a function of the number of a set."""
    graphs, times = {name: captured(call) for name, call in arms.items()}, {name: [] for name in arms}
    for _ in range(BURSTS):
        for name, graph in graphs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / RUNS)
    return {name: statistics.median(t) for name, t in times.items()}


def arm(f, sets):
    kept = [None] * SETS

    def call(i):
        kept[i] = f(*sets[i])
    return call


def backward_arm(f, sets):
    """The gradients alone, of graphs that are made once."""
    made = []
    torch.cuda.synchronize()
    with torch.cuda.stream(stream()):
        for tensors in sets:
            tensors = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
            y = f(*tensors)
            y = y[0] if isinstance(y, (tuple, list)) else y
            made.append((y, [t for t in tensors if t.requires_grad], torch.randn_like(y)))
    return lambda i: torch.autograd.grad(made[i][0], made[i][1], made[i][2], retain_graph=True)


def peer_arms(name, make, sets):
    """Arms of the peers that can do it."""
    arms = {}
    for peer, f in peers().get(name, {}).items():
        try:
            arms[peer] = make(f, sets)
            captured(arms[peer])
        except Exception as e:  # not of this type or length
            arms.pop(peer, None)
            print(f"{name} {tuple(sets[0][0].shape)}: {peer}: {type(e).__name__}: {str(e)[:100]!r}", flush=True)
    return arms


def line(name, dtype, n, mb, compiles, with_peers, backward):
    ours, theirs, count, weights, moved = FORWARD[name]
    r = (mb << 20) // n // DTYPES[dtype].itemsize

    def draw(*shape):
        return torch.randn(*shape, device="cuda").to(DTYPES[dtype])
    sets = [[draw(r, n) for _ in range(count)] + ([torch.randint(0, n, (r,), device="cuda")] if weights == "target" else
                                                  [draw(n) for _ in range(weights)]) for _ in range(SETS)]
    to = torch.empty_like(sets[0][0])
    make = backward_arm if backward else arm
    arms = {"copy": lambda i: to.copy_(sets[i][0]), "ours": make(ours, sets), "eager": make(theirs, sets)}
    if compiles:
        torch._dynamo.reset()
        arms["compile"] = make(torch.compile(theirs, dynamic=False), sets)
    if with_peers:
        arms |= peer_arms(name, make, sets)
    ms = measure(arms)
    gbps = {a: (2 if a == "copy" else BACKWARD[name] if backward else moved) * (mb << 20) / t * 1e-6 for a, t in ms.items()}
    print(f"{name + (' backward' if backward else ''):22s} {dtype:4s} {r:6d} x {n:6d}  " +
          "  ".join(f"{a} {ms[a] * 1e3:8.1f} us {g:5.0f}" for a, g in gbps.items()) +
          f"  ours/copy {gbps['ours'] / gbps['copy']:.3f}  ours/best {gbps['ours'] / max(g for a, g in gbps.items() if a not in ('copy', 'ours')):.3f}",
          flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--mb", type=int, default=256)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--peers", action="store_true")
    p.add_argument("--kernels", default=",".join(FORWARD))
    p.add_argument("--lengths", default="1024,4096,16384,65536,131072,262144")
    p.add_argument("--types", default="bf16,f32")
    p.add_argument("--only", choices=("forward", "backward"))
    a = p.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    for name in a.kernels.split(","):
        for backward in (False, True):
            if (a.only and backward != (a.only == "backward")) or (backward and name not in BACKWARD):
                continue
            for dtype in a.types.split(","):
                for n in map(int, a.lengths.split(",")):
                    try:
                        line(name, dtype, n, a.mb, a.compile, a.peers, backward)
                    except Exception as e:  # a peer that cannot do it, or memory
                        print(f"{name} {dtype} {n}: {type(e).__name__}: {str(e)[:100]!r}", flush=True)
                    torch.cuda.empty_cache()


main()
