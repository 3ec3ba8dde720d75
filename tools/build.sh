#!/usr/bin/env bash
# Configures with the `release` preset and builds. In: ninja targets (none: everything). Out: build/bin, build/lib. Re-runnable from any directory;
# says what it does. Holds: the same commands for quickstart.sh, test.sh and CI.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${TARE_JOBS:-$(nproc)}
# The cache must hit from another checkout and after `touch`: paths relative to the root, working directory not hashed.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
echo "build: configuring into build/ (cmake --preset release $*)"
mkdir -p build
options=()
targets=()
for word in "$@"; do case "$word" in -D*) options+=("$word") ;; *) targets+=("$word") ;; esac; done
cmake --preset release ${options[@]+"${options[@]}"} >build/configure.log 2>&1 || { tail -20 build/configure.log >&2; exit 1; }
echo "build: compiling with $jobs jobs (first time: several minutes on 2 cores; later only what changed)"
if [ -t 1 ]; then
  ninja -C build -j "$jobs" ${targets[@]+"${targets[@]}"}
else
  ninja -C build -j "$jobs" ${targets[@]+"${targets[@]}"} >build/build.log 2>&1 || { grep -E 'error|FAILED' build/build.log | head -20 >&2 || true; tail -20 build/build.log >&2; exit 1; }
fi
