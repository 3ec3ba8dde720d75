#!/usr/bin/env python3
"""Whole models compiled for real GPUs by one of the three compilers. In: TARE (binary), DATA (models), arguments: nvrtc, nvcc or clang, and a folder for output. Out: exit 0
and ptxas's table; 1 with what is wrong; 77 when that compiler is not here. Checked: images of every kernel for every architecture, the report, the table of launches,
equal bytes whatever threads, folder and cache, and that the cache saves every compile.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TARE, DATA = os.environ["TARE"], pathlib.Path(os.environ["DATA"])
MODE, OUT = sys.argv[1], pathlib.Path(sys.argv[2])
ONLY = {"nvrtc": {"TARE_NVCC": "none", "TARE_CLANG": "none"}, "nvcc": {"TARE_NVRTC": "none", "TARE_CLANG": "none"}, "clang": {"TARE_NVRTC": "none", "TARE_NVCC": "none"}}[MODE]
# All six architectures: tools/bench/cuda_resources.py. nvcc starts anew for every image.
ALL = {"nvrtc": "sm_80,sm_90", "nvcc": "sm_90", "clang": "sm_80,sm_89,sm_120"}[MODE]
wrong = []


def check(condition, what):
    if not condition:
        wrong.append(what)
        print("WRONG:", what)


def tare(*arguments, **environment):
    return subprocess.run([TARE, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **ONLY, **environment})


def compiled(model, engine, *flags, **environment):
    done = tare("compile", model, "-o", engine, *flags, **environment)
    if done.returncode:
        sys.exit(f"compile of {model} failed with {done.returncode}:\n{done.stderr}")
    return done


def images(target):
    numbers = sorted(int(word[3:]) for word in target.split(","))
    if MODE == "clang":
        return [f"compute_{n}" for n in sorted({90 if n >= 90 else 80 for n in numbers})]
    return [f"sm_{n}" for n in numbers] + [f"compute_{numbers[0]}"]


def checked(name, engine, target):
    """The engine's own words against one another."""
    plan = json.loads(tare("inspect", engine, "--plan", "--json").stdout)["cuda"]
    shown = json.loads(tare("inspect", engine, "--kernels", "--json").stdout)["cuda"]
    report = json.loads(tare("report", engine, "--format", "json").stdout)["cuda"]
    check([i["architecture"] for i in plan["images"]] == images(target), f"{name}: images {[i['architecture'] for i in plan['images']]}")
    check([i["architecture"] for i in shown["images"]] == report["images"] == images(target), f"{name}: images of inspect and report")
    kernels = [k["name"] for k in shown["kernels"]]
    check({launch["kernel"] for launch in plan["launches"]} == set(kernels), f"{name}: kernels that are launched")
    check(all(len(i["sizes"]) == len(kernels) and all(size > 500 for size in i["sizes"]) for i in plan["images"]), f"{name}: sizes")
    cubins = [a for a in images(target) if a.startswith("sm_")]
    for kernel in report["kernels"]:
        check([r["architecture"] for r in kernel["resources"]] == cubins, f"{name}: resources of {kernel['name']}")
        check(all(8 <= r["registers"] <= 255 for r in kernel["resources"]), f"{name}: registers of {kernel['name']}")
        for r in kernel["resources"]:
            print(f"{name:12} {r['architecture']:7} {kernel['name']:72} {r['registers']:>4} registers {kernel['dynamic_shared_bytes']:>6} shared {r['stack_bytes']:>5} stack {r['spill_store_bytes']:>4} spilled")
    bytes_ = pathlib.Path(engine).read_bytes()
    check(bytes_.count(b"\x7fELF") >= len(cubins) * len(kernels), f"{name}: cubins in the file")
    for kernel in kernels:
        check((".entry " + kernel + "(").encode() in bytes_, f"{name}: PTX of {kernel}")
    source = tare("inspect", engine, "--kernels", "--source", kernels[0]).stdout
    check(re.search(r"TARE_[A-Z_]*KERNEL\(128\) " + kernels[0] + r"\(", source), f"{name}: text of {kernels[0]}")
    check(tare("verify", engine).returncode == 0, f"{name}: hashes")
    return report


def contract_lm():
    engine = OUT / f"contract-lm-{MODE}.tare"
    begun = time.monotonic()
    done = compiled(DATA / "contract-lm" / "contract-lm.onnx", engine, "--target", "cuda:" + ALL, "--check-precision", "int4")
    print(f"contract-lm for {ALL} by {MODE}: {time.monotonic() - begun:.1f} s")
    report = checked("contract-lm", engine, ALL)
    spills = [k["name"] for k in report["kernels"] if k["kind"] in ("gemm", "attention") and any(r["spill_store_bytes"] + r["spill_load_bytes"] for r in k["resources"])]
    check(all(name + " spills registers" in done.stderr for name in spills), "a spill without a warning")
    check(not spills, f"hot kernels that spill: {spills}")
    check(("no CUDA Toolkit was found" in done.stderr) == (MODE == "clang"), "the warning about PTX")
    check(("why" in report) == (MODE == "clang"), "why there are no resources")


def bytes_are_equal():
    model, flags, folder = DATA / "bert-tiny", ["--target", "cpu:x86-64-v3,cuda:sm_80", "--quiet"], OUT / f"bert-tiny-{MODE}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "a place with spaces").mkdir(parents=True)
    compiled(model, folder / "a.tare", *flags, "--threads", "1")
    cache = folder / "cache"
    compiled(model, folder / "b.tare", *flags, "--threads", "4", "--cache-dir", cache, TMPDIR=str(folder / "a place with spaces"))
    check(not list((folder / "a place with spaces").iterdir()), "temporary files are left")
    for entry in cache.glob("*.tare"):
        entry.unlink()  # the engine; what stays are the kernels
    kernels = json.loads(tare("inspect", folder / "a.tare", "--kernels", "--json").stdout)["cuda"]["kernels"]
    count = len(kernels) * len(images("sm_80"))
    check(len(list(cache.glob("*.cubin"))) == count, f"{count} images in the cache")
    again = compiled(model, folder / "c.tare", "--target", "cuda:sm_80", "--target", "cpu:x86-64-v3", "--cache-dir", cache)
    check(f"CUDA kernels: 0 images compiled, {count} from the cache" in again.stderr, "the cache: " + again.stderr)
    for name in ["b", "c"]:
        check((folder / f"{name}.tare").read_bytes() == (folder / "a.tare").read_bytes(), f"{name}.tare is not a.tare")
    checked("bert-tiny", folder / "a.tare", "sm_80")
    engine = bytearray((folder / "a.tare").read_bytes())
    plan = json.loads(tare("inspect", folder / "a.tare", "--plan", "--json").stdout)["cuda"]["images"][0]
    header = json.loads(tare("inspect", folder / "a.tare", "--header", "--json").stdout)["sections"][plan["section"]]
    check(header["kind"] == "cuda module", "the image's section")
    engine[header["offset"] + plan["offsets"][-1] + plan["sizes"][-1] // 2] ^= 1
    (folder / "d.tare").write_bytes(engine)
    refused = tare("verify", folder / "d.tare")
    check(refused.returncode == 3 and "hash mismatch: section cuda module was changed" in refused.stderr, "a changed image: " + refused.stderr)


def tensor_cores():
    """The other printers' texts: mma, ldmatrix, cp.async."""
    check(b"tf32" not in (OUT / f"bert-tiny-{MODE}" / "a.tare").read_bytes(), "TF32 that nobody asked for")
    for precision in {"clang": ["f16", "bf16", "tf32"], "nvrtc": ["f16", "tf32"], "nvcc": ["tf32"]}[MODE]:
        engine = OUT / f"bert-tiny-{MODE}-{precision}.tare"
        compiled(DATA / "bert-tiny", engine, "--target", "cuda:sm_80", *(["--tf32"] if precision == "tf32" else ["--precision", precision]), "--quiet")
        report, tile = checked(f"bert {precision}", engine, "sm_80"), b"m16n8k8" if precision == "tf32" else b"m16n8k16"
        check(report["precision"] == precision, f"precision of {precision}")
        check(f"precision {precision}\n" in tare("inspect", engine, "--kernels").stdout, f"precision of {precision} in inspect")
        check(b"mma.sync.aligned." + tile + b".row.col.f32." + precision.encode() in engine.read_bytes(), f"no tensor core is used in {precision}")
        spilled = [k["name"] for k in report["kernels"] if k["kind"] == "gemm" and any(r["spill_store_bytes"] + r["spill_load_bytes"] for r in k["resources"])]
        check(not spilled, f"GEMMs of {precision} that spill: {spilled}")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        probe = tare("compile", DATA / "bert-tiny", "--target", "cuda:sm_80", "--print-cache-key", TMPDIR=scratch)
    if probe.returncode == 5:
        print(f"skipped: no {MODE} here: {probe.stderr.strip()}")
        return 77
    contract_lm()
    bytes_are_equal()
    tensor_cores()
    return 1 if wrong else 0


sys.exit(main())
