"""The anchor scanner from Python: ctypes over libtare_anchors' C API (runtime/tare_anchors.h). Standard library only.

In: text as str or bytes (ill-formed UTF-8 is fine). Out: anchors with offsets, or the hashed anchor vector. Errors: AnchorError when memory runs out.

    import tare_anchors
    for a in tare_anchors.scan(open("contract.txt", "rb").read()):
        print(a.type, a.value, a.byte, a.char)

The library is found by $TARE_ANCHORS_LIBRARY, beside this file, in build/lib of the source tree, or by the system's loader.
"""
import collections
import ctypes
import functools
import os
import pathlib

Anchor = collections.namedtuple("Anchor", "type value byte char")  # byte and char: half-open (begin, end)
TYPES = ("heading", "clause", "table", "cross_reference", "annex", "outline")
VECTOR = 128


class AnchorError(RuntimeError):
    """The scanner's message; `code` is its tare_status."""

    def __init__(self, error):
        super().__init__(error.message.decode(errors="replace"))
        self.code = error.code


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 768), ("step", ctypes.c_char * 128), ("tensor", ctypes.c_char * 128), ("offset", ctypes.c_int64)]


class _Anchor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_char_p), ("byte_begin", ctypes.c_uint64), ("byte_end", ctypes.c_uint64), ("char_begin", ctypes.c_uint64), ("char_end", ctypes.c_uint64)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("outline", ctypes.c_int), ("no_network", ctypes.c_int)]


class Summary(ctypes.Structure):
    """Counts of a scan (tare_anchor_summary)."""
    _fields_ = [("bytes", ctypes.c_uint64), ("chars", ctypes.c_uint64), ("anchors", ctypes.c_uint64), ("invalid_utf8", ctypes.c_uint64), ("control_characters", ctypes.c_uint64),
                ("invalid_offsets", ctypes.c_uint64 * 16), ("control_offsets", ctypes.c_uint64 * 16), ("conservative", ctypes.c_int), ("triggers", ctypes.c_uint64),
                ("asked", ctypes.c_uint64), ("proposed", ctypes.c_uint64), ("steps", ctypes.c_uint64)]


@functools.cache
def _library():
    here = pathlib.Path(__file__).resolve()
    candidates = [os.environ.get("TARE_ANCHORS_LIBRARY"), here.parent / "libtare_anchors.so", here.parents[2] / "build" / "lib" / "libtare_anchors.so", "libtare_anchors.so.0"]
    lib = ctypes.CDLL(str(next(c for c in candidates if c and (str(c).startswith("lib") or os.path.exists(c)))))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    functions = {"tare_scan_anchors": (pointer, [ctypes.c_char_p, size, pointer, pointer]), "tare_anchors_count": (size, [pointer]), "tare_anchors_get": (ctypes.POINTER(_Anchor), [pointer, size]),
                 "tare_anchors_summary": (ctypes.POINTER(Summary), [pointer]), "tare_anchors_destroy": (None, [pointer]), "tare_anchor_vector": (ctypes.c_int, [ctypes.c_char_p, size, pointer, pointer, pointer])}
    for name, (result, arguments) in functions.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def _bytes(text):
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def scan(text, outline=False, network=True, summary=False):
    """A list of Anchor in text order; with `summary` a pair (list, Summary). `outline` adds bare labels, `network=False` asks the grammar alone."""
    data, error, lib = _bytes(text), _Error(), _library()
    options = _Options(ctypes.sizeof(_Options), int(outline), int(not network))
    handle = lib.tare_scan_anchors(data, len(data), ctypes.byref(options), ctypes.byref(error))
    if not handle:
        raise AnchorError(error)
    try:
        found = []
        for i in range(lib.tare_anchors_count(handle)):
            a = lib.tare_anchors_get(handle, i).contents
            found.append(Anchor(TYPES[a.type], a.value.decode("utf-8", "replace"), (a.byte_begin, a.byte_end), (a.char_begin, a.char_end)))
        return (found, Summary.from_buffer_copy(lib.tare_anchors_summary(handle).contents)) if summary else found
    finally:
        lib.tare_anchors_destroy(handle)


def vector(text):
    """The hashed anchor vector: (weight, list of 128 numbers whose Euclidean norm is the weight). Weight 0.8 when the text names an anchor, 0.3 when not, 0 when it is empty."""
    data, error = _bytes(text), _Error()
    numbers, weight = (ctypes.c_float * VECTOR)(), ctypes.c_float()
    if _library().tare_anchor_vector(data, len(data), numbers, ctypes.byref(weight), ctypes.byref(error)) != 0:
        raise AnchorError(error)
    return weight.value, list(numbers)
