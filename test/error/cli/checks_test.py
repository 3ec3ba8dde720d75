"""attach-checks under bad input (spec 6): every refusal has exit 3, the file, the line of the entry or the tensor, and what to do; nothing is written. The model is the
example, whose layers 2, 4 and 6 have checks and whose others have none.
"""
import json
import shutil
import struct
import unittest

from harness import Case, EXAMPLE, tare
from npz import int64, npy, write_npz

HEADS, RANK, WIDTH, COLUMNS = 2, 4, 128, 512


def floats(shape, value=0.25):
    count = 1
    for d in shape:
        count *= d
    return npy("<f4", shape, struct.pack("<f", value) * count)


def weights(**changed):
    arrays = {"W": floats([HEADS, RANK, WIDTH]), "p": floats([HEADS, RANK]), "tau": floats([HEADS]), "E": floats([HEADS, COLUMNS])}
    return {f"layers.0.check.{name}": data for name, data in {**arrays, **changed}.items() if data is not None}


CHECKS = """version: 1
weights: w.npz
checks:
  - layer: "layers.0.up"
    name: layers.0.check
"""


class Checks(Case):
    def setUp(self):
        super().setUp()
        for name in ["contract-lm.onnx", "contract-lm.weights"]:
            shutil.copy(EXAMPLE / name, self.folder)
        self.model = self.folder / "contract-lm.onnx"

    def bad(self, said, yaml=CHECKS, arrays=None, hint=None, code=3):
        (self.folder / "checks.yaml").write_text(yaml)
        write_npz(self.folder / "w.npz", weights() if arrays is None else arrays)
        return self.refused(code, said, "attach-checks", self.model, self.folder / "checks.yaml", "-o", self.folder / "out.onnx", hint=hint)

    def test_the_good_one_is_attached(self):
        (self.folder / "checks.yaml").write_text(CHECKS)
        write_npz(self.folder / "w.npz", weights())
        done = tare("attach-checks", self.model, self.folder / "checks.yaml", "-o", self.folder / "out.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("layers.0.check: 2 heads of rank 4 on layers.0.up (128 -> 512)", done.stderr)
        few = write_npz(self.folder / "calibration.npz", {"sample_0.input_ids": int64([1, 8], [256, 1, 2, 3, 4, 5, 6, 7])})
        report = tare("check", self.folder / "out.onnx", "--calibration", few, "--json")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn('"layers.0.check"', report.stdout)

    def test_shapes(self):
        error = self.bad("W of 'layers.0.check' has shape [2, 4, 64], and the input of 'layers.0.up' has width 128", arrays=weights(W=floats([HEADS, RANK, 64])), hint="W is [heads, rank,")
        self.assertIn("line 4: ", error["message"])
        self.assertEqual(error["tensor"], "layers.0.check.W")
        self.bad("W of 'layers.0.check' has shape [8, 128], and it must be [heads, rank, width]", arrays=weights(W=floats([8, WIDTH])))
        self.bad("p of 'layers.0.check' has shape [2, 5], and it must be [2, 4]", arrays=weights(p=floats([HEADS, 5])))
        self.bad("tau of 'layers.0.check' has shape [3], and it must be [2]", arrays=weights(tau=floats([3])))
        self.bad("E of 'layers.0.check' has shape [2, 511], and it must be [2, 512]", arrays=weights(E=floats([HEADS, 511])))
        self.bad("the checks file says heads: 3", CHECKS + "    heads: 3\n")
        self.bad("the checks file says rank: 64", CHECKS + "    rank: 64\n")

    def test_values(self):
        self.bad("'layers.0.check.tau' is negative at index 0", arrays=weights(tau=floats([HEADS], -1.0)), hint="never negative")
        self.bad("'layers.0.check.tau' holds NaN at index 0", arrays=weights(tau=floats([HEADS], float("nan"))), hint="must be finite")
        self.bad("'layers.0.check.W' holds Inf at index 0", arrays=weights(W=floats([HEADS, RANK, WIDTH], float("inf"))))
        self.bad("'layers.0.check.p' is int64; the tensors of a check are floats", arrays=weights(p=npy("<i8", [HEADS, RANK], bytes(8 * HEADS * RANK))))

    def test_missing_tensors_and_files(self):
        error = self.bad("the weights have no tensor 'layers.0.check.tau'", arrays=weights(tau=None), hint="it holds layers.0.check.E, layers.0.check.W, layers.0.check.p")
        self.assertTrue(error["file"].endswith("w.npz"))
        self.bad("No such file", CHECKS.replace("w.npz", "other.npz"), code=6)
        self.bad("weights of checks are read from .npz and .safetensors files", CHECKS.replace("w.npz", "w.bin"))

    def test_the_checks_file(self):
        error = self.bad("line 6: unknown key 'head' (layer, name, weights, heads, rank, tensors)", CHECKS + "    head: 3\n", hint="docs/checks.md")
        self.assertTrue(error["file"].endswith("checks.yaml"))
        self.bad("line 1: unknown key 'check' (version, weights, checks)", "check: []\n")
        self.bad("line 1: 'checks' must be a list of at least one check", "checks: []\n")
        self.bad("line 1: 'version' must be 1", CHECKS.replace("version: 1", "version: 2"))
        self.bad("line 6: 'heads' must be a whole number of at least 1", CHECKS + "    heads: 0\n")
        self.bad("line 7: unknown tensor 'w' (W, p, tau, E)", CHECKS + "    tensors:\n      w: a\n")
        self.bad("line 4: a check needs 'layer'", "weights: w.npz\n\nchecks:\n  - name: a\n")
        self.bad("line 2: a check needs 'weights'", "checks:\n  - layer: layers.0.up\n")
        self.bad("line 4: 'layer' is a path of segments", CHECKS.replace("layers.0.up", "/layers.0/up"))
        self.bad("the checks file is not valid", "checks: [\n")
        self.bad("nests deeper", "[" * 100)

    def test_layers(self):
        self.bad("line 4: no linear layer matches 'layers.9.up'", CHECKS.replace("layers.0.up", "layers.9.up"), hint="linear layers of the model: layers.0.attn.q_proj, ")
        self.bad("line 4: 'layers.2.up' has a check already", CHECKS.replace("layers.0", "layers.2"), hint="layers that have none")
        self.bad("line 6: 'layers.0.up' gets a second check; it has 'layers.0.check'", CHECKS + "  - layer: layers.*.up\n    name: layers.{1}.other\n")
        named = "name: layers.2.check\n    tensors: {%s}" % ", ".join(f"{t}: layers.0.check.{t}" for t in ["W", "p", "tau", "E"])
        self.bad("the model has a tensor 'layers.2.check.W' already", CHECKS.replace("name: layers.0.check", named))
        self.bad("the name 'layers.{2}.check' is no module path", CHECKS.replace("name: layers.0.check", "name: layers.{2}.check"))

    def test_models(self):
        (self.folder / "checks.yaml").write_text(CHECKS)
        write_npz(self.folder / "w.npz", weights())
        self.refused(3, "Hugging Face folder", "attach-checks", self.folder, self.folder / "checks.yaml", "-o", self.folder / "out.onnx", hint="optimum-cli export onnx")
        self.refused(2, "-o would overwrite the input", "attach-checks", self.model, self.folder / "checks.yaml", "-o", self.model)
        self.refused(2, "-o would overwrite the input", "attach-checks", self.model, self.folder / "checks.yaml", "-o", self.folder / "w.npz")
        self.refused(6, "checks.yml", "attach-checks", self.model, self.folder / "checks.yml", "-o", self.folder / "out.onnx")

    def test_options_of_compile(self):
        arrays = {"sample_0.input_ids": int64([1, 4], [256, 1, 2, 3]), "sample_0.anchors": npy("<i4", [1, 1], struct.pack("<i", 2))}
        compile = ["check", EXAMPLE / "contract-lm.onnx", "--calibration", write_npz(self.folder / "few.npz", arrays), "--quiet"]
        self.refused(2, "--check-precision", *compile, "--check-precision", "int3", hint="int4")
        self.refused(2, "--check-window '0'", *compile, "--check-window", "0")
        for bad in ["101", "-1", "nan", "x", ""]:
            self.refused(2, "--check-fidelity", *compile, f"--check-fidelity={bad}")
        self.refused(2, "--check-precision forces a form", *compile, "--check-fidelity", "90", "--check-precision", "int4")
        chosen = {}
        for percent in ["0", "100"]:  # the evidence is the same, what is taken is not: a bit near an anchor differs in int4 or it does not
            said = tare(*compile, "--check-fidelity", percent, "--json")
            self.assertEqual(said.returncode, 0, said.stderr)
            for check in json.loads(said.stdout)["checks"]:
                self.assertTrue(check["form"] == "dense" or min(check["window_agreement"]) >= float(percent), check)
            chosen[percent] = [check["precision"] for check in json.loads(said.stdout)["checks"]]
        self.assertEqual(chosen["0"], ["int4"] * 3)
        keys = {tare("compile", *compile[1:], *flags, "--print-cache-key").stdout for flags in [[], ["--check-fidelity", "97"], ["--check-fidelity", "98"], ["--check-window", "4"]]}
        self.assertEqual(len(keys), 3)  # 98 is the default
        gate = tare(*compile, "--json", "--check-precision", "dense", "--fail-on", "kept-dense")
        self.assertEqual(gate.returncode, 4, gate.stderr)
        self.assertIn("layers.2.check stays dense", json.loads(gate.stdout)["error"]["message"])
        path = write_npz(self.folder / "calibration.npz", {**arrays, "sample_0.anchors": npy("<i4", [1, 1], struct.pack("<i", -2))})
        self.refused(3, "'anchors' must be int32 or int64 [batch, A] of positions, -1 for padding", "check", EXAMPLE / "contract-lm.onnx", "--calibration", path)
        write_npz(path, {**arrays, "sample_0.anchors": npy("<i4", [2, 1], struct.pack("<2i", 1, 2))})
        self.refused(3, "calibration sample 0: anchors are for 2 sequences, the model sees 1", "check", EXAMPLE / "contract-lm.onnx", "--calibration", path)


if __name__ == "__main__":
    unittest.main()
