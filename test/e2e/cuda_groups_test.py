#!/usr/bin/env python3
"""Sums of neighbours (a warp each), sums across rows (a thread each) and products of two activations (tiles) as CUDA text on the emulator. In: the build folder.
Out: exit 0, or 1 and what differs from numpy in float64. The text must have the form that its shape asks for: what is fast is not seen in results.
"""
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

BUILD = pathlib.Path(sys.argv[1])
TARE, FOLDER = BUILD / "bin" / "tare", BUILD / "e2e" / "cuda-groups"
random = np.random.default_rng(20261130)


def tare(*arguments):
    result = subprocess.run([TARE, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"tare {arguments[0]}: {result.stderr}")
    return result.stdout


def check(name, nodes, inputs, want, form):
    """`inputs`: name -> (symbolic shape, array); `want`: the output y; `form`: a line that the kernel's text must have."""
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, (s, _) in inputs.items()],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model, engine = FOLDER / f"{name}.onnx", FOLDER / f"{name}.tare"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    tare("compile", model, "--target", "cuda-emu", "-o", engine, "--quiet")
    np.savez(FOLDER / "in.npz", **{n: a for n, (_, a) in inputs.items()})
    tare("run", engine, "--inputs", FOLDER / "in.npz", "--outputs", FOLDER / "out.npz", "--quiet")
    got = np.load(FOLDER / "out.npz")["y"]
    kernels = [line.split()[0] for line in tare("inspect", engine, "--kernels").splitlines() if line.endswith(" steps")]
    text = "".join(tare("inspect", engine, "--kernels", "--source", k) for k in kernels)
    worst = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
    good = worst < 2e-6 and form in text
    print(f"{name}: {len(kernels)} kernel(s), relative difference {worst:.2g}{'' if form in text else ', the text has no ' + form}")
    return 0 if good else 1


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong = 0
    x = normal(2, 7, 3, 50)
    d = x.astype(np.float64)
    logSumExp = np.log(np.exp(d).sum((1, 3), keepdims=True))
    both = {"ReduceMean": d.mean((1, 3), keepdims=True), "ReduceMax": d.max((1, 3), keepdims=True), "ReduceMin": d.min((1, 3), keepdims=True),
            "ReduceL1": np.abs(d).sum((1, 3), keepdims=True), "ReduceL2": np.sqrt((d * d).sum((1, 3), keepdims=True)), "ReduceLogSumExp": logSumExp}
    c = normal(2, 1, 3, 1)
    for op, value in both.items(): # an outer axis and the innermost one, and an epilogue
        wrong += check(op, [helper.make_node(op, ["x"], ["r"], axes=[-1, 1]), helper.make_node("Mul", ["r", "c"], ["y"])],
                       {"x": (["B", "S", 3, "D"], x), "c": (["B", 1, 3, 1], c)}, value * c, "warp_each(")
    near = 1 + 0.01 * normal(5, 40)
    wrong += check("ReduceProd", [helper.make_node("ReduceProd", ["x"], ["y"], axes=[1], keepdims=0)], {"x": (["B", "D"], near)}, near.astype(np.float64).prod(1), "warp_each(")
    wrong += check("ReduceOuter", [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], {"x": (["B", "S", 3, "D"], x)}, d.mean(1), "pointwise(")
    few = normal(9, 8)
    wrong += check("ReduceFew", [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)], {"x": ([9, 8], few)}, few.astype(np.float64).sum(keepdims=True), "warp_each(")
    wrong += check("ReduceFewer", [helper.make_node("ReduceL2", ["x"], ["y"], axes=[1])], {"x": (["B", 8], few)}, np.sqrt((few.astype(np.float64) ** 2).sum(1, keepdims=True)), "pointwise(")

    a, b = normal(2, 3, 70, 40), normal(2, 3, 66, 40)
    product = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 1, 3, 2)
    wrong += check("Transposed", [helper.make_node("Transpose", ["b"], ["t"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["a", "t"], ["p"]), helper.make_node("Mul", ["p", "p"], ["y"])],
                   {"a": (["B", 3, "S", 40], a), "b": (["B", 3, "T", 40], b)}, product * product, "matmul_f32(")
    a, b = normal(5, 1, 33), normal(33, 65)
    wrong += check("OneRow", [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": (["B", 1, "K"], a), "b": (["K", "N"], b)}, a.astype(np.float64) @ b, "matmul_f32(")
    a, b = normal(1, 3, 5, 33), normal(4, 3, 33, 1)
    wrong += check("BroadcastOneColumn", [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Neg", ["p"], ["y"])],
                   {"a": ([1, 3, "M", "K"], a), "b": (["B", 3, "K", 1], b)}, -(a.astype(np.float64) @ b), "matmul_f32(")
    return 1 if wrong else 0


sys.exit(main())
