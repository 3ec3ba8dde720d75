#!/usr/bin/env python3
"""The CUDA text of an engine as a library of host kernels for the fake driver. In: CLANG, the source tree, an engine, the library to write. Out: exit 0 and the library.
The text is the engine's own section, byte for byte; only the list of kernels at the end is added.
"""
import pathlib
import re
import struct
import subprocess
import sys

clang, root, engine, library = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
FLAGS = ("-x c++ -std=c++20 -O2 -march=x86-64-v3 -fPIC -shared -fvisibility=hidden -fno-exceptions -fno-rtti -fno-stack-protector -fno-strict-aliasing -fwrapv -ffp-contract=off "
         "-fno-math-errno -fno-trapping-math -w").split()
CUDA_SOURCE = 10  # runtime/format.h SectionKind

data = engine.read_bytes()
count, = struct.unpack_from("<I", data, 20)
entries = [struct.unpack_from("<IIQQ", data, 64 + 64 * i) for i in range(count)]
offset, size = next((offset, size) for kind, _, offset, size in entries if kind == CUDA_SOURCE)
text = data[offset:offset + size].decode()
names = re.findall(r"^//==== (\S+)$", text, re.M)
source = library.with_suffix(".cpp")
source.write_text('#include "test/support/fakecuda/HostKernels.h"\n' + text + "\nTARE_HOST_KERNELS(" + ", ".join(f"TARE_HOST({name})" for name in names) + ");\n")
subprocess.run([clang, *FLAGS, f"-I{root}", str(source), "-o", str(library)], check=True)
print(f"{len(names)} kernels")
