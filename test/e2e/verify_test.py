"""What `tare verify MODEL ENGINE --golden` counts as a violation (spec 12): any changed argmax over the last axis, however close the two elements are; among
equal elements any one is the largest. In: TARE, TARE_DATA, ENGINE (contract-lm). Golden outputs are the engine's own with single elements changed, so
that every count is known. Standard library only.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "error" / "cli"))
from npz import int64, npy, write_npz  # noqa: E402

TARE = os.environ["TARE"]
MODEL = pathlib.Path(os.environ["TARE_DATA"]) / "contract-lm" / "contract-lm.onnx"
ENGINE = os.environ["ENGINE"]
BOTH = os.environ["ENGINE_OF_TWO_TARGETS"]  # cpu and cuda-emu
HALF = os.environ["ENGINE_IN_HALF_PRECISION"]  # the same with --precision f16
TF32 = os.environ["ENGINE_IN_TF32"]  # and with --tf32
IDS, WIDTH = [256, 67, 108, 97, 117, 115, 101, 32], 260


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tare-verify-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        inputs, outputs = write_npz(self.folder / "in.npz", {"input_ids": int64([1, len(IDS)], IDS)}), self.folder / "out.npz"
        subprocess.run([TARE, "run", ENGINE, "--inputs", inputs, "--outputs", outputs, "--quiet"], check=True)
        with zipfile.ZipFile(outputs) as archive:
            self.logits = list(struct.unpack("<%df" % (len(IDS) * WIDTH), archive.read("logits.npy")[-4 * len(IDS) * WIDTH:]))

    def test_a_cuda_target_is_held_to_the_precision_of_its_kernels(self):
        """Products of rounded operands differ by more than the tolerance of f32 from the CPU's, which computes in f32 whatever is asked for, and by less than their own."""
        for engine, precision in [(HALF, "f16"), (TF32, "tf32")]:
            done = subprocess.run([TARE, "verify", engine, "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            cpu, emulator = json.loads(done.stdout)["targets"]
            self.assertEqual((cpu["target"], emulator["target"], emulator["against"]), ("cpu", "cuda-emu", "cpu"))
            self.assertGreater(emulator["max_difference"], 1e-4 + 1e-4 * max(map(abs, self.logits)), precision)
            self.assertEqual(emulator["violations"], 0, precision)
            configuration = subprocess.run([TARE, "inspect", engine, "--config"], capture_output=True, text=True, check=True).stdout
            self.assertIn(f"precision: {precision}\n", configuration)

    def test_the_certificate_speaks_of_the_fidelity_checks(self):
        done = subprocess.run([TARE, "verify", "--certificate", ENGINE, MODEL, "--json"], capture_output=True, text=True)
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {"verified": True, "layers": 8, "checks": 3}), done.stderr)

    def counts(self):
        """Violations and changed argmax of the engine against `self.logits`."""
        golden = self.folder / "golden"
        golden.mkdir()
        logits = npy("<f4", [1, len(IDS), WIDTH], struct.pack("<%df" % len(self.logits), *self.logits))
        write_npz(golden / "a.npz", {"input_ids": int64([1, len(IDS)], IDS), "logits": logits, "anchors": npy("<i4", [1, 1], struct.pack("<i", 7))})  # anchors are the engine's own: left out
        done = subprocess.run([TARE, "verify", MODEL, ENGINE, "--golden", golden, "--gate", "100", "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        case = json.loads(done.stdout)["cases"][0]["engine_golden"]
        return case["violations"], case["changed_argmax"]

    def best_two(self, row):
        order = sorted(range(row * WIDTH, (row + 1) * WIDTH), key=lambda i: -self.logits[i])
        return order[:2]

    def widen_tolerance(self):
        """One violation that makes every other element of the output agree: the tolerance follows the largest element."""
        self.logits[self.best_two(0)[0]] = 1e6

    def test_unchanged(self):
        self.assertEqual(self.counts(), (0, 0))

    def test_a_changed_argmax_within_the_tolerance_is_a_violation(self):
        self.widen_tolerance()
        first, second = self.best_two(3)
        self.logits[first], self.logits[second] = self.logits[second], self.logits[first]
        self.assertEqual(self.counts(), (2, 1))

    def test_no_element_counts_twice(self):
        """Every row's argmax changes and every element is far off: the rate is 100%, not more."""
        self.logits = [100.0 * (i % WIDTH) - x for i, x in enumerate(self.logits)]
        violations, changed = self.counts()
        self.assertGreater(changed, 0)
        self.assertLessEqual(violations, len(self.logits))

    def test_a_tie_has_no_single_argmax(self):
        self.widen_tolerance()
        first, second = self.best_two(3)
        self.logits[first] = self.logits[second]
        self.assertEqual(self.counts(), (1, 0))


class Targets(unittest.TestCase):
    """An engine of several targets: those that run here are compared with one another; --target picks one, and nothing takes its place."""

    def verify(self, *arguments):
        done = subprocess.run([TARE, "verify", *map(str, arguments), "--json"], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout)

    def test_both_forms_compare_them(self):
        for files in ([BOTH], [MODEL, BOTH]):
            code, result = self.verify(*files)
            self.assertEqual((code, result["verified"]), (0, True), result)
            cpu, emulator = result["targets"]
            self.assertEqual((cpu["target"], cpu["ran"]), ("cpu", True))
            self.assertEqual((emulator["code"], emulator["against"], emulator["violations"]), ("cuda-emu", "cpu", 0))
            self.assertGreater(emulator["elements"], 10000)
            self.assertGreater(emulator["max_difference"], 0)  # two codes do not round alike: equal outputs would be one code run twice

    def test_a_named_target_alone(self):
        code, result = self.verify(BOTH, "--target", "cuda-emu")
        self.assertEqual((code, result["verified"], "targets" in result), (0, True, False))
        code, result = self.verify(BOTH, "--target", "cuda")
        self.assertEqual((code, result["verified"]), (5, False))
        self.assertIn("no code for GPUs", result["error"]["message"])


if __name__ == "__main__":
    unittest.main()
