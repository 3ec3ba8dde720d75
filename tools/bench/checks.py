#!/usr/bin/env python3
"""What fidelity checks cost, dense and sparse (spec 6). In: the build folder. Out: a table, and one JSON object with --json. Needs numpy, onnx, onnxruntime (tools/python-env.sh).

    checks.py build [--threads 1] [--rounds 15] [--lengths 128,2000,8000] [--json OUT]

Everything is measured inside of this run and interleaved as in compare.py. The same model is taken in three forms: without checks (the functions taken out of the graph),
with dense checks, with sparse int4 ones. Dense is the better of our dense engine and ONNX Runtime on the same ONNX file. A share of run time is the time above the model without
checks. Kernel figures (int4 sparse against f16 dense) come from `ninja -C build bench-kernels && build/bin/bench-checks-x86-64-v4`.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx

import compare


def tare(build, *arguments):
    done = subprocess.run([build / "bin" / "tare", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tare {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def without_checks(source, target):
    """Every check and the addition of its result leave the graph."""
    model = onnx.load(source, load_external_data=False)
    drop, rename = [], {}
    for check in [n for n in model.graph.node if n.op_type == "FidelityCheck"]:
        add = next(n for n in model.graph.node if check.output[0] in n.input)
        rename[add.output[0]] = next(i for i in add.input if i != check.output[0])
        drop += [check, add]
    for node in drop:
        model.graph.node.remove(node)
    for node in model.graph.node:
        node.input[:] = [rename.get(i, i) for i in node.input]
    used = {i for n in model.graph.node for i in n.input}
    keep = [t for t in model.graph.initializer if t.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(keep)
    onnx.save(model, target)


def minilm_with_checks(build, folder):
    """K=3, R=384 on all six layers; thresholds between the distances of random states, so that bits vary."""
    rng = np.random.default_rng(3)
    arrays = {}
    for layer in range(6):
        arrays[f"c{layer}.W"] = (rng.standard_normal((3, 384, 384)) / 20).astype(np.float32)
        arrays[f"c{layer}.p"] = rng.standard_normal((3, 384)).astype(np.float32)
        arrays[f"c{layer}.tau"] = np.full(3, 20, np.float32)
        arrays[f"c{layer}.E"] = (rng.standard_normal((3, 1536)) / 50).astype(np.float32)
    np.savez(folder / "checks.npz", **arrays)
    (folder / "checks.yaml").write_text('weights: checks.npz\nchecks:\n  - layer: m.encoder.layer.*.intermediate.dense\n    name: m.encoder.layer.{1}.check\n    heads: 3\n    rank: 384\n'
                                        '    tensors: {W: "c{1}.W", p: "c{1}.p", tau: "c{1}.tau", E: "c{1}.E"}\n')
    shutil.copy(build / "data" / "models" / "minilm" / "minilm-legacy.onnx", folder / "none.onnx")
    shutil.copy(build / "minilm" / "model.safetensors", folder)
    tare(build, "attach-checks", folder / "none.onnx", folder / "checks.yaml", "-o", folder / "source.onnx")


class Form:
    """One engine or session with its own inputs."""
    def __init__(self, runner, path, threads, feeds):
        self.call = compare.RUNNERS[runner](path, threads).prepare(feeds)


def anchors_for(sequence, every=334):
    """As dense as in the reference document: 6 anchors in 2000 tokens."""
    return np.array([[2, *range(every, sequence, every)]], np.int32)


def timed(calls, rounds):
    return {name: t["median_ms"] for name, t in compare.measure(calls, rounds).items()}


def engines(build, folder, calibration):
    """source.onnx and none.onnx in `folder` become engines: none, dense, sparse; full_dense keeps every candidate."""
    extra = ["--calibration", calibration] if calibration else []
    tare(build, "compile", folder / "none.onnx", "-o", folder / "none.tare", *extra)
    for name, options in [("dense", ["--check-precision", "dense"]), ("sparse", ["--check-precision", "int4"]), ("full_dense", ["--check-precision", "dense", "--keep", "*"])]:
        tare(build, "compile", folder / "source.onnx", "-o", folder / f"{name}.tare", *extra, *options)


def shares(folder, feeds, anchors, threads, rounds):
    calls = {"none": Form("tare", folder / "none.tare", threads, feeds).call, "dense": Form("tare", folder / "dense.tare", threads, feeds).call,
             "sparse": Form("tare", folder / "sparse.tare", threads, {**feeds, "anchors": anchors}).call,
             "ort_none": Form("onnxruntime", folder / "none.onnx", threads, feeds).call, "ort_dense": Form("onnxruntime", folder / "source.onnx", threads, feeds).call}
    t = timed(calls, rounds)
    return {**t, "share_dense": 1 - t["none"] / t["dense"], "share_dense_ort": 1 - t["ort_none"] / t["ort_dense"], "share_sparse": 1 - t["none"] / t["sparse"]}


def end_to_end(folder, feeds, anchors, threads, rounds):
    calls = {"full_dense": Form("tare", folder / "full_dense.tare", threads, feeds).call, "pruned_sparse": Form("tare", folder / "sparse.tare", threads, {**feeds, "anchors": anchors}).call,
             "ort_full_dense": Form("onnxruntime", folder / "source.onnx", threads, feeds).call}
    t = timed(calls, rounds)
    t["ratio"] = min(t["full_dense"], t["ort_full_dense"]) / t["pruned_sparse"]
    return t


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--lengths", default="128,2000,8000")
    parser.add_argument("--json")
    a = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: a.threads])
    scratch = a.build / "bench-checks"
    shutil.rmtree(scratch, True)
    contract, minilm = scratch / "contract-lm", scratch / "minilm"
    contract.mkdir(parents=True)
    example = compare.ROOT / "examples" / "contract-lm"
    shutil.copy(example / "contract-lm.onnx", contract / "source.onnx")
    shutil.copy(example / "contract-lm.weights", contract)
    without_checks(contract / "source.onnx", contract / "none.onnx")
    engines(a.build, contract, example / "calibration.npz")
    result = {"threads": a.threads, "machine": compare.machine()}

    text = np.frombuffer((example / "reference-document.txt").read_bytes(), np.uint8).astype(np.int64)
    ids = np.concatenate([[256], text])[None]
    anchors = np.array([[2, 340, 677, 1014, 1337, 1679]], np.int32)
    np.savez(scratch / "reference.npz", input_ids=ids, anchors=anchors)
    said = json.loads(tare(a.build, "run", contract / "sparse.tare", "--inputs", scratch / "reference.npz", "--json"))
    result["reference"] = {k: said[k] for k in ("check_evaluations", "anchor_hits", "fidelity_score", "compute_savings")}
    print(f"reference document: {said['check_evaluations']['dense']} -> {said['check_evaluations']['sparse']} check evaluations, {said['anchor_hits']} anchors hit, fidelity {said['fidelity_score']}")

    result["contract-lm"] = shares(contract, {"input_ids": ids}, anchors, a.threads, a.rounds)
    if (a.build / "minilm" / "model.safetensors").exists():
        minilm.mkdir()
        minilm_with_checks(a.build, minilm)
        engines(a.build, minilm, None)
        feeds = {"input_ids": np.random.default_rng(1).integers(1000, 30000, (1, 512)), "attention_mask": np.ones((1, 512), np.int64), "token_type_ids": np.zeros((1, 512), np.int64)}
        result["minilm"] = shares(minilm, feeds, anchors_for(512), a.threads, a.rounds)
        result["minilm, an anchor per 64 tokens"] = shares(minilm, feeds, anchors_for(512, 64), a.threads, a.rounds)
    else:
        print("left out: MiniLM's weights are not there (tools/fetch-minilm.sh)")
    for name, r in result.items():
        if isinstance(r, dict) and "share_dense" in r:
            print(f"{name}: no checks {r['none']:.2f} ms, dense {r['dense']:.2f} ms (ONNX Runtime {r['ort_dense']:.2f}), sparse int4 {r['sparse']:.2f} ms; "
                  f"share of run time: dense {r['share_dense']:.1%} (ONNX Runtime {r['share_dense_ort']:.1%}), sparse {r['share_sparse']:.2%}")

    result["end_to_end"] = {}
    for sequence in map(int, a.lengths.split(",")):
        feeds = {"input_ids": np.resize(ids, (1, sequence))}
        r = result["end_to_end"][sequence] = end_to_end(contract, feeds, anchors_for(sequence), a.threads, max(3, a.rounds // 3) if sequence > 4000 else a.rounds)
        print(f"contract-lm, {sequence} tokens: full + dense {r['full_dense']:.1f} ms (ONNX Runtime {r['ort_full_dense']:.1f}), pruned + sparse {r['pruned_sparse']:.1f} ms: ratio {r['ratio']:.2f}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
