#!/usr/bin/env bash
# The optional Python environment under build/venv for comparisons and benchmarks (numpy, onnx, onnxruntime; extra packages as arguments).
# Out: exit 0 when it is there, 1 when it cannot be made (no Python, no package index): nothing that a user needs depends on it.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=build/venv/.tare-packages
wanted="numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 $*"
if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi
command -v python3 >/dev/null || { echo "python: python3 is not installed"; exit 1; }
mkdir -p build
rm -rf build/venv
echo "python: making build/venv with $wanted"
python3 -m venv build/venv >build/venv.log 2>&1 || { tail -3 build/venv.log; exit 1; }
# A short timeout: a machine without a package index must not wait for minutes.
build/venv/bin/pip install -q --disable-pip-version-check --timeout 15 --retries 1 $wanted >>build/venv.log 2>&1 || {
  tail -3 build/venv.log; rm -rf build/venv; echo "python: packages could not be installed"; exit 1; }
echo "$wanted" >"$stamp"
