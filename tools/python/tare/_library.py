"""The C declarations of runtime/tare.h for ctypes, and how the library is found. In: nothing. Out: library(), structures, check(). Must hold: the same
layout as tare.h; a test runs an engine through it.
"""
import ctypes
import functools
import os
import pathlib

import numpy as np

DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64", 12: "uint32",
          13: "uint64", 16: "uint16"}  # bfloat16 has no NumPy type: its bits
_NUMBERS = {np.dtype(name): number for number, name in DTYPES.items() if number != 16}


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 768), ("step", ctypes.c_char * 128), ("tensor", ctypes.c_char * 128), ("offset", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dims", ctypes.c_char_p * 8), ("optional", ctypes.c_int), ("default_kind", ctypes.c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("max_level", ctypes.c_char_p), ("paranoid", ctypes.c_int), ("verify_signature", ctypes.c_void_p), ("verify_user", ctypes.c_void_p), ("cuda_device", ctypes.c_int)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("threads", ctypes.c_int), ("profile", ctypes.c_int), ("parallel", ctypes.c_void_p), ("parallel_user", ctypes.c_void_p)]


class CheckStats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ["checks", "evaluations_dense", "evaluations_sparse", "anchor_hits", "flops_saved"]] + [("milliseconds_saved", ctypes.c_double), ("fidelity_score", ctypes.c_double)]


class CheckMemory(ctypes.Structure):
    _fields_ = [("weight_bytes", ctypes.c_int64), ("run_bytes", ctypes.c_int64)]


class CheckTrace(ctypes.Structure):
    _fields_ = [("heads", ctypes.c_int64), ("rows", ctypes.c_int64), ("bits", ctypes.POINTER(ctypes.c_uint32)), ("evaluated", ctypes.POINTER(ctypes.c_int64)), ("evaluated_count", ctypes.c_int64)]


class TareError(RuntimeError):
    """What the runtime reported: str() is the message, `code` the status (tare.h), `step` and `tensor` source names or ""."""

    def __init__(self, error):
        super().__init__(error.message.decode(errors="replace"))
        self.code, self.step, self.tensor, self.offset = error.code, error.step.decode(errors="replace"), error.tensor.decode(errors="replace"), error.offset


@functools.cache
def library():
    """libtare_rt, loaded once."""
    here = pathlib.Path(__file__).resolve()
    candidates = [os.environ.get("TARE_LIBRARY"), here.parent / "libtare_rt.so", here.parents[3] / "build" / "lib" / "libtare_rt.so", "libtare_rt.so.0"]
    found = next((c for c in candidates if c and (str(c).startswith("lib") or os.path.exists(c))), None)
    lib = ctypes.CDLL(str(found))
    pointer, text, size, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
    functions = {
        "tare_engine_open": (pointer, [text, pointer, pointer]), "tare_engine_close": (None, [pointer]), "tare_engine_level": (text, [pointer]),
        "tare_engine_input_count": (size, [pointer]), "tare_engine_output_count": (size, [pointer]),
        "tare_engine_input_info": (number, [pointer, size, pointer, pointer]), "tare_engine_output_info": (number, [pointer, size, pointer, pointer]),
        "tare_engine_section": (number, [pointer, text, pointer, pointer]), "tare_context_create": (pointer, [pointer, pointer, pointer]),
        "tare_context_destroy": (None, [pointer]), "tare_context_set_input": (number, [pointer, text, pointer, pointer]),
        "tare_context_request_outputs": (number, [pointer, ctypes.POINTER(text), size, pointer]), "tare_context_run": (number, [pointer, pointer]), "tare_context_get_output": (number, [pointer, text, pointer, pointer]),
        "tare_context_link_state": (number, [pointer, text, text, ctypes.c_int64, pointer]), "tare_context_reset": (number, [pointer]),
        "tare_context_check_stats": (number, [pointer, pointer, pointer]), "tare_context_check_memory": (number, [pointer, pointer, pointer]),
        "tare_context_check_bits": (number, [pointer, size, size, pointer, pointer]), "tare_context_trace_checks": (number, [pointer, number, pointer]),
        "tare_context_check_trace": (number, [pointer, size, pointer, pointer]),
        "tare_context_cancel": (None, [pointer]), "tare_context_profile": (size, [pointer, pointer, size]), "tare_context_metrics": (size, [pointer, pointer, size])}
    for name, (result, arguments) in functions.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def check(function, *arguments):
    """Calls with a tare_error behind the arguments; raises TareError unless it returns 0."""
    error = Error()
    if function(*arguments, ctypes.byref(error)) != 0:
        raise TareError(error)


def tensor_of(array, name):
    """A tare_tensor over an array's memory; the array must outlive its use. TypeError for a dtype that engines do not have."""
    if array.dtype not in _NUMBERS:
        raise TypeError(f"input '{name}' has dtype {array.dtype}, which engines do not take")
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    return Tensor(_NUMBERS[array.dtype], array.ndim, shape, array.ctypes.data, array.nbytes)
