# SPDX-License-Identifier: MIT
"""Arrays of others as arguments of a launch: (kind, value, API) and what must live until the call is over."""

import contextlib
import ctypes
import functools
import itertools
import math
import sys

from . import _abi

_TYPES = {"f": 2, "i": 0, "u": 1, "c": 5, "b": 6}  # of an array interface: the codes of DLPack
# Types that ml_dtypes adds to NumPy, which neither DLPack nor the array interface of NumPy tells, and those of PTX.
_ML_DTYPES = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "ue8m0"}


@functools.lru_cache(None)
def dl_types():
    """By the name of a type of PTX: its code, bits and lanes in DLPack."""
    info, found = _abi.TensorTypeInfo(), {}
    for i in itertools.count():
        if not _abi.lib.cptx_tensor_type_at_(i, ctypes.byref(info), ctypes.sizeof(info)):
            return found
        found[_abi.lib.cptx_type_name(info.type).decode()] = info.code, info.bits, info.lanes


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
    more = _ML_DTYPES.get(getattr(getattr(x, "dtype", None), "name", None))
    if not (kind in _TYPES or more) or about["typestr"][0] == ">" or about.get("mask") is not None:
        raise TypeError(f"elements \"{about['typestr']}\" of {type(x).__name__} have no counterpart in DLPack")
    n = len(about["shape"])
    shape, strides = (ctypes.c_int64 * n)(*about["shape"]), None
    if about.get("strides") is not None:
        if any(s % size for s in about["strides"]):
            raise TypeError(f"strides {about['strides']} of {type(x).__name__} are no multiples of {size} bytes")
        strides = (ctypes.c_int64 * n)(*(s // size for s in about["strides"]))
    code = dl_types()[more][0] if more else _TYPES[kind]
    t = _abi.DLTensor(about["data"][0], *device, n, code, size * 8, 1, shape, strides, 0)
    m = _abi.ManagedTensorVersioned(1, 0, None, None, 1 if about["data"][1] else 0, t)
    return _abi.VERSIONED, ctypes.addressof(m), 0, (m, shape, strides)


def _buffer(x):
    """Memory that Python's own protocol shows, of an array.array or a memoryview, as _interface."""
    view = memoryview(x)
    kinds = [code for code, letters in ((2, "efd"), (0, "bhilq"), (1, "BHILQ")) if view.format in letters]
    if not kinds or view.readonly or not view.c_contiguous:
        why = "is read-only" if view.readonly else "is not dense" if kinds else f"has elements \"{view.format}\""
        raise TypeError(f"a {type(x).__name__} that {why} is no tensor")
    first = ctypes.c_char.from_buffer(view) if view.nbytes else None
    shape = (ctypes.c_int64 * view.ndim)(*view.shape)
    t = _abi.DLTensor(None if first is None else ctypes.addressof(first), _abi.CPU, 0, view.ndim, kinds[0], view.itemsize * 8, 1, shape, None, 0)
    m = _abi.ManagedTensorVersioned(1, 0, None, None, 0, t)
    return _abi.VERSIONED, ctypes.addressof(m), 0, (m, shape, first)


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
        except BufferError:  # of NumPy: a type of ml_dtypes; before 2.1: it is read-only, which only its interface can say
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
    try:
        memoryview(x)
    except TypeError:
        raise TypeError(f"a {type(x).__name__} is no tensor: it has neither __dlpack__ nor an array interface") from None
    return _buffer(x)


class Look:
    """What an array says of itself: address, shape, strides in elements, the name of its type in PTX; keeps it alive."""

    def __init__(self, t, keep):
        self.address, self.keep = (t.data or 0) + t.byte_offset, keep
        self.shape = tuple(t.shape[i] for i in range(t.ndim))
        self.strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else tuple(
            math.prod(self.shape[i + 1:]) for i in range(t.ndim))
        self.size = math.prod(self.shape)
        self.bytes = (1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))) * t.dtype_bits * t.dtype_lanes // 8
        dl = t.dtype_code, t.dtype_bits, t.dtype_lanes
        names = (name for name, known in dl_types().items() if known == dl and name[0] != "b" or name == "bf16" and known == dl)
        self.type = next(names, f"DLPack type {dl}")


def look(x, stream, device, read_only):
    """A Look at an array that lies where a device can read it."""
    (readable if read_only else writable)(x)
    told = getattr(x, "__array_interface__", None)
    if told is not None:
        kind, at, _, keep = _interface(x, told, (_abi.CPU, 0))
    elif hasattr(x, "__dlpack__"):
        kind, at, _, keep = _dlpack(x, stream)
    else:
        kind, at, _, keep = tensor(x, stream, device, _Any)
    managed = _abi.ManagedTensorVersioned.from_address(at) if kind == _abi.VERSIONED else None
    t = managed.dl_tensor if managed else _abi.DLTensor.from_address(at)
    on_gpu = t.device_type == _abi.CUDA
    if on_gpu == device.is_emulator or (on_gpu and t.device_id != device.ordinal):
        where = f"cuda:{t.device_id}" if on_gpu else "the CPU"
        raise ValueError(f"an array lies on {where}, but the device is {device.name}")
    if not read_only and managed and managed.flags & 1:
        raise ValueError("the result is written, but its array is read-only")
    return Look(t, (x, keep))


class _Any:
    """Stands for an Argument that takes what is only read."""

    is_optional, is_const = False, True


def device_name(x):
    """The name of the device of an array."""
    if hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == _abi.CUDA:
        return f"cuda:{x.__dlpack_device__()[1]}"
    told = getattr(x, "__cuda_array_interface__", None)
    if told is not None:
        return "cuda"
    raise ValueError("the array lies on the CPU: give device=, a Device of the emulator, or an array of a GPU")


def new_like(x, shape, type):
    """A new array of the framework of x with elements of a type of PTX; None where x is of none that is known here."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    name = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "s32": "int32"}[type]
    if torch and isinstance(x, torch.Tensor):
        return torch.empty(shape, dtype=getattr(torch, name), device=x.device)
    if numpy and isinstance(x, numpy.ndarray):
        return numpy.empty(shape, __import__("ml_dtypes").bfloat16 if name == "bfloat16" else name)
    return None
