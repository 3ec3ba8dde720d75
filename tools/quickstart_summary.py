#!/usr/bin/env python3
"""The last table of quickstart.sh. In: the JSON report, two `tare bench --json` results and two output files (full and pruned). Out: text on stdout.
    quickstart_summary.py REPORT.json FULL.bench.json PRUNED.bench.json FULL.npz PRUNED.npz
    quickstart_summary.py --checks RUN.json        what `tare run --text --json` says of its fidelity checks, in one line
Standard library only. Exit 1 when the outputs differ by more than 1e-6 of the largest value (spec 4: a removal must not be visible).
"""
import array
import ast
import json
import sys
import zipfile


def outputs(path):
    """name -> float32 values of every f32 array."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            data = archive.read(entry)
            length = int.from_bytes(data[8:10], "little")
            if ast.literal_eval(data[10:10 + length].decode())["descr"] == "<f4":
                found[entry[:-4]] = array.array("f", data[10 + length:])
    return found


def candidates(report):
    print(f"  {'layer':28} {'verdict':10} {'why':24} {'largest weight':>15} {'forward L2':>11}")
    for c in report["candidates"]:
        largest, l2 = c["weights"]["max_abs"], c["forward"].get("l2")
        print(f"  {c['name']:28} {c['verdict']:10} {c['code'] or c['basis'] or '':24} {largest:15.3g} {'' if l2 is None else format(l2, '11.3g')}")
    removed = sum(c["verdict"] == "pruned" for c in report["candidates"])
    print(f"  {removed} of {len(report['candidates'])} candidates removed (zero rate {report['zero_rate']:.3g})")


def row(name, full, pruned, unit):
    saved = 100 * (1 - pruned / full) if full else 0.0
    print(f"  {name:28} {full:14,.2f} {pruned:14,.2f}  {unit:8} {saved:5.1f} % less")


def checks(run):
    n = run["check_evaluations"]
    print(f"  {run['anchor_hits']} anchors hit; each fidelity check evaluated {n['sparse']:,} of {n['dense']:,} tokens")


def main():
    if sys.argv[1] == "--checks":
        with open(sys.argv[2], encoding="utf-8") as file:
            checks(json.load(file))
        return 0
    report, full_bench, pruned_bench = (json.load(open(p, encoding="utf-8")) for p in sys.argv[1:4])
    full, pruned = outputs(sys.argv[4]), outputs(sys.argv[5])
    candidates(report)
    estimate = report["compute_estimation"]
    shape = ", ".join(f"{k} {v}" for k, v in estimate["shape"].items())
    print(f"\n  {'':28} {'all layers':>14} {'dead removed':>14}")
    row(f"work ({shape})", estimate["full"]["flops"] / 1e6, estimate["pruned"]["flops"] / 1e6, "MFLOP")
    row("memory", estimate["full"]["memory_bytes"] / 2**20, estimate["pruned"]["memory_bytes"] / 2**20, "MiB")
    row("latency (median, measured)", full_bench["median_ms"], pruned_bench["median_ms"], "ms")
    largest = max(max(map(abs, v), default=0.0) for v in full.values())
    difference = max(max(abs(a - b) for a, b in zip(full[k], pruned[k])) for k in full)
    print(f"  largest output difference    {difference:.3g} (largest output {largest:.3g})")
    return 0 if full.keys() == pruned.keys() and difference <= 1e-6 * largest else 1


if __name__ == "__main__":
    sys.exit(main())
