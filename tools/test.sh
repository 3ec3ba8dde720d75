#!/usr/bin/env bash
# The whole suite. In: arguments for ctest (e.g. -L quick, -R name). Out: ctest's own last lines and its exit status.
# Installs what the tests need, makes the optional Python environment (numpy, onnx, onnxruntime) under build/ and says what is skipped without it.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh build test
tools/python-env.sh || echo "tests: no Python environment: comparisons with ONNX Runtime are skipped, all other tests run"
tools/fetch-minilm.sh || echo "tests: without MiniLM's weights: its comparisons are skipped, all other tests run"
tools/build.sh -DTARE_TESTS=ON
echo "tests: ctest $*"
exec ctest --test-dir build --output-on-failure -j "${TARE_JOBS:-$(nproc)}" "$@"
