#!/usr/bin/env python3
"""Whole engines on the present GPU: verified, then timed. Called by gpu-check.sh. In: a built tree (build/bin/tare, build/data), an NVIDIA GPU; with --dry-run the fake driver and the
emulator in its place (whatever is timed then says nothing). Out: one table on stdout; exit 1 when a result is wrong, 5 when this machine cannot do it. Standard library only.
Must hold: nothing starts that the time limit (--seconds) leaves no room for; what was left out is in the table.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("TARE_BUILD", ROOT / "build"))
TARE, DATA = BUILD / "bin" / "tare", BUILD / "data" / "models"
LM = DATA / "contract-lm"
CALIBRATION = ["--calibration", LM / "calibration.npz"]
# name, model, flags, golden cases, shapes to time
ENGINES = [
    ("contract-lm", LM / "contract-lm.onnx", CALIBRATION, ["one", "short", "batch"], ["input_ids=1x128", "input_ids=1x512", "input_ids=1x2000"]),
    ("contract-lm-f16", LM / "contract-lm.onnx", [*CALIBRATION, "--precision", "f16"], ["one", "short", "batch"], ["input_ids=1x512", "input_ids=1x2000"]),
    ("contract-lm-tf32", LM / "contract-lm.onnx", [*CALIBRATION, "--tf32"], ["one", "short", "batch"], ["input_ids=1x512", "input_ids=1x2000"]),
    ("contract-lm-kv-cuda", LM / "contract-lm-kv.onnx", ["--check-precision", "f32"], [], ["input_ids=1x1"]),
    ("llama-pro-tiny", DATA / "llama-pro-tiny", [], [], ["input_ids=1x128"]),
    ("minilm", BUILD / "minilm", [], [], ["input_ids=1x128", "input_ids=32x128", "input_ids=1x512"]),
    ("minilm-f16", BUILD / "minilm", ["--precision", "f16"], [], ["input_ids=1x128", "input_ids=32x128"]),
]


class Check:
    def __init__(self, options):
        self.dry, self.end, self.failed = options.dry_run, time.monotonic() + options.seconds, 0
        self.out = BUILD / ("gpu-check-dry" if self.dry else "gpu-check")
        self.out.mkdir(parents=True, exist_ok=True)
        self.environment = dict(os.environ)

    def row(self, what, verdict, detail, seconds=None):
        self.failed += verdict == "WRONG"
        print(f"{what:<44} {verdict:<9} {'' if seconds is None else f'{seconds:6.1f} s'}  {detail}", flush=True)

    def call(self, *command, most=150):
        """The finished process, or None when there is no time."""
        left = self.end - time.monotonic()
        if left < 5:
            return None
        try:
            return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=self.environment, timeout=min(most, left))
        except subprocess.TimeoutExpired:
            return None

    def tried(self, what, *command):
        """JSON of a command of tare, or None; a row when it failed."""
        began = time.monotonic()
        done = self.call(*command, "--json")
        seconds = time.monotonic() - began
        if done is None:
            self.row(what, "left out", "no time left for it", seconds)
            return None, seconds
        try:
            result = json.loads(done.stdout)
        except json.JSONDecodeError:
            result = None
        if done.returncode and result is None or result is not None and "error" in result and "cases" not in result and "targets" not in result:
            message = result["error"]["message"] if result else done.stderr.strip().splitlines()[-1:] or "no output"
            self.row(what, "WRONG", f"exit {done.returncode}: {message}", seconds)
            return None, seconds
        return result, seconds

    def use_fake(self, engine):
        if not self.dry:
            return
        library = self.out / (engine.stem + ".so")
        subprocess.run([sys.executable, ROOT / "test/support/fakecuda/host_kernels.py", os.environ.get("TARE_CLANG", "clang-19"), ROOT, engine, library], check=True, capture_output=True)
        self.environment |= {"TARE_LIBCUDA": str(BUILD / "lib" / "libfakecuda.so"), "FAKE_CUDA_KERNELS": str(library), "FAKE_CUDA_CAPABILITY": "90", "FAKE_CUDA_LOG": str(self.out / "driver.log")}

    def compile(self, name, model, flags, arch):
        engine = self.out / (name + ".tare")
        began = time.monotonic()
        done = self.call(TARE, "compile", model, "-o", engine, "--target", f"cpu,cuda:{arch}", "--quiet", *flags)
        seconds = time.monotonic() - began
        if done is None or done.returncode:
            self.row(f"{name}: compile", "WRONG" if done else "left out", done.stderr.strip().splitlines()[0] if done else "no time left for it", seconds)
            return None
        self.row(f"{name}: compile", "ok", arch, seconds)
        self.use_fake(engine)
        return engine

    def verify(self, name, model, engine, cases):
        """Against the source's float64 evaluation and the cases of an independent implementation, then GPU against CPU."""
        golden = self.out / (name + "-cases")
        golden.mkdir(exist_ok=True)
        for case in cases:
            (golden / f"{case}.npz").write_bytes((LM / "cases" / f"{case}.npz").read_bytes())
        result, seconds = self.tried(f"{name}: GPU against the source", TARE, "verify", model, engine, "--target", "cuda", "--gate", "100", *(["--golden", golden] if cases else []))
        if result:
            for kind, key in [("source in float64", "shadow"), ("oracle's cases", "engine_golden")]:
                counts = [c[key] for c in result["cases"] if key in c]
                if counts:
                    violations, most = sum(c["violations"] for c in counts), max(c["max_difference"] for c in counts)
                    allowed = 0.001 * sum(c["elements"] for c in counts) if name.endswith(("-f16", "-tf32")) else 0  # rounded products may exceed the tolerance of f32 here and there
                    self.row(f"{name}: GPU against {kind}", "ok" if violations <= allowed else "WRONG", f"{violations} violations, largest difference {most:.2g}", seconds)
        result, seconds = self.tried(f"{name}: GPU against CPU", TARE, "verify", engine)
        for target in result.get("targets", []) if result else []:
            if "against" in target:
                self.row(f"{name}: GPU against CPU", "ok" if target["violation_rate"] <= 0.001 else "WRONG", f"{target['violations']} violations, largest difference {target['max_difference']:.2g}", seconds)
            elif not target["ran"]:
                self.row(f"{name}: {target['target']}", "WRONG", target["why"])

    def oracle_test(self, engine):
        """The end-to-end test of the GPU path: every bit of the fidelity checks, caches chunk by chunk, faults, threads."""
        test = BUILD / "bin" / "e2e-cuda-driver"
        if not test.exists():
            return self.row("contract-lm-kv: oracle test", "left out", "build/bin/e2e-cuda-driver is not built")
        self.environment |= {"TARE_CUDA_ENGINES": str(engine.parent)} | ({} if self.dry else {"TARE_REAL_GPU": "1"})
        began = time.monotonic()
        done = self.call(test)
        lines = done.stdout.strip().splitlines() if done else []
        detail = next((line for line in reversed(lines) if "PASSED" in line or "FAILED" in line), "") if done else "no time left for it"
        self.row("contract-lm-kv: bits, caches, threads", "left out" if done is None else "ok" if done.returncode == 0 else "WRONG", detail, time.monotonic() - began)
        if done and done.returncode:
            print("\n".join(line for line in lines if "Failure" in line or "Expected" in line)[:3000])

    def bench(self, name, engine, shape):
        repeat = ["--repeat", "1" if self.dry else "50"]
        times = {}
        for target in ("cpu", "cuda"):
            result, _ = self.tried(f"{name}: time of {shape} on {target}", TARE, "bench", engine, "--shape", shape, "--target", target, *repeat)
            if result is None:
                return
            times[target] = result
        cpu, gpu = times["cpu"]["median_ms"], times["cuda"]["median_ms"]
        self.row(f"{name} {shape.split('=')[1]}", "time", f"GPU {gpu:.3f} ms (min {times['cuda']['min_ms']:.3f}, p95 {times['cuda']['p95_ms']:.3f}), CPU {cpu:.3f} ms, {cpu / gpu:.1f}x")
        steps = sorted(times["cuda"]["steps"], key=lambda s: -s["ms"])
        whole = sum(s["ms"] for s in steps) or 1
        for s in steps[:6]:
            rate = f"{s['flops'] / s['ms'] / 1e6:9.1f} GFLOP/s {s['bytes'] / s['ms'] / 1e6:8.1f} GB/s" if s["ms"] > 0 else ""
            print(f"    {s['ms']:9.4f} ms {100 * s['ms'] / whole:5.1f}% {rate}  {s['kind']:<13} {s['name']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--only", action="append", help="this engine of the table (for a dry run)")
    options = parser.parse_args()
    if not TARE.exists() or not LM.exists():
        print("gpu-check: no built tree here: cmake --preset release && ninja -C build", file=sys.stderr)
        return 5
    check = Check(options)
    print(f"{'what':<44} {'':<9} {'time':>8}  result")
    engines = []
    for name, model, flags, cases, shapes in ENGINES:
        if options.only and name not in options.only:
            continue
        if not model.exists():
            check.row(name, "left out", f"{model.relative_to(ROOT)} is not there" + (" (tools/fetch-minilm.sh)" if "minilm" in name else ""))
            continue
        engine = check.compile(name, model, flags, options.arch)
        if not engine:
            continue
        check.verify(name, model, engine, cases)
        if name == "contract-lm-kv-cuda":
            check.oracle_test(engine)
        if check.dry:
            check.bench(name, engine, shapes[0].split("x")[0].rstrip("0123456789") + "1x8")
        engines.append((name, engine, shapes))
    for name, engine, shapes in engines if not check.dry else []:
        for shape in shapes:
            check.bench(name, engine, shape)
    print(f"{check.failed} results are wrong" if check.failed else "all results are right")
    return 1 if check.failed else 0


sys.exit(main())
