"""Runs Tare engines from Python: ctypes over libtare_rt's C API (runtime/tare.h), NumPy arrays in and out.

In: an engine file made by `tare compile`. Out: results as arrays. Engines contain machine code: load only what you trust.

    import numpy as np, tare
    engine = tare.Engine("model.tare")
    context = tare.Context(engine, threads=2)
    results = context.run({"input_ids": np.zeros((1, 8), np.int64)})   # {name: array}

The library is found by $TARE_LIBRARY, beside this package, in build/lib of the source tree, or by the system's loader.
"""
import ctypes
import os

import numpy as np

from . import _library as _c
from ._library import TareError

__all__ = ["Context", "Engine", "TareError"]


class Engine:
    """An engine file; any number of contexts and threads may share it. Raises TareError (code, step, tensor, offset)."""

    def __init__(self, path, paranoid=False, max_level=None, cuda_device=0):
        options = _c.Options(ctypes.sizeof(_c.Options), None if max_level is None else max_level.encode(), int(paranoid), None, None, cuda_device)
        error = _c.Error()
        self._handle = _c.library().tare_engine_open(os.fsencode(path), ctypes.byref(options), ctypes.byref(error))
        if not self._handle:
            raise TareError(error)

    def close(self):
        """Contexts made before keep working."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            _c.library().tare_engine_close(handle)

    __del__ = close

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    @property
    def level(self):
        """The CPU level that is used here, e.g. "x86-64-v4"; "" when the engine has no code for this CPU."""
        return _c.library().tare_engine_level(self._handle).decode()

    def _infos(self, count, info):
        result = []
        for i in range(count(self._handle)):
            entry = _c.TensorInfo()
            _c.check(info, self._handle, i, ctypes.byref(entry))
            result.append({"name": entry.name.decode(), "dtype": _c.DTYPES[entry.dtype], "dims": [entry.dims[d].decode() for d in range(entry.rank)],
                           "optional": bool(entry.optional), "default": entry.default_kind.decode() if entry.default_kind else ""})
        return result

    @property
    def inputs(self):
        """A list of {name, dtype, dims, optional, default}; dims are numbers or formulas as text."""
        return self._infos(_c.library().tare_engine_input_count, _c.library().tare_engine_input_info)

    @property
    def outputs(self):
        return self._infos(_c.library().tare_engine_output_count, _c.library().tare_engine_output_info)

    def section(self, name):
        """Bytes of "configuration", "report", "certificate", "provenance" or "plan"; None when the engine has none."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        if not _c.library().tare_engine_section(self._handle, name.encode(), ctypes.byref(data), ctypes.byref(size)):
            return None
        return ctypes.string_at(data, size.value)


class Context:
    """One request's state. One thread at a time, except for cancel()."""

    def __init__(self, engine, threads=0, profile=False):
        options = _c.ContextOptions(ctypes.sizeof(_c.ContextOptions), threads, int(profile), None, None)
        error = _c.Error()
        self._outputs = [entry["name"] for entry in engine.outputs]
        self._linked = set()
        self._inputs = {}
        self._wanted = []
        self._handle = _c.library().tare_context_create(engine._handle, ctypes.byref(options), ctypes.byref(error))
        if not self._handle:
            raise TareError(error)

    def __del__(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            _c.library().tare_context_destroy(handle)

    def run(self, inputs, outputs=None):
        """Runs on a {name: array} of all inputs that are given (others take their defaults) and returns {name: array} (copies) of `outputs`, all by default.

        With `outputs` only these are computed (and the states that are linked)."""
        for name in set(self._inputs) - set(inputs):
            _c.check(_c.library().tare_context_set_input, self._handle, name.encode(), None)
            del self._inputs[name]
        for name, array in inputs.items():
            array = np.asarray(array, order="C")
            tensor = _c.tensor_of(array, name)
            _c.check(_c.library().tare_context_set_input, self._handle, name.encode(), ctypes.byref(tensor))
            self._inputs[name] = array  # kept alive while the runtime may read it
        wanted = [name.encode() for name in outputs or ()]
        if wanted != self._wanted:
            _c.check(_c.library().tare_context_request_outputs, self._handle, (ctypes.c_char_p * len(wanted))(*wanted), len(wanted))
            self._wanted = wanted
        _c.check(_c.library().tare_context_run, self._handle)
        return {name: self._output(name) for name in (outputs or self._outputs) if name not in self._linked}

    def _output(self, name):
        tensor = _c.Tensor()
        _c.check(_c.library().tare_context_get_output, self._handle, name.encode(), ctypes.byref(tensor))
        shape = tuple(tensor.shape[i] for i in range(tensor.rank))
        data = ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""
        return np.frombuffer(bytearray(data), _c.DTYPES[tensor.dtype]).reshape(shape)

    def link_state(self, input_name, output_name, capacity):
        """The context keeps this pair (a KV cache) and appends to it in place, with room for `capacity` entries."""
        _c.check(_c.library().tare_context_link_state, self._handle, input_name.encode(), output_name.encode(), capacity)
        (self._linked.add if capacity else self._linked.discard)(output_name)

    def reset(self):
        """A new request: linked states are empty again."""
        _c.library().tare_context_reset(self._handle)

    def cancel(self):
        """From any thread: the run in progress, or else the next one, ends with TareError of code 8."""
        _c.library().tare_context_cancel(self._handle)

    def check_stats(self):
        """What the fidelity checks of the last run did (docs/checks.md): a dict of checks, evaluations_dense, evaluations_sparse, anchor_hits, flops_saved, milliseconds_saved, fidelity_score.

        The score is None when it was not measured at compile."""
        stats = _c.CheckStats()
        _c.check(_c.library().tare_context_check_stats, self._handle, ctypes.byref(stats))
        result = {name: getattr(stats, name) for name, _ in stats._fields_}
        return {**result, "fidelity_score": None if stats.fidelity_score < 0 else stats.fidelity_score}

    def check_memory(self):
        """{weight_bytes, run_bytes} of the fidelity checks at the shapes of the last run."""
        memory = _c.CheckMemory()
        _c.check(_c.library().tare_context_check_memory, self._handle, ctypes.byref(memory))
        return {name: getattr(memory, name) for name, _ in memory._fields_}

    def check_bits(self, check, element=0):
        """The word of bits that a check carries into the next run of this request, for one batch element: bit k is head k."""
        bits = ctypes.c_uint32()
        _c.check(_c.library().tare_context_check_bits, self._handle, check, element, ctypes.byref(bits))
        return bits.value

    def trace_checks(self, on=True):
        """The next runs keep the bits of every token, for check_trace()."""
        _c.check(_c.library().tare_context_trace_checks, self._handle, int(on))

    def check_trace(self, check):
        """Of the last run: {heads, bits: uint32 [batch * tokens], evaluated: int64 rows at which the check ran, None when at all}."""
        trace = _c.CheckTrace()
        _c.check(_c.library().tare_context_check_trace, self._handle, check, ctypes.byref(trace))
        copied = lambda data, count, dtype: np.ctypeslib.as_array(data, (count,)).astype(dtype) if count else np.zeros(0, dtype)  # noqa: E731
        evaluated = copied(trace.evaluated, trace.evaluated_count, np.int64) if trace.evaluated_count >= 0 else None
        return {"heads": trace.heads, "bits": copied(trace.bits, trace.rows, np.uint32), "evaluated": evaluated}

    def profile(self):
        """Chrome trace (JSON text) of the last run; the context must have been made with profile=True."""
        return self._text(_c.library().tare_context_profile)

    def metrics(self):
        """Metrics in Prometheus text format."""
        return self._text(_c.library().tare_context_metrics)

    def _text(self, function):
        buffer = ctypes.create_string_buffer(function(self._handle, None, 0) + 1)
        function(self._handle, buffer, len(buffer))
        return buffer.value.decode()
