#!/usr/bin/env python3
"""Attached fidelity checks against ONNX Runtime and against the definition in float64. In: the build folder. Out: exit 0, or 1 with a line per difference.
For each model: checks with seeded weights, thresholds at the median distance of each head, so that bits are near one half; ONNX Runtime runs what attach-checks
wrote; every check's result equals the definition (spec 6) on the states that ONNX Runtime computed; our engine without anchors gives the same outputs. Scratch memory is
the same with and without checks, and what they hold grows by at most 18% from 1,000 to 128,000 tokens (docs/performance.md).
"""
import json
import pathlib
import shutil
import struct
import sys

import numpy as np
import onnx
import onnxruntime

from tool import Checker, tare

BUILD = pathlib.Path(sys.argv[1])
MODELS, SCRATCH = BUILD / "data" / "models", BUILD / "e2e" / "attach"
HEADS = 3
check = Checker()


def session(model, path):
    """The model with its external data beside `path`."""
    changed = path.with_suffix(".open.onnx")
    onnx.save(model, changed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(changed), options, providers=["CPUExecutionProvider"])


def opened(path, names, feeds):
    """The values of inner tensors in ONNX Runtime."""
    model = onnx.load(path, load_external_data=False)
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return session(model, path).run(list(names), feeds)


def save_safetensors(path, arrays):
    header, data = {}, b""
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def attach(name, source, layer, check_name, linears, rank, feeds, use_safetensors):
    """linears: the names of the MatMul nodes that the glob matches, in order."""
    rng = np.random.default_rng(11)
    nodes = {n.name: n for n in onnx.load(source, load_external_data=False).graph.node}
    states = opened(source, [nodes[n].input[0] for n in linears], feeds)
    results = opened(source, [nodes[n].output[0] for n in linears], feeds)
    tensors, oracle = {}, {}
    for i, (h, y) in enumerate(zip(states, results)):
        W = (rng.standard_normal((HEADS, rank, h.shape[-1])) / np.sqrt(h.shape[-1])).astype(np.float32)
        p = rng.standard_normal((HEADS, rank)).astype(np.float32)
        E = (0.3 * rng.standard_normal((HEADS, y.shape[-1]))).astype(np.float32)
        d = np.linalg.norm(np.einsum("btd,krd->btkr", h.astype(np.float64), W.astype(np.float64)) - p, axis=-1)
        tau = np.median(d, axis=(0, 1)).astype(np.float32)
        tensors.update({f"c{i}.W": W, f"c{i}.p": p, f"c{i}.tau": tau, f"c{i}.E": E})
        oracle[check_name.replace("{1}", str(i))] = (W, p, tau, E)
    weights = SCRATCH / (name + (".safetensors" if use_safetensors else ".npz"))
    save_safetensors(weights, tensors) if use_safetensors else np.savez(weights, **tensors)
    entry = {"layer": layer, "name": check_name, "heads": HEADS, "rank": rank, "tensors": {t: "c{1}." + t for t in ["W", "p", "tau", "E"]}}
    (SCRATCH / f"{name}.yaml").write_text(json.dumps({"version": 1, "weights": weights.name, "checks": [entry]}))  # JSON is YAML
    out = source.with_name(f"{name}.checked.onnx")  # beside its external data
    said = tare("attach-checks", source, SCRATCH / f"{name}.yaml", "-o", out)
    check([c["name"] for c in said["checks"]] == list(oracle), f"{name}: {len(oracle)} checks attached")

    model = onnx.load(out, load_external_data=False)
    onnx.checker.check_model(str(out))
    checks = [n for n in model.graph.node if n.op_type == "FidelityCheck"]
    values = opened(out, [t for n in checks for t in (n.input[0], n.output[0])], feeds)
    smallest, shares = np.inf, []
    for i, (node, (W, p, tau, E)) in enumerate(zip(checks, oracle.values())):
        h, got = values[2 * i].astype(np.float64), values[2 * i + 1]
        margin = tau - np.linalg.norm(np.einsum("btd,krd->btkr", h, W.astype(np.float64)) - p, axis=-1)
        bits = margin > 0
        smallest, shares = min(smallest, np.abs(margin).min()), shares + [bits.mean()]
        difference = np.abs(bits.astype(np.float64) @ E.astype(np.float64) - got).max()
        check(difference <= 1e-5, f"{name}: {node.input[1]}: ONNX Runtime against the definition differs by {difference:.3g}")
    check(smallest > 1e-5 and 0.05 < min(shares) and max(shares) < 0.95, f"{name}: bits are set for {min(shares):.2f} to {max(shares):.2f} of tokens, smallest margin {smallest:.2g}")

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    runtime = onnxruntime.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])
    before = onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    output = runtime.get_outputs()[0].name
    expected, plain = runtime.run([output], feeds)[0], before.run([output], feeds)[0]
    tare("compile", out, "-o", SCRATCH / f"{name}.tare", "--target", "cpu:x86-64-v3", "--check-precision", "int4")
    np.savez(SCRATCH / "in.npz", **feeds)
    tare("run", SCRATCH / f"{name}.tare", "--inputs", SCRATCH / "in.npz", "--outputs", SCRATCH / "out.npz", "--metrics", SCRATCH / "checked.prom")
    memory(name, source)
    got = np.load(SCRATCH / "out.npz")[output]
    bound = 2e-4 * max(1, np.abs(expected).max())
    check(np.abs(expected - plain).max() > 10 * bound, f"{name}: the checks change {output} by up to {np.abs(expected - plain).max():.3g}")
    check(np.abs(got - expected).max() <= bound, f"{name}: dense engine against ONNX Runtime differs by {np.abs(got - expected).max():.3g}")


def arena(path):
    return next(int(float(line.split()[1])) for line in path.read_text().splitlines() if line.startswith("tare_arena_bytes "))


def memory(name, source):
    tare("compile", source, "-o", SCRATCH / "plain.tare", "--target", "cpu:x86-64-v3")
    tare("run", SCRATCH / "plain.tare", "--inputs", SCRATCH / "in.npz", "--metrics", SCRATCH / "plain.prom")
    with_checks, without = arena(SCRATCH / "checked.prom"), arena(SCRATCH / "plain.prom")
    check(with_checks <= without, f"{name}: scratch memory {with_checks} with checks, {without} without")
    for every in [333, 64]:
        held = [tare("estimate", SCRATCH / f"{name}.tare", "--shape", f"input_ids=1x{tokens},anchors=1x{tokens // every}")["check_memory"] for tokens in [1000, 128000]]
        short, long = (m["weight_bytes"] + m["run_bytes"] for m in held)
        if name.startswith("minilm"):
            check(long <= 1.18 * short, f"{name}: an anchor per {every} tokens: checks hold {short:,} bytes at 1,000 tokens, {long:,} at 128,000: {100 * (long / short - 1):+.2f}%")


def main():
    shutil.rmtree(SCRATCH, True)
    SCRATCH.mkdir(parents=True)
    rng = np.random.default_rng(5)
    ids = {"input_ids": rng.integers(1, 200, (2, 24))}
    llama = "/m/model/layers.%d/mlp/gate_proj/MatMul"
    for folder in ["llama-pro-tiny", "bert-tiny", "minilm"]:
        for file in [*(MODELS / folder).glob("*.onnx"), *(MODELS / folder).glob("*.safetensors"), *(MODELS / folder).glob("export.weights")]:
            target = SCRATCH / folder / file.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(file, target)
    layers = len({n.name for n in onnx.load(SCRATCH / "llama-pro-tiny" / "export-legacy.onnx", load_external_data=False).graph.node if n.name.endswith("mlp/gate_proj/MatMul")})
    attach("llama-legacy", SCRATCH / "llama-pro-tiny" / "export-legacy.onnx", "m.model.layers.*.mlp.gate_proj", "m.model.layers.{1}.check", [llama % i for i in range(layers)], 16,
           inputs(SCRATCH / "llama-pro-tiny" / "export-legacy.onnx", ids), True)
    dynamo = [n for n in onnx.load(SCRATCH / "llama-pro-tiny" / "export-dynamo.onnx", load_external_data=False).graph.node
              if n.op_type == "MatMul" and any("mlp.gate_proj" in p.value for p in n.metadata_props)]
    attach("llama-dynamo", SCRATCH / "llama-pro-tiny" / "export-dynamo.onnx", "m.model.layers.*.mlp.gate_proj", "m.model.layers.{1}.check", [n.name for n in dynamo], 16,
           inputs(SCRATCH / "llama-pro-tiny" / "export-dynamo.onnx", ids), False)
    bert = "/m/encoder/layer.%d/intermediate/dense/MatMul"
    attach("bert", SCRATCH / "bert-tiny" / "export-legacy.onnx", "m.encoder.layer.*.intermediate.dense", "m.encoder.layer.{1}.check", [bert % i for i in range(3)], 16,
           inputs(SCRATCH / "bert-tiny" / "export-legacy.onnx", ids), False)
    weights = SCRATCH / "minilm" / "model.safetensors"
    if (BUILD / "minilm" / "model.safetensors").exists():
        shutil.copy(BUILD / "minilm" / "model.safetensors", weights)
    else:  # tools/fetch-minilm.sh was not run: random weights of the same sizes
        parts = [{e.key: e.value for e in t.external_data} for t in onnx.load(SCRATCH / "minilm" / "minilm-legacy.onnx", load_external_data=False).graph.initializer if t.external_data]
        size = max(int(p["offset"]) + int(p["length"]) for p in parts)
        (0.05 * rng.standard_normal(size // 4 + 1, dtype=np.float32)).tofile(weights)
    attach("minilm", SCRATCH / "minilm" / "minilm-legacy.onnx", "m.encoder.layer.*.intermediate.dense", "m.encoder.layer.{1}.check", [bert % i for i in range(6)], 384,
           inputs(SCRATCH / "minilm" / "minilm-legacy.onnx", ids), True)
    return 1 if check.failures else 0


def inputs(path, ids):
    """What the graph asks for beside ids: ones for masks, zeros for types."""
    feeds = {}
    for i in onnx.load(path, load_external_data=False).graph.input:
        feeds[i.name] = ids["input_ids"] if i.name == "input_ids" else np.ones_like(ids["input_ids"]) if "mask" in i.name else np.zeros_like(ids["input_ids"])
    return feeds


if __name__ == "__main__":
    sys.exit(main())
