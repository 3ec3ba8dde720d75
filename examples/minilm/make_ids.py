#!/usr/bin/env python3
"""Token ids of sentences.txt for all-MiniLM-L6-v2. In: the package's tokenizer.json (WordPiece, lower case). Out: sentences.npz beside this script with
input_ids and attention_mask, int64 [3, longest]. Standard library only, so that it runs where no tokenizer package can be installed.
    make_ids.py FOLDER_OF_THE_UNPACKED_MODEL
"""
import io
import json
import pathlib
import struct
import sys
import unicodedata
import zipfile


def words(text):
    """BERT's basic tokens: lower case, accents stripped, punctuation on its own."""
    text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if unicodedata.category(c).startswith("P") or c in "$+<=>^`|~" else c for c in text)
    return spaced.split()


def pieces(word, vocabulary):
    """Greedy longest match; later pieces carry the prefix ##."""
    out, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" if start else "") + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return ["[UNK]"]
        out.append(("##" if start else "") + word[start:end])
        start = end
    return out


def npy(rows):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"".join(struct.pack(f"<{len(r)}q", *r) for r in rows)


def main():
    here = pathlib.Path(__file__).resolve().parent
    vocabulary = json.loads((pathlib.Path(sys.argv[1]) / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    rows = []
    for line in (here / "sentences.txt").read_text(encoding="utf-8").splitlines():
        tokens = ["[CLS]"] + [p for w in words(line) for p in pieces(w, vocabulary)] + ["[SEP]"]
        rows.append([vocabulary[t] for t in tokens])
        print(" ".join(tokens))
    longest = max(map(len, rows))
    arrays = {"attention_mask": [[1] * len(r) + [0] * (longest - len(r)) for r in rows], "input_ids": [r + [0] * (longest - len(r)) for r in rows]}
    with zipfile.ZipFile(here / "sentences.npz", "w") as archive:
        for key, value in arrays.items():
            archive.writestr(zipfile.ZipInfo(key + ".npy"), npy(value))


if __name__ == "__main__":
    main()
