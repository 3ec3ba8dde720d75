"""What commands read beside models: arrays for run, calibration, rules in YAML, engines, report files (bad-inputs L7, B70-B74; cli.md: missing, extra or misshapen inputs are
one clear error). One engine of contract-lm is compiled for all cases.
"""
import json
import os
import pathlib
import shutil
import struct
import tempfile
import unittest

from harness import Case, EXAMPLE, tare
from npz import int64, npy, write_npz

MODEL = EXAMPLE / "contract-lm.onnx"


class Inputs(Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="tare-cli-engine-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, True)
        cls.engine = cls.shared / "contract.tare"
        done = tare("compile", MODEL, "-o", cls.engine, "--target", "cpu:x86-64-v3", "--calibration", EXAMPLE / "calibration.npz")
        assert done.returncode == 0, done.stderr

    def run_with(self, code, said, arrays, hint=None):
        path = write_npz(self.folder / "in.npz", arrays)
        return self.refused(code, said, "run", self.engine, "--inputs", path, "--outputs", self.folder / "out.npz", hint=hint)

    def test_good_inputs_run(self):
        path = write_npz(self.folder / "in.npz", {"input_ids": int64([1, 3], [1, 2, 3])})
        out = tare("run", self.engine, "--inputs", path, "--outputs", self.folder / "out.npz")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("logits float32 [1, 3, 260]", out.stdout)
        self.assertTrue((self.folder / "out.npz").exists())

    def test_missing_and_extra_names(self):
        self.run_with(3, "missing inputs: input_ids", {}, hint="the engine's inputs are: input_ids")
        self.run_with(3, "arrays that are no inputs: ids, mask", {"input_ids": int64([1, 1], [5]), "ids": int64([1], [5]), "mask": int64([1], [1])})
        self.run_with(3, "missing inputs: input_ids; arrays that are no inputs: logits", {"logits": int64([1], [5])})

    def test_misshapen(self):
        self.run_with(3, "input_ids", {"input_ids": int64([3], [1, 2, 3])})
        self.run_with(3, "input_ids", {"input_ids": npy("<i4", [1, 3], struct.pack("<3i", 1, 2, 3))})
        self.run_with(3, "input_ids", {"input_ids": npy("<f4", [1, 1], struct.pack("<f", 1.0))})

    def test_ids_outside_the_table(self):
        self.run_with(3, "out of range", {"input_ids": int64([1, 2], [1, 260])})
        self.run_with(3, "out of range", {"input_ids": int64([1, 2], [1, -9223372036854775808])})

    def test_anchors(self):
        ids = {"input_ids": int64([1, 3], [1, 2, 3])}
        int32 = lambda shape, *values: npy("<i4", shape, struct.pack(f"<{len(values)}i", *values))
        self.run_with(3, "an anchor is below -1", {**ids, "anchors": int32([1, 2], 1, -2)})
        self.run_with(3, "wrong dtype", {**ids, "anchors": int64([1, 1], [1])}, hint="convert the array: anchors.astype(numpy.int32)")
        for odd in [int32([1, 4], 3, 1, 2, 2), int32([1, 3], 0, 1, 2), int32([1, 2], 2147483647, -1), int32([1, 0])]:  # unsorted, duplicated, adjacent, on token 0, far beyond, none
            done = tare("run", self.engine, "--inputs", write_npz(self.folder / "in.npz", {**ids, "anchors": odd}))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.run_with(3, "wrong shape", {**ids, "anchors": int32([2, 1], 1, 1)})
        path = write_npz(self.folder / "in.npz", {**ids, "anchors": int32([1, 4], 7, 2, -1, 2)})
        metrics = self.folder / "metrics.txt"
        out = tare("run", self.engine, "--inputs", path, "--metrics", metrics, "--json")
        self.assertEqual(out.returncode, 0, out.stderr)
        said = json.loads(out.stdout)
        self.assertEqual((said["check_evaluations"], said["anchor_hits"]), ({"dense": 3, "sparse": 2}, 1))
        self.assertGreater(said["compute_savings"]["flops"], 0)
        for line in ["tare_check_evaluations_dense_total 3", "tare_check_evaluations_sparse_total 2", "tare_anchor_hits_total 1"]:
            self.assertIn(line, metrics.read_text().splitlines())

    def test_measured_fidelity(self):
        ids = {"input_ids": int64([1, 30], [256, *range(40, 69)])}
        measure = ["run", self.engine, "--measure-fidelity", "--inputs"]
        self.refused(2, "without anchors there is no sparse form", *measure, write_npz(self.folder / "in.npz", ids), hint="int32 [batch, A]")
        every = write_npz(self.folder / "in.npz", {**ids, "anchors": npy("<i4", [1, 30], struct.pack("<30i", *range(1, 31)))})
        out = tare(*measure, every, "--json")
        self.assertEqual(out.returncode, 0, out.stderr)
        said = json.loads(out.stdout)
        self.assertEqual([c["name"] for c in said["fidelity"]["checks"]], ["layers.2.check", "layers.4.check", "layers.6.check"])
        self.assertEqual((said["fidelity"]["evaluated"], said["fidelity"]["tokens"]), (30, 30))
        for check in said["fidelity"]["checks"]:  # every token is evaluated: near anchors and overall are the same tokens
            self.assertEqual(len(check["window_agreement"]), 3)
            self.assertEqual(check["window_agreement"], check["overall_agreement"])
        self.assertEqual(said["fidelity_score"], min(sum(c["window_agreement"]) / 3 for c in said["fidelity"]["checks"]))
        none = write_npz(self.folder / "none.npz", {**ids, "anchors": npy("<i4", [1, 0], b"")})
        said = json.loads(tare(*measure, none, "--json").stdout)
        self.assertEqual((said["fidelity"]["evaluated"], said["check_evaluations"]), (1, {"dense": 30, "sparse": 1}))
        self.assertGreater(said["fidelity"]["output_magnitude"], 1)
        text = tare(*measure, none)
        self.assertRegex(text.stderr, "layers.6.check: int4, bits are those of the dense form for [0-9. ]+% of evaluated tokens and [0-9. ]+% of all")
        self.assertIn("outputs differ by ", text.stderr)
        path = self.folder / "a.txt"
        path.write_text("\nSection 1. Scope\nThe Supplier delivers.\n")
        said = json.loads(tare("run", self.engine, "--text", path, "--measure-fidelity", "--json").stdout)
        self.assertEqual(said["fidelity"]["evaluated"], said["check_evaluations"]["sparse"])

    def test_text(self):
        path = self.folder / "a.txt"
        path.write_text("\nSection 1. Scope\nThe Supplier delivers.\n\nSection 2. Term\nIt ends.\n")
        out = tare("run", self.engine, "--text", path, "--json")
        self.assertEqual(out.returncode, 0, out.stderr)
        said = json.loads(out.stdout)
        self.assertEqual(said["outputs"]["logits"]["shape"], [1, len(path.read_bytes()) + 1, 260])
        self.assertEqual((said["check_evaluations"]["sparse"], said["anchor_hits"]), (2 + 3, 2))  # tokens 0 and 1, and three before the second heading
        path.write_bytes(b"\xff\x00\xfe" * 10)
        self.assertEqual(tare("run", self.engine, "--text", path).returncode, 0)
        self.refused(6, "none.txt", "run", self.engine, "--text", self.folder / "none.txt")
        self.refused(2, "--inputs and --text exclude each other", "run", self.engine, "--text", path, "--inputs", path)

    def test_broken_archives(self):
        bad = self.folder / "bad.npz"
        run = ["run", self.engine, "--outputs", self.folder / "out.npz", "--inputs"]
        bad.write_bytes(b"")
        self.refused(3, "bad.npz", *run, bad)
        bad.write_bytes(os.urandom(4096))
        self.refused(3, "bad.npz", *run, bad)
        good = write_npz(self.folder / "good.npz", {"input_ids": int64([1, 300], [1] * 300)}).read_bytes()
        bad.write_bytes(good[: len(good) // 2])
        self.refused(3, "bad.npz", *run, bad)
        self.run_with(3, "input_ids", {"input_ids": npy("|O", [1], b"\x80\x04N.")})
        self.run_with(3, "input_ids", {"input_ids": npy("<i8", [1, 1 << 60], b"")})
        self.refused(6, "none.npz", *run, self.folder / "none.npz")

    def test_what_is_no_engine(self):
        inputs = write_npz(self.folder / "in.npz", {"input_ids": int64([1, 1], [5])})
        self.refused(3, "", "run", MODEL, "--inputs", inputs, hint="tare compile")
        self.refused(3, "", "run", inputs, "--inputs", inputs)
        self.refused(6, "none.tare", "inspect", self.folder / "none.tare")
        cut = self.folder / "cut.tare"
        data = self.engine.read_bytes()
        for command in ["inspect", "report", "verify"]:
            cut.write_bytes(data[:-1])
            self.refused(3, "cut.tare", command, cut)
            cut.write_bytes(data[:100])
            self.refused(3, "cut.tare", command, cut)
        self.refused(3, "cut.tare", "inspect", "--header", cut)
        os.mkfifo(self.folder / "pipe.tare")
        self.refused(3, "pipe.tare", "inspect", self.folder / "pipe.tare")
        self.refused(3, "pipe.tare", "inspect", "--header", self.folder / "pipe.tare")

    def test_fetch_and_shapes_name_what_there_is(self):
        inputs = write_npz(self.folder / "in.npz", {"input_ids": int64([1, 1], [5])})
        self.refused(2, "--fetch 'logit' is not known", "run", self.engine, "--inputs", inputs, "--fetch", "logit", hint="did you mean logits?")
        self.refused(2, "--shape names 'ids', which is no input", "bench", self.engine, "--shape", "ids=1x8")
        self.refused(2, "--shape", "bench", self.engine, "--shape", "input_ids=1x2x3")
        self.refused(2, "--gate '101' is no percentage", "verify", MODEL, self.engine, "--gate", "101")
        self.refused(2, "--gate 'nan' is no percentage", "verify", MODEL, self.engine, "--gate", "nan")

    def test_reports(self):
        path = self.folder / "r.json"
        for text in ["", "[]", "{}", '{"tare": "0.1.0", "candidates": [], "schema": 99}', "[" * 100000, '{"tare": "0.1.0", "schema": 1, "candidates": [1]}']:
            path.write_text(text)
            self.refused(3, "r.json", "report", path)
            self.refused(3, "r.json", "diff", path, self.engine)


class Rules(Case):
    def rules(self, code, said, text):
        path = self.folder / "rules.yaml"
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        self.refused(code, said, "compile", MODEL, "-o", self.output, "--rules", path)

    def test_yaml(self):
        self.rules(3, "rules.yaml", "rules: [")
        self.rules(3, "rules.yaml", "\t- x")
        self.rules(3, "rolls", "rolls: []")
        self.rules(3, "rules.yaml", "rules: 3")
        self.rules(3, "strickt", "policy: strickt")
        self.rules(3, "rules.yaml", "thresholds: {weight: nan}")
        self.rules(3, "rules.yaml", "rules:\n  - {path_regex: '(', role: adapter}")
        self.rules(3, "rules.yaml", b"policy: \xff\xfe")
        self.rules(3, "rules.yaml", "[" * 100000)
        self.rules(3, "rules.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join("%c: &%c [%s]\n" % (c + 1, c + 1, ",".join(["*" + chr(c)] * 9)) for c in range(97, 110)))

    def test_files(self):
        self.refused(6, "none.yaml", "compile", MODEL, "-o", self.output, "--rules", self.folder / "none.yaml")
        os.mkfifo(self.folder / "pipe")
        self.refused(3, "pipe", "compile", MODEL, "-o", self.output, "--rules", self.folder / "pipe")
        self.refused(3, str(self.folder), "compile", MODEL, "-o", self.output, "--rules", self.folder)


class Calibration(Case):
    def calibrated(self, code, said, arrays):
        path = write_npz(self.folder / "c.npz", arrays)
        return self.refused(code, said, "compile", MODEL, "-o", self.output, "--calibration", path)

    def test_names_shapes_types(self):
        self.calibrated(3, "input_ids", {"sample_0.ids": int64([1, 2], [1, 2])})
        self.calibrated(3, "extra", {"sample_0.input_ids": int64([1, 2], [1, 2]), "sample_0.extra": int64([1], [1])})
        self.calibrated(3, "input_ids", {"sample_0.input_ids": int64([2], [1, 2])})
        self.calibrated(3, "input_ids", {"input_ids": npy("<f4", [1, 1], struct.pack("<f", 1.0))})
        self.calibrated(3, "out of range", {"input_ids": int64([1, 2], [1, 999])})
        self.calibrated(3, "c.npz", {})

    def test_files(self):
        self.refused(6, "none.npz", "check", MODEL, "--calibration", self.folder / "none.npz")


if __name__ == "__main__":
    unittest.main()
