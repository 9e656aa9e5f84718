# SPDX-License-Identifier: MIT
"""Kernels of cptx inside jax.jit: compiles handler.c, registers it with JAX, and makes calls to it.

    y = ffi.call(kernel, [jax.ShapeDtypeStruct(x.shape, x.dtype)], x, alias={1: 0}, a=2.0)
"""

import atexit
import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile

import jax
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
_loaded = []
_kernels = {}  # those that compiled programs may still call, and their numbers


def build(folder, library):
    """Compiles handler.c against the headers that come with jaxlib and against libcptx; the path of the shared object."""
    out = os.path.join(folder, "cptx_xla.so")
    include = os.environ.get("CPTX_INCLUDE") or f"{ROOT}/include:{ROOT}/build/include"
    include = [*include.split(":"), os.path.join(ROOT, "third_party"), jax.ffi.include_dir()]
    command = [*compiler(), "-std=gnu11", "-O2", "-fPIC", "-shared",
               os.path.join(HERE, "handler.c"), "-o", out, *(f"-I{i}" for i in include), library,
               f"-Wl,-rpath,{os.path.dirname(library)}"]
    subprocess.run(command, check=True)
    return out


def register(path):
    """Makes the handlers known to JAX."""
    handlers = ctypes.CDLL(path)
    handlers.cptx_xla_add.restype, handlers.cptx_xla_add.argtypes = ctypes.c_int64, [ctypes.c_void_p]
    _loaded.append(handlers)
    for platform, name in (("cpu", "cptx_xla_cpu"), ("CUDA", "cptx_xla_cuda")):
        jax.ffi.register_ffi_target("cptx_launch", jax.ffi.pycapsule(getattr(handlers, name)), platform=platform)


def compiler():
    """The C compiler, as words; none where there is none."""
    command = shlex.split(os.environ.get("CC") or "cc")
    return command if shutil.which(command[0]) else []


def start(library):
    """Registers the handlers, once: compiled now, for this process, or where there is no compiler cptx_xla.so beside libcptx."""
    if _loaded:
        return
    library = os.path.abspath(library)
    if not compiler():
        register(os.path.join(os.path.dirname(library), "cptx_xla.so"))
        return
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    register(build(folder, library))


def _number(kernel):
    if kernel not in _kernels:
        _kernels[kernel] = np.int64(_loaded[0].cptx_xla_add(kernel.handle))
        if _kernels[kernel] < 0:
            raise RuntimeError("more kernels than examples/xla/handler.c has room for")
    return _kernels[kernel]


def call(kernel, results, *operands, alias=None, **numbers):
    """Calls a kernel on operands, as handler.c says; alias: {operand: result} that are the same memory."""
    types = {a.name: np.float64 if a.type in ("f32", "f64") else np.int64 for a in kernel.args if not a.is_tensor}
    attributes = {name: types[name](value) for name, value in numbers.items()}
    f = jax.ffi.ffi_call("cptx_launch", results, input_output_aliases=alias, vmap_method="sequential")
    return f(*operands, launch=_number(kernel), **attributes)
