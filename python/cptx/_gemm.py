# SPDX-License-Identifier: MIT
"""cptx.gemm: products of matrices by the kernels of <cptx/gemm.h>, on arrays of any framework."""

import ctypes
import functools
import threading

from . import _abi, _arrays, _errors
from ._abi import lib
from ._errors import checked

# enum cptx_tune_policy, by what `tune` may be; None: what CPTX_TUNE says
POLICIES = {None: _abi.TUNE_AS_SET, "off": _abi.TUNE_OFF, "never": _abi.TUNE_NEVER, "once": _abi.TUNE_ONCE, "always": _abi.TUNE_ALWAYS,
            True: _abi.TUNE_ONCE, False: _abi.TUNE_NEVER}


def _close(handles):
    runner, cache = handles
    lib.cptx_gemm_runner_destroy(runner)
    lib.cptx_cache_close(cache)


class _Runner:
    """A cptx_gemm_runner of a device and a policy.  It ends in front of its device, which is made before."""

    making = threading.Lock()

    def __init__(self, device, policy, budget):
        cache = checked(lib.cptx_cache_open, None)
        self.handle = checked(lib.cptx_gemm_runner_new, device._handle, cache)
        _errors.closing(device, _close, (self.handle, cache))
        use = _abi.TuneUse(policy=policy, budget_s=budget, cache=cache)
        checked(lib.cptx_gemm_runner_set_tune, self.handle, ctypes.byref(use))

    @classmethod
    def get(cls, device, tune, budget):
        if tune not in POLICIES:
            raise ValueError(f'tune is {tune!r}, but must be "off", "never", "once" or "always"')
        key = POLICIES[tune], float(budget)
        with cls.making:
            if key not in device._runners:
                device._runners[key] = cls(device, *key)
            return device._runners[key]


@functools.lru_cache(None)
def _device(name):
    from . import Device
    return Device(name)


def _order(name, m, row_major, rows, cols):
    """Whether a dense matrix lies by columns; m: its shape and strides."""
    if m.strides[-2:] == (cols, 1) or (rows == 1 and m.strides[-1] == 1) or not rows * cols:
        return not row_major
    if m.strides[-2:] == (1, rows) or (cols == 1 and m.strides[-2] == 1):
        return row_major
    raise ValueError(f"{name} has strides {m.strides}, but must be dense, by rows or by columns")


def _matrix(name, x, read_only, stream, device):
    m = _arrays.look(x, stream, device, read_only)
    if len(m.shape) not in (2, 3):
        raise ValueError(f"{name} has the shape {m.shape}, but must have two dimensions, or three with the batch in front")
    if len(m.shape) == 3 and m.shape[0] > 1 and m.strides[0] != m.shape[1] * m.shape[2]:
        raise ValueError(f"{name} has strides {m.strides}, but the matrices of a batch must lie behind one another")
    return m


def gemm(a, b, c=None, *, out=None, alpha=1.0, beta=0.0, bias=None, dtype=None, device=None, stream=None, tune=None,
         budget=0.0):
    """alpha * a @ b + beta * c + bias, a of M x K and b of K x N elements, or a batch of them.

    Arrays are those of PyTorch, JAX, NumPy (with the types of ml_dtypes) and all that a kernel takes; a and b may be
    transposed views.  out: where the result goes, M x N, by rows; else a new array like a, of `dtype` ("f32", "bf16", "f16";
    default: that of a, or bf16 where a has 8 bits).  c: like the result; bias: N f32.  device: for arrays of the CPU, a Device
    of the emulator; else found by the arrays.

    The shape of the kernel is the best in the tuning database, else the model's choice.  tune: "once" measures a problem that was
    not measured on such a device, and records it, for other processes, too; "always", "never", "off"; None: what CPTX_TUNE says.
    budget: most seconds for a problem; 0: the usual.  Machine code is kept in the cache on disk.  Work of a GPU is started on
    `stream` as by a kernel, and not waited for.
    """
    from . import Tensor, _stream_handle
    device = device or _device(_arrays.device_name(a))
    handle = _stream_handle(stream)
    if handle is None:
        handle = _arrays.framework_stream((a, b))
    ma, mb = _matrix("a", a, True, handle, device), _matrix("b", b, True, handle, device)
    (m, k), (k2, n) = ma.shape[-2:], mb.shape[-2:]
    batch = ma.shape[:-2]
    if k != k2 or batch != mb.shape[:-2]:
        raise ValueError(f"a has the shape {ma.shape}, and b {mb.shape}: the columns of a are the rows of b, of as many matrices")
    if out is None:
        dtype = dtype or (ma.type if ma.type in ("f32", "bf16", "f16") else "bf16")
        out = _arrays.new_like(a, batch + (m, n), dtype)
        if out is None:
            out = Tensor(device, batch + (m, n), dtype)
    md = _matrix("out", out, False, handle, device)
    if md.shape != batch + (m, n) or _order("out", md, True, m, n):
        raise ValueError(f"out has the shape {md.shape} and strides {md.strides}, but must be {batch + (m, n)}, by rows")
    if not md.size:
        return out

    given = {"a": ma, "b": mb, "d": md}
    if beta:
        if c is None:
            raise ValueError("beta is given, but no c")
        given["c"] = _matrix("c", c, True, handle, device)
    if bias is not None:
        given["bias"] = _arrays.look(bias, handle, device, True)
    with Mapped(device, given.values()) as address:
        start(device, given, address, handle, alpha, beta, tune, budget)
    _arrays.written((out,))
    return out


def start(device, given, address, stream=0, alpha=1.0, beta=0.0, tune=None, budget=0.0):
    """Starts a product.  given: what is as a Look, by the names of operands: a, b, d, c where there is a beta, bias; address: a
    function that says where the device sees it."""
    ma, mb, md = given["a"], given["b"], given["d"]
    (m, k), n = ma.shape[-2:], mb.shape[-1]
    batch = ma.shape[:-2]
    target = lib.cptx_target_find(device.target.encode())
    opt = _abi.GemmOpt(mma=lib.cptx_gemm_mma_of(target), a=_type("a", ma), b=_type("b", mb), out=_type("out", md),
                       a_m_major=_order("a", ma, True, m, k), b_n_major=not _order("b", mb, True, k, n),
                       batched=bool(batch), alpha=alpha != 1, beta=bool(beta), bias="bias" in given)
    problem = _abi.GemmProblem(m=m, n=n, k=k, batch=batch[0] if batch else 0, alpha=alpha if alpha != 1 else 0, beta=beta)
    mc, mv = given.get("c"), given.get("bias")
    if mc and ((mc.shape, mc.type) != (md.shape, md.type) or _order("c", mc, True, m, n)):
        raise ValueError(f"c is {mc.type}{list(mc.shape)}, but must be {md.type}{list(md.shape)}, by rows, as the result")
    if mv and ((mv.shape, mv.type) != ((n,), "f32") or mv.strides[0] not in (1, n)):
        raise ValueError(f"bias is {mv.type}{list(mv.shape)}, but must be f32[{n}]")
    for name, x in given.items():
        setattr(problem, name, address(x))
    _run(device, opt, problem, stream, _Runner.get(device, tune, budget))


def _type(name, m):
    found = lib.cptx_type_find(m.type.encode())
    if not found:
        raise ValueError(f"{name} has elements of {m.type}, which no kernel multiplies")
    return found


class Mapped:
    """Arrays of the host where the emulator sees them; those that overlap become one mapping."""

    def __init__(self, device, looks):
        self.device, self.at = device, []
        ends = sorted((x.address, x.address + x.bytes) for x in looks if x.size)
        merged = []
        for first, end in ends if device.is_emulator else ():
            if merged and first <= merged[-1][1]:
                merged[-1][1] = max(end, merged[-1][1])
            else:
                merged.append([first, end])
        try:
            for first, end in merged:
                self.at.append((first, end, checked(lib.cptx_emu_map, device._handle, first, end - first)))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return lambda x: next((at + x.address - first for first, end, at in self.at if first <= x.address < end), x.address)

    def __exit__(self, *about):
        for *_, at in self.at:
            lib.cptx_mem_free(self.device._handle, at)


def _run(device, opt, problem, handle, runner):
    stream = checked(lib.cptx_stream_adopt, device._handle, handle) if handle else None
    try:
        checked(lib.cptx_gemm_run, runner.handle, ctypes.byref(opt), ctypes.byref(problem), stream)
    finally:
        if stream:
            lib.cptx_stream_destroy(stream)
