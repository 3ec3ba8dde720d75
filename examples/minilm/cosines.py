#!/usr/bin/env python3
"""Sentence similarity from a run of MiniLM. In: the inputs (.npz with attention_mask) and outputs (.npz with last_hidden_state, f32 [N, S, 384]) of
`tare run`. Out: the cosine of every pair of sentences, after mean pooling over unmasked tokens. Standard library only.
    cosines.py sentences.npz outputs.npz
"""
import ast
import math
import pathlib
import struct
import sys
import zipfile


def load(path, name):
    """One array of a .npz: its shape and a flat tuple of numbers."""
    data = zipfile.ZipFile(path).read(name + ".npy")
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    code = {"<f4": "f", "<i8": "q"}[header["descr"]]
    return header["shape"], struct.unpack(f"<{math.prod(header['shape'])}{code}", data[10 + length:])


def main():
    (count, tokens), mask = load(sys.argv[1], "attention_mask")
    (_, _, width), hidden = load(sys.argv[2], "last_hidden_state")
    vectors = []
    for s in range(count):
        live = [t for t in range(tokens) if mask[s * tokens + t]]
        vector = [sum(hidden[(s * tokens + t) * width + d] for t in live) / len(live) for d in range(width)]
        norm = math.sqrt(sum(v * v for v in vector))
        vectors.append([v / norm for v in vector])
    lines = pathlib.Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        print(f"  {i + 1}. {line}")
    for i in range(count):
        for j in range(i + 1, count):
            print(f"  cosine of {i + 1} and {j + 1}: {sum(a * b for a, b in zip(vectors[i], vectors[j])):.6f}")


if __name__ == "__main__":
    main()
