#!/usr/bin/env bash
# Runs the CUDA kernels on a real GPU and compares them with the same text on the emulator's references. In: a machine with an NVIDIA GPU (sm_80 or later) and nvcc; no build of
# the rest is needed. Out: one table (kernel, shape, largest error, microseconds, share of bandwidth or FLOPs moved), exit 1 when a result is wrong, 5 without GPU or nvcc.
# State: written against the kernels' own launch rules and compiled in the test suite where nvcc is; it has never run on a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "gpu-check: no nvcc (set CUDA_HOME, or put it into PATH)" >&2; exit 5; }
mode=${1:-run} # `compile`: only builds the program
out=${TARE_GPU_CHECK_DIR:-build/gpu-check}
mkdir -p "$out"
if [ "$mode" = compile ]; then
  arch=sm_80
else
  command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "gpu-check: no NVIDIA GPU or driver here (nvidia-smi finds none)" >&2; exit 5; }
  arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
fi
echo "gpu-check: compiling for $arch"
"$nvcc" -std=c++17 -O2 "-arch=$arch" -diag-suppress 20199 -I. tools/gpu-check.cu -o "$out/gpu-check"
[ "$mode" = compile ] || exec "$out/gpu-check"
