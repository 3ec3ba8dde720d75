#!/usr/bin/env bash
# Runs a Python test in build/venv, or says why it is skipped (exit 77, which ctest shows as skipped). In: the build folder, the script, its arguments.
build=$1
shift
if [ ! -x "$build/venv/bin/python" ]; then
  echo "skipped: no Python environment with numpy, onnx and onnxruntime (tools/python-env.sh makes it where a package index can be reached)"
  exit 77
fi
exec "$build/venv/bin/python" "$@"
