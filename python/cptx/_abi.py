# SPDX-License-Identifier: MIT
"""The C ABI of libcptx, by ctypes: structs as <cptx/device.h> and <cptx/dlpack.h> declare them, which
tests/python/test_module.py has the compiler of C compare, and the functions used."""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, Structure, c_bool, c_char, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p


class ErrorInfo(Structure):
    of_c = "cptx_error"
    _fields_ = [("code", c_int), ("line", c_uint32), ("column", c_uint32), ("file", c_char * 256), ("text", c_char * 3072)]


class Site(Structure):
    of_c = "cptx_site"
    _fields_ = [("file", c_char_p), ("line", c_uint32)]


class EmitOpt(Structure):
    of_c = "cptx_emit_opt"
    _fields_ = [("size", c_uint32), ("lines", c_bool), ("min_version", c_uint16), ("keep", c_bool),
                ("buffer", c_void_p), ("buffer_size", c_size_t), ("z_", c_char)]


class LoadOpt(Structure):
    of_c = "cptx_load_opt"
    _fields_ = [("size", c_uint32), ("target", c_char_p), ("emit", POINTER(EmitOpt)), ("max_regs", c_uint32), ("verbose", c_bool), ("line_info", c_bool),
                ("debug", c_bool), ("name", c_char_p), ("compiler", c_int), ("cache", c_void_p), ("z_", c_char)]


class DeviceInfo(Structure):
    of_c = "cptx_device_info"
    _fields_ = [("name", c_char * 128), ("compute_capability", c_uint16), ("ptx", c_uint16), ("driver", c_uint32),
                ("target", c_char_p)]  # and more, which is not read here


class LaunchOpt(Structure):
    of_c = "cptx_tensor_launch_opt"
    _fields_ = [("size", c_uint32), ("signature", c_char_p), ("grid", c_char_p), ("block", c_uint32 * 3), ("cluster", c_uint32 * 3),
                ("dyn_smem", c_uint32), ("overlap", c_bool), ("z_", c_char)]


class ArgInfo(Structure):
    of_c = "cptx_tensor_arg_info"
    _fields_ = [("name", c_char_p), ("type", c_int), ("is_tensor", c_bool), ("is_const", c_bool), ("is_optional", c_bool)]


class Arg(Structure):
    of_c = "cptx_tensor_arg"
    _fields_ = [("kind", c_uint32), ("u", c_uint64), ("api", c_void_p)]


class TensorOpt(Structure):
    of_c = "cptx_tensor_opt"
    _fields_ = [("size", c_uint32), ("type", c_int), ("rank", c_size_t), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("ptr", c_uint64), ("read_only", c_bool), ("release", c_void_p), ("user", c_void_p), ("z_", c_char)]


class PythonClass(Structure):
    of_c = "cptx_python_class"
    _fields_ = [("type", c_void_p), ("api", c_void_p), ("lazy", c_bool), ("counts", c_bool)]


class PythonClasses(Structure):
    of_c = "cptx_python_classes"
    _fields_ = [("written", ctypes.py_object), ("of", PythonClass * 32)]


class PythonOpt(Structure):
    of_c = "cptx_python_opt"
    _fields_ = [("size", c_uint32), ("known", POINTER(PythonClasses)), ("otherwise", ctypes.py_object), ("failed", ctypes.py_object),
                ("owner", ctypes.py_object), ("z_", c_char)]


class DLTensor(Structure):
    of_c = "DLTensor"
    _fields_ = [("data", c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype_code", ctypes.c_uint8), ("dtype_bits", ctypes.c_uint8), ("dtype_lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class ManagedTensorVersioned(Structure):
    of_c = "DLManagedTensorVersioned"
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("dl_tensor", DLTensor)]


ROWS_OPERANDS = 21  # of <cptx/rows.def>


class RowsOpt(Structure):
    of_c = "cptx_rows_opt"
    _fields_ = [("size", c_uint32), ("kernel", c_int), ("in", c_int), ("out", c_int), ("weight", c_int), ("index", c_int), ("n", c_uint32),
                ("align", c_uint32), ("with", c_uint32), ("eps", c_float), ("smoothing", c_float), ("z_loss", c_float),
                ("ignored_label", c_int64), ("ignore", c_bool), ("tanh", c_bool), ("heads", c_uint32), ("place", c_int),
                ("threads", c_uint32), ("per_row", c_uint32), ("split", c_uint32), ("prefetch", c_bool), ("min_ctas", c_uint32),
                ("reads", c_uint32), ("writes", c_uint32), ("local", c_bool), ("body", c_void_p), ("user", c_void_p), ("name", c_char_p),
                ("stages", c_uint32), ("rows_each", c_uint32), ("bandwidth", c_uint32), ("z_", c_char)]


class RowsMatrix(Structure):
    of_c = "cptx_rows_matrix"
    _fields_ = [("address", c_uint64), ("stride", c_uint64)]


class RowsProblem(Structure):
    of_c = "cptx_rows_problem"
    _fields_ = [("size", c_uint32), ("rows", c_uint32), ("at", RowsMatrix * ROWS_OPERANDS), ("workspace", c_uint64), ("z_", c_char)]


# enum cptx_tensor_kind
NONE, DL, MANAGED, VERSIONED, OBJECT, INT, UINT, FLOAT = range(8)
CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA

FUNCTIONS = {
    "cptx_version": (c_char_p, []),
    "cptx_code_name": (c_char_p, [c_int]),
    "cptx_type_bits": (ctypes.c_uint, [c_int]),
    "cptx_type_find": (c_int, [c_char_p]),
    "cptx_type_name": (c_char_p, [c_int]),
    "cptx_rows_kernel_find": (c_int, [c_char_p]),
    "cptx_rows_kernel_name": (c_char_p, [c_int]),
    "cptx_rows_operand_name": (c_char_p, [c_int]),
    "cptx_rows_runner_new": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_rows_runner_destroy": (None, [c_void_p]),
    "cptx_rows_run": (c_bool, [c_void_p, POINTER(RowsOpt), POINTER(RowsProblem), c_void_p, POINTER(ErrorInfo)]),
    "cptx_rows_workspace": (c_uint64, [c_void_p, POINTER(RowsOpt), c_uint32, POINTER(ErrorInfo)]),
    "cptx_stream_adopt": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_device_open": (c_void_p, [c_char_p, POINTER(ErrorInfo)]),
    "cptx_device_adopt": (c_void_p, [c_void_p, POINTER(ErrorInfo)]),
    "cptx_device_close": (None, [c_void_p]),
    "cptx_device_get_info": (POINTER(DeviceInfo), [c_void_p]),
    "cptx_device_context": (c_void_p, [c_void_p]),
    "cptx_device_symbol": (c_void_p, [c_void_p, c_char_p]),
    "cptx_device_synchronize": (c_bool, [c_void_p, POINTER(ErrorInfo)]),
    "cptx_mem_alloc": (c_uint64, [c_void_p, c_size_t, POINTER(ErrorInfo)]),
    "cptx_mem_write": (c_bool, [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(ErrorInfo)]),
    "cptx_mem_read": (c_bool, [c_void_p, c_void_p, c_uint64, c_size_t, POINTER(ErrorInfo)]),
    "cptx_mem_free": (None, [c_void_p, c_uint64]),
    "cptx_device_load_text_": (c_void_p, [Site, c_void_p, c_char_p, c_size_t, POINTER(LoadOpt), POINTER(ErrorInfo)]),
    "cptx_program_destroy": (None, [c_void_p]),
    "cptx_program_log": (c_char_p, [c_void_p]),
    "cptx_program_target": (c_char_p, [c_void_p]),
    "cptx_program_kernel_at": (c_char_p, [c_void_p, c_size_t]),
    "cptx_tensor_launch_new_": (c_void_p, [Site, c_void_p, c_char_p, POINTER(LaunchOpt), POINTER(ErrorInfo)]),
    "cptx_tensor_launch_destroy": (None, [c_void_p]),
    "cptx_tensor_launch_arg_": (c_bool, [c_void_p, c_size_t, POINTER(ArgInfo), c_size_t]),
    "cptx_tensor_export": (c_void_p, [c_void_p, POINTER(TensorOpt), POINTER(ErrorInfo)]),
    "cptx_tensor_export_old": (c_void_p, [c_void_p, POINTER(TensorOpt), POINTER(ErrorInfo)]),
}


def _candidates():
    named = os.environ.get("CPTX_LIBRARY")
    if named:
        return [named]
    here = os.path.dirname(os.path.abspath(__file__))
    return [p for p in (os.path.join(here, "libcptx.so"), ctypes.util.find_library("cptx"), "libcptx.so") if p]


def _open():
    said = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), ctypes.PyDLL(path)
        except OSError as e:
            said.append(str(e))
    raise ImportError("libcptx cannot be opened; set CPTX_LIBRARY to its path. " + "; ".join(said))


lib, _with_gil = _open()
for _name, (_result, _arguments) in FUNCTIONS.items():
    _f = getattr(lib, _name)
    _f.restype, _f.argtypes = _result, _arguments

# With the GIL, which frameworks want while they look at their objects.
run, python_callable = _with_gil.cptx_tensor_launch_run, _with_gil.cptx_python_callable
run.restype, run.argtypes = c_bool, [c_void_p, c_char_p, c_size_t, POINTER(c_uint32), c_void_p, POINTER(ErrorInfo)]
python_callable.restype, python_callable.argtypes = ctypes.py_object, [c_void_p, POINTER(PythonOpt), POINTER(ErrorInfo)]

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
_api.PyCapsule_IsValid.restype = c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, c_char_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
capsule_pointer, capsule_is, capsule_new = _api.PyCapsule_GetPointer, _api.PyCapsule_IsValid, _api.PyCapsule_New
# For a capsule that is being destroyed: no reference to it may be made.
dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
dying_is = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
