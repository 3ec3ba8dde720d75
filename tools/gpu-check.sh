#!/usr/bin/env bash
# Full verification and timing on a real GPU, in one table: engines of the test models compiled for it, run on it against float64 oracles and against the CPU, time per step
# (gpu_check.py), then the kernel templates one by one (gpu-check.cu, where nvcc is). In: a built tree and a machine with an NVIDIA GPU (sm_80 or later). Out: exit 0; 1 when a
# result is wrong; 5 without GPU or build. Takes at most 8 minutes. `gpu-check.sh dry-run` does the engines' part on the fake driver and the emulator: it tests this script and the
# runtime, not a GPU. `gpu-check.sh compile` only compiles the kernel program.
# State: everything but the GPU itself was tried here (dry-run, compile); it has never run on a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-run}
out=${TARE_GPU_CHECK_DIR:-build/gpu-check}
mkdir -p "$out"

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
compile() { # ARCH
  timeout 110 "$nvcc" -std=c++17 -O2 "-arch=$1" -diag-suppress 20199 -I. tools/gpu-check.cu -o "$out/gpu-check"
}
case $mode in
compile)
  [ -x "$nvcc" ] || { echo "gpu-check: no nvcc (set CUDA_HOME, or put it into PATH)" >&2; exit 5; }
  compile sm_80
  exit 0
  ;;
dry-run)
  shift
  exec python3 tools/gpu_check.py --dry-run --arch sm_90 --seconds 450 "$@"
  ;;
run) ;;
*) echo "gpu-check: run, dry-run or compile" >&2; exit 2 ;;
esac

command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "gpu-check: no NVIDIA GPU or driver here (nvidia-smi finds none)" >&2; exit 5; }
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv,noheader | head -1
failed=0
python3 tools/gpu_check.py --arch "$arch" --seconds 300 || failed=$?
[ "$failed" -le 1 ] || exit "$failed"
if [ -x "$nvcc" ]; then
  echo "kernel templates:"
  compile "$arch" && timeout 60 "$out/gpu-check" || failed=1
else
  echo "kernel templates: left out, no nvcc here"
fi
exit "$failed"
