"""Transformer-like graphs in the many spellings that exporters and people use. In: a Graph. Out: the graph and its outputs. Holds: every block is valid ONNX
of the graph's opset; residual branches, dead `pos_enc` layers, caches, masks and tied weights are where checkpoints have them.
"""
import numpy as np

import graph as g_
from ops import axes_op


class Blocks:
    def __init__(self, g):
        self.g, self.r = g, g.r
        self.heads, self.size = self.r.choice([(2, 4), (4, 4), (2, 8), (3, 6), (4, 16)])
        self.width, self.kind = self.heads * self.size, "T"
        self.modulo = self.r.random()

    # --- small helpers ---
    def c(self, value, kind="T"):
        return self.g.constant(np.asarray(value), kind)

    def op(self, name, *inputs, **options):
        return self.g.must(name, list(inputs), **options)

    def ints(self, *values):
        return self.c(np.asarray(values, np.int64), "i64")

    def axes(self, name, x, axes, before=13, **options):
        made = axes_op(self.g, name, x, axes, before, **options)
        if made is None:
            raise g_.Dropped(self.g.dropped[-1])
        return made

    def mean(self, x):
        return self.axes("ReduceMean", x, [-1], 18, keepdims=1)

    def pow2(self, x):
        how = self.r.randrange(3)
        return self.op("Mul", x, x) if how == 0 else self.op("Pow", x, self.c(2.0)) if how == 1 or self.g.opset < 12 else self.op("Pow", x, self.c(np.asarray([2.0], np.float32)))

    def shuffle(self, name, a, b):
        return self.op(name, a, b) if self.r.random() < 0.5 else self.op(name, b, a)

    def linear(self, x, n, bias=True, weight=None, bias_first=None):
        k = x.dims[-1]
        w = weight or self.g.weight([k, n], 1.0 / k**0.5)
        if self.r.random() < 0.2 and weight is None:  # a weight that is transposed in the graph
            w = self.op("Transpose", self.g.weight([n, k], 1.0 / k**0.5), perm=[1, 0])
        y = self.op("MatMul", x, w)
        return self.shuffle("Add", y, self.g.weight([n], 0.2)) if bias else y

    # --- norms ---
    def layer_norm(self, x):
        n = x.dims[-1]
        scale, bias, eps = self.g.constant(self.g.random("T", [n], 0.5, 1.5)), self.g.weight([n], 0.3), self.r.choice([1e-5, 1e-6, 1e-12])
        how = self.r.randrange(6)
        if how == 0 and self.g.opset >= 17:
            return self.op("LayerNormalization", x, scale, bias, axis=self.r.choice([-1, x.rank - 1]), epsilon=eps)
        centred = self.op("Sub", x, self.mean(x))
        square = self.pow2(self.op("Sub", x, self.mean(x)) if how == 2 else centred)
        if how == 3:  # E[x^2] - mean^2
            variance = self.op("Relu", self.op("Sub", self.mean(self.pow2(x)), self.pow2(self.mean(x))))
        else:
            variance = self.mean(square)
        shifted = self.shuffle("Add", variance, self.c(max(eps, 1e-6 if self.g.storage == "f16" else eps)))
        if how in (1, 2):
            y = self.op("Div", centred, self.op("Sqrt", shifted))
        elif how == 4:
            y = self.shuffle("Mul", centred, self.op("Reciprocal", self.op("Sqrt", shifted)))
        elif how == 5:
            y = self.shuffle("Mul", centred, self.op("Pow", shifted, self.c(-0.5)))
        else:
            y = self.op("Div", centred, self.op("Sqrt", shifted))
        return self.shuffle("Add", self.shuffle("Mul", y, scale), bias)

    def rms_norm(self, x):
        n = x.dims[-1]
        weight = self.g.constant(self.g.random("T", [n], 0.5, 1.5))
        wide = self.op("Cast", x, cast_to="f32") if self.r.random() < 0.6 else x
        kind = wide.kind
        eps, how = self.g.constant(np.float32(1e-6), kind), self.r.randrange(4)
        power = self.op("Mul", wide, wide) if how == 0 else self.op("Pow", wide, self.g.constant(np.float32(2.0), kind))
        root = self.op("Sqrt", self.shuffle("Add", self.mean(power), eps))
        if how == 1:
            y = self.op("Div", wide, root)
        elif how == 2:
            y = self.op("Mul", wide, self.op("Div", self.g.constant(np.float32(1.0), kind), root))
        else:
            y = self.shuffle("Mul", wide, self.op("Reciprocal", root))
        y = self.op("Cast", y, cast_to="T") if kind != "T" else y
        if self.r.random() < 0.25:  # Gemma: (1 + w) * x
            weight = self.op("Add", self.c(1.0), self.g.weight([n], 0.3))
        return self.shuffle("Mul", weight, y)

    def norm(self, x):
        return (self.layer_norm if self.modulo < 0.6 else self.rms_norm)(x)

    # --- activations ---
    def activation(self, x):
        how = self.r.randrange(9)
        if how == 0:
            return self.op("Relu", x)
        if how == 1:  # gelu, erf, in three orders
            e = self.op("Erf", self.op("Div", x, self.c(2.0**0.5)) if self.r.random() < 0.5 else self.op("Mul", x, self.c(0.5**0.5)))
            one = self.shuffle("Add", e, self.c(1.0))
            order = self.r.randrange(3)
            if order == 0:
                return self.op("Mul", self.op("Mul", x, one), self.c(0.5))
            if order == 1:
                return self.op("Mul", self.op("Mul", self.c(0.5), x), one)
            return self.op("Mul", x, self.op("Mul", one, self.c(0.5)))
        if how == 2:  # gelu, tanh
            cube = self.op("Pow", x, self.c(3.0)) if self.r.random() < 0.5 else self.op("Mul", self.op("Mul", x, x), x)
            inner = self.op("Mul", self.op("Add", x, self.op("Mul", cube, self.c(0.044715))), self.c((2 / np.pi)**0.5))
            return self.op("Mul", self.op("Mul", x, self.c(0.5)), self.op("Add", self.op("Tanh", inner), self.c(1.0)))
        if how == 3:
            return self.shuffle("Mul", x, self.op("Sigmoid", x))
        if how == 4:  # quick gelu
            return self.op("Mul", x, self.op("Sigmoid", self.op("Mul", x, self.c(1.702))))
        if how == 5 and self.g.opset >= 20:
            return self.op("Gelu", x, approximate=self.r.choice(["none", "tanh"]))
        if how == 6:
            return self.op("Div", x, self.op("Add", self.op("Exp", self.op("Neg", x)), self.c(1.0)))
        if how == 7:  # near misses of gelu: other constants
            e = self.op("Erf", self.op("Mul", x, self.c(self.r.choice([0.5, 0.7, 1.0]))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", e, self.c(self.r.choice([1.0, 0.9])))), self.c(self.r.choice([0.5, 0.25])))
        return self.op("Tanh", x)

    # --- attention ---
    def shape_part(self, x, i):
        part = self.op("Gather", self.op("Shape", x), self.c(np.asarray(i, np.int64), "i64"), axis=0)
        return self.axes("Unsqueeze", part, [0])

    def to_heads(self, x, heads):
        if self.r.random() < 0.4:
            shape = self.op("Concat", self.shape_part(x, 0), self.shape_part(x, 1), self.ints(heads), self.ints(self.size), axis=0)
        else:
            shape = self.ints(0, self.r.choice([0, -1]), heads, self.size)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def rotary(self, x, cos, sin):
        """x: [B, H, S, D]; the half form and the interleaved one."""
        half = self.size // 2
        if self.interleaved:
            even = self.op("Slice", x, self.ints(0), self.ints(2**31 - 1), self.ints(3), self.ints(2))
            odd = self.op("Slice", x, self.ints(1), self.ints(2**63 - 1), self.ints(3), self.ints(2))
            pair = self.op("Concat", self.axes("Unsqueeze", self.op("Neg", odd), [4]), self.axes("Unsqueeze", even, [4]), axis=-1)
            turned = self.op("Reshape", pair, self.ints(0, 0, -1, self.size))
        elif self.r.random() < 0.5:
            a, b = self.g.must("Split", [x] if self.g.opset < 13 else [x, self.ints(half, half)], outputs=2, axis=3, split=[half, half] if self.g.opset < 13 else None)
            turned = self.op("Concat", self.op("Neg", b), a, axis=-1)
        else:
            a = self.op("Slice", x, self.ints(0), self.ints(half), self.ints(3))
            b = self.op("Slice", x, self.ints(half), self.ints(2**63 - 1), self.ints(3), self.ints(1))
            turned = self.op("Concat", self.op("Neg", b), a, axis=3)
        return self.shuffle("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))

    def angles(self, x):
        """cos and sin, [1, 1, S, D]; positions from a Range over the length."""
        length = self.op("Gather", self.op("Shape", x), self.c(np.asarray(1, np.int64), "i64"), axis=0)
        positions = self.op("Range", self.c(np.int64(0), "i64"), length, self.c(np.int64(1), "i64"))
        frequencies = 1.0 / 100.0 ** (np.arange(0, self.size, 2, dtype=np.float32) / self.size)
        wide = self.op("Cast", self.axes("Unsqueeze", positions, [1]), cast_to="f32")
        angle = self.op("MatMul", wide, self.g.constant(frequencies[None, :], "f32")) if self.r.random() < 0.5 else self.op("Mul", wide, self.g.constant(frequencies, "f32"))
        if self.interleaved:
            doubled = self.op("Reshape", self.op("Expand", self.axes("Unsqueeze", angle, [2]), self.ints(1, 1, 2)), self.ints(-1, self.size))
        else:
            doubled = self.op("Concat", angle, angle, axis=-1)
        made = []
        for name in ("Cos", "Sin"):
            y = self.op("Cast", self.op(name, doubled), cast_to="T")
            made.append(self.axes("Unsqueeze", y, [0, 1]))
        return made

    def repeat(self, x, times):
        """Grouped queries: [B, G, T, D] -> [B, G * times, T, D]."""
        if times == 1:
            return x
        groups = x.dims[1]
        wide = self.axes("Unsqueeze", x, [2])
        how = self.r.randrange(3)
        if how == 0:
            shape = self.op("Concat", self.shape_part(x, 0), self.ints(groups), self.ints(times), self.shape_part(x, 2), self.ints(self.size), axis=0)
            wide = self.op("Expand", wide, shape)
        elif how == 1:
            wide = self.op("Tile", wide, self.ints(1, 1, times, 1, 1))
        else:
            wide = self.op("Concat", *[wide] * times, axis=2)
        shape = self.op("Concat", self.shape_part(x, 0), self.ints(groups * times), self.shape_part(x, 2), self.ints(self.size), axis=0)
        return self.op("Reshape", wide, shape)

    def masked(self, scores, s, t):
        """scores [B, H, S, T] with one of the mask spellings; `self.mask` is int64 [batch, T] of ones and zeros, or None."""
        how = self.r.choice(["none", "additive", "where", "boolean", "causal", "causal-where", "trilu"])
        big = -1e4 if self.g.storage == "f16" else self.r.choice([-1e4, -1e9, float(np.finfo(np.float32).min)])
        bound = 1e39
        if how in ("additive", "where", "boolean") and self.mask is not None:
            wide = self.axes("Unsqueeze", self.mask, [1, 2])
            if how == "additive":
                real = self.op("Cast", wide, cast_to="T")
                bias = self.op("Mul", self.op("Sub", self.c(1.0), real), self.c(big), bound=bound)
                return self.shuffle_bound("Add", scores, bias, bound)
            seen = self.op("Cast", wide, cast_to="bool") if how == "boolean" else self.op("Equal", wide, self.c(np.int64(1), "i64"))
            return self.g.must("Where", [seen, scores, self.c(big)], bound=bound)
        if how.startswith("causal"):
            rows = self.op("Range", self.c(np.int64(0), "i64"), self.op("Gather", self.op("Shape", scores), self.c(np.int64(2), "i64"), axis=0), self.c(np.int64(1), "i64"))
            columns = self.op("Range", self.c(np.int64(0), "i64"), self.op("Gather", self.op("Shape", scores), self.c(np.int64(3), "i64"), axis=0), self.c(np.int64(1), "i64"))
            offset = self.op("Sub", self.op("Gather", self.op("Shape", scores), self.c(np.int64(3), "i64"), axis=0),
                             self.op("Gather", self.op("Shape", scores), self.c(np.int64(2), "i64"), axis=0))
            late = self.op("Greater", self.axes("Unsqueeze", columns, [0]), self.op("Add", self.axes("Unsqueeze", rows, [1]), offset))
            if how == "causal-where":
                return self.g.must("Where", [late, self.c(big), scores], bound=bound)
            bias = self.g.must("Where", [late, self.c(big), self.c(0.0)], bound=bound)
            return self.shuffle_bound("Add", scores, bias, bound)
        if how == "trilu" and self.g.opset >= 14 and s is t:
            size = self.op("Slice", self.op("Shape", scores), self.ints(2), self.ints(4))
            full = self.op("Expand", self.c(big), size, bound=bound)
            bias = self.g.must("Trilu", [full, self.c(np.int64(1), "i64")], bound=bound, upper=1)
            return self.shuffle_bound("Add", scores, bias, bound)
        return scores

    def shuffle_bound(self, name, a, b, bound):
        return self.g.must(name, [a, b] if self.r.random() < 0.5 else [b, a], bound=bound)

    def attention(self, x, cache=None, context=None):
        r, groups = self.r, self.r.choice([self.heads, self.heads, 1 if self.heads % 2 else self.heads // 2])
        memory = context or x
        bias = r.random() < 0.5
        if r.random() < 0.3 and groups == self.heads and context is None:  # one projection, split afterwards
            merged = self.linear(x, 3 * self.width, bias)
            if r.random() < 0.5:
                parts = self.g.must("Split", [merged] if self.g.opset < 18 else [merged], outputs=3, axis=-1, num_outputs=3 if self.g.opset >= 18 else None)
                q, k, v = (self.to_heads(p, self.heads) for p in parts)
            else:
                stacked = self.op("Transpose", self.op("Reshape", merged, self.ints(0, -1, 3, self.heads, self.size)), perm=[2, 0, 3, 1, 4])
                q, k, v = (self.op("Gather", stacked, self.c(np.int64(i), "i64"), axis=0) for i in range(3))
        else:
            q, k, v = self.to_heads(self.linear(x, self.width, bias), self.heads), self.to_heads(self.linear(memory, groups * self.size, bias), groups), self.to_heads(
                self.linear(memory, groups * self.size, bias), groups)
        if self.cos is not None and context is None and cache is None:
            q, k = self.rotary(q, self.cos, self.sin), self.rotary(k, self.cos, self.sin)
        if cache:
            k, v = (self.op("Concat", past, new, axis=2) for past, new in zip(cache(groups), (k, v)))
            self.presents += [k, v]
        k, v = self.repeat(k, self.heads // groups), self.repeat(v, self.heads // groups)
        scale = self.size**-0.5
        where = r.choice(["scores", "q", "both", "divide", "none", "k"])
        if where == "q":
            q = self.op("Mul", q, self.c(scale))
        if where == "both":
            q = self.op("Mul", q, self.c(scale**0.5))
        kt = self.op("Transpose", k, perm=[0, 1, 3, 2])
        if where in ("both", "k"):
            kt = self.op("Mul", kt, self.c(scale**0.5 if where == "both" else scale))
        scores = self.op("MatMul", q, kt)
        if where == "scores":
            scores = self.shuffle("Mul", scores, self.c(scale))
        if where == "divide":
            scores = self.op("Div", scores, self.c(1 / scale))
        scores = self.masked(scores, x, memory) if not cache or self.mask is None else scores
        p = self.g.must("Softmax", [scores], axis=r.choice([-1, 3]) if self.g.opset >= 13 else 3, exact=False)
        if r.random() < 0.15 and self.g.opset >= 9:  # rows without anything to see become zeros
            p = self.op("Where", self.op("IsNaN", p), self.c(0.0), p)
        if r.random() < 0.2:
            self.inner.append(p)
        y = self.op("Transpose", self.op("MatMul", p, v), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.ints(0, 0, self.width) if r.random() < 0.6 else self.op("Concat", self.shape_part(y, 0), self.shape_part(y, 1), self.ints(self.width), axis=0))
        return self.linear(y, self.width, bias)

    # --- the model ---
    def feed_forward(self, x):
        inner = self.r.choice([7, 16, 2 * self.width])
        if self.r.random() < 0.4:  # gated
            return self.linear(self.shuffle("Mul", self.activation(self.linear(x, inner, False)), self.linear(x, inner, False)), self.width, False)
        return self.linear(self.activation(self.linear(x, inner)), self.width)

    def dead(self, x, i):
        """A layer whose second projection is zero: what the compiler is for."""
        self.g.scope = f"/layers.{i}/pos_enc/"
        inner = self.g.must("Add", [self.g.must("MatMul", [x, self.g.constant(np.zeros([self.width, 8], np.float32), name=f"layers.{i}.pos_enc.fc1.weight")]),
                                    self.g.constant(np.zeros([8], np.float32), name=f"layers.{i}.pos_enc.fc1.bias")])
        alive = self.r.random() < 0.3
        second = self.g.weight([8, self.width], 0.3, f"layers.{i}.pos_enc.fc2.weight") if alive else self.g.constant(np.zeros([8, self.width], np.float32), name=f"layers.{i}.pos_enc.fc2.weight")
        y = self.g.must("Add", [x, self.g.must("MatMul", [self.g.must("Tanh", [inner]), second])])
        self.g.scope = f"/layers.{i}/"
        return y

    def build(self):
        g, r = self.g, self.r
        vocabulary = 11
        ids = g.input("i64", ["batch", "seq"], 0, vocabulary - 1, "input_ids")
        table = g.weight([vocabulary, self.width], 1.0, "embeddings.weight")
        x = self.op("Gather", table, ids)
        self.mask = g.input("i64", ["batch", "seq"], 0, 1, "attention_mask") if r.random() < 0.5 else None
        if self.mask:
            for value in self.mask.values:
                value[..., 0] = 1
        self.interleaved, self.inner, self.presents, self.cos, self.sin = r.random() < 0.4, [], [], None, None
        decoder = r.random() < 0.3
        if r.random() < 0.4:
            positions = g.weight([80, self.width], 0.5, "positions.weight")
            length = self.shape_part(x, 1)
            rows = self.op("Slice", positions, self.ints(0), length, self.ints(0))
            x = self.op("Add", x, rows)
        elif not decoder:
            self.cos, self.sin = self.angles(x)
        if r.random() < 0.3:
            x = self.norm(x)
        pre = r.random() < 0.6
        for i in range(r.randint(1, 2)):
            g.scope = f"/layers.{i}/"
            cache = None
            if decoder:
                cache = lambda groups, i=i: [g.input("T", ["batch", groups, "past", self.size], name=f"past.{i}.{n}") for n in ("key", "value")]  # noqa: E731
            if r.random() < 0.4:
                x = self.dead(x, i)
            a = self.attention(self.norm(x) if pre else x, cache)
            x = self.shuffle("Add", x, a)
            x = x if pre else self.norm(x)
            f = self.feed_forward(self.norm(x) if pre else x)
            x = self.shuffle("Add", x, f)
            x = x if pre else self.norm(x)
        g.scope = ""
        x = self.norm(x) if r.random() < 0.6 else x
        outputs, how = [x], r.random()
        if how < 0.4:  # tied head
            outputs = [self.op("MatMul", x, self.op("Transpose", table, perm=[1, 0]))]
        elif how < 0.6:
            outputs.append(self.op("Tanh", self.linear(self.op("Gather", x, self.c(np.int64(0), "i64"), axis=1), self.width)))
        elif how < 0.7:  # the last token only
            outputs = [self.op("MatMul", self.op("Slice", x, self.ints(-1), self.ints(2**63 - 1), self.ints(1)), g.weight([self.width, vocabulary]))]
        return outputs + self.inner + self.presents


def model(g):
    """(graph, outputs); a block that grew out of bounds leaves what is there."""
    try:
        outputs = Blocks(g).build()
    except g_.Dropped:
        outputs = [t for t in g.tensors if not t.used and t.name not in {i.name for i, _ in g.inputs}][-3:]
    unique = {t.name: t for t in outputs}
    return g, list(unique.values())
