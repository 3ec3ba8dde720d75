#!/usr/bin/env bash
# Compiles the kernels that the emulator tests run, the same text, for real architectures. In: the source tree, a build folder, architectures. Out: exit 0 and ptxas's
# table (registers, shared memory is dynamic, spills), 1 when a kernel does not compile or a hot one spills, 77 without nvcc. CUDA_HOME or PATH names the toolkit.
set -euo pipefail
root=$1 out=$2
shift 2
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc
if ! command -v "$nvcc" >/dev/null; then
  nvcc=/usr/local/cuda/bin/nvcc
  command -v "$nvcc" >/dev/null || { echo "skipped: no nvcc here; cubins are not built (emulator tests do not need it)"; exit 77; }
fi
mkdir -p "$out"
known=$("$nvcc" --list-gpu-arch)
failed=0
compile() { # FILE ARCH
  local log=$out/$1.sm_$2.log
  printf '#include "test/unit/cuda/%s_kernels.cuh"\n' "$1" >"$out/$1.sm_$2.cu"
  "$nvcc" -std=c++17 "-arch=sm_$2" -cubin -Xptxas -v -diag-suppress 20199 -I"$root" "$out/$1.sm_$2.cu" -o "$out/$1.sm_$2.cubin" >"$log" 2>&1 || { echo "$1 for sm_$2 does not compile:"; head -20 "$log"; return 1; }
  # ptxas: "Compiling entry function 'NAME' for 'sm_80'", "N bytes stack frame, N bytes spill stores, N bytes spill loads", "Used N registers, ..."
  awk -v arch="sm_$2" -v q="'" '
    /Compiling entry function/ { split($0, part, q); name = part[2] }
    /spill stores/ { stack = $1; stores = $5; loads = $9 }
    /Used [0-9]+ registers/ { for (i = 1; i <= NF; ++i) if ($i == "Used") registers = $(i + 1)
      printf "%-8s %-32s %9d %7d %13d %12d\n", arch, name, registers, stack, stores, loads; if (stores > 0) spills = 1 }
    END { exit spills }' "$log"
}
echo "arch     kernel                           registers   stack  spill stores  spill loads"
for arch in "$@"; do
  grep -qx "compute_$arch" <<<"$known" || { echo "sm_$arch: not known to this nvcc, left out"; continue; }
  for file in gemm attention row check; do
    compile "$file" "$arch" || { echo "sm_$arch $file: see above (a spill or an error)"; failed=1; }
  done
done
exit $failed
