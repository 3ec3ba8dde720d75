#!/usr/bin/env bash
# Our declarations of the CUDA driver against NVIDIA's cuda.h, and the exported names against the toolkit's stub library. In: the source tree, a C++ compiler. Out: exit 0, 1 when
# something differs, 77 without a toolkit. CUDA_HOME names it.
set -euo pipefail
home=${CUDA_HOME:-/usr/local/cuda}
[ -f "$home/include/cuda.h" ] || { echo "skipped: no cuda.h here"; exit 77; }
"$2" -std=c++20 -fsyntax-only -Wno-deprecated-declarations -I"$1" -isystem "$home/include" "$1/test/unit/cuda/driver_header.cpp"
stub=$home/lib64/stubs/libcuda.so
[ -f "$stub" ] || { echo "declarations agree; no stub library here"; exit 0; }
names=$(sed -n 's/^ *X([a-zA-Z]*, \(cu[A-Za-z0-9_]*\),.*/\1/p' "$1/runtime/CudaDriver.h")
[ "$(wc -w <<<"$names")" -gt 30 ] || { echo "the table of functions cannot be read"; exit 1; }
exported=$(readelf -Ws --dyn-syms "$stub" | awk '{ print $NF }')
for name in $names; do
  grep -qx "$name" <<<"$exported" || { echo "$name is not exported by $stub"; exit 1; }
done
echo "$(wc -w <<<"$names") functions agree with $home"
