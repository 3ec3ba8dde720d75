"""Proposes single nodes of every op that `tare --supported` lists, with random attributes and operands. In: a Graph. Out: the new tensors, or None when
nothing fits. Holds: what a proposal may get wrong (a bad axis, a shape that does not fit) ONNX Runtime refuses, see graph.py.
"""
import numpy as np

UNARY = {"Abs": 7, "Neg": 7, "Exp": 7, "Sqrt": 7, "Sin": 7, "Cos": 7, "Tan": 7, "Tanh": 7, "Sigmoid": 7, "Erf": 9, "Relu": 7, "Softplus": 7, "Softsign": 7,
         "Reciprocal": 7, "Elu": 7, "Selu": 7, "LeakyRelu": 7, "HardSigmoid": 7, "Celu": 12, "ThresholdedRelu": 10, "HardSwish": 14, "Mish": 18, "Gelu": 20,
         "Sinh": 9, "Cosh": 9, "Atan": 7, "Log": 7, "Asin": 7, "Acos": 7, "Identity": 7, "Dropout": 7}
STEPS = {"Floor": 7, "Ceil": 7, "Round": 11, "Sign": 9}
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "PRelu"]
REDUCE = ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum"]


def pick(g, test=lambda t: True):
    """A tensor, later ones more often."""
    fitting = [t for t in g.tensors if test(t)]
    if not fitting:
        return None
    return fitting[max(g.r.randrange(len(fitting)), g.r.randrange(len(fitting)))]


def some_float(g, min_rank=0):
    return pick(g, lambda t: t.floating and t.rank >= min_rank)


def partner(g, a, low=-2.0, high=2.0):
    """Something that broadcasts with `a`, of its kind: another tensor, or a constant over some of its trailing static dims."""
    others = [t for t in g.tensors if t.kind == a.kind and t is not a and all(x == y or 1 in (x, y) for x, y in zip(t.dims[::-1], a.dims[::-1]))]
    if others and g.r.random() < 0.5:
        return g.r.choice(others[-8:])
    dims = a.dims[g.r.randint(0, a.rank):]
    shape = [d if d >= 0 and g.r.random() < 0.7 else 1 for d in dims]
    if g.r.random() < 0.15:
        shape = [1] + shape if g.r.random() < 0.5 else [2] + [1] * a.rank
    return g.constant(g.random(a.kind, shape, low, high), a.kind)


def unary(g):
    name = g.r.choice([n for n, since in UNARY.items() if since <= g.opset])
    x = some_float(g)
    if x is None:
        return None
    attributes, inputs = {}, [x]
    if name in ("Elu", "LeakyRelu", "Celu", "ThresholdedRelu", "Selu", "HardSigmoid") and g.r.random() < 0.6:
        attributes["alpha"] = g.r.choice([0.1, 0.5, 1.5, 2.0])
    if name == "Selu" and g.r.random() < 0.5:
        attributes["gamma"] = 1.2
    if name == "HardSigmoid" and g.r.random() < 0.5:
        attributes["beta"] = 0.4
    if name == "Gelu" and g.r.random() < 0.5:
        attributes["approximate"] = "tanh"
    return g.op(name, inputs, exact=x.exact and name in ("Abs", "Neg", "Relu", "Identity", "Dropout"), bound=200.0, **attributes)


def steps(g):
    x = pick(g, lambda t: t.floating and t.exact)
    name = g.r.choice([n for n, since in STEPS.items() if since <= g.opset])
    return x and g.op(name, [x])


def binary(g):
    a = some_float(g)
    if a is None:
        return None
    name = g.r.choice(BINARY)
    b = partner(g, a, *((0.5, 2.0) if name in ("Div", "Pow") else (-2.0, 2.0)))
    if name == "Pow":
        a = g.op("Abs", [a]) if g.r.random() < 0.5 else a
        b = g.constant(g.r.choice([2.0, 3.0, 0.5, -1.0, 1.0, 0.0]), a.kind if a else None) if g.r.random() < 0.7 else b
        if a is None:
            return None
    pair = [a, b] if g.r.random() < 0.6 or name == "PRelu" else [b, a]
    if name in ("Sum", "Max", "Min", "Mean") and g.r.random() < 0.4:
        pair.append(partner(g, a))
    simple = name in ("Add", "Sub", "Max", "Min") and all(t.exact for t in pair)
    return g.op(name, pair, exact=simple and name in ("Max", "Min"), bound=500.0)


def integer(g):
    a = pick(g, lambda t: t.kind in ("i64", "i32") and not t.constant)
    if a is None:
        return None
    name = g.r.choice(["Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Max", "Min", "Cast", "Sign", "Pow"])
    if name == "Cast":
        return g.op("Cast", [a], cast_to=g.r.choice(["T", "f32", "bool", "i32", "i64"]))
    if name in ("Neg", "Abs", "Sign"):
        return g.op(name, [a])
    low, high = (1, 5) if name in ("Div", "Mod") else (0, 3) if name == "Pow" else (-4, 4)
    b = g.constant(g.random(a.kind, [] if g.r.random() < 0.5 else [d if d > 0 else 1 for d in a.dims[-1:]], low, high), a.kind)
    if name in ("Max", "Min") and g.opset < 12 or name == "Pow" and g.opset < 12:
        return None
    made = g.op(name, [a, b], fmod=1 if name == "Mod" and g.r.random() < 0.3 else None)
    if made and max(np.abs(v).max() if v.size else 0 for v in made.values) > 2**24:
        g.tensors.remove(made)
    return made


def compare(g):
    a = pick(g, lambda t: t.exact and t.kind in ("T", "f32", "i64", "i32"))
    if a is None:
        return None
    name = g.r.choice(["Less", "Greater", "Equal"] + (["LessOrEqual", "GreaterOrEqual"] if g.opset >= 12 else []))
    low, high = (-2, 2)
    shape = [d if d >= 0 and g.r.random() < 0.5 else 1 for d in a.dims[g.r.randint(0, a.rank):]]
    b = g.constant(g.random(a.kind, shape, low, high, quarters=True), a.kind)
    return g.op(name, [a, b] if g.r.random() < 0.5 else [b, a])


def logic(g):
    a = pick(g, lambda t: t.kind == "bool")
    if a is None:
        return None
    name = g.r.choice(["And", "Or", "Xor", "Not", "Cast", "Where", "Where"])
    if name == "Not":
        return g.op("Not", [a])
    if name == "Cast":
        return g.op("Cast", [a], cast_to=g.r.choice(["T", "f32", "i64", "i32"]))
    if name == "Where" and g.opset >= 9:
        kind = g.r.choice(["T", "T", "f32", "i64"])
        x = pick(g, lambda t: t.kind == kind and all(p == q or 1 in (p, q) for p, q in zip(t.dims[::-1], a.dims[::-1])))
        x = x or g.constant(g.random(kind, [], -2, 2), kind)
        y = partner(g, x)
        return g.op("Where", [a] + ([x, y] if g.r.random() < 0.5 else [y, x]))
    return name != "Where" and g.op(name, [a, partner(g, a)]) or None


def nan_tests(g):
    x = some_float(g)
    return x and g.op(g.r.choice(["IsNaN"] + (["IsInf"] if g.opset >= 10 else [])), [x], exact=True) if g.opset >= 9 else None


def axes_op(g, name, x, axes, attribute_before, **attributes):
    """Axes as attribute in old opsets, as operand in new ones."""
    if axes is None:
        return g.op(name, [x], **attributes)
    if g.opset < attribute_before:
        return g.op(name, [x], axes=axes, **attributes)
    return g.op(name, [x, g.constant(np.asarray(axes, np.int64))], **attributes)


def some_axes(g, rank, count=None):
    axes = g.r.sample(range(rank), count if count is not None else g.r.randint(1, rank))
    return [a - rank if g.r.random() < 0.4 else a for a in axes]


def reduce(g):
    x = some_float(g, 1)
    name = g.r.choice(REDUCE)
    if x is None or any(0 in v.shape for v in x.values):
        return None
    if name == "ReduceLogSum":
        x = g.op("Abs", [x])
        if x is None:
            return None
    axes = None if g.r.random() < 0.15 else some_axes(g, x.rank)
    keep = g.r.choice([0, 1, None])
    before = 13 if name == "ReduceSum" else 18
    noop = 1 if axes is None and g.opset >= before and g.r.random() < 0.4 else None
    return axes_op(g, name, x, axes, before, keepdims=keep, noop_with_empty_axes=noop, exact=x.exact and name in ("ReduceMax", "ReduceMin"), bound=500.0)


def argument(g):
    x = pick(g, lambda t: t.exact and t.floating and t.rank >= 1 and all(v.size for v in t.values))
    last = g.r.choice([0, 1, None]) if g.opset >= 12 else None
    return x and g.op(g.r.choice(["ArgMax", "ArgMin"]), [x], axis=g.r.randint(-x.rank, x.rank - 1), keepdims=g.r.choice([0, 1]), select_last_index=last)


def normal(g):
    x = some_float(g, 1)
    if x is None:
        return None
    axis = g.r.randint(-x.rank, x.rank - 1)
    name = g.r.choice(["Softmax", "LogSoftmax", "LayerNormalization", "CumSum"])
    if name == "CumSum":
        return g.op(name, [x, g.constant(np.asarray(axis, np.int64))], exclusive=g.r.choice([0, 1]), reverse=g.r.choice([0, 1]), exact=False, bound=500.0) if g.opset >= 11 else None
    if name != "LayerNormalization":
        return g.op(name, [x], axis=axis if g.r.random() < 0.8 else None, exact=False)
    if g.opset < 17 or any(d < 0 for d in x.dims[axis % x.rank:]):
        return None
    shape = x.dims[axis % x.rank:]
    scale = g.constant(g.random(x.kind, shape, 0.5, 1.5), x.kind)
    bias = [g.constant(g.random(x.kind, shape, -1, 1), x.kind)] if g.r.random() < 0.7 else []
    return g.op(name, [x, scale] + bias, axis=axis, epsilon=g.r.choice([1e-5, 1e-12, 1e-3, None]), exact=False)


def transpose(g):
    x = pick(g, lambda t: t.rank >= 2)
    if x is None:
        return None
    perm = list(range(x.rank))
    g.r.shuffle(perm)
    return g.op("Transpose", [x], perm=perm if g.r.random() < 0.9 else None)


def reshape(g):
    x = pick(g, lambda t: t.rank >= 1)
    if x is None:
        return None
    how, dims = g.r.random(), x.dims
    if how < 0.15:
        return g.op("Flatten", [x], axis=g.r.randint(0, x.rank))
    if how < 0.3:
        return axes_op(g, "Unsqueeze", x, sorted(g.r.sample(range(x.rank + 1), g.r.randint(1, 1 if x.rank > 3 else 2)) if x.rank else [0]), 13)
    if how < 0.45 and 1 in dims:
        return axes_op(g, "Squeeze", x, [g.r.choice([i for i, d in enumerate(dims) if d == 1])], 13)
    target = [0 if g.r.random() < 0.6 else d for d in dims]
    if dims.count(-1) and -1 in target:
        pass
    choice = g.r.random()
    if choice < 0.35 and x.rank >= 2:  # merge two neighbours
        i = g.r.randrange(x.rank - 1)
        target = [0] * i + [-1] + dims[i + 2:]
    elif choice < 0.7:  # split a static dim
        i = g.r.randrange(x.rank)
        factors = [f for f in (2, 3, 4) if dims[i] > 0 and dims[i] % f == 0]
        if factors:
            f = g.r.choice(factors)
            target = [0] * i + [dims[i] // f, f] + dims[i + 1:]
    elif choice < 0.85:
        target = [-1] + dims[-1:]
    # sizes that are not constant: by a Shape chain
    if g.r.random() < 0.4:
        parts, shape = [], g.op("Shape", [x])
        for i, d in enumerate(dims if len(target) != len(dims) else target):
            if shape is None:
                return None
            if d > 0 and g.r.random() < 0.5:
                parts.append(g.constant(np.asarray([d], np.int64)))
            else:
                part = g.op("Gather", [shape, g.constant(np.asarray([i], np.int64) if g.r.random() < 0.5 else np.asarray(i, np.int64))], axis=0)
                parts.append(part if part is None or part.rank else axes_op(g, "Unsqueeze", part, [0], 13))
        if None in parts or not parts:
            return None
        if g.r.random() < 0.5 and len(parts) >= 2:
            i = g.r.randrange(len(parts) - 1)
            merged = g.op("Mul", [parts[i], parts[i + 1]])
            parts[i:i + 2] = [merged]
        wanted = g.op("Concat", parts, axis=0) if None not in parts else None
        return wanted and g.op("Reshape", [x, wanted])
    return g.op("Reshape", [x, g.constant(np.asarray(target, np.int64))])


def concat(g):
    x = pick(g, lambda t: t.rank >= 1)
    if x is None:
        return None
    axis = g.r.randrange(x.rank)
    fitting = [t for t in g.tensors if t.kind == x.kind and t.rank == x.rank and all(p == q for i, (p, q) in enumerate(zip(t.dims, x.dims)) if i != axis)]
    parts = [x] + [g.r.choice(fitting) for _ in range(g.r.randint(0, 2))]
    if all(d >= 0 for i, d in enumerate(x.dims) if i != axis) and g.r.random() < 0.4:
        parts.append(g.constant(g.random(x.kind, [g.r.randint(1, 3) if i == axis else d for i, d in enumerate(x.dims)], -2, 2), x.kind))
    g.r.shuffle(parts)
    return g.op("Concat", parts, axis=axis - x.rank if g.r.random() < 0.3 and g.opset >= 11 else axis)


def split(g):
    x = pick(g, lambda t: t.rank >= 1 and max(t.dims) > 1)
    if x is None:
        return None
    axis = g.r.choice([i for i, d in enumerate(x.dims) if d > 1])
    size = x.dims[axis]
    where = axis - x.rank if g.r.random() < 0.3 and g.opset >= 11 else axis
    if g.r.random() < 0.5:
        count = g.r.choice([c for c in (1, 2, 3, 4) if size % c == 0 or g.opset >= 18 and -(-size // c) * (c - 1) < size])
        return g.op("Split", [x], outputs=count, axis=where, num_outputs=count if g.opset >= 18 else None) or None
    cut = g.r.randint(0, size)
    parts = [cut, size - cut]
    if g.opset < 13:
        return g.op("Split", [x], outputs=2, axis=where, split=parts)
    return g.op("Split", [x, g.constant(np.asarray(parts, np.int64))], outputs=2, axis=where)


def cut(g):
    x = pick(g, lambda t: t.rank >= 1)
    if x is None:
        return None
    axes = g.r.sample(range(x.rank), g.r.randint(1, min(2, x.rank)))
    starts, ends, steps_ = [], [], []
    for a in axes:
        size = x.dims[a] if x.dims[a] > 0 else 4
        step = g.r.choice([1, 1, 1, 2, 3, -1, -2]) if g.opset >= 10 else 1
        start, end = g.r.randint(-size, size - 1), g.r.choice([g.r.randint(-size, size + 2), 2**63 - 1, 2**31 - 1])
        if step < 0:
            start, end = g.r.choice([-1, size - 1, 2**31 - 1]), g.r.choice([-2**63, -2**31, 0, -size - 1])
        starts, ends, steps_ = starts + [start], ends + [end], steps_ + [step]
    if g.r.random() < 0.3:
        axes = [a - x.rank for a in axes]
    if g.opset < 10:
        return g.op("Slice", [x], starts=starts, ends=ends, axes=axes)
    kind = "i64" if any(abs(e) > 2**31 - 1 for e in ends) or g.r.random() < 0.7 else "i32"
    operands = [g.constant(np.asarray(v, np.int64), kind) for v in (starts, ends, axes)]
    if any(s != 1 for s in steps_):
        operands.append(g.constant(np.asarray(steps_, np.int64), kind))
    return g.op("Slice", [x] + operands)


def gather(g):
    x = pick(g, lambda t: t.rank >= 1 and all(v.size for v in t.values))
    if x is None:
        return None
    axis = g.r.randrange(x.rank)
    size = x.dims[axis] if x.dims[axis] > 0 else 1
    kind = g.r.choice(["i64", "i32"])
    name = g.r.choice(["Gather", "Gather", "GatherElements", "GatherND"])
    low = -size if g.opset >= 11 else 0
    if name == "Gather":
        indices = pick(g, lambda t: t.kind in ("i64", "i32") and all(v.size and v.min() >= low and v.max() < size for v in t.values)) if g.r.random() < 0.5 else None
        shape = g.r.choice([[], [1], [2], [3], [2, 2], [1, 1]])
        return g.op(name, [x, indices or g.constant(g.random(kind, shape, low, size - 1), kind)], axis=axis if g.r.random() < 0.7 else axis - x.rank)
    if g.opset < 12:
        return None
    if name == "GatherElements":
        shape = [g.r.randint(1, 3) if i == axis else min(d, g.r.randint(1, d)) if d > 0 else 1 for i, d in enumerate(x.dims)]
        return g.op(name, [x, g.constant(g.random("i64", shape, low, size - 1), "i64")], axis=axis)
    if any(d < 0 for d in x.dims):
        return None
    depth = g.r.randint(1, x.rank)
    indices = np.stack([g.random("i64", [2, 2], -d if g.opset >= 11 else 0, d - 1) for d in x.dims[:depth]], -1)
    return g.op(name, [x, g.constant(indices, "i64")])


def grow(g):
    x = pick(g)
    name = g.r.choice(["Pad", "Tile", "Expand", "Trilu", "ConstantOfShape", "Range"])
    if x is None:
        return None
    if name == "Pad" and x.rank and x.floating:
        pads = [g.r.choice([0, 0, 1, 2, -1]) for _ in range(2 * x.rank)]
        if g.opset < 11:
            return g.op(name, [x], pads=pads, value=g.r.choice([None, 0.5]))
        operands = [x, g.constant(np.asarray(pads, np.int64))]
        if g.r.random() < 0.6:
            operands.append(g.constant(np.float32(0.75), x.kind))
        return g.op(name, operands)
    if name == "Tile" and x.rank:
        return g.op(name, [x, g.constant(np.asarray([g.r.choice([1, 1, 2, 3]) for _ in x.dims], np.int64))])
    if name == "Expand" and g.opset >= 8:
        target = [d if d > 0 and g.r.random() < 0.5 else g.r.choice([1, 2, 3]) if d == 1 else 1 for d in x.dims]
        if g.r.random() < 0.4:
            target = [2] + target
        return g.op(name, [x, g.constant(np.asarray(target, np.int64))])
    if name == "Trilu" and x.rank >= 2 and g.opset >= 14:
        return g.op(name, [x] + ([g.constant(np.asarray(g.r.randint(-3, 3), np.int64))] if g.r.random() < 0.5 else []), upper=g.r.choice([0, 1, None]))
    if name == "ConstantOfShape" and g.opset >= 9:
        from onnx import numpy_helper
        shape = g.op("Shape", [x])
        value = g.r.choice([np.array([1.5], np.float32), np.array([3], np.int64), np.array([True]), None])
        return shape and g.op(name, [shape], value=None if value is None else numpy_helper.from_array(value))
    if name == "Range" and x.rank and g.opset >= 11:
        shape = g.op("Shape", [x])
        size = shape and g.op("Gather", [shape, g.constant(np.asarray(g.r.randrange(x.rank), np.int64))], axis=0)
        return size and g.op(name, [g.constant(np.int64(0)), size, g.constant(np.int64(1))])
    return None


def contract(g):
    a = some_float(g, 1)
    if a is None:
        return None
    if g.r.random() < 0.3:
        a = pick(g, lambda t: t.floating and t.rank == 2) or a
        if a.rank != 2 or a.dims[1] <= 0 and a.dims[0] <= 0:
            return None
        ta, tb = (0 if a.dims[1] > 0 else 1), g.r.choice([0, 1])
        k, n = a.dims[0 if ta else 1], g.r.choice([1, 3, 8, 17])
        b = g.weight([n, k] if tb else [k, n], 1.0 / k**0.5, kind=a.kind)
        c = g.r.choice([[n], [1, n], [], [1], [1, 1], None])
        operands = [a, b] + ([] if c is None and g.opset >= 11 else [g.constant(g.random(a.kind, c or [n]), a.kind)])
        return g.op("Gemm", operands, transA=ta or None, transB=tb or None, alpha=g.r.choice([None, 0.5, 2.0]), beta=g.r.choice([None, 0.5, 0.0]), exact=False, bound=500.0)
    fitting = [t for t in g.tensors if t.kind == a.kind and t.rank >= 1 and t.dims[-2 if t.rank > 1 else 0] == a.dims[-1]]
    k = a.dims[-1]
    if k > 0 and (not fitting or g.r.random() < 0.6):
        n = g.r.choice([1, 2, 5, 16, 33])
        shape = g.r.choice([[k, n], [k, n], [k, n], [k], [2, k, n] if a.rank < 3 else [k, n], [1, k, n]])
        b = g.weight(shape, 1.5 / k**0.5, kind=a.kind)
    elif fitting:
        b = g.r.choice(fitting)
    else:
        return None
    return g.op("MatMul", [a, b], exact=False, bound=500.0)


def casts(g):
    x = pick(g)
    if x is None:
        return None
    which = g.r.random()
    if which < 0.5:
        to = g.r.choice(["T", "f32"])
        return g.op("Cast", [x], cast_to=to, exact=x.exact and x.kind != "f32")
    if which < 0.75 and x.exact and x.floating:
        return g.op("Cast", [x], cast_to=g.r.choice(["i64", "i32", "bool"]))
    if g.opset >= 10 and which > 0.75:
        low, high, kind = (0, 255, "u8") if g.r.random() < 0.5 else (-128, 127, "i8")
        n = g.r.choice([3, 8])
        axis = g.opset >= 13 and g.r.random() < 0.5
        operands = [g.constant(g.random(kind, [4, n], low, high), kind), g.constant(g.random("f32", [n] if axis else [], 0.01, 0.02), "f32")]
        if g.r.random() < 0.6:
            operands.append(g.constant(g.random(kind, [n] if axis else [], max(low, -3), 5), kind))
        return g.op("DequantizeLinear", operands, axis=1 if axis else None)
    lo, hi = g.constant(np.float32(-0.75), x.kind) if x.floating else None, g.constant(np.float32(1.25), x.kind) if x.floating else None
    if not x.floating:
        return None
    if g.opset < 11:
        return g.op("Clip", [x], min=-0.75, max=g.r.choice([None, 1.25]))
    return g.op("Clip", [x, g.r.choice([lo, None]), hi] if g.r.random() < 0.7 else [x, lo])


PROPOSALS = [unary, unary, binary, binary, binary, steps, integer, compare, logic, logic, nan_tests, reduce, reduce, argument, normal, normal, transpose, reshape,
             reshape, concat, split, cut, cut, gather, gather, grow, grow, contract, contract, contract, casts, casts]
