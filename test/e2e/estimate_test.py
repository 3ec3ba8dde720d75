"""The memory estimate (spec 9) is what a run holds: compared with the runtime's own count of its scratch memory plus the file's weights and the tensors' sizes, linear
in the length up to 128,000 tokens, and the same from `check` and from the engine. In: TARE, TARE_DATA, ENGINE (contract-lm). Standard library only.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "error" / "cli"))
from npz import int64, npy, write_npz  # noqa: E402

TARE = os.environ["TARE"]
DATA = pathlib.Path(os.environ["TARE_DATA"]) / "contract-lm"
ENGINE = os.environ["ENGINE"]


def tare(*arguments):
    done = subprocess.run([TARE, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


def estimate(length):
    return json.loads(tare("estimate", ENGINE, "--shape", "input_ids=1x%d" % length, "--json"))["compute_estimation"]


class Estimate(unittest.TestCase):
    def test_it_is_what_a_run_holds(self):
        length = 300
        with tempfile.TemporaryDirectory(prefix="tare-estimate-") as name:
            folder = pathlib.Path(name)
            inputs = write_npz(folder / "in.npz", {"input_ids": int64([1, length], [i % 256 for i in range(length)])})
            tare("run", ENGINE, "--inputs", inputs, "--outputs", folder / "out.npz", "--threads", "1", "--metrics", folder / "metrics.txt")
            arena = float(re.search(r"^tare_arena_bytes (\S+)$", (folder / "metrics.txt").read_text(), re.M).group(1))
        sections = json.loads(tare("inspect", ENGINE, "--header", "--json"))["sections"]
        weights = sum(s["bytes"] for s in sections if s["kind"] == "weights")
        held = weights + arena + length * 8 + length * 260 * 4
        estimated = estimate(length)["pruned"]["memory_bytes"]
        self.assertLess(abs(estimated - held), 0.05 * held, (estimated, held, weights, arena))

    def test_long_sequences_hold_no_scores(self):
        short, long = estimate(2000), estimate(128000)
        for plan in ("full", "pruned"):
            self.assertLess(long[plan]["memory_bytes"], 64 * short[plan]["memory_bytes"])
            self.assertLess(long[plan]["memory_bytes"], 2 << 30)
            self.assertGreater(long[plan]["flops"], 64 * short[plan]["flops"])  # the scores are computed all the same
        self.assertLess(short["pruned"]["memory_bytes"], short["full"]["memory_bytes"])

    def test_what_the_fidelity_checks_hold_grows_little(self):
        for every in (333, 64):  # tokens per anchor: the reference document's, and the seeded ones of a calibration
            held = {}
            for length in (1000, 128000):
                memory = json.loads(tare("estimate", ENGINE, "--shape", "input_ids=1x%d,anchors=1x%d" % (length, length // every), "--json"))["check_memory"]
                self.assertGreater(memory["weight_bytes"], 3 * (64 * 128 * 3) // 2)  # three checks in four bits at least
                self.assertGreaterEqual(memory["run_bytes"], 4 * (length // every) + 8 * min(length, 3 * (length // every) + 1))
                held[length] = memory["weight_bytes"] + memory["run_bytes"]
            self.assertLessEqual(held[128000], 1.18 * held[1000], held)

    def test_a_run_says_the_same_about_its_checks(self):
        with tempfile.TemporaryDirectory(prefix="tare-estimate-") as folder:
            inputs = write_npz(pathlib.Path(folder) / "in.npz", {"input_ids": int64([1, 40], range(40)), "anchors": npy("<i4", [1, 2], struct.pack("<2i", 9, -1))})
            run = json.loads(tare("run", ENGINE, "--inputs", inputs, "--json"))
        said = json.loads(tare("estimate", ENGINE, "--shape", "input_ids=1x40,anchors=1x2", "--json"))["check_memory"]
        self.assertEqual(run["check_memory"], said)
        self.assertEqual(run["check_evaluations"], {"dense": 40, "sparse": 4})

    def test_check_and_engine_say_the_same(self):
        with tempfile.TemporaryDirectory(prefix="tare-estimate-") as folder:
            short = write_npz(pathlib.Path(folder) / "short.npz", {"input_ids": int64([1, 8], range(8))})
            report = json.loads(tare("check", DATA / "contract-lm.onnx", "--calibration", short, "--json", "--quiet"))
        at = report["compute_estimation"]["shape"]
        self.assertEqual(at["batch"], 1)
        for plan in ("full", "pruned"):
            self.assertEqual(report["compute_estimation"][plan]["memory_bytes"], estimate(at["sequence"])[plan]["memory_bytes"])


if __name__ == "__main__":
    unittest.main()
