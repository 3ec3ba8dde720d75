#!/usr/bin/env python3
"""Sparse fidelity checks against their definition (spec 6) in NumPy float64, on small random models. In: the build folder, optionally a first seed and a number of models. Out:
exit 0, or 1 with a line per difference. Each model: embedding, two FFN layers whose checks attach-checks adds, a cache that only says how long the past is. Few tokens in the
vocabulary, so that all states that can occur are known and thresholds lie in gaps between their distances: bits have no excuse. Compared is every bit of every token, which
tokens were evaluated, and the outputs: with paddings and anchors of their own per batch element, in one pass and in chunks cut anywhere, linked and by hand.
"""
import itertools
import pathlib
import shutil
import sys
import threading

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tool import Checker, tare

BUILD = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))
import tare as api  # noqa: E402  (the wrapper; the command line is tool.tare)

WINDOW, VOCABULARY, LAYERS = 3, 9, 2
expect = Checker()


class Model:
    """Weights and the definition; `width` D, `columns` F, `heads` K, `rank` R."""

    def __init__(self, rng, width, columns, heads, rank):
        self.width, self.columns, self.heads, self.rank = width, columns, heads, rank
        f = lambda *shape, scale=1.0: (scale * rng.standard_normal(shape)).astype(np.float32)  # noqa: E731
        self.embedding = f(VOCABULARY, width)
        self.layers = [{"up": f(width, columns, scale=width**-0.5), "bias": f(columns), "down": f(columns, width, scale=columns**-0.5),
                        "W": f(heads, rank, width, scale=width**-0.5), "p": f(heads, rank, scale=0.5), "E": f(heads, columns)} for _ in range(LAYERS)]
        states = self.embedding.astype(np.float64)
        for layer in self.layers:  # every state that can occur: any token with any bits that some state has
            distances = self.distances(states, layer)
            layer["tau"], margin = thresholds(distances)
            expect(margin > 1e-5, f"margin of the thresholds is {margin:.2g}", quiet=True)
            bits = np.unique(distances < layer["tau"], axis=0)
            states = np.concatenate([self.ffn(states, np.broadcast_to(b, (len(states), heads)), layer) for b in bits])
            states = states[rng.permutation(len(states))[:3000]]

    @staticmethod
    def distances(h, layer):
        z = np.einsum("...d,krd->...kr", h, layer["W"].astype(np.float64)) - layer["p"]
        return np.sqrt((z * z).sum(-1))

    @staticmethod
    def ffn(h, bits, layer):
        up = h @ layer["up"].astype(np.float64) + layer["bias"] + bits @ layer["E"].astype(np.float64)
        return h + np.maximum(up, 0) @ layer["down"].astype(np.float64)

    def run(self, ids, evaluated):
        """Output and the bits of each layer [B, T, K]; `evaluated` [B, T], or None for the dense form."""
        h, all_bits = self.embedding.astype(np.float64)[ids], []
        for layer in self.layers:
            bits = self.distances(h, layer) < layer["tau"]
            if evaluated is not None:
                for b, t in itertools.product(range(ids.shape[0]), range(ids.shape[1])):
                    if not evaluated[b, t]:
                        bits[b, t] = bits[b, t - 1] if t else False
            all_bits.append(bits)
            h = self.ffn(h, bits, layer)
        return h, all_bits

    def onnx(self, as_gemm):
        nodes, weights = [], [numpy_helper.from_array(self.embedding, "embedding")]
        node = lambda *arguments, **more: nodes.append(helper.make_node(*arguments, **more))  # noqa: E731
        node("Gather", ["embedding", "input_ids"], ["h0"], name="/Gather")
        node("Concat", ["past", "h0"], ["present"], name="/Concat", axis=1)
        for i, layer in enumerate(self.layers):
            weights += [numpy_helper.from_array(layer[part].T.copy() if as_gemm and part == "up" else layer[part], f"layers.{i}.{part}") for part in ["up", "bias", "down"]]
            if as_gemm:
                weights.append(numpy_helper.from_array(np.array([-1, self.width]), f"rows{i}"))
                node("Reshape", [f"h{i}", f"rows{i}"], [f"flat{i}"], name=f"/layers.{i}/Reshape")
                node("Gemm", [f"flat{i}", f"layers.{i}.up", f"layers.{i}.bias"], [f"u{i}"], name=f"/layers.{i}/up/Gemm", transB=1)
                node("Shape", [f"h{i}"], [f"s{i}"], name=f"/layers.{i}/Shape", start=0, end=2)
                weights.append(numpy_helper.from_array(np.array([self.columns]), f"columns{i}"))
                node("Concat", [f"s{i}", f"columns{i}"], [f"t{i}"], name=f"/layers.{i}/Concat", axis=0)
                node("Reshape", [f"u{i}", f"t{i}"], [f"v{i}"], name=f"/layers.{i}/Reshape_1")
            else:
                node("MatMul", [f"h{i}", f"layers.{i}.up"], [f"u{i}"], name=f"/layers.{i}/up/MatMul")
                node("Add", [f"u{i}", f"layers.{i}.bias"], [f"v{i}"], name=f"/layers.{i}/up/Add")
            node("Relu", [f"v{i}"], [f"a{i}"], name=f"/layers.{i}/Relu")
            node("MatMul", [f"a{i}", f"layers.{i}.down"], [f"d{i}"], name=f"/layers.{i}/down/MatMul")
            node("Add", [f"h{i}", f"d{i}"], [f"h{i + 1}" if i + 1 < LAYERS else "y"], name=f"/layers.{i}/Add")
        node("Cast", ["attention_mask"], ["maskf"], name="/Cast", to=TensorProto.FLOAT)  # a mask that the graph only looks at
        node("ReduceSum", ["maskf"], ["unmasked"], name="/ReduceSum", keepdims=1)
        info = helper.make_tensor_value_info
        inputs = [info("input_ids", TensorProto.INT64, ["batch", "tokens"]), info("attention_mask", TensorProto.INT64, ["batch", "total"]), info("past", TensorProto.FLOAT, ["batch", "length", self.width])]
        outputs = [info("y", TensorProto.FLOAT, ["batch", "tokens", self.width]), info("present", TensorProto.FLOAT, ["batch", "total", self.width]), info("unmasked", TensorProto.FLOAT, [1, 1])]
        return helper.make_model(helper.make_graph(nodes, "random", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def tensors(self):
        return {f"layers.{i}.check.{part}": layer[part] for i, layer in enumerate(self.layers) for part in ["W", "p", "tau", "E"]}


def thresholds(distances):
    """Per head the middle of the widest gap between the distances of the middle half, and the smallest margin."""
    tau, margin = [], np.inf
    for column in distances.T:
        d = np.unique(column)
        middle = d[len(d) // 4: max(len(d) // 4 + 2, 3 * len(d) // 4 + 1)]
        at = np.argmax(np.diff(middle))
        tau.append((middle[at] + middle[at + 1]) / 2)
        margin = min(margin, np.abs(column - np.float32(tau[-1])).min())
    return np.array(tau, np.float32), margin


def where(anchors, first, tokens):
    """The rule of spec 6, token by token, for a whole sequence [B, tokens]."""
    evaluated = np.zeros((len(anchors), tokens), bool)
    for b, row in enumerate(anchors):
        for t in range(first[b], tokens):
            evaluated[b, t] = t == first[b] or any(a >= 0 and a - WINDOW <= t < a for a in row)
    return evaluated


def unpacked(trace, shape):
    return (trace["bits"].reshape(shape)[..., None] >> np.arange(trace["heads"]) & 1).astype(bool)


class Request:
    """Feeds a context; the past is linked or handed back and forth."""

    def __init__(self, engine, linked, capacity, threads):
        self.context, self.linked = api.Context(engine, threads=threads), linked
        self.context.trace_checks()
        if linked:
            self.context.link_state("past", "present", capacity)

    def run(self, ids, mask, anchors, past):
        feeds = {"input_ids": ids, "attention_mask": mask}
        if anchors is not None:
            feeds["anchors"] = anchors
        if not self.linked:
            feeds["past"] = past
        return self.context.run(feeds, ["y"] if self.linked else ["y", "present"])


def compare(name, model, engine, ids, first, anchors, cuts, linked, threads):
    """One document in chunks that end at `cuts`, against the whole pass of the definition."""
    batch, tokens = ids.shape
    mask = (np.arange(tokens)[None] >= np.array(first)[:, None]).astype(np.int64)
    evaluated = None if anchors is None else where(anchors, first, tokens)
    wanted, bits = model.run(ids, evaluated)
    request, past, begin = Request(engine, linked, max(tokens, 1), threads), np.zeros((batch, 0, model.width), np.float32), 0
    for end in [*cuts, tokens]:
        out = request.run(ids[:, begin:end], mask[:, :end], None if anchors is None else np.array(anchors, np.int32).reshape(batch, -1), past)
        past = out.get("present", past)
        stats = request.context.check_stats()
        difference = np.abs(out["y"] - wanted[:, begin:end]).max(initial=0)
        expect(difference <= 1e-4 * max(1, np.abs(wanted).max(initial=0)), f"{name}: outputs of tokens {begin} to {end} differ by {difference:.3g}", quiet=True)
        count = batch * (end - begin) if evaluated is None else int(evaluated[:, begin:end].sum())
        expect(stats["evaluations_sparse"] == count and stats["evaluations_dense"] == batch * (end - begin), f"{name}: {stats} where {count} tokens of {begin} to {end} are to be evaluated", quiet=True)
        for layer in range(LAYERS if stats["checks"] else 0):
            trace = request.context.check_trace(layer)
            same = np.array_equal(unpacked(trace, (batch, end - begin)), bits[layer][:, begin:end])
            expect(same, f"{name}: bits of layer {layer}, tokens {begin} to {end}", quiet=True)
            rows = None if evaluated is None else np.flatnonzero(evaluated[:, begin:end])
            expect((trace["evaluated"] is None) == (rows is None) and (rows is None or np.array_equal(trace["evaluated"], rows)), f"{name}: evaluated rows of tokens {begin} to {end}", quiet=True)
            if end > begin:
                carried = [request.context.check_bits(layer, b) for b in range(batch)]
                expect(carried == [int(trace["bits"].reshape(batch, -1)[b, -1]) for b in range(batch)], f"{name}: carried bits after token {end}", quiet=True)
        begin = end


def anchor_lists(rng, batch, tokens):
    """Rows of different lengths, padded with -1 anywhere; unsorted, duplicated, adjacent, on token 0 and beyond the end."""
    width = int(rng.integers(0, 7))
    return [[int(a) if rng.random() < 0.7 else -1 for a in rng.integers(0, tokens + 8, width)] for _ in range(batch)]


def documents(rng, tokens):
    """(batch, first unmasked tokens, anchors) of the cases that the issue names, and random ones."""
    every = list(range(1, tokens + 1))
    yield "no anchor", 1, [0], [[]]
    yield "padding only", 2, [0, 0], [[-1, -1], [-1, -1]]
    yield "one per token", 1, [0], [every]
    yield "token 0 and beyond the end", 2, [0, 1], [[0, tokens + 2], [tokens + 50, 0]]
    yield "padded prompts", 3, [0, min(3, tokens), max(0, tokens - 1)], [[2, 5], [1, -1], [tokens, -1]]
    yield "all masked", 2, [tokens, 0], [[3], [3]]
    yield "dense", 2, [0, 2], None
    for i in range(4):
        batch = int(rng.integers(1, 4))
        yield f"random {i}", batch, [int(f) for f in rng.integers(0, tokens + 1, batch)], anchor_lists(rng, batch, tokens)


def one_model(seed, scratch):
    rng = np.random.default_rng(seed)
    heads = int(rng.choice([1, 3, 3, 5, 32, 33]))
    width, columns, rank = (int(rng.choice(c)) for c in ([2, 7, 16, 40], [1, 5, 33, 64], [1, 5, 31, 32, 33, 70]))
    model, as_gemm = Model(rng, width, columns, heads, rank), seed % 3 == 2
    title = f"seed {seed}: K {heads} R {rank} D {width} F {columns}{' Gemm' if as_gemm else ''}"
    onnx.save(model.onnx(as_gemm), scratch / "plain.onnx")
    np.savez(scratch / "checks.npz", **model.tensors())
    (scratch / "checks.yaml").write_text('{"weights": "checks.npz", "checks": [{"layer": "layers.*.up", "name": "layers.{1}.check"}]}')
    tare("attach-checks", scratch / "plain.onnx", scratch / "checks.yaml", "-o", scratch / "model.onnx")
    report = tare("compile", scratch / "model.onnx", "-o", scratch / "model.tare", "--check-precision", "f32", "--target", "cpu:x86-64-v3,x86-64-v4")
    form = "dense" if heads > 32 else "sparse"
    expect([c["form"] for c in report["checks"]] == [form] * LAYERS and all(c["code"] == (None if form == "sparse" else "CHECK_NOT_FUSABLE") for c in report["checks"]), f"{title}: checks are {form}")
    said = tare("verify", "--certificate", scratch / "model.tare", scratch / "model.onnx")
    expect(said["verified"] and said["checks"] == LAYERS, f"{title}: the certificate holds")
    ids = rng.integers(0, VOCABULARY, (2, 9))
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "past": np.zeros((2, 0, width), np.float32)}
    y = onnxruntime.InferenceSession(str(scratch / "model.onnx"), providers=["CPUExecutionProvider"]).run(["y"], feeds)[0]
    expect(np.abs(y - model.run(ids, None)[0]).max() < 1e-4, f"{title}: ONNX Runtime on what attach-checks wrote")
    before = len(expect.failures)
    engines = [api.Engine(scratch / "model.tare", max_level=level) for level in ["x86-64-v3", "x86-64-v4"]]
    if form == "dense":  # the source, and no anchors to give
        y = api.Context(engines[0]).run(feeds)["y"]
        expect(np.abs(y - model.run(ids, None)[0]).max() < 1e-4, f"{title}: dense outputs")
        return
    cases = 0
    for tokens in [1, 2, 11, int(rng.integers(60, 200))]:
        for case, batch, first, anchors in documents(rng, tokens):
            ids = rng.integers(0, VOCABULARY, (batch, tokens))
            cuts = [[]] + ([[c] for c in range(1, tokens)] if tokens == 11 else []) + [sorted({int(c) for c in rng.integers(1, tokens, rng.integers(1, 6))}) if tokens > 1 else []]
            for i, cut in enumerate(cuts):
                compare(f"{title}: {case}, {tokens} tokens cut at {cut}", model, engines[cases % 2], ids, first, anchors, cut, bool((cases + i) % 2), 1 + cases % 3)
            cases += 1
    empty = Request(engines[0], False, 1, 1)  # no token at all
    out = empty.run(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64), np.zeros((2, 1), np.int32), np.zeros((2, 0, width), np.float32))
    expect(out["y"].shape == (2, 0, width) and empty.context.check_stats()["evaluations_sparse"] == 0, f"{title}: an empty sequence")
    # Two threads on one engine, each with its own documents.
    work = [[(f"{title}: thread {t}", rng.integers(0, VOCABULARY, (2, 50)), [t, 0], anchor_lists(rng, 2, 50), [7, 8, 30]) for _ in range(3)] for t in range(2)]
    threads = [threading.Thread(target=lambda mine: [compare(n, model, engines[1], ids, f, a, c, True, 1) for n, ids, f, a, c in mine], args=(w,)) for w in work]
    [t.start() for t in threads], [t.join() for t in threads]
    expect(len(expect.failures) == before, f"{title}: {cases} documents, every bit")


def main():
    scratch = BUILD / "e2e" / "checks-numpy"
    shutil.rmtree(scratch, True)
    scratch.mkdir(parents=True)
    first, count = (int(a) for a in (sys.argv[2:4] if len(sys.argv) > 3 else (1, 5)))
    for seed in range(first, first + count):
        one_model(seed, scratch)
    return 1 if expect.failures else 0


if __name__ == "__main__":
    sys.exit(main())
