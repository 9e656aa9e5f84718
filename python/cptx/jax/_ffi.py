# SPDX-License-Identifier: MIT
"""Calls of XLA's programs to the kernels, through its FFI: one handler, of the C structures of <xla/ffi/api/c_api.h>.

A family of kernels registers a class of what can be called:

    @_ffi.family
    class Double:
        def __init__(self, about): ...                      # once for each description
        def run(self, place, operands, results): ...        # Buffers; starts work on place.device and place.stream

and calls it inside of traced functions by `call(Double, operands, results, about)`.  A description is text in the program, so that
programs in JAX's cache on disk serve other processes.  Arrays of the CPU are computed by the emulator.
"""

import collections
import ctypes
import functools
import json
import math
import operator
import traceback

import jax
import numpy as np

from .. import Device, _gemm, _runner

EMULATOR = "emu:sm_90a"  # of arrays that lie on the CPU
TARGET = "cptx_call"  # the name that programs call
# By the name of a type of JAX: that of PTX, and its number in the FFI.
TYPES = {"float32": ("f32", 11), "float16": ("f16", 10), "bfloat16": ("bf16", 16), "float8_e4m3fn": ("e4m3", 20), "float8_e5m2": ("e5m2", 19),
         "int32": ("s32", 4), "int64": ("s64", 5), "uint8": ("u8", 6)}
_BY_NUMBER = {number: (kind, np.dtype(name).itemsize) for name, (kind, number) in TYPES.items()}


class _Span(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    def text(self):
        return ctypes.string_at(self.ptr, self.len).decode()


class _Extension(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", ctypes.POINTER(_Metadata))]


class _List(ctypes.Structure):
    """Of arguments, and of results."""
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64), ("types", ctypes.POINTER(ctypes.c_int)),
                ("at", ctypes.POINTER(ctypes.c_void_p))]


class _Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64), ("types", ctypes.POINTER(ctypes.c_int)),
                ("names", ctypes.POINTER(ctypes.POINTER(_Span))), ("at", ctypes.POINTER(ctypes.c_void_p))]


class _Frame(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("api", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("stage", ctypes.c_int), ("operands", _List), ("results", _List), ("attributes", _Attributes)]


class _XlaBuffer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("type", ctypes.c_int), ("data", ctypes.c_void_p),
                ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


class _Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _Question(ctypes.Structure):
    """To the context: its stream, or the number of its device."""
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("context", ctypes.c_void_p), ("answer", ctypes.c_void_p)]


class _Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("version", _Version), ("internal", ctypes.c_void_p),
                ("functions", ctypes.c_void_p * 18)]


ERROR_CREATE, STREAM_GET, DEVICE_ORDINAL_GET = 0, 4, 17  # functions of the API
METADATA, STRING, INTERNAL = 1, 4, 13  # an extension's type, an attribute's, the code of an error
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Buffer:
    """An array of the program: dense, by rows.  type: the name in PTX; as _arrays.Look has it."""

    def __init__(self, address, shape, type, itemsize):
        self.address, self.shape, self.type = address, shape, type
        self.size = math.prod(shape)
        self.bytes = self.size * itemsize

    @property
    def strides(self):
        return tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))


# device, and what Runners are shared by: key; stream: an address, 0 on the emulator; at: the device's address of a Buffer.
Place = collections.namedtuple("Place", "device key stream at")


def _buffers(these):
    found = []
    for i in range(these.count):
        b = _XlaBuffer.from_address(these.at[i])
        found.append(Buffer(b.data or 0, tuple(b.dims[:b.rank]), *_BY_NUMBER[b.type]))
    return found


def device(key):
    """The Device that a key of runners names: ("cuda", 0), as all of the module have it, or ("emu", "emu:sm_90a")."""
    return _runner.once(Device, key, lambda: Device(key[1] if key[0] == "emu" else f"cuda:{key[1]}"))


def default_key():
    """The key of the device that traced functions will most likely run on, to plan for."""
    chosen = jax.config.jax_default_device
    chosen = jax.devices()[0] if chosen is None else jax.devices(chosen)[0] if isinstance(chosen, str) else chosen
    return ("emu", EMULATOR) if chosen.platform == "cpu" else ("cuda", chosen.local_hardware_id)


# ---- what is called ----

_families = {}


def family(cls):
    _families[cls.__name__] = cls
    return cls


@functools.lru_cache(None)
def _described(text):
    """What a description in a program stands for."""
    name, about = json.loads(text)
    return _families[name](about)


def _attribute(attributes):
    for i in range(attributes.count):
        if attributes.types[i] == STRING and attributes.names[i].contents.text() == "about":
            return _Span.from_address(attributes.at[i]).text()
    raise ValueError("the call has no attribute \"about\"")


def _ask(frame, function, kind):
    """An answer of the context; its error, of XLA, else None."""
    api, question = _Api.from_address(frame.api), _Question(ctypes.sizeof(_Question), None, frame.context, None)
    if api.size < _Api.functions.offset + (function + 1) * ctypes.sizeof(ctypes.c_void_p):
        raise RuntimeError(f"XLA's FFI of JAX {jax.__version__} has no function {function}: a newer jaxlib is needed")
    error = _Function(api.functions[function])(ctypes.addressof(question))
    return kind.from_buffer(question, _Question.answer.offset).value, error


def _tells_metadata(frame):
    """XLA asks first what it has before it; whether that was all."""
    extension = _Extension.from_address(frame.extension) if frame.extension else None
    if extension is None or extension.type != METADATA:
        return False
    metadata = _MetadataExtension.from_address(frame.extension).metadata.contents
    version = _Api.from_address(frame.api).version if frame.api else None
    metadata.version.major, metadata.version.minor = (version.major, version.minor) if version else (0, 1)
    metadata.traits = 0  # a kernel may be compiled by the first call, which no stream can record
    return True


_address = operator.attrgetter("address")


def _run(frame, key, stream):
    call, operands, results = _described(_attribute(frame.attributes)), _buffers(frame.operands), _buffers(frame.results)
    if key[0] != "emu":
        call.run(Place(device(key), key, stream, _address), operands, results)
        return
    with _gemm.Mapped(device(key), (*operands, *results)) as at:
        call.run(Place(device(key), key, stream, at), operands, results)
        device(key).synchronize()  # before the arrays are unmapped


def _handle(address, on_gpu):
    frame = _Frame.from_address(address)
    try:
        if _tells_metadata(frame):
            return None
        key, stream = ("emu", EMULATOR), 0
        if on_gpu:
            stream, error = _ask(frame, STREAM_GET, ctypes.c_void_p)
            if error:
                return error
            ordinal, error = _ask(frame, DEVICE_ORDINAL_GET, ctypes.c_int32)
            if error:
                return error
            key = ("cuda", ordinal)
        _run(frame, key, stream or 0)
        return None
    except BaseException as e:  # none may reach C
        text = "".join(traceback.format_exception_only(e)).strip().encode()
        error = _Error(ctypes.sizeof(_Error), None, text, INTERNAL)
        return _Function(_Api.from_address(frame.api).functions[ERROR_CREATE])(ctypes.addressof(error))


_on_cpu, _on_gpu = _Function(lambda address: _handle(address, False)), _Function(lambda address: _handle(address, True))
for _platform, _handler in (("cpu", _on_cpu), ("CUDA", _on_gpu)):
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_handler), platform=_platform)


def array(shape, dtype):
    """A result of a call."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def call(cls, operands, results, **about):
    """The results of a call, a list, inside of a traced function or out of it; about: what can be JSON."""
    f = jax.ffi.ffi_call(TARGET, list(results), vmap_method="sequential")
    return f(*operands, about=json.dumps((cls.__name__, about), sort_keys=True))


def check_workspace(place, size, workspace):
    """Refuses the workspace of a program, None: it has none, that was made for a device which needs less."""
    there = workspace.bytes if workspace else 0
    if size > there:
        raise ValueError(f"the program was traced for another device than {place.device.name}, which needs {size} bytes of workspace "
                         f"and has {there}: trace it under jax.default_device")


def type_name(name, x, allowed=("f32", "f16", "bf16")):
    """The type of an array's elements as PTX has it."""
    kind, _ = TYPES.get(np.dtype(x.dtype).name, (None, None))
    if kind not in allowed:
        raise TypeError(f"{name} is of {x.dtype}, but must be of {', '.join(t for t, (k, _) in TYPES.items() if k in allowed)}")
    return kind
