#!/usr/bin/env python3
"""The CUDA text inside engines, compiled for real architectures. In: TARE (binary), the source tree, a folder for output, comma-separated architectures, engines. Out: exit 0 and
ptxas's table (registers, stack, spills), 1 when a kernel does not compile, 77 without nvcc. Engines that are not there are named and left out.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

TARE = os.environ["TARE"]
ROOT, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
ARCHITECTURES, ENGINES = sys.argv[3].split(","), sys.argv[4:]


def text(*arguments):
    return subprocess.run([TARE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def main():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = shutil.which("nvcc") or shutil.which(home + "/bin/nvcc")
    if not nvcc:
        print("skipped: no nvcc here")
        return 77
    OUT.mkdir(parents=True, exist_ok=True)
    failed = 0
    for engine in map(pathlib.Path, ENGINES):
        if not engine.exists():
            print(f"{engine.name}: not built here, left out")
            continue
        kernels = [k["name"] for k in json.loads(text("inspect", engine, "--kernels", "--json"))["kernels"]]
        source = OUT / (engine.stem + ".cu")
        source.write_text("".join(text("inspect", engine, "--kernels", "--source", name) for name in kernels))
        for architecture in ARCHITECTURES:
            result = subprocess.run([nvcc, "-std=c++17", f"-arch={architecture}", "-cubin", "-Xptxas", "-v", "-diag-suppress", "20199", f"-I{ROOT}", source, "-o", OUT / f"{engine.stem}.{architecture}.cubin"],
                                    capture_output=True, text=True)
            if result.returncode:
                print(f"{engine.name} for {architecture} does not compile:\n{result.stderr[:3000]}")
                failed += 1
                continue
            table = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers", result.stderr, re.S)
            if sorted(name for name, *_ in table) != sorted(kernels):
                print(f"{engine.name} for {architecture}: {len(table)} kernels in the cubin, {len(kernels)} in the engine")
                failed += 1
            for name, stack, spills, registers in sorted(table):
                print(f"{engine.stem:24} {architecture:7} {name:72} {registers:>4} registers {stack:>5} stack {spills:>4} spilled")
    return 1 if failed else 0


sys.exit(main())
