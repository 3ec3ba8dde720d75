#!/usr/bin/env bash
# The one list of Debian packages. In: a set (build, test, bench, report). Out: every package of that set installed, or a clear line why not.
# Holds: only what is missing is installed; sudo only when not root; never asks a question; does nothing and needs nothing when all is there.
#   tools/install-packages.sh build|test|bench ...     TARE_NO_INSTALL=1 only reports what is missing
set -euo pipefail

build="cmake ninja-build ccache clang-19 lld-19 liblld-19-dev llvm-19-dev llvm-19-tools libmlir-19-dev mlir-19-tools
  libonnx-dev libprotobuf-dev protobuf-compiler libflatbuffers-dev flatbuffers-compiler flatbuffers-compiler-dev libyaml-cpp-dev libcli11-dev
  nlohmann-json3-dev libfmt-dev libeigen3-dev libsodium-dev libxxhash-dev libzip-dev zlib1g-dev libzstd-dev libedit-dev libutf8proc-dev"
test="libgtest-dev libbenchmark-dev libonnx-testdata libclang-rt-19-dev python3 python3-venv git"
bench="python3 python3-venv unzip"

wanted=""
for set in "$@"; do
  case "$set" in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    *) echo "install-packages: unknown set '$set' (build, test, bench)" >&2; exit 2 ;;
  esac
done
missing=""
for package in $wanted; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
missing=$(echo $missing | tr ' ' '\n' | sort -u | tr '\n' ' ')
if [ -z "${missing// /}" ]; then
  echo "packages ($*): all installed"
  exit 0
fi
if [ -n "${TARE_NO_INSTALL:-}" ]; then
  echo "packages ($*): missing: $missing" >&2
  echo "install them, or run this script without TARE_NO_INSTALL" >&2
  exit 5
fi
command -v apt-get >/dev/null || { echo "no apt-get here; these Debian 12 packages are needed: $missing" >&2; exit 5; }
as_root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "not root and no sudo; as root run: apt-get install $missing" >&2; exit 5; }
  as_root="sudo -n"
  $as_root true 2>/dev/null || as_root="sudo"
fi
echo "packages ($*): installing with apt: $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >"$log" 2>&1; }
# The package lists may be absent or stale: try with what is there, refresh once, try again.
if ! apt install --no-install-recommends $missing; then
  echo "packages: refreshing the package lists (apt-get update)"
  apt update || { tail -5 "$log" >&2; echo "apt-get update failed" >&2; exit 5; }
  apt install --no-install-recommends $missing || { tail -15 "$log" >&2; echo "apt-get install failed" >&2; exit 5; }
fi
echo "packages ($*): done"
