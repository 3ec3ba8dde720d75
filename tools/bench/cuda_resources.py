#!/usr/bin/env python3
"""What the CUDA kernels of whole models take on each architecture. In: TARE (binary, default build/bin/tare), models (default: contract-lm, and two layers of MiniLM's shape when e2e-cuda-minilm has left them), --precision,
--target, --cache. Out: one table per model and precision on stdout: per kernel and architecture the registers, spilled bytes where there are some, shared memory, and the blocks per multiprocessor
that these allow; exit 1 when a compile fails, 77 without NVRTC and nvcc.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARE = os.environ.get("TARE", ROOT / "build" / "bin" / "tare")
# Per multiprocessor: registers, shared memory in KiB, threads (CUDA C++ Programming Guide, technical specifications per compute capability).
LIMITS = {80: (65536, 164, 2048), 86: (65536, 100, 1536), 89: (65536, 100, 1536), 90: (65536, 228, 2048), 100: (65536, 228, 2048), 120: (65536, 100, 1536)}


def blocks(architecture, registers, shared, threads=128):
    """Resident blocks of 128 threads: registers are given out 256 at a time to a warp; 1 KiB of shared memory per block is the system's."""
    limit = LIMITS.get(int(architecture.split("_")[1]))
    if not limit:
        return "?"
    warps = threads // 32
    by_registers = limit[0] // (-(-registers * 32 // 256) * 256 * warps)
    return min(by_registers, limit[1] * 1024 // (shared + 1024), limit[2] // threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--precision", default="f32,tf32,f16")
    parser.add_argument("--target", default="cuda:sm_80,sm_86,sm_89,sm_90,sm_100,sm_120")
    parser.add_argument("--cache", help="a folder for compiled kernels (--cache-dir)")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    data = ROOT / "build" / "data" / "models"
    models = options.models or [p for p in (data / "contract-lm" / "contract-lm.onnx", ROOT / "build" / "e2e" / "minilm-2") if p.exists()]  # the latter is left by the test e2e-cuda-minilm: two layers of its shape
    for model in models:
        for precision in options.precision.split(","):
            with tempfile.TemporaryDirectory() as folder:
                report = pathlib.Path(folder) / "r.json"
                done = subprocess.run([TARE, "compile", model, "-o", pathlib.Path(folder) / "e.tare", "--target", options.target, *(["--tf32"] if precision == "tf32" else ["--precision", precision]), "--check-precision", "int4", "--report", report,
                                       *(["--cache-dir", options.cache] if options.cache else [])], capture_output=True, text=True, env={**os.environ, "TARE_CLANG": "none"})
                if done.returncode == 5 and "there is none" in done.stderr:
                    print("skipped: neither NVRTC nor nvcc is here")
                    return 77
                if done.returncode:
                    print(done.stderr, file=sys.stderr)
                    return 1
                cuda = json.loads(report.read_text())["cuda"]
            architectures = [a for a in cuda["images"] if a.startswith("sm_")]
            print(f"\n{model.name}, {precision}, {cuda['toolkit']}: registers (blocks per multiprocessor), +spilled bytes; dynamic shared memory of a block")
            print(f"{'kernel':72}" + "".join(f"{a:>12}" for a in architectures) + f"{'shared':>9}")
            for kernel in cuda["kernels"]:
                cells = []
                for r in kernel["resources"]:
                    spilled = r["spill_store_bytes"] + r["spill_load_bytes"]
                    cells.append(f"{r['registers']} ({blocks(r['architecture'], r['registers'], r['shared_bytes'] + kernel['dynamic_shared_bytes'])})" + (f"+{spilled}" if spilled else ""))
                print(f"{kernel['name']:72}" + "".join(f"{c:>12}" for c in cells) + f"{kernel['dynamic_shared_bytes']:>9}")
            for line in done.stderr.splitlines():
                if "spills registers" in line:
                    print(line)
    return 0


sys.exit(main())
