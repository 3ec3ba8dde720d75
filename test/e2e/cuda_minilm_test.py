#!/usr/bin/env python3
"""Two layers of MiniLM's shape (384 wide, 12 heads, 1536) through the CUDA text on the emulator. In: the build folder. Out: exit 0, or 1 and what differs.
In f32, with --tf32 and with --precision f16. The weights are random (the real ones need a download); the oracle is the forward pass below, in float64, written from the BERT paper's formulas.
"""
import json
import math
import pathlib
import struct
import subprocess
import sys

import numpy as np

BUILD = pathlib.Path(sys.argv[1])
TARE, FOLDER = BUILD / "bin" / "tare", BUILD / "e2e" / "minilm-2"
WIDTH, HEADS, INNER, LAYERS, VOCABULARY, POSITIONS = 384, 12, 1536, 2, 100, 160
random = np.random.default_rng(20260401)


def weights():
    w = {}

    def add(name, *shape, scale=0.04, one=False):
        w[name] = (np.float32(one) + random.normal(0, scale, shape)).astype(np.float32)

    add("embeddings.word_embeddings.weight", VOCABULARY, WIDTH)
    add("embeddings.position_embeddings.weight", POSITIONS, WIDTH)
    add("embeddings.token_type_embeddings.weight", 2, WIDTH)
    norms = ["embeddings.LayerNorm"]
    for n in range(LAYERS):
        p = f"encoder.layer.{n}."
        for name, out, depth in [("attention.self.query", WIDTH, WIDTH), ("attention.self.key", WIDTH, WIDTH), ("attention.self.value", WIDTH, WIDTH), ("attention.output.dense", WIDTH, WIDTH),
                                 ("intermediate.dense", INNER, WIDTH), ("output.dense", WIDTH, INNER)]:
            add(p + name + ".weight", out, depth)
            add(p + name + ".bias", out)
        norms += [p + "attention.output.LayerNorm", p + "output.LayerNorm"]
    for name in norms:
        add(name + ".weight", WIDTH, one=True)
        add(name + ".bias", WIDTH)
    return w


def save(w):
    FOLDER.mkdir(parents=True, exist_ok=True)
    header, at = {}, 0
    for name, value in w.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (FOLDER / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in w.values()))
    (FOLDER / "config.json").write_text(json.dumps({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": INNER, "hidden_act": "gelu",
        "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute"}))


def forward(w, ids, mask):
    w = {k: v.astype(np.float64) for k, v in w.items()}
    erf = np.vectorize(math.erf)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    batch, length = ids.shape
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:length] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    bias = np.where(mask[:, None, None, :] == 1, 0.0, -np.inf)
    for n in range(LAYERS):
        p = f"encoder.layer.{n}."
        q, k, v = (linear(x, p + "attention.self." + s).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3) for s in ("query", "key", "value"))
        s = q @ k.transpose(0, 1, 3, 2) / math.sqrt(WIDTH / HEADS) + bias
        s = np.exp(s - s.max(-1, keepdims=True))
        y = (s / s.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        x = norm(x + linear(y, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        y = linear(x, p + "intermediate.dense")
        x = norm(x + linear(0.5 * y * (1 + erf(y / math.sqrt(2))), p + "output.dense"), p + "output.LayerNorm")
    return x


def check(w, cases, precision):
    engine = FOLDER / f"engine-{precision}.tare"
    subprocess.run([TARE, "compile", FOLDER, "-o", engine, "--target", "cuda-emu", *(["--tf32"] if precision == "tf32" else ["--precision", precision]), "--quiet"], check=True)
    wrong = 0
    for ids, mask in cases:
        np.savez(FOLDER / "in.npz", input_ids=ids, attention_mask=mask)
        subprocess.run([TARE, "run", engine, "--inputs", FOLDER / "in.npz", "--outputs", FOLDER / "out.npz", "--quiet"], check=True)
        got, want = np.load(FOLDER / "out.npz")["last_hidden_state"], forward(w, ids, mask)
        error = np.abs(got - want)[mask == 1]
        rms, worst, low, high = np.sqrt((error**2).mean()), error.max(), 0, 2e-5
        if precision != "f32":
            # Both operands of each of six products per layer, in TF32 of the four with weights, are rounded, 2^-11 / sqrt(3) at most in
            # rms; errors add in squares (CudaEmulatorTest.cpp says more). Below 1e-4 nothing would have been rounded at all.
            products = {"f16": 6, "tf32": 4}[precision] * LAYERS
            low, high = 1e-4, 6 * 2.0**-11 * math.sqrt(2 * products / 3) * np.sqrt((want[mask == 1] ** 2).mean())
            wrong += not rms < high / 6
        print(f"{precision} {ids.shape[0]}x{ids.shape[1]}: largest difference {worst:.3g} (at most {high:.3g}), rms {rms:.3g}")
        wrong += not low <= worst < high
    return wrong


def main():
    w = weights()
    save(w)
    cases = []
    for batch, length, tail in [(1, 128, 0), (2, 37, 12)]:
        mask = np.ones((batch, length), np.int64)
        if tail:
            mask[-1, -tail:] = 0
        cases.append((random.integers(1, VOCABULARY, (batch, length)), mask))
    return 1 if sum(check(w, cases, precision) for precision in ("f32", "tf32", "f16")) else 0


if __name__ == "__main__":
    sys.exit(main())
