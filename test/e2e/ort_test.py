#!/usr/bin/env python3
"""Comparisons with ONNX Runtime. In: the build folder and a mode. Out: exit 0, 1 with a line per difference, 77 when something optional is not there.
    ort_test.py BUILD emit-onnx    the pruned ONNX (--emit-onnx) gives ONNX Runtime the source's results, and our engine's
    ort_test.py BUILD minilm       MiniLM's two exports and its Hugging Face folder: cosine with ONNX Runtime above 0.99999
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime

from tool import Checker, tare

BUILD = pathlib.Path(sys.argv[1])
MODELS = BUILD / "data" / "models"
SCRATCH = BUILD / "e2e" / f"ort-{sys.argv[2]}"  # the modes run side by side
check = Checker()


def runtime(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def engine(path, feeds, extra=()):
    np.savez(SCRATCH / "in.npz", **feeds)
    tare("run", path, "--inputs", SCRATCH / "in.npz", "--outputs", SCRATCH / "out.npz", "--quiet", *extra)
    return dict(np.load(SCRATCH / "out.npz"))


def emit_onnx():
    folder = MODELS / "contract-lm"
    ids = np.load(folder / "cases" / "medium.npz")["input_ids"]
    for variant in ["", "-anonymous", "-legacy", "-dynamo"]:
        source, pruned = folder / f"contract-lm{variant}.onnx", SCRATCH / f"contract-lm{variant}.pruned.onnx"
        shutil.copy(folder / "contract-lm.weights", SCRATCH / "contract-lm.weights")
        tare("compile", source, "-o", SCRATCH / "emit.tare", "--emit-onnx", pruned, "--calibration", folder / "calibration.npz", "--target", "cpu:x86-64-v3")
        before, after = onnx.load(source, load_external_data=False), onnx.load(pruned, load_external_data=False)
        name = f"contract-lm{variant}"
        check([i.name for i in before.graph.input] == [i.name for i in after.graph.input], f"{name}: same inputs")
        check([o.name for o in before.graph.output] == [o.name for o in after.graph.output], f"{name}: same outputs")
        check(len(after.graph.node) < len(before.graph.node), f"{name}: {len(before.graph.node)} nodes became {len(after.graph.node)}")
        a, b = runtime(source).run(None, {"input_ids": ids})[0], runtime(pruned).run(None, {"input_ids": ids})[0]
        ours = engine(SCRATCH / "emit.tare", {"input_ids": ids})["logits"]
        check(np.abs(a - b).max() <= 1e-6 * np.abs(a).max(), f"{name}: pruned ONNX in ONNX Runtime differs by {np.abs(a - b).max():.3g}")
        check(np.abs(a - ours).max() <= 2e-4, f"{name}: engine against ONNX Runtime differs by {np.abs(a - ours).max():.3g}")


def cosines(a, b, mask):
    """The smallest cosine over unmasked tokens."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    c = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return c[mask != 0].min()


def minilm():
    weights = BUILD / "minilm" / "model.safetensors"
    if not weights.exists():
        print("skipped: MiniLM's weights are not there (tools/fetch-minilm.sh)")
        return 77
    for exporter in ["legacy", "dynamo"]:
        shutil.copy(MODELS / "minilm" / f"minilm-{exporter}.onnx", SCRATCH)
    if not (SCRATCH / "model.safetensors").exists():
        shutil.copy(weights, SCRATCH / "model.safetensors")
    reference = runtime(SCRATCH / "minilm-legacy.onnx")
    rng = np.random.default_rng(7)
    shapes = [(1, 8), (2, 33), (1, 128), (3, 300)]
    for source in [SCRATCH / "minilm-legacy.onnx", SCRATCH / "minilm-dynamo.onnx", BUILD / "minilm"]:
        tare("compile", source, "-o", SCRATCH / "minilm.tare")
        for batch, sequence in shapes:
            mask = np.ones((batch, sequence), np.int64)
            for row in range(1, batch):
                mask[row, sequence - 3 * row:] = 0
            feeds = {"input_ids": rng.integers(1000, 30000, (batch, sequence)), "attention_mask": mask, "token_type_ids": np.zeros((batch, sequence), np.int64)}
            expected, got = reference.run(["last_hidden_state"], feeds)[0], engine(SCRATCH / "minilm.tare", feeds)["last_hidden_state"]
            check(got.shape == expected.shape and cosines(got, expected, mask) > 0.99999, f"{source.name} {batch}x{sequence}: smallest cosine {cosines(got, expected, mask):.8f}")
    return 0


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    status = {"emit-onnx": emit_onnx, "minilm": minilm}[sys.argv[2]]() or 0
    return 1 if check.failures else status


if __name__ == "__main__":
    sys.exit(main())
