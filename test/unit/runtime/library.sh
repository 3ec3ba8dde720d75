#!/bin/sh
# What ships: libtare_rt.so, stripped, stays under 1 MiB, needs nothing but libc, libstdc++ and their parts, and exports only tare_ symbols.
# Usage: library.sh LIBRARY READELF STRIP
set -eu
library=$1 readelf=$2 strip=$3
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
"$strip" -o "$copy" "$library"
size=$(wc -c < "$copy")
echo "stripped: $size bytes"
[ "$size" -le 1048576 ] || { echo "larger than 1 MiB"; exit 1; }
needed=$("$readelf" -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
for n in $needed; do
  case $n in
    libc.so.6|libm.so.6|libstdc++.so.6|libgcc_s.so.1|ld-linux-x86-64.so.2|libpthread.so.0) ;;
    *) echo "needs $n"; exit 1 ;;
  esac
done
[ -n "$needed" ] || { echo "no NEEDED entries read"; exit 1; }
exported=$("$readelf" --dyn-syms -W "$library" | awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 != "UND" && $8 != "" {print $8}' | grep -v '^tare_' || true)
[ -z "$exported" ] || { echo "exports $exported"; exit 1; }
