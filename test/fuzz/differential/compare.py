#!/usr/bin/env python3
"""Differential fuzzing: random ONNX graphs through `tare compile` + `tare-run` and through ONNX Runtime. In: the folder of tare and tare-run, seeds.
Out: exit 0, or 1 with a line per mismatch, refusal or crash and the case's files in the scratch folder (model.onnx, oracle.onnx, in-N.npz).
    compare.py BIN [--seeds A:B] [--scratch DIR] [--only ops|blocks] [--seconds N: no new seed after that]
Oracle: ONNX Runtime on the same graph in f32 with weights rounded to the storage type; where the two differ, the f64 evaluation of onnx decides whether the graph
is well enough conditioned to say anything. Seeds are printed; equal seeds give equal graphs.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import graph as g_
import ops

PASSES = ["graph-fold-constants", "graph-fold-shapes", "graph-remove-dead-ops", "graph-short-circuit-layers", "graph-simplify", "graph-fuse-activations", "graph-fuse-attention", "graph-fuse-norms", "graph-merge-equal-ops"]
LEVELS = ["x86-64-v3"] + (["x86-64-v4"] if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else [])
TOLERANCE = {"f32": 2e-4, "f16": 1.5e-2, "bf16": 8e-2}


def random_graph(seed, only=None):
    """A graph of single ops, or of transformer blocks, with its outputs chosen."""
    r = random.Random(seed)
    opset = r.choice([11, 12, 13, 14, 15, 16, 17, 17, 18, 19, 20, 20, 21, 22])
    storage = r.choice(["f32"] * 6 + ["f16", "bf16"])
    # Sizes of the dims in each binding; the first is what the graph's author had in mind, then odd, one, larger than tiles.
    symbols = {"batch": [2, 3, 1, 1], "seq": [5, 7, 1, r.choice([16, 33, 65])], "past": [4, 6, 2, 17]}
    g = g_.Graph(r, opset, symbols, storage)
    kind = only or r.choice(["ops", "ops", "blocks"])
    if kind == "blocks":
        import blocks
        return blocks.model(g)
    width = r.choice([3, 4, 8, 12, 16])
    for _ in range(r.randint(1, 3)):
        dims = r.choice([["batch", "seq", width], ["batch", "seq", width], ["seq", width], ["batch", "seq"], [2, 3, width], ["batch", 4, "seq", width], [width], []])
        g.input(r.choice(["T", "T", "T", "i64", "bool", "i32", "f32"]), dims, low=-2, high=2)
    wanted, tries = r.randint(3, 24), 0
    while len(g.nodes) < wanted and tries < 200:
        tries += 1
        r.choice(ops.PROPOSALS)(g)
    leaves = [t for t in g.tensors if not t.used and t.name not in {i.name for i, _ in g.inputs}]
    outputs = leaves[-6:] + [t for t in r.sample(g.tensors, min(2, len(g.tensors))) if t not in leaves and t.name not in {i.name for i, _ in g.inputs}]
    return g, outputs


def float64(model):
    """The same graph with every f32 as f64."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in list(copy.graph.input) + list(copy.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    def widen(tensor):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for tensor in copy.graph.initializer:
        widen(tensor)
    for node in copy.graph.node:
        for a in node.attribute:
            if a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
            if a.HasField("t"):
                widen(a.t)
    return copy


def oracle64(model, feeds):
    wide = float64(model)
    inputs = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in feeds.items()}
    try:
        return g_.session(wide).run(None, inputs)
    except Exception:  # noqa: BLE001  ONNX Runtime lacks some f64 kernels
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(wide).run(None, inputs)


def difference(ours, expected):
    """Largest difference over the largest finite magnitude (at least 1); inf where NaN, Inf, shape or dtype class disagree."""
    if ours.shape != expected.shape:
        return np.inf
    if ours.dtype.kind in "biu":
        return np.inf if not np.array_equal(ours, expected) else 0.0
    if not ours.size:
        return 0.0
    ours, expected = ours.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(np.isnan(ours), np.isnan(expected)) or not np.array_equal(ours[~finite & ~np.isnan(expected)], expected[~finite & ~np.isnan(expected)]):
        return np.inf
    if not finite.any():
        return 0.0
    return np.abs(ours[finite] - expected[finite]).max() / max(1.0, np.abs(expected[finite]).max())


def load(array, kind):
    """An output as f32: bf16 arrives as raw 16-bit words."""
    if kind == "bf16" and array.dtype.itemsize == 2 and array.dtype.kind in "Vu":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


def save_inputs(path, feeds, g):
    stored = {}
    for tensor, _ in g.inputs:
        value = feeds[tensor.name]
        if tensor.kind == "T" and g.storage == "f16":
            value = value.astype(np.float16)
        elif tensor.kind == "T" and g.storage == "bf16":
            value = (np.ascontiguousarray(value).view(np.uint32) >> 16).astype(np.uint16).view("V2").reshape(value.shape)
        stored[tensor.name] = value
    np.savez(path, **stored)


class Fuzzer:
    def __init__(self, binaries, scratch):
        self.tare, self.run = str(binaries / "tare"), str(binaries / "tare-run")
        self.scratch, self.failures, self.counts = scratch, [], {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def fail(self, seed, what):
        self.failures.append((seed, what))
        print(f"seed {seed}: {what}", flush=True)

    def case(self, seed, only=None):
        g, outputs = random_graph(seed, only)
        if not outputs or not g.nodes:
            return self.count("empty")
        model, oracle, feeds = g.finish(outputs)
        folder = self.scratch / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / "model.onnx")
        onnx.save(oracle, folder / "oracle.onnx")
        r = random.Random(seed + 1)
        flags, level = [], r.choice(LEVELS)
        if r.random() < 0.35:
            flags += ["--disable-pass", r.choice(PASSES)]
        if r.random() < 0.2:
            flags += ["--keep", "*"]
        emit = r.random() < 0.3
        if emit:
            flags += ["--emit-onnx", str(folder / "emitted.onnx")]
        command = [self.tare, "compile", str(folder / "model.onnx"), "-o", str(folder / "e.tare"), "--quiet", "--allow-large-removal", "--target", f"cpu:{level}", *flags]
        made = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if made.returncode:
            self.count(f"compile {made.returncode}")
            return self.fail(seed, f"compile gave {made.returncode} ({g.storage}, opset {g.opset}): {made.stderr.strip()[:600]} [{' '.join(flags)}]")
        try:
            reference = g_.session(oracle)
            results = [reference.run(None, f) for f in feeds]
        except Exception as error:  # noqa: BLE001
            return self.count(f"oracle: {str(error)[:60]}")
        wrong = False
        for b, feed in enumerate(feeds):
            save_inputs(folder / f"in-{b}.npz", feed, g)
            for threads in [1, 2][:: r.choice([1, -1])][: 2 if b == 0 else 1]:
                done = subprocess.run([self.run, str(folder / "e.tare"), "--inputs", str(folder / f"in-{b}.npz"), "--outputs", str(folder / f"out-{b}.npz"), "--threads", str(threads),
                                       "--quiet"], capture_output=True, text=True, timeout=120)
                label = f"binding {b}, {level}, {threads} threads, {g.storage}, opset {g.opset} [{' '.join(flags)}]"
                if done.returncode:
                    self.fail(seed, f"run gave {done.returncode}: {done.stderr.strip()[:400]} ({label})")
                    wrong = True
                    break
                wrong = wrong or self.compare(seed, g, outputs, np.load(folder / f"out-{b}.npz"), results[b], oracle, feed, label)
        if emit:
            try:
                again = g_.session(onnx.load(folder / "emitted.onnx")) if g.storage == "f32" else None
                for f, result in zip(feeds, results):
                    if again and any(difference(x, y) > 1e-6 for x, y in zip(again.run(None, f), result)):
                        self.fail(seed, "the emitted ONNX differs in ONNX Runtime")
                        wrong = True
            except Exception as error:  # noqa: BLE001
                self.fail(seed, f"the emitted ONNX is refused by ONNX Runtime: {str(error)[:200]}")
                wrong = True
        self.count("good" if not wrong else "wrong")
        if not wrong:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def compare(self, seed, g, outputs, ours, expected, oracle, feed, label):
        wide = None
        for i, (tensor, want) in enumerate(zip(outputs, expected)):
            if tensor.name not in ours.files:
                self.fail(seed, f"output {tensor.name} is missing ({label})")
                return True
            got = load(ours[tensor.name], g.storage if tensor.kind == "T" else "f32")
            tolerance = TOLERANCE[g.storage]
            error = difference(got, want)
            if error <= tolerance:
                continue
            try:
                wide = wide or oracle64(oracle, feed)
            except Exception as problem:  # noqa: BLE001
                self.fail(seed, f"{tensor.name} differs by {error:.3g}, no f64 oracle: {str(problem)[:80]} ({label})")
                return True
            noise = difference(want, wide[i])
            if want.dtype.kind == "f" and np.isfinite(noise) and difference(got, wide[i]) <= max(tolerance, 100 * noise):
                self.count("ill-conditioned")
                continue
            self.fail(seed, f"{tensor.name} {got.dtype}{list(got.shape)} differs by {error:.3g} (f32 oracle against f64 {noise:.3g}; {label})")
            return True
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--only", choices=["ops", "blocks"])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    fuzzer = Fuzzer(options.binaries, options.scratch or pathlib.Path(tempfile.mkdtemp(prefix="tare-fuzz-")))
    end = time.monotonic() + options.seconds
    for seed in range(first, last):
        if time.monotonic() > end:
            break
        fuzzer.case(seed, options.only)
    print(f"seeds {first} to {seed}: {fuzzer.counts}")
    return 1 if fuzzer.failures or not fuzzer.counts.get("good") else 0


if __name__ == "__main__":
    sys.exit(main())
