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
    more = True


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


class KernelOpt(Structure):
    of_c = "cptx_kernel_opt"
    _fields_ = [("size", c_uint32), ("block", c_uint32 * 3), ("max_block", c_uint32 * 3), ("min_ctas", c_uint32), ("max_regs", c_uint32),
                ("cluster", c_uint32 * 3), ("max_cluster_rank", c_uint32), ("z_", c_char)]


class GlobalOpt(Structure):
    of_c = "cptx_global_opt"
    _fields_ = [("size", c_uint32), ("space", c_int), ("init", c_void_p), ("align", c_uint32), ("export_", c_bool), ("z_", c_char)]


class ModInfo(Structure):
    of_c = "cptx_mod_info"
    _fields_ = [("name", c_char_p), ("enumerator", c_char_p), ("about", c_char_p)]


class FieldInfo(Structure):
    of_c = "cptx_field_info"
    _fields_ = [("name", c_char_p), ("is_operand", c_bool), ("is_positional", c_bool), ("place", c_uint32)]


class Val(Structure):
    of_c = "cptx_val"
    _fields_ = [("kind", ctypes.c_uint8), ("type", ctypes.c_uint8), ("negated", ctypes.c_uint8), ("space", ctypes.c_uint8),
                ("count", c_uint16), ("owner", c_uint16), ("i", c_int64)]


class BuilderOpt(Structure):
    of_c = "cptx_python_builder_opt"
    _fields_ = [("size", c_uint32), ("value", ctypes.py_object), ("failed", ctypes.py_object), ("z_", c_char)]


class TensorTypeInfo(Structure):
    of_c = "cptx_tensor_type_info"
    _fields_ = [("type", c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", c_uint16)]


class Options(Structure):
    """Options that grow: their size tells C how much of them stands here.  Without it C would read all that its own version has."""

    def __init__(self, **fields):
        super().__init__(**{"size": ctypes.sizeof(self), **fields})


class GemmOpt(Options):
    of_c, more = "cptx_gemm_opt", True
    _fields_ = [("size", c_uint32), ("mma", c_int), ("a", c_int), ("b", c_int), ("out", c_int), ("scale", c_int),
                ("scale_k", c_uint32), ("zeros", c_bool), ("kind", c_int),
                ("a_m_major", c_bool), ("b_n_major", c_bool), ("bm", c_uint32), ("bn", c_uint32), ("bk", c_uint32),
                ("stages", c_uint32), ("group", c_uint32), ("warps_m", c_uint32), ("warps_n", c_uint32), ("cluster_m", c_uint32),
                ("cluster_n", c_uint32), ("per_sm", c_uint32), ("swap", c_bool), ("a_tmem", c_bool), ("tma", c_bool),
                ("stream_k", c_bool), ("batched", c_bool), ("grouped", c_bool), ("strided", c_bool), ("unaligned", c_uint32),
                ("alpha", c_bool), ("beta", c_bool), ("bias", c_bool), ("timeline", c_uint32), ("epilogue", c_void_p),
                ("user", c_void_p), ("name", c_char_p), ("experts", c_int), ("visitors", c_void_p),
                ("params", c_void_p), ("nparams", c_uint32)]


class GemmProblem(Options):
    of_c, more = "cptx_gemm_problem", True
    _fields_ = [("size", c_uint32), ("m", c_uint64), ("n", c_uint64), ("k", c_uint64), ("batch", c_uint32), ("a", c_uint64),
                ("b", c_uint64), ("d", c_uint64), ("c", c_uint64), ("bias", c_uint64), ("workspace", c_uint64),
                ("scale_a", c_uint64), ("scale_b", c_uint64), ("timeline", c_uint64), ("ctas", c_uint32), ("alpha", ctypes.c_float),
                ("beta", ctypes.c_float), ("lda", c_uint64), ("ldb", c_uint64), ("ldc", c_uint64), ("ldd", c_uint64),
                ("stride_a", c_uint64), ("stride_b", c_uint64), ("stride_c", c_uint64), ("stride_d", c_uint64),
                ("zero_b", c_uint64), ("counts", c_uint64), ("expected", c_uint32), ("args", c_void_p)]


class TuneUse(Options):
    of_c, more = "cptx_tune_use", True
    _fields_ = [("size", c_uint32), ("db", c_void_p), ("policy", c_int), ("candidates", c_uint32), ("budget_s", ctypes.c_double),
                ("workers", c_uint32), ("compiler", c_int), ("cache", c_void_p), ("part", c_uint32), ("parts", c_uint32), ("offset", c_uint64),
                ("progress", c_void_p), ("user", c_void_p)]


# enum cptx_tune_policy
TUNE_AS_SET, TUNE_OFF, TUNE_NEVER, TUNE_ONCE, TUNE_ALWAYS = range(5)
# enum cptx_wait_shape
WAIT_LOOP, WAIT_UNIFORM, WAIT_DONE = range(3)


ROWS_ROOM = 32  # CPTX_ROWS_ROOM


class RowsOpt(Structure):
    of_c = "cptx_rows_opt"
    _fields_ = [("size", c_uint32), ("kernel", c_int), ("in", c_int), ("out", c_int), ("weight", c_int), ("index", c_int), ("n", c_uint32),
                ("align", c_uint32), ("with", c_uint32), ("eps", c_float), ("smoothing", c_float), ("z_loss", c_float),
                ("ignored_label", c_int64), ("ignore", c_bool), ("tanh", c_bool), ("heads", c_uint32), ("place", c_int),
                ("threads", c_uint32), ("per_row", c_uint32), ("split", c_uint32), ("prefetch", c_bool), ("min_ctas", c_uint32),
                ("reads", c_uint32), ("writes", c_uint32), ("local", c_bool), ("body", c_void_p), ("user", c_void_p), ("name", c_char_p),
                ("stages", c_uint32), ("rows_each", c_uint32), ("bandwidth", c_uint32), ("k", c_uint32), ("chunks", c_uint32), ("z_", c_char)]


class RowsMatrix(Structure):
    of_c = "cptx_rows_matrix"
    _fields_ = [("address", c_uint64), ("stride", c_uint64)]


class RowsProblem(Structure):
    of_c = "cptx_rows_problem"
    _fields_ = [("size", c_uint32), ("rows", c_uint32), ("at", RowsMatrix * ROWS_ROOM), ("workspace", c_uint64), ("z_", c_char)]


class RowsPlan(Structure):
    of_c = "cptx_rows_plan"
    _fields_ = [("place", c_int), ("threads", c_uint32), ("per_row", c_uint32), ("split", c_uint32), ("min_ctas", c_uint32), ("elements", c_uint32),
                ("reads", c_uint32), ("writes", c_uint32), ("launches", c_uint32), ("grid", c_uint32), ("workspace", c_uint64),
                ("bytes", c_uint64), ("stages", c_uint32), ("rows_each", c_uint32), ("smem", c_uint32), ("chunks", c_uint32)]


# enum cptx_attention_mma
ATTENTION_SYNC, ATTENTION_WGMMA, ATTENTION_TCGEN05 = range(3)


class AttentionStride(Structure):
    of_c = "cptx_attention_stride"
    _fields_ = [("batch", c_uint64), ("head", c_uint64), ("row", c_uint64)]


class AttentionOpt(Options):
    of_c, more = "cptx_attention_opt", True
    _fields_ = [("size", c_uint32), ("mma", c_int), ("in", c_int), ("out", c_int), ("dim", c_uint32), ("dim_v", c_uint32),
                ("causal", c_bool), ("top_left", c_bool), ("window", c_bool), ("softcap", c_bool), ("score", c_void_p), ("user", c_void_p),
                ("lse", c_bool), ("bq", c_uint32), ("bk", c_uint32), ("stages", c_uint32), ("name", c_char_p), ("warps", c_uint32),
                ("tma", c_bool), ("mask", c_void_p), ("blocks", c_void_p), ("sinks", c_bool), ("varlen", c_bool), ("page", c_uint32),
                ("pack", c_uint32)]


class AttentionProblem(Options):
    of_c, more = "cptx_attention_problem", True
    _fields_ = [("size", c_uint32), ("batch", c_uint32), ("heads", c_uint32), ("kv_heads", c_uint32), ("queries", c_uint32),
                ("keys", c_uint32), ("q", c_uint64), ("k", c_uint64), ("v", c_uint64), ("o", c_uint64), ("lse", c_uint64),
                ("q_stride", AttentionStride), ("k_stride", AttentionStride), ("v_stride", AttentionStride), ("o_stride", AttentionStride),
                ("scale", c_float), ("softcap", c_float), ("window_left", c_uint32), ("window_right", c_uint32), ("ctas", c_uint32),
                ("sinks", c_uint64), ("cu_queries", c_uint64), ("cu_keys", c_uint64), ("total_queries", c_uint32), ("total_keys", c_uint32),
                ("page_table", c_uint64), ("table_pitch", c_uint32), ("pages", c_uint32), ("v_scale", c_float)]


class AttentionBackwardOpt(Options):
    of_c, more = "cptx_attention_backward_opt", True
    _fields_ = [("size", c_uint32), ("mma", c_int), ("in", c_int), ("dim", c_uint32), ("causal", c_bool), ("top_left", c_bool),
                ("window", c_bool), ("deterministic", c_bool), ("bq", c_uint32), ("bk", c_uint32), ("stages", c_uint32), ("sm90", c_bool),
                ("name", c_char_p), ("softcap", c_bool), ("varlen", c_bool), ("score", c_void_p), ("score_grad", c_void_p),
                ("user", c_void_p), ("mask", c_void_p), ("blocks", c_void_p)]


class AttentionBackwardProblem(Options):
    of_c, more = "cptx_attention_backward_problem", True
    _fields_ = [("size", c_uint32), ("batch", c_uint32), ("heads", c_uint32), ("kv_heads", c_uint32), ("queries", c_uint32),
                ("keys", c_uint32), ("q", c_uint64), ("k", c_uint64), ("v", c_uint64), ("o", c_uint64), ("d_o", c_uint64), ("lse", c_uint64),
                ("dq", c_uint64), ("dk", c_uint64), ("dv", c_uint64), ("q_stride", AttentionStride), ("k_stride", AttentionStride),
                ("v_stride", AttentionStride), ("o_stride", AttentionStride), ("do_stride", AttentionStride), ("dq_stride", AttentionStride),
                ("dk_stride", AttentionStride), ("dv_stride", AttentionStride), ("scale", c_float), ("window_left", c_uint32),
                ("window_right", c_uint32), ("workspace", c_uint64), ("softcap", c_float), ("cu_queries", c_uint64), ("cu_keys", c_uint64),
                ("total_queries", c_uint32), ("total_keys", c_uint32)]


class AttentionBackwardPlan(Structure):
    of_c = "cptx_attention_backward_plan"
    _fields_ = [("threads", c_uint32), ("smem", c_uint32), ("dim", c_uint32), ("grid", c_uint32), ("workspace", c_uint64),
                ("flop", ctypes.c_double)]


class AttentionDecodeOpt(Options):
    of_c, more = "cptx_attention_decode_opt", True
    _fields_ = [("size", c_uint32), ("in", c_int), ("out", c_int), ("dim", c_uint32), ("dim_v", c_uint32), ("causal", c_bool),
                ("window", c_bool), ("softcap", c_bool), ("paged", c_bool), ("lse", c_bool), ("rows", c_uint32), ("bk", c_uint32),
                ("warps", c_uint32), ("stages", c_uint32), ("overlap", c_bool), ("name", c_char_p), ("mla", c_bool)]


class AttentionDecodeProblem(Options):
    of_c, more = "cptx_attention_decode_problem", True
    _fields_ = [("size", c_uint32), ("batch", c_uint32), ("heads", c_uint32), ("kv_heads", c_uint32), ("queries", c_uint32),
                ("keys", c_uint32), ("total_keys", c_uint64), ("q", c_uint64), ("k", c_uint64), ("v", c_uint64), ("o", c_uint64),
                ("lse", c_uint64), ("lengths", c_uint64), ("q_stride", AttentionStride), ("k_stride", AttentionStride),
                ("v_stride", AttentionStride), ("o_stride", AttentionStride), ("pages", c_uint64), ("page", c_uint32),
                ("page_pitch", c_uint32), ("scale", c_float), ("softcap", c_float), ("window_left", c_uint32), ("splits", c_uint32),
                ("workspace", c_uint64)]


# enum cptx_tensor_kind
NONE, DL, MANAGED, VERSIONED, OBJECT, INT, UINT, FLOAT = range(8)
CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA

FUNCTIONS = {
    "cptx_version": (c_char_p, []),
    "cptx_code_name": (c_char_p, [c_int]),
    "cptx_mod_find": (c_int, [c_char_p]),
    "cptx_mod_at_": (c_bool, [c_size_t, POINTER(ModInfo), c_size_t]),
    "cptx_field_at_": (c_bool, [c_size_t, c_size_t, POINTER(FieldInfo), c_size_t]),
    "cptx_python_call_at": (c_char_p, [c_size_t]),
    "cptx_module_new": (c_void_p, [c_void_p]),
    "cptx_module_destroy": (None, [c_void_p]),
    "cptx_module_error": (POINTER(ErrorInfo), [c_void_p]),
    "cptx_module_size": (c_size_t, [c_void_p]),
    "cptx_kernel_begin_": (c_void_p, [c_void_p, Site, c_char_p, POINTER(KernelOpt)]),
    "cptx_kernel_dyn_smem": (c_uint32, [c_void_p]),
    "cptx_func_begin_": (c_void_p, [c_void_p, Site, c_char_p, c_int]),
    "cptx_global_": (Val, [c_void_p, Site, c_int, c_uint32, c_char_p, POINTER(GlobalOpt)]),
    "cptx_emit": (c_void_p, [c_void_p, c_char_p, POINTER(EmitOpt), POINTER(ErrorInfo)]),
    "cptx_ptx_text": (c_void_p, [c_void_p]),
    "cptx_ptx_size": (c_size_t, [c_void_p]),
    "cptx_ptx_destroy": (None, [c_void_p]),
    "cptx_device_load_": (c_void_p, [Site, c_void_p, c_void_p, POINTER(LoadOpt), POINTER(ErrorInfo)]),
    "cptx_tensor_type_at_": (c_bool, [c_size_t, POINTER(TensorTypeInfo), c_size_t]),
    "cptx_target_find": (c_void_p, [c_char_p]),
    "cptx_gemm_mma_of": (c_int, [c_void_p]),
    "cptx_gemm_runner_new": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_gemm_runner_destroy": (None, [c_void_p]),
    "cptx_gemm_run": (c_bool, [c_void_p, POINTER(GemmOpt), POINTER(GemmProblem), c_void_p, POINTER(ErrorInfo)]),
    "cptx_gemm_runner_set_tune": (c_bool, [c_void_p, POINTER(TuneUse), POINTER(ErrorInfo)]),
    "cptx_emu_map": (c_uint64, [c_void_p, c_void_p, c_size_t, POINTER(ErrorInfo)]),
    "cptx_cache_open": (c_void_p, [c_void_p, POINTER(ErrorInfo)]),
    "cptx_cache_close": (None, [c_void_p]),
    "cptx_stream_adopt": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_stream_destroy": (None, [c_void_p]),
    "cptx_type_bits": (ctypes.c_uint, [c_int]),
    "cptx_type_find": (c_int, [c_char_p]),
    "cptx_type_name": (c_char_p, [c_int]),
    "cptx_attention_mma_of": (c_int, [c_void_p]),
    "cptx_attention_runner_new": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_attention_runner_destroy": (None, [c_void_p]),
    "cptx_attention_run": (c_bool, [c_void_p, POINTER(AttentionOpt), POINTER(AttentionProblem), c_void_p, POINTER(ErrorInfo)]),
    "cptx_attention_backward_runner_new": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_attention_backward_runner_destroy": (None, [c_void_p]),
    "cptx_attention_backward_check_problem_": (c_bool, [POINTER(AttentionBackwardOpt), POINTER(AttentionBackwardProblem),
                                                        POINTER(AttentionBackwardPlan), c_size_t, POINTER(ErrorInfo)]),
    "cptx_attention_backward_run": (c_bool, [c_void_p, POINTER(AttentionBackwardOpt), POINTER(AttentionBackwardProblem), c_void_p,
                                             POINTER(ErrorInfo)]),
    "cptx_attention_decode_runner_new": (c_void_p, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "cptx_attention_decode_runner_destroy": (None, [c_void_p]),
    "cptx_attention_decode_workspace": (c_uint64, [c_void_p, POINTER(AttentionDecodeOpt), POINTER(AttentionDecodeProblem),
                                                   POINTER(ErrorInfo)]),
    "cptx_attention_decode_run": (c_bool, [c_void_p, POINTER(AttentionDecodeOpt), POINTER(AttentionDecodeProblem), c_void_p,
                                           POINTER(ErrorInfo)]),
    "cptx_rows_kernel_find": (c_int, [c_char_p]),
    "cptx_rows_kernel_name": (c_char_p, [c_int]),
    "cptx_rows_operand_name": (c_char_p, [c_int]),
    "cptx_rows_check_": (c_bool, [POINTER(RowsOpt), c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, POINTER(ErrorInfo)]),
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

python_value_class, python_builder, python_value, python_calls, python_line = (
    getattr(_with_gil, "cptx_python_" + _name) for _name in ("value_class", "builder", "value", "calls", "line"))
python_value_class.restype = python_builder.restype = python_value.restype = python_calls.restype = ctypes.py_object
python_value.argtypes = [ctypes.py_object, Val]
python_value_class.argtypes = [POINTER(ErrorInfo)]
python_builder.argtypes = [POINTER(BuilderOpt), POINTER(ErrorInfo)]
python_calls.argtypes = [ctypes.py_object, c_void_p, c_void_p, ctypes.py_object, POINTER(ErrorInfo)]
python_line.restype, python_line.argtypes = Site, [ctypes.py_object, ctypes.c_uint]

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
