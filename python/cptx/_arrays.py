# SPDX-License-Identifier: MIT
"""Arrays of others as arguments of a launch: (kind, value, API) and what must live until the call is over."""

import contextlib
import ctypes
import functools
import sys

from . import _abi

_TYPES = {"f": 2, "i": 0, "u": 1, "c": 5, "b": 6}  # of an array interface: the codes of DLPack


class ApiHeader(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev", ctypes.c_void_p)]


def exchange_api(cls):
    """The address of the DLPackExchangeAPI of a class, of major version 1; 0 where it has none."""
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None or not _abi.capsule_is(capsule, b"dlpack_exchange_api"):
        return 0
    at = _abi.capsule_pointer(capsule, b"dlpack_exchange_api")
    while at:
        header = ApiHeader.from_address(at)
        if header.major == 1:
            return at
        at = header.prev
    return 0


class Lazy(dict):
    """By class: whether its arrays may be views whose bytes are not their values, or record gradients (those of PyTorch)."""

    def __missing__(self, cls):
        self[cls] = all(hasattr(cls, name) for name in ("is_conj", "is_neg", "requires_grad"))
        return self[cls]


lazy = Lazy()


class Counts(dict):
    """By class: whether its framework wants to know that an array was written: PyTorch's version counter, by which autograd
    finds values that are stale."""

    def __missing__(self, cls):
        torch = sys.modules.get("torch") if lazy[cls] else None
        self[cls] = torch is not None and issubclass(cls, torch.Tensor) and hasattr(torch.autograd.graph, "increment_version")
        return self[cls]


counts = Counts()


@functools.lru_cache(None)
def teller():
    """A function that tells PyTorch of a tensor, or of a tuple of them, that it was written; some may count nothing."""
    torch = sys.modules["torch"]
    add = torch.autograd.graph.increment_version

    def one_by_one(x):
        for x in x if isinstance(x, tuple) else (x,):
            if not x.is_inference():
                add(x)

    try:  # an old PyTorch takes neither tuples, nor tensors of inference
        with torch.inference_mode():
            x = torch.empty(0, device="cpu")
        with torch.inference_mode(False):
            add((x, x))
    except Exception:
        return one_by_one
    return add


class Apis(dict):
    """By class; looking a new class up finds it, and makes it known to C.  KeyError where there is none."""

    def __init__(self):
        self.known = _abi.PythonClasses()

    def __missing__(self, cls):
        api = exchange_api(cls)
        if not api:
            raise KeyError(cls)
        if counts[cls]:
            self.known.written = teller()
        if len(self) < len(self.known.of) - 1:  # those that come later are slower
            self.known.of[len(self)] = (id(cls), api, lazy[cls], counts[cls])
        self[cls] = api
        return api

    def clear(self):
        super().clear()
        ctypes.memset(self.known.of, 0, ctypes.sizeof(self.known.of))


apis = Apis()


@contextlib.contextmanager
def without_apis():
    """To measure and to test what happens without an exchange API."""
    global exchange_api
    find, exchange_api = exchange_api, lambda cls: 0
    apis.clear()
    try:
        yield
    finally:
        exchange_api = find


def written(arrays):
    """Tells the frameworks of arrays that a launch wrote."""
    for x in arrays:
        if counts[type(x)]:
            teller()(x)


def readable(x):
    """Raises an error unless the bytes of an array are its values; neither DLPack nor the exchange API tells."""
    if lazy[type(x)]:
        if x.is_conj():
            raise ValueError("it is a conjugate that PyTorch has not computed yet: give x.resolve_conj()")
        if x.is_neg():
            raise ValueError("it is a negative that PyTorch has not computed yet: give x.resolve_neg()")


def writable(x):
    if lazy[type(x)] and x.requires_grad:
        raise ValueError("PyTorch records gradients of it, and would not see that the kernel writes it: give x.detach()")
    readable(x)


def framework_stream(args):
    """The stream that PyTorch works on, if one of the arguments is its tensor on a GPU; else None."""
    torch = sys.modules.get("torch")
    for x in args if torch else ():
        if isinstance(x, torch.Tensor) and x.is_cuda:
            return torch.cuda.current_stream(x.device).cuda_stream
    return None


def _dlpack(x, stream):
    if lazy[type(x)] and x.requires_grad:  # PyTorch would refuse it, even to be read
        x = x.detach()
    on_gpu = x.__dlpack_device__()[0] == _abi.CUDA
    words = {"stream": stream or 1} if on_gpu else {}  # 1: the default stream, for which 0 is ambiguous
    try:
        capsule = x.__dlpack__(max_version=(1, 1), **words)
    except TypeError:  # it knows only DLPack before 1.0
        capsule = x.__dlpack__(**words)
    for name, kind in ((b"dltensor_versioned", _abi.VERSIONED), (b"dltensor", _abi.MANAGED)):
        if _abi.capsule_is(capsule, name):
            return kind, _abi.capsule_pointer(capsule, name), 0, capsule
    raise TypeError(f"__dlpack__ of {type(x).__name__} gave no capsule of DLPack")


def _interface(x, about, device):
    """An array interface, of NumPy or of CUDA, as a DLManagedTensorVersioned: it can say that it is read-only."""
    kind, size = about["typestr"][1], int(about["typestr"][2:])
    if kind not in _TYPES or about["typestr"][0] == ">" or about.get("mask") is not None:
        raise TypeError(f"elements \"{about['typestr']}\" of {type(x).__name__} have no counterpart in DLPack")
    n = len(about["shape"])
    shape, strides = (ctypes.c_int64 * n)(*about["shape"]), None
    if about.get("strides") is not None:
        if any(s % size for s in about["strides"]):
            raise TypeError(f"strides {about['strides']} of {type(x).__name__} are no multiples of {size} bytes")
        strides = (ctypes.c_int64 * n)(*(s // size for s in about["strides"]))
    t = _abi.DLTensor(about["data"][0], *device, n, _TYPES[kind], size * 8, 1, shape, strides, 0)
    m = _abi.ManagedTensorVersioned(1, 0, None, None, 1 if about["data"][1] else 0, t)
    return _abi.VERSIONED, ctypes.addressof(m), 0, (m, shape, strides)


def tensor(x, stream, device, about):
    """kind, value, API, and what keeps it alive, for a launch on that stream of a Device; about: its Argument."""
    if x is None:
        if not about.is_optional:
            raise TypeError("it is None, and not optional")
        return _abi.NONE, 0, 0, None
    (readable if about.is_const else writable)(x)
    try:
        return _abi.OBJECT, id(x), apis[type(x)], x
    except KeyError:
        pass
    if hasattr(x, "__dlpack__"):
        try:
            return _dlpack(x, stream)
        except BufferError:  # of NumPy before 2.1: it is read-only, which only its interface can say
            if not hasattr(x, "__array_interface__"):
                raise
    told = getattr(x, "__cuda_array_interface__", None)
    if told is not None:
        if told.get("stream") not in (None, stream):  # its work there must be done; it says no more than the stream
            device.synchronize()
        return _interface(x, told, (_abi.CUDA, device.ordinal))
    told = getattr(x, "__array_interface__", None)
    if told is not None:
        return _interface(x, told, (_abi.CPU, 0))
    raise TypeError(f"a {type(x).__name__} is no tensor: it has neither __dlpack__ nor an array interface")
