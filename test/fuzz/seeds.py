#!/usr/bin/env python3
"""Seed corpora for the fuzz targets. Usage: seeds.py OUT ENGINE [NODE_TESTS]. In: the small test engine, ONNX's node tests (Debian libonnx-testdata). Out: OUT/onnx,
OUT/safetensors, OUT/npz, OUT/rules, OUT/engine with small valid files and some that are nearly valid. Standard library only; nothing of it is stored in the repository.
"""
import json
import pathlib
import shutil
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "error" / "cli"))
from npz import int64, npy, write_npz  # noqa: E402


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main(out, engine, nodes="/usr/share/libonnx-testdata/data/node"):
    folders = {name: pathlib.Path(out) / name for name in ("onnx", "safetensors", "npz", "rules", "engine")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for model in sorted(pathlib.Path(nodes).glob("*/model.onnx")):
        if model.stat().st_size < 8192:
            shutil.copy(model, folders["onnx"] / (model.parent.name + ".onnx"))
    two = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "b.weight": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]}}
    for name, header, data in (("two", two, bytes(22)), ("metadata", {"__metadata__": {"format": "pt"}, **two}, bytes(22)), ("empty", {}, b""),
                               ("zero", {"z": {"dtype": "I64", "shape": [0, 4], "data_offsets": [0, 0]}}, b""), ("overlap", {**two, "c": two["a"]}, bytes(22))):
        (folders["safetensors"] / name).write_bytes(safetensors(header, data))
    arrays = {"input_ids": int64([2, 3], [1, 2, 3, 4, 5, 6]), "sample_0.x": npy("<f4", [2], bytes(8)), "f": npy(">f8", [2, 1], bytes(16), fortran=True), "b": npy("|b1", [], b"\1")}
    write_npz(folders["npz"] / "some.npz", arrays)
    for name, data in arrays.items():
        (folders["npz"] / (name + ".npy")).write_bytes(data)
    for data in sorted(pathlib.Path(nodes).glob("test_a*/test_data_set_0/input_0.pb"))[:20]:
        if data.stat().st_size < 4096:
            shutil.copy(data, folders["npz"] / (data.parents[1].name + ".pb"))
    shutil.copy(ROOT / "passes" / "default-rules.yaml", folders["rules"])
    for i, block in enumerate((ROOT / "docs" / "rules.md").read_text().split("```")[1::2]):
        (folders["rules"] / f"docs{i}.yaml").write_text(block.partition("\n")[2])
    (folders["rules"] / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 96, "architectures": ["BertModel"], "x": [1.5e3, None, True, "\u00e9"]}))
    shutil.copy(engine, folders["engine"] / "small.tare")
    for name, folder in folders.items():
        print(f"{name}: {sum(1 for _ in folder.iterdir())} seeds")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:4])
