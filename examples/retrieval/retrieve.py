#!/usr/bin/env python3
"""Finds the passage of a contract that a question names: any embedding, with the hashed anchor vector behind it.

In: lease.txt (one passage per line) and the questions below. Out: for every question the passage that is found with the embedding alone and with the anchor
vector. The embedding here is a hashed bag of characters, so that the example needs nothing; put your model's sentence vector in its place.

    python3 examples/retrieval/retrieve.py
"""
import math
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "python"))
import tare_anchors  # noqa: E402

QUESTIONS = [("第4.2条怎么规定违约金？", "第4.2条"), ("第八点二条写了什么？消防验收见第8.2条", "第8.2条"), ("租金调整在第４．３条里怎么约定？", "第4.3条"), ("What does Section 11.3 say about the deposit?", "Section 11.3"),
             ("What is stated in Sec. 11.4?", "Section 11.4"), ("附件三包括哪些内容？", "附件三"), ("Who is listed in Schedule 2?", "Schedule 2"), ("第二条的内容是什么？", "第二条"), ("Where does clause 11.2 send notices?", "Section 11.2"), ("§ 11.1 ?", "Section 11.1"), ("漏水应该多久内通知？", "第8.3条")]


def embedding(text, size=256):
    """Stand-in for a model: pairs of characters, hashed, of length 1."""
    out = [0.0] * size
    text = text.lower()
    for a, b in zip(text, text[1:]):
        out[zlib.crc32((a + b).encode()) % size] += 1
    norm = math.sqrt(sum(x * x for x in out)) or 1
    return [x / norm for x in out]


def joined(text):
    return embedding(text) + tare_anchors.vector(text)[1]


def best(question, passages, vectors, make):
    q = make(question)
    return max(range(len(passages)), key=lambda i: sum(a * b for a, b in zip(q, vectors[i])))


def main():
    passages = [line for line in (pathlib.Path(__file__).parent / "lease.txt").read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("|")]
    plain, anchored = [embedding(p) for p in passages], [joined(p) for p in passages]
    right = [0, 0]
    for question, wanted in QUESTIONS:
        alone, both = (passages[best(question, passages, v, m)] for v, m in ((plain, embedding), (anchored, joined)))
        right[0] += alone.startswith(wanted)
        right[1] += both.startswith(wanted)
        print(f"{question}\n  embedding alone: {alone[:40]}\n  with anchors:    {both[:40]}")
    print(f"right: {right[0]} of {len(QUESTIONS)} by the embedding alone, {right[1]} of {len(QUESTIONS)} with the anchor vector")
    return 0 if right[1] == len(QUESTIONS) else 1


if __name__ == "__main__":
    sys.exit(main())
