# SPDX-License-Identifier: MIT
"""cptx from Python: PTX kernels on arrays of PyTorch, JAX, NumPy and all that speak DLPack, without a copy.

    import cptx, torch
    device = cptx.Device("cuda:0")                # or "emu:sm_90a", the emulator, with arrays of the CPU
    program = device.load(open("saxpy.ptx").read())
    saxpy = program.kernel("saxpy", "x: f32[n] const, y: f32[n], a: f32, n: u32 = n", grid="n / 256", block=256)
    saxpy(x, y, 2.0)                              # on PyTorch's current stream; returns at once

Signatures and grids are those of <cptx/dlpack.h>.  The library, libcptx.so, is the one that CPTX_LIBRARY names, else the one
beside this file or the one that the dynamic loader finds.
"""

import ctypes
import functools
import itertools
import math
import operator
import struct
import typing

from . import _abi, _arrays, _errors
from ._abi import WAIT_DONE, WAIT_LOOP, WAIT_UNIFORM, lib
from ._errors import ArgumentError, Error
from ._errors import checked as _checked, closing as _closing, error as _error

if typing.TYPE_CHECKING:
    from ._build import Module, Value
    from ._gemm import gemm
    from ._insns import *  # the types and modifiers of the table

__all__ = ["ArgumentError", "Device", "Error", "Kernel", "Module", "Program", "Tensor", "Value", "WAIT_DONE", "WAIT_LOOP",
           "WAIT_UNIFORM", "gemm", "version"]


def version():
    return lib.cptx_version().decode()


if not typing.TYPE_CHECKING:  # which has the names from the imports above

    def __getattr__(name):
        """What is not needed to run kernels is there when it is asked for: building, gemm, and types and modifiers (cptx.F32)."""
        if name in ("Module", "Value"):
            from . import _build
            found = getattr(_build, name)
        elif name == "gemm":
            from ._gemm import gemm as found
        elif name.isupper():
            from . import _build
            found = _build.modifiers().get(name)
        else:
            found = None
        if found is None:
            raise AttributeError(f"module 'cptx' has no attribute {name!r}")
        globals()[name] = found
        return found


def _u32(name, n):
    n = operator.index(n)
    if not 0 <= n < 2**32:
        raise ValueError(f"{name} is {n}, but must be from 0 to 2^32 - 1")
    return n


def _text(name, x):
    """For C; None stays that."""
    if x is not None and not isinstance(x, str):
        raise TypeError(f"{name} is a {type(x).__name__}, but must be a str")
    return None if x is None else x.encode()


def _needed(name, x):
    if x is None:
        raise TypeError(f"{name} is None, but must be a str")
    return _text(name, x)


def _grid_text(grid):
    """Of a kernel: text as in a signature, or numbers as of a call."""
    if grid is None or isinstance(grid, str):
        return _text("grid", grid)
    _dims(grid)
    return ", ".join(map(str, grid if hasattr(grid, "__len__") else (grid,))).encode()


def _dims(n):
    n = tuple(map(operator.index, (n,) if not hasattr(n, "__len__") else n))
    if len(n) > 3 or not all(0 <= i < 2**32 for i in n):
        raise ValueError(f"{n}: at most three dimensions, each from 0 to 2^32 - 1")
    return (ctypes.c_uint32 * 3)(*(n if all(n) else ()))  # a 0 anywhere launches nothing


class Device:
    """A device by name: "cuda:0", whose primary context PyTorch and JAX use too, or "emu:sm_90a"."""

    def __init__(self, name="cuda"):
        self._start(_checked(lib.cptx_device_open, _needed("name", name)), name, int((name.split(":") + ["0"])[1])
                    if name.startswith("cuda") else 0)

    @classmethod
    def current(cls):
        """The CUDA context that is current in this thread."""
        self = cls.__new__(cls)
        handle, number = _checked(lib.cptx_device_adopt, None), ctypes.c_int(0)
        ask = lib.cptx_device_symbol(handle, b"cuCtxGetDevice")
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ask)(ctypes.addressof(number))
        self._start(handle, "cuda", number.value)
        return self

    def _start(self, handle, name, ordinal):
        self._handle, self._runners = handle, {}
        _closing(self, lib.cptx_device_close, handle)
        info = lib.cptx_device_get_info(handle).contents
        self.name, self.target = info.name.decode(), (info.target or b"").decode()
        self.is_emulator, self.ordinal = name.startswith("emu"), ordinal

    def load(self, image, name=None, target=None, max_regs=0, line_info=False, debug=False):
        """A Program of a Module, of PTX text, or of the bytes of a cubin or fat binary; `name` is for messages."""
        return Program(self, image, name, target, max_regs, line_info, debug)

    def load_file(self, path, **options):
        with open(path, "rb") as f:
            return self.load(f.read(), name=str(path), **options)

    def empty(self, shape, dtype):
        """Memory of the device, not set, as a Tensor; dtype is a type of PTX: "f32"."""
        return Tensor(self, shape, dtype)

    def synchronize(self):
        _checked(lib.cptx_device_synchronize, self._handle)

    def __repr__(self):
        return f"<cptx.Device {self.name}>"


class Program:
    """Compiled PTX; made by Device.load."""

    def __init__(self, device, image, name, target, max_regs, line_info, debug):
        opt = _abi.LoadOpt(target=_text("target", target), max_regs=_u32("max_regs", max_regs), line_info=line_info, debug=debug,
                           name=_text("name", name))
        self.device = device
        if hasattr(image, "ptx"):  # a Module
            self._handle = _checked(lib.cptx_device_load_, _abi.Site(), device._handle, image._handle, ctypes.byref(opt))
        else:
            image = image.encode() if isinstance(image, str) else bytes(memoryview(image))
            self._handle = _checked(lib.cptx_device_load_text_, _abi.Site(), device._handle, image, len(image), ctypes.byref(opt))
        _closing(self, lib.cptx_program_destroy, self._handle, device)

    @property
    def log(self):
        return lib.cptx_program_log(self._handle).decode(errors="replace")

    @property
    def kernels(self):
        """Names of its kernels; none are known of a cubin."""
        names = (lib.cptx_program_kernel_at(self._handle, i) for i in itertools.count())
        return [name.decode() for name in itertools.takewhile(lambda name: name, names)]

    def kernel(self, name, signature, grid=None, block=(), cluster=(), dyn_smem=0, overlap=False):
        """Prepares a kernel (name None: the only one) for calls."""
        return Kernel(self, name, signature, grid, block, cluster, dyn_smem, overlap)


def _raise(info):
    raise _error(_abi.ErrorInfo.from_buffer_copy(info))


class _Launch:
    """A cptx_tensor_launch."""

    def __init__(self, program, name, opt):
        self.handle = _checked(lib.cptx_tensor_launch_new_, _abi.Site(), program._handle, _text("name", name), ctypes.byref(opt))
        _closing(self, lib.cptx_tensor_launch_destroy, self.handle, program)

    @property
    def args(self):
        info = _abi.ArgInfo()
        for i in itertools.count():
            if not lib.cptx_tensor_launch_arg_(self.handle, i, ctypes.byref(info), ctypes.sizeof(info)):
                return
            kind = lib.cptx_type_name(info.type).decode()
            yield Argument(info.name.decode(), kind, info.is_tensor, info.is_const, info.is_optional)

    def run(self, packed, n, grid, stream):
        err = _abi.ErrorInfo()
        if not _abi.run(self.handle, packed, n, grid, stream, ctypes.byref(err)):
            raise _error(err)

    def callable(self, otherwise):
        """What does it all in one call of C where tensors have an exchange API, else calls `otherwise`."""
        opt = _abi.PythonOpt(known=ctypes.pointer(_arrays.apis.known), otherwise=otherwise, failed=_raise, owner=self)
        return _checked(_abi.python_callable, self.handle, ctypes.byref(opt))


class Kernel:
    """A kernel that can be called with arrays and numbers, in the order of its signature without what is computed.

    kernel(x, y, 2.0, grid=(4, 2), stream=s): grid is needed only where it was prepared without one, and with a 0 in it
    nothing is launched; stream is a CUstream as an int, or has one as `cuda_stream` or `ptr`.  Without stream the work goes to
    the framework's current one (PyTorch), else to the default stream.  Returns at once on a GPU, and when all is done on the
    emulator.  Any thread may call it.
    """

    __slots__ = "program", "name", "args", "_launch", "__call__", "__weakref__"  # __call__: of C, see cptx_python_callable

    def __init__(self, program, name, signature, grid, block, cluster, dyn_smem, overlap):
        opt = _abi.LaunchOpt(signature=_needed("signature", signature), grid=_grid_text(grid), block=_dims(block),
                             cluster=_dims(cluster), dyn_smem=_u32("dyn_smem", dyn_smem), overlap=overlap)
        self.program = program
        self.name = name or program.kernels[0]
        self._launch = _Launch(program, name, opt)
        self.args = tuple(self._launch.args)
        self.__call__ = self._launch.callable(self._anyhow())

    @property
    def handle(self):
        """The address of the cptx_tensor_launch, for C that launches it; valid as long as this object."""
        return self._launch.handle

    def _anyhow(self):
        """For arrays that need more looking at, and numbers that do not fit: as fast as their own protocols."""
        device, args, name, run = self.program.device, self.args, self.name, self._launch.run

        def anyhow(*given, grid=None, stream=None):
            if len(given) != len(args):
                raise TypeError(f"kernel {name} takes {len(args)} argument{'s' * (len(args) != 1)} "
                                f"({', '.join(a.name for a in args)}), but {len(given)} {'was' if len(given) == 1 else 'were'} given")
            handle = _stream_handle(stream)
            if handle is None:
                handle = _arrays.framework_stream(given)
            seen = []
            for a, x in zip(args, given):
                try:
                    seen.append(_arrays.tensor(x, handle, device, a) if a.is_tensor else a.number(x))
                except (TypeError, ValueError, OverflowError) as e:
                    raise type(e)(f"kernel {name}: argument \"{a.name}\": {e}") from e
            run(b"".join(struct.pack("=QQQ", kind, value, api) for kind, value, api, _ in seen), len(seen),
                None if grid is None else _dims(grid), handle)
            _arrays.written(x for a, x in zip(args, given) if a.is_tensor and not a.is_const)

        return anyhow

    def __repr__(self):
        return f"<cptx.Kernel {self.name}({', '.join(f'{a.name}: {a.type}' for a in self.args)})>"


class Argument:
    """An entry of a signature that is given."""

    def __init__(self, name, kind, is_tensor, is_const, is_optional):
        self.name, self.type = name, kind
        self.is_tensor, self.is_const, self.is_optional = is_tensor, is_const, is_optional

    def number(self, x):
        if isinstance(x, (str, bytes, bytearray)):
            raise TypeError(f"a {type(x).__name__} is no number")
        if self.type in ("f32", "f64"):
            return _abi.FLOAT, struct.unpack("=Q", struct.pack("=d", x if isinstance(x, (int, float)) else float(x)))[0], 0, None
        if isinstance(x, float) or not hasattr(x, "__index__"):
            raise TypeError(f"a {type(x).__name__} is no integer")
        i = x.__index__()
        if not -(1 << 63) <= i < 1 << 64:
            raise OverflowError(f"{i} has more than 64 bits")
        return _abi.UINT if i >= 1 << 63 else _abi.INT, i & (1 << 64) - 1, 0, None


def _stream_handle(stream):
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    return None if stream is None else operator.index(stream)


_exported: "dict[int, Tensor]" = {}  # Tensors that others hold, by a number
_numbers = itertools.count(1)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _release(number):
    _exported.pop(number, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _drop_capsule(capsule):  # nobody took what it holds
    for name, offset in ((b"dltensor_versioned", 16), (b"dltensor", ctypes.sizeof(_abi.DLTensor) + 8)):
        if _abi.dying_is(capsule, name):
            at = _abi.dying_pointer(capsule, name)
            deleter = ctypes.c_void_p.from_address(at + offset).value
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(at)


class Tensor:
    """Memory of a device for others: torch.from_dlpack(t), numpy.from_dlpack(t).  It lives until the last of them is gone."""

    def __init__(self, device, shape, dtype):
        self.device, self.shape, self.dtype = device, tuple(map(operator.index, shape)), dtype
        if min(self.shape, default=0) < 0:
            raise ValueError(f"the shape {self.shape} has a negative dimension")
        self._type = lib.cptx_type_find(_needed("dtype", dtype))
        if not lib.cptx_type_bits(self._type):
            raise ValueError(f"\"{dtype}\" is no type of PTX: f32, bf16, u8, b64")
        size = math.prod(self.shape) * max(8, lib.cptx_type_bits(self._type)) // 8
        if size >= 1 << 63:
            raise ValueError(f"the shape {self.shape} is beyond all memory")
        self._ptr = _checked(lib.cptx_mem_alloc, device._handle, size) if size else 0
        if size:
            _closing(self, functools.partial(lib.cptx_mem_free, device._handle), self._ptr, device)

    def __dlpack_device__(self):
        return (_abi.CPU, 0) if self.device.is_emulator else (_abi.CUDA, self.device.ordinal)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("cptx gives its memory where it lies, without a copy")
        new = max_version is not None and max_version[0] >= 1
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        number = next(_numbers)
        opt = _abi.TensorOpt(type=self._type, rank=len(self.shape), shape=shape, ptr=self._ptr,
                             release=ctypes.cast(_release, ctypes.c_void_p), user=number)
        at = _checked(lib.cptx_tensor_export if new else lib.cptx_tensor_export_old, self.device._handle, ctypes.byref(opt))
        _exported[number] = self
        return _abi.capsule_new(at, b"dltensor_versioned" if new else b"dltensor", ctypes.cast(_drop_capsule, ctypes.c_void_p))

    def __repr__(self):
        return f"<cptx.Tensor {self.dtype}{list(self.shape)} on {self.device.name}>"
