#!/usr/bin/env python3
"""Latency of a Tare engine against ONNX Runtime on the same model, interleaved. In: an ONNX file (or another engine's source) and its engine.
Out: a table, and one JSON object with --json. Outputs are compared before anything is timed. Needs numpy, onnx, onnxruntime (tools/python-env.sh).

    compare.py MODEL.onnx ENGINE.tare --shape 1x8,1x32,1x128,1x512 --threads 1 [--rounds 15] [--load] [--compile build/bin/tare] [--json OUT]

Method: runners take turns (A, B, A, B, ...), each round gives each runner 50 ms of rest, one warm-up call and then calls for about 80 ms; the figure is the median of
the rounds' medians, so slow drift of the machine hits all alike. The process is pinned to as many CPUs as threads. ONNX Runtime has all optimisations
on. Inputs: random ids, masks of ones, types of zeros. Compare figures only inside one run.
"""
import argparse
import gc
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "python"))


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.output = self.session.get_outputs()[0].name

    def prepare(self, feeds):
        return lambda: self.session.run([self.output], feeds)[0]


class Tare:
    def __init__(self, path, threads):
        import tare
        self.engine = tare.Engine(str(path))
        self.context = tare.Context(self.engine, threads=threads)
        self.output = self.engine.outputs[0]["name"]

    def prepare(self, feeds):
        return lambda: self.context.run(feeds, [self.output])[self.output]


RUNNERS = {"tare": Tare, "onnxruntime": OnnxRuntime}


def feeds_for(path, batch, sequence):
    import onnx
    rng, feeds = np.random.default_rng(0), {}
    for i in onnx.load(path, load_external_data=False).graph.input:
        shape = (batch, sequence)
        vocabulary = 30000 if "minilm" in str(path) else 250
        feeds[i.name] = np.ones(shape, np.int64) if "mask" in i.name else np.zeros(shape, np.int64) if "type" in i.name else rng.integers(1, vocabulary, shape)
    return feeds


def measure(calls, rounds):
    """name -> callable; returns name -> {median_ms, min_ms, p95_ms}."""
    once = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        once[name] = time.perf_counter() - start
    medians, every = {n: [] for n in calls}, {n: [] for n in calls}
    gc.disable()
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(0.05)  # the other side's worker threads spin for work after their last call; on two cores they would be in the way
            call()
            samples = []
            for _ in range(max(1, min(50, int(0.08 / once[name])))):
                start = time.perf_counter()
                call()
                samples.append(time.perf_counter() - start)
            medians[name].append(statistics.median(samples))
            every[name] += samples
    gc.enable()
    return {n: {"median_ms": statistics.median(medians[n]) * 1e3, "min_ms": min(every[n]) * 1e3, "p95_ms": float(np.percentile(every[n], 95)) * 1e3} for n in calls}


def first_result(runner, path, model, threads):
    """Milliseconds from nothing loaded to the first output, in a fresh process (interpreter and imports not counted); the median of five."""
    code = ("import sys, time; sys.path.insert(0, %r); import compare; feeds = compare.feeds_for(%r, 1, 128); import numpy\n"
            "if %r == 'tare': import tare\nelse: import onnxruntime\n"
            "start = time.perf_counter(); compare.RUNNERS[%r](%r, %d).prepare(feeds)(); print((time.perf_counter() - start) * 1e3)")
    program = code % (str(pathlib.Path(__file__).parent), str(model), runner, runner, str(path), threads)
    return statistics.median(float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout) for _ in range(5))


def machine():
    """What a reader needs to judge the figures; no host names."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), platform.machine())
    flags = next((line for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("flags")), "")
    return {"cpu": model, "cpus": os.cpu_count(), "isa": [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16") if f" {f}" in flags]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("engine")
    parser.add_argument("--shape", default="1x8,1x32,1x128,1x512")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--load", action="store_true", help="also the time from nothing to the first result")
    parser.add_argument("--compile", help="also the time of a cold compile with this tare binary")
    parser.add_argument("--json")
    a = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: a.threads])
    runners = {"tare": Tare(a.engine, a.threads), "onnxruntime": OnnxRuntime(a.model, a.threads)}
    result = {"model": os.path.basename(a.model), "threads": a.threads, "machine": machine(), "shapes": {}}
    for shape in a.shape.split(","):
        feeds = feeds_for(a.model, *map(int, shape.split("x")))
        calls = {n: r.prepare(feeds) for n, r in runners.items()}
        ours, theirs = np.array(calls["tare"]()), np.array(calls["onnxruntime"]())
        difference = float(np.abs(ours - theirs).max())
        if not difference <= 1e-3 * max(1.0, float(np.abs(theirs).max())):
            raise SystemExit(f"{shape}: outputs differ by {difference}; nothing is timed")
        times = measure(calls, a.rounds)
        times["difference"], times["ratio"] = difference, times["tare"]["median_ms"] / times["onnxruntime"]["median_ms"]
        result["shapes"][shape] = times
        print(f"{shape:>7}  tare {times['tare']['median_ms']:8.3f} ms   onnxruntime {times['onnxruntime']['median_ms']:8.3f} ms   ratio {times['ratio']:.2f}   difference {difference:.2g}", flush=True)
    if a.load:
        result["first_result_ms"] = {n: first_result(n, p, a.model, a.threads) for n, p in (("tare", a.engine), ("onnxruntime", a.model))}
        print("load to first result (1x128):", {n: round(v, 1) for n, v in result["first_result_ms"].items()})
    if a.compile:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            subprocess.run([a.compile, "compile", a.model, "-o", folder + "/x.tare", "--quiet"], check=True)
            result["compile_s"] = time.perf_counter() - start
        print(f"compile: {result['compile_s']:.1f} s")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    main()
