"""Builds random ONNX graphs node by node, each node evaluated at once by ONNX Runtime at every binding of the symbolic dims. In: a random generator, an
opset, a float type. Out: a model for the compiler, the same model in f32 for the oracle, inputs per binding. Holds: values, shapes and types of every
tensor are known while the graph grows, so that generators only have to propose nodes: what ONNX Runtime refuses, or what grows beyond bounds, is dropped.
"""
import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

DTYPES = {"T": np.float32, "f32": np.float32, "i64": np.int64, "i32": np.int32, "bool": np.bool_, "u8": np.uint8, "i8": np.int8}
CODES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i32": TensorProto.INT32, "bool": TensorProto.BOOL, "u8": TensorProto.UINT8, "i8": TensorProto.INT8}
FLOATS = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
LIMIT = 1e4  # larger floats are dropped: a comparison would measure overflow
ELEMENTS = 60000


def to_storage(array, kind):
    """The nearest values that `kind` (f32, f16, bf16) can hold, as f32."""
    if kind == "f16":
        return array.astype(np.float16).astype(np.float32)
    if kind == "bf16":
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).reshape(array.shape)
    return array.astype(np.float32)


@dataclasses.dataclass
class Tensor:
    """name, kind ("T" is the float type under test), one array per binding; `exact`: free of rounding, so that comparisons of it are stable."""
    name: str
    kind: str
    values: list
    exact: bool = False
    constant: bool = False
    used: int = 0

    @property
    def rank(self):
        return self.values[0].ndim

    @property
    def dims(self):
        """Static sizes, -1 for a dim that differs between bindings."""
        return [int(s[0]) if len(set(s)) == 1 else -1 for s in zip(*(v.shape for v in self.values))]

    @property
    def floating(self):
        return self.kind in ("T", "f32")


class Graph:
    """The growing model. `r` is a random.Random; `symbols` maps a dim's name to its size in each binding."""

    def __init__(self, r, opset, symbols, storage="f32"):
        self.r, self.opset, self.symbols, self.storage = r, opset, symbols, storage
        self.bindings = len(next(iter(symbols.values())))
        self.numbers = np.random.default_rng(r.getrandbits(32))
        self.nodes, self.inputs, self.tensors, self.initializers = [], [], [], {}
        self.scope, self.dropped, self.made = "", [], 0

    def name(self, base):
        self.made += 1
        return f"{self.scope}{base}_{self.made}"

    # --- tensors ---
    def random(self, kind, shape, low=-2.0, high=2.0, quarters=False):
        if kind in ("T", "f32"):
            array = self.numbers.uniform(low, high, shape).astype(np.float32)
            array = np.round(array * 4) / 4 if quarters else array
            return to_storage(np.asarray(array, np.float32), self.storage if kind == "T" else "f32")
        if kind == "bool":
            return self.numbers.integers(0, 2, shape).astype(np.bool_)
        return np.asarray(self.numbers.integers(int(low), int(high) + 1, shape), DTYPES[kind])

    def input(self, kind, dims, low=-2.0, high=2.0, name=None, quarters=True):
        """dims: numbers and names of symbols."""
        shapes = [tuple(d if isinstance(d, int) else self.symbols[d][b] for d in dims) for b in range(self.bindings)]
        tensor = Tensor(name or f"in{len(self.inputs)}", kind, [self.random(kind, s, low, high, quarters) for s in shapes], exact=True)
        self.inputs.append((tensor, list(dims)))
        self.tensors.append(tensor)
        return tensor

    def constant(self, array, kind=None, name=None):
        array = np.asarray(array)
        kind = kind or {"f": "T", "i": "i64", "b": "bool", "u": "u8"}[array.dtype.kind]
        array = np.asarray(array, DTYPES[kind])
        if kind == "T":
            array = to_storage(array, self.storage)
        tensor = Tensor(name or self.name("c"), kind, [array] * self.bindings, exact=True, constant=True)
        self.initializers[tensor.name] = tensor
        return tensor

    def weight(self, shape, scale=None, name=None, kind="T"):
        scale = scale or 1.0 / max(1, shape[0] if len(shape) > 1 else 4) ** 0.5
        return self.constant(self.random(kind, shape, -scale * 1.7, scale * 1.7), kind, name or self.name("w"))

    # --- nodes ---
    def _session(self, node, inputs):
        graph = helper.make_graph([node], "one", [helper.make_tensor_value_info(t.name, CODES["f32" if t.kind == "T" else t.kind], [None] * t.rank)
                                                  for t in inputs if not t.constant],
                                  [helper.make_empty_tensor_value_info(o) for o in node.output if o],
                                  [numpy_helper.from_array(t.values[0], t.name) for t in inputs if t.constant])
        return session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8))

    def op(self, op_type, inputs, outputs=1, exact=None, bound=LIMIT, **attributes):
        """Adds a node; None (and nothing added) when ONNX Runtime refuses it or a result is out of bounds. inputs: Tensor, None for an absent operand."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        cast_to = attributes.pop("cast_to", None)
        if cast_to:
            attributes["to"] = CODES["f32" if cast_to == "T" else cast_to]
        own = self.name(op_type)
        names = [f"{own}.{i}" for i in range(outputs)]
        node = helper.make_node(op_type, [t.name if t else "" for t in inputs], names, name=own, **attributes)
        given = list({t.name: t for t in inputs if t}.values())
        try:
            run = self._session(node, given)
            results = [run.run(None, {t.name: t.values[b] for t in given if not t.constant}) for b in range(self.bindings)]
        except Exception as error:  # noqa: BLE001  the proposal was no valid node
            self.dropped.append(f"{op_type}: {str(error)[:160]}")
            return None
        made = []
        for i in range(outputs):
            values = [result[i] for result in results]
            kind = {"f": "T", "b": "bool", "i": "i64", "u": "u8"}[values[0].dtype.kind]
            if values[0].dtype == np.int32:
                kind = "i32"
            elif values[0].dtype == np.int8:
                kind = "i8"
            if kind == "T":
                floats = [t.kind for t in inputs if t and t.floating]
                kind = cast_to or (floats[0] if floats else "f32" if op_type == "ConstantOfShape" and not attributes else "T")
                if any(v.size and (not np.isfinite(v).all() or np.abs(v).max() > bound) for v in values):
                    self.dropped.append(f"{op_type}: out of bounds")
                    return None
            if any(v.size > ELEMENTS for v in values) or values[0].ndim > 6:
                self.dropped.append(f"{op_type}: too large")
                return None
            made.append(Tensor(names[i], kind, values, exact=all(t.exact for t in given) if exact is None else exact))
        for t in given:
            t.used += 1
        self.nodes.append((node, cast_to))
        self.tensors += made
        return made[0] if outputs == 1 else made

    def must(self, op_type, inputs, **options):
        """For written-out blocks, whose nodes are all meant to be valid; a node out of bounds ends the block."""
        made = self.op(op_type, inputs, **options)
        if made is None:
            raise Dropped(self.dropped[-1])
        return made

    # --- the models ---
    def finish(self, outputs):
        """outputs: tensors. Returns (model under test, f32 oracle model, feeds per binding, oracle's names in order)."""
        return self._model(outputs, self.storage), self._model(outputs, "f32"), [{t.name: t.values[b] for t, _ in self.inputs} for b in range(self.bindings)]

    def _model(self, outputs, storage):
        code = lambda kind: FLOATS[storage] if kind == "T" else CODES[kind]  # noqa: E731
        nodes = []
        for node, cast_to in self.nodes:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            if cast_to == "T":
                next(a for a in copy.attribute if a.name == "to").i = FLOATS[storage]
            if copy.op_type == "ConstantOfShape":
                for a in copy.attribute:
                    if a.t.data_type == TensorProto.FLOAT:
                        a.t.CopyFrom(tensor_of(a.t.name, numpy_helper.to_array(a.t), storage))
            nodes.append(copy)
        used = {n for node in nodes for n in node.input} | {t.name for t in outputs}
        initializers = [tensor_of(t.name, t.values[0], storage if t.kind == "T" else t.kind) for t in self.initializers.values() if t.name in used]
        graph = helper.make_graph(nodes, "fuzz", [helper.make_tensor_value_info(t.name, code(t.kind), dims) for t, dims in self.inputs],
                                  [helper.make_tensor_value_info(t.name, code(t.kind), [d if d >= 0 else None for d in t.dims]) for t in outputs], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset <= 18 else 10)


class Dropped(Exception):
    """A block could not be finished."""


def tensor_of(name, array, kind):
    """An initializer; bf16 as its raw upper halves."""
    if kind == "bf16":
        halves = (np.ascontiguousarray(to_storage(array, "bf16"), np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, halves.tobytes(), raw=True)
    return numpy_helper.from_array(np.ascontiguousarray(array.astype(np.float16) if kind == "f16" else array).reshape(array.shape), name)


def session(model, optimise=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL if optimise else onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
