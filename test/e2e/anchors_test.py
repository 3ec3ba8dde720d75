"""The anchor scanner end to end: score tables on the marked sets and on generated documents, the command line, the Python wrapper, the retrieval example.

In: TARE (the command), TARE_ANCHORS_LIBRARY. Out: unittest. Must hold: labels come from hand or from construction (anchor_documents.py), never from the scanner;
standard library only.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "test" / "data" / "anchors"
sys.path.insert(0, str(ROOT / "tools" / "python"))
import anchor_documents  # noqa: E402
import tare_anchors  # noqa: E402

TARE = os.environ["TARE"]


def predictions(cases, network=True):
    return "".join(json.dumps({"id": c["id"], "anchors": [{"type": a.type, "value": a.value, "byte": a.byte} for a in tare_anchors.scan(c["text"], network=network)]}) + "\n" for c in cases)


def rates(cases, network=True):
    """Exact precision and recall over generated cases."""
    golden = predicted = both = 0
    for case in cases:
        want = {(a["type"], a["value"], *a["byte"]) for a in case["anchors"]}
        got = {(a.type, a.value, *a.byte) for a in tare_anchors.scan(case["text"], network=network)}
        golden, predicted, both = golden + len(want), predicted + len(got), both + len(want & got)
    return both / predicted, both / golden


def run(*arguments, text=None):
    return subprocess.run([TARE, *arguments], input=text, capture_output=True, timeout=120)


class Scores(unittest.TestCase):
    def test_marked_sets_pass_the_scorer(self):
        for name in ["golden.jsonl", "own.jsonl"]:
            cases = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
                file.write(predictions(cases))
                file.flush()
                done = subprocess.run([sys.executable, DATA / "score.py", file.name, "--golden", DATA / name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_clean_documents(self):
        precision, recall = rates([anchor_documents.document(101, k, "clean", True) for k in range(120)])
        self.assertGreaterEqual(precision, 0.99)
        self.assertGreaterEqual(recall, 0.99)

    def test_network_raises_precision_on_noise_and_decoys(self):
        for kind, gain in [("noisy", 0.003), ("decoys", 0.05)]:
            cases = [anchor_documents.document(102, k, kind, True) for k in range(120)]
            alone, both = rates(cases, network=False), rates(cases)
            self.assertGreaterEqual(both[0], alone[0] + gain, kind)
            self.assertGreaterEqual(both[1], 0.99, kind)


class CommandLine(unittest.TestCase):
    TEXT = "第四条 付款\n4.1 Fees\n见附件三 and see Table 2-1。\n".encode()

    def lines(self, *arguments, text=TEXT):
        done = run("scan", *arguments, "--json", text=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def test_json_lines(self):
        *anchors, last = self.lines("-")
        self.assertEqual(anchors[0], {"type": "clause", "value": "4", "byte": [0, 9], "char": [0, 3], "token": None})
        self.assertEqual([(a["type"], a["value"]) for a in anchors], [("clause", "4"), ("cross_reference", "annex 3"), ("cross_reference", "table 2-1")])
        self.assertEqual((last["summary"]["anchors"], last["summary"]["bytes"], last["summary"]["conservative"]), (3, len(self.TEXT), False))

    def test_outline_is_opt_in(self):
        self.assertIn(("outline", "4.1"), [(a.get("type"), a.get("value")) for a in self.lines("-", "--outline")])

    def test_bad_bytes_are_reported_with_offsets(self):
        summary = self.lines("-", text=b"ab\xff\x00 Section 4")[-1]["summary"]
        self.assertEqual((summary["invalid_utf8"], summary["control_characters"], summary["conservative"]), ({"count": 1, "offsets": [2]}, {"count": 1, "offsets": [3]}, True))

    def test_token_offsets(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.json"
            text = "Pay under Section 4.2 now."
            offsets = [[0, 0], [0, 3], [4, 9], [10, 17], [18, 19], [19, 20], [20, 21], [22, 25], [25, 26], [0, 0]]
            path.write_text(json.dumps(offsets))
            self.assertEqual(self.lines("-", "--token-offsets", str(path), text=text.encode())[0]["token"], 2)
            path.write_text(json.dumps({"unit": "byte", "offsets": [[k, k + 1] for k in range(60)]}))
            self.assertEqual(self.lines("-", "--token-offsets", str(path), text="付款见第四条".encode())[0]["token"], 6)
            for bad in ["{", "[[3, 1]]", "[[5, 6], [1, 2]]", "[1]", "{\"unit\": \"word\", \"offsets\": []}", "{}"]:
                path.write_text(bad)
                done = run("scan", "-", "--token-offsets", str(path), text=b"x")
                self.assertEqual(done.returncode, 3, bad)

    def test_files(self):
        self.assertEqual(run("scan", "/nonexistent/file.txt").returncode, 6)
        self.assertEqual(run("scan", "/").returncode, 6)
        self.assertEqual(run("scan").returncode, 2)
        plain = run("scan", str(DATA.parent / "README.md"))
        self.assertEqual(plain.returncode, 0)
        self.assertIn(b"heading", plain.stdout)

    def test_vector(self):
        for text, weight in [("参见第4.2条", 0.8), ("违约金是多少", 0.3), ("", 0.0)]:
            answer = json.loads(run("anchors", "--vector", text, "--json").stdout)
            self.assertEqual(len(answer["vector"]), 128)
            self.assertAlmostEqual(answer["weight"], weight, places=6)
            self.assertAlmostEqual(math.sqrt(sum(x * x for x in answer["vector"])), weight, places=5)
        self.assertEqual(run("anchors").returncode, 2)


class Python(unittest.TestCase):
    def test_spans_are_of_the_text(self):
        text = "甲方🗓️按照《办法》第４．２条付款, as set out in Annex B."
        for anchor in tare_anchors.scan(text):
            self.assertEqual(text[slice(*anchor.char)].encode(), text.encode()[slice(*anchor.byte)])
        self.assertEqual([a.value for a in tare_anchors.scan(text)], ["4.2", "annex B"])

    def test_summary_and_lone_surrogates(self):
        found, summary = tare_anchors.scan("第\ud8004条 第5条", summary=True)
        self.assertEqual(([a.value for a in found], summary.invalid_utf8, list(summary.invalid_offsets[:3]), summary.conservative), (["5"], 3, [3, 4, 5], 1))

    def test_vector_matches_targets(self):
        product = lambda a, b: sum(x * y for x, y in zip(tare_anchors.vector(a)[1], tare_anchors.vector(b)[1]))
        self.assertGreater(product("第4.2条怎么写", "第４．２条 付款"), 0.5)
        self.assertLess(product("第4.2条怎么写", "第9条 付款"), 0.3)

    def test_retrieval_example(self):
        done = subprocess.run([sys.executable, ROOT / "examples" / "retrieval" / "retrieve.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
