"""Seed corpus of fuzz-anchors. In: the folder of the marked texts, the folder to fill. Out: one file per text and per kind of bad input. Must hold: the same
files every time.
"""
import json
import pathlib
import sys

FLOODS = {"nul": b"\0" * 64, "invalid": b"\xff\xfe\xc3(" * 40, "surrogate": "第4".encode() + b"\xed\xa0\x80" * 20 + "条".encode(), "marks": ("e" + "\u0301" * 200).encode(), "brackets": b"[" * 200 + b"(" * 200,
          "frames": "第1、".encode() * 60, "annexes": "附件一、二".encode() * 40, "cues": "参见《".encode() * 60, "tags": b"<a title='" * 40, "ticks": b"".join(b"`" * n + b" " for n in range(20)),
          "targets": b"](" * 100, "plural": b"Sections 1, 2, 3, " * 20, "comment": b"<!--" * 40, "cut": "第4.2条".encode()[:-1], "hangul": ("\u1100\u1161" * 50).encode(), "spaces": ("第" + " " * 600 + "4条").encode()}


def main():
    source, folder = map(pathlib.Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["golden.jsonl", "own.jsonl"]:
        for line in (source / name).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            (folder / case["id"]).write_bytes(case["text"].encode())
    for name, data in FLOODS.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
