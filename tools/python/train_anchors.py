"""Trains the network of the anchor scanner on generated documents (anchor_documents.py) and writes its weights.

In: a seed. Out: runtime/anchors/network.bin (header, int8 weights, threshold, seed, SHA-256 of this script and the two it uses) and a table of what was learnt.
Must hold: deterministic for a seed (one thread, fixed order); arithmetic of the written weights is integer, the same as runtime/anchors/Network.cpp computes.
Needs NumPy only.

    train_anchors.py [--seed N] [--documents N] [--epochs N] [-o FILE]

The network reads 40 matched characters, 12 before and 28 from a place that could begin a designator. Characters become classes (digits one, Chinese numerals
one, other non-ASCII characters hashed). Layers: embedding and convolution over 3 classes at once (one table per tap), ReLU, maximum of 2, convolution over 3,
ReLU, one linear unit. Trained by Adam (Kingma and Ba 2015) on the logistic loss.
"""
import argparse
import hashlib
import pathlib
import struct
import sys
import unicodedata

import numpy as np

import anchor_documents

LEFT, RIGHT, CLASSES, WIDTH = 12, 28, 1024, 16
SPAN = LEFT + RIGHT
FIRST, POOLED, SECOND = SPAN - 2, (SPAN - 2) // 2, (SPAN - 2) // 2 - 2
NUMERALS = set("〇零一二两三四五六七八九十百千廿卅壹贰叁肆伍陆柒捌玖拾佰仟")
DROPPED = set("\u00ad\u200b\u200c\u200d\u2060\ufeff■□▪▫◼◻●○◦•‣◆◇★☆►▶▸➢➤❖✓✔※")
SPACES = set("\t\f\u00a0\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
DASHES = {chr(c) for c in range(0x2010, 0x2015)} | {"\u2212"}


def matched(char):
    """The matching form of one character (docs/anchors.md), without composition over characters."""
    out = ""
    for c in unicodedata.normalize("NFKC", char):
        if c in DROPPED or 0xF000 <= ord(c) <= 0xF0FF:
            continue
        out += " " if c in SPACES else "-" if c in DASHES else c
    return out


def class_of(c):
    if "0" <= c <= "9":
        return 48
    if c in NUMERALS:
        return 128
    code = ord(c)
    return code if code < 128 else 129 + ((code * 2654435761 & 0xFFFFFFFF) >> 16) % (CLASSES - 129)


def window(chars, at):
    """Classes around the character index `at` of a list of matching forms; a line break stands outside the text."""
    left, k = [], at - 1
    while len(left) < LEFT and k >= 0:
        left += reversed(chars[k])
        k -= 1
    right, k = [], at
    while len(right) < RIGHT and k < len(chars):
        right += chars[k]
        k += 1
    left, right = left[:LEFT], right[:RIGHT]
    text = ["\n"] * (LEFT - len(left)) + left[::-1] + right + ["\n"] * (RIGHT - len(right))
    return [class_of(c) for c in text]


def samples(seed, documents, held_out, kinds=("decoys", "decoys", "mixed", "noisy")):
    """Windows [n, 40] and labels [n] of all sites in generated documents."""
    cache, xs, ys = {}, [], []
    for index in range(documents):
        case = anchor_documents.document(seed, index, kinds[index % len(kinds)], held_out)
        text = case["text"].replace("\r\n", "\n")
        source = case["text"]
        chars = []
        byte, where = 0, {}
        for k, c in enumerate(source):
            where[byte] = len(chars)
            byte += len(c.encode("utf-8"))
            if c == "\r" and source[k + 1:k + 2] == "\n":
                continue
            if c not in cache:
                cache[c] = matched(c)
            chars.append(cache[c])
        assert len(chars) == len(text)
        for at, good in case["sites"]:
            xs.append(window(chars, where[at]))
            ys.append(good)
    return np.array(xs, np.int32), np.array(ys, np.float32)


def blurred(x, y, rng):
    """Unknown surroundings must mean yes: characters around true sites are replaced at random, around false ones only far away."""
    x = x.copy()
    units = [class_of(c) for c in "条款项目章节编條項節編"]
    n = len(x)
    chance = np.where(y > 0.5, 0.3, 0.1)[:, None]
    replace = rng.random(x.shape) < chance
    replace[:, LEFT - 1:LEFT + 9] = False
    replace[y < 0.5, LEFT:LEFT + 20] = False
    # What follows 条 and its like directly.
    is_unit = np.isin(x[:, LEFT:LEFT + 8], units) & (y > 0.5)[:, None]
    first = np.where(is_unit.any(1), is_unit.argmax(1), -1)
    for row in np.nonzero((first >= 0) & (rng.random(n) < 0.4))[0]:
        begin = LEFT + first[row] + 1
        replace[row, begin:begin + rng.integers(1, 6)] = True
    replace &= x != 10
    x[replace] = rng.integers(129, CLASSES, int(replace.sum()))
    return x


class Network:
    def __init__(self, rng):
        self.p = {"E": rng.normal(0, 0.3, (3 * CLASSES, WIDTH)), "b1": np.full(WIDTH, 0.1), "W2": rng.normal(0, (2 / (3 * WIDTH)) ** 0.5, (3, WIDTH, WIDTH)),
                  "b2": np.full(WIDTH, 0.1), "W3": rng.normal(0, 0.1, (SECOND, WIDTH)), "b3": np.zeros(1)}
        self.p = {k: v.astype(np.float32) for k, v in self.p.items()}
        self.m = {k: np.zeros_like(v) for k, v in self.p.items()}
        self.v = {k: np.zeros_like(v) for k, v in self.p.items()}
        self.t = 0

    def forward(self, x):
        p = self.p
        first = sum(p["E"][x[:, t:t + FIRST] + t * CLASSES] for t in range(3)) + p["b1"]
        first = np.maximum(first, 0)
        pairs = first.reshape(len(x), POOLED, 2, WIDTH)
        pooled = pairs.max(2)
        second = sum(pooled[:, t:t + SECOND] @ p["W2"][t] for t in range(3)) + p["b2"]
        hidden = np.maximum(second, 0)
        logit = np.einsum("bqc,qc->b", hidden, p["W3"]) + p["b3"]
        return logit, (x, pairs, pooled, hidden)

    def step(self, x, y, weight, rate):
        p = self.p
        logit, (x, pairs, pooled, hidden) = self.forward(x)
        probability = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
        loss = float(np.mean(weight * (np.logaddexp(0, logit) - y * logit)))
        d = (weight * (probability - y) / len(x)).astype(np.float32)
        g = {"W3": np.einsum("b,bqc->qc", d, hidden), "b3": d.sum(keepdims=True)}
        dh = d[:, None, None] * p["W3"] * (hidden > 0)
        g["b2"] = dh.sum((0, 1))
        g["W2"] = np.stack([np.einsum("bqi,bqo->io", pooled[:, t:t + SECOND], dh) for t in range(3)])
        dp = np.zeros_like(pooled)
        for t in range(3):
            dp[:, t:t + SECOND] += dh @ p["W2"][t].T
        top = pairs.argmax(2)
        df = np.zeros_like(pairs)
        np.put_along_axis(df, top[:, :, None, :], dp[:, :, None, :], 2)
        df = (df * (pairs > 0)).reshape(len(x), FIRST, WIDTH)
        g["b1"] = df.sum((0, 1))
        flat = np.concatenate([(x[:, t:t + FIRST] + t * CLASSES).ravel() for t in range(3)])
        grads = np.concatenate([df.reshape(-1, WIDTH)] * 3)
        g["E"] = np.stack([np.bincount(flat, grads[:, c], 3 * CLASSES) for c in range(WIDTH)], 1).astype(np.float32)
        self.t += 1
        for k in p:
            grad = g[k] + (1e-5 * p[k] if p[k].ndim > 1 else 0)
            self.m[k] = 0.9 * self.m[k] + 0.1 * grad
            self.v[k] = 0.999 * self.v[k] + 0.001 * grad * grad
            p[k] = p[k] - (rate * (self.m[k] / (1 - 0.9 ** self.t)) / (np.sqrt(self.v[k] / (1 - 0.999 ** self.t)) + 1e-8)).astype(np.float32)
        np.clip(p["E"], -2, 2, out=p["E"])
        return loss


class Integers:
    """The written form: int8 weights; sums of the second layer are shifted right by SHIFT."""
    SHIFT = 6

    def __init__(self, network):
        p = network.p
        e = 127 / max(np.abs(p["E"]).max(), 1e-6)
        w2 = 127 / max(np.abs(p["W2"]).max(), 1e-6)
        w3 = 127 / max(np.abs(p["W3"]).max(), 1e-6)
        self.E = np.rint(p["E"] * e).astype(np.int8)
        self.b1 = np.rint(p["b1"] * e).astype(np.int16)
        self.W2 = np.rint(p["W2"] * w2).astype(np.int8)
        self.b2 = np.rint(p["b2"] * e * w2).astype(np.int32)
        self.W3 = np.rint(p["W3"] * w3).astype(np.int8)
        self.scale = float(e * w2 / 2 ** self.SHIFT * w3)
        self.b3 = int(round(float(p["b3"][0]) * self.scale))
        self.threshold = 0

    def logits(self, x):
        first = sum(self.E[x[:, t:t + FIRST] + t * CLASSES].astype(np.int32) for t in range(3)) + self.b1
        pooled = np.maximum(first, 0).reshape(len(x), POOLED, 2, WIDTH).max(2)
        second = sum(pooled[:, t:t + SECOND] @ self.W2[t].astype(np.int32) for t in range(3)) + self.b2
        hidden = np.minimum(np.maximum(second, 0) >> self.SHIFT, 32767)
        return np.einsum("bqc,qc->b", hidden, self.W3.astype(np.int32)) + self.b3

    def write(self, path, seed):
        digest = script_hash()
        header = struct.pack("<8sIIIIIIiI", b"TAREANC1", LEFT, RIGHT, CLASSES, WIDTH, self.SHIFT, seed, self.threshold, 0) + digest
        body = self.E.tobytes() + self.W2.tobytes() + self.W3.tobytes() + self.b1.astype("<i2").tobytes() + self.b2.astype("<i4").tobytes() + struct.pack("<i", self.b3)
        pathlib.Path(path).write_bytes(header + body)


def script_hash():
    """SHA-256 over the three scripts that make the weights."""
    here, h = pathlib.Path(__file__).resolve().parent, hashlib.sha256()
    for name in ["anchor_documents.py", "anchor_words.py", "train_anchors.py"]:
        h.update((here / name).read_bytes())
    return h.digest()


def in_batches(function, x, size=4096):
    return np.concatenate([function(x[k:k + size]) for k in range(0, len(x), size)])


def train(seed, documents, epochs, say=print):
    """Returns (Integers with its threshold, accuracy on held-out sites before training, after training)."""
    rng = np.random.default_rng(seed)
    x, y = samples(seed, documents, False)
    vx, vy = samples(seed + 1, max(documents // 8, 40), False)
    hx, hy = samples(seed + 2, max(documents // 8, 40), True)
    say(f"{len(x)} sites ({int(y.sum())} true), {len(vx)} for the threshold, {len(hx)} held out")
    network = Network(rng)
    accuracy = lambda: float(np.mean((in_batches(lambda b: network.forward(b)[0], hx) > 0) == (hy > 0.5)))
    before = accuracy()
    size, total = (256 if documents >= 4000 else 64), 0
    steps = epochs * (len(x) // size)
    for epoch in range(epochs):
        order, losses = rng.permutation(len(x)), []
        for k in range(0, len(order) - size + 1, size):
            rows = order[k:k + size]
            bx = blurred(x[rows], y[rows], rng)
            losses.append(network.step(bx, y[rows], np.where(y[rows] > 0.5, 4.0, 1.0).astype(np.float32), 0.004 * (1 - 0.95 * total / steps)))
            total += 1
        say(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, held-out accuracy {accuracy():.4f}")
    integers = Integers(network)
    # Refuse only what no true site comes near: half way between the worst true sites (blurred ones too) and certain refusal.
    scores = np.sort(np.concatenate([in_batches(integers.logits, b)[vy > 0.5] for b in (vx, blurred(vx, vy, rng), blurred(vx, vy, rng))]))
    allowed = scores[len(scores) // 5000]
    integers.threshold = int(min(-2.0 * integers.scale, allowed - 0.5 * integers.scale))
    for name, sx, sy in (("threshold set", vx, vy), ("held out", hx, hy)):
        yes = in_batches(integers.logits, sx) > integers.threshold
        say(f"{name}: true sites proposed {np.mean(yes[sy > 0.5]):.5f}, decoys refused {np.mean(~yes[sy < 0.5]):.4f} (threshold {integers.threshold / integers.scale:.2f} logits)")
    return integers, before, accuracy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--documents", type=int, default=12000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("-o", "--output", default=str(pathlib.Path(__file__).resolve().parents[2] / "runtime" / "anchors" / "network.bin"))
    args = parser.parse_args()
    integers, _, _ = train(args.seed, args.documents, args.epochs)
    integers.write(args.output, args.seed)
    print(f"{args.output}: {pathlib.Path(args.output).stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
