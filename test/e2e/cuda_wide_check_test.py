"""A fidelity check that is wide by itself (9 heads of rank 256), from the command line: its rows are evaluated by a launch of their own. In: TARE, TARE_DATA (contract-lm, whose
layer 0 has no check). Checked: which form is printed, beside the model's own narrow checks; the launches of an engine for a GPU; CPU and emulator agree, near anchors and densely.
Standard library only.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "error" / "cli"))
from npz import int64, npy, write_npz  # noqa: E402

TARE, MODEL = os.environ["TARE"], pathlib.Path(os.environ["TARE_DATA"]) / "contract-lm" / "contract-lm.onnx"
HEADS, RANK, WIDTH, COLUMNS = 9, 256, 128, 512
WIDE = "gemm_f32_128x512_fidelity_check_add_add_gelu_erf"


def tare(*arguments, **environment):
    done = subprocess.run([TARE, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stderr}")
    return done


class WideCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="tare-wide-")
        cls.addClassCleanup(cls.scratch.cleanup)
        folder = cls.folder = pathlib.Path(cls.scratch.name)
        draw = random.Random(6)

        def gauss(shape, deviation, mean=0.0):
            count = 1
            for d in shape:
                count *= d
            return npy("<f4", shape, struct.pack(f"<{count}f", *(draw.gauss(mean, deviation) for _ in range(count))))

        # A normalised token has a norm near sqrt(WIDTH), so its distances are near sqrt(RANK): a tau of that size gives bits of both kinds.
        write_npz(folder / "w.npz", {"layers.0.check.W": gauss([HEADS, RANK, WIDTH], WIDTH**-0.5), "layers.0.check.p": gauss([HEADS, RANK], 0.1),
                                     "layers.0.check.tau": gauss([HEADS], 0.5, RANK**0.5), "layers.0.check.E": gauss([HEADS, COLUMNS], 0.05)})
        (folder / "checks.yaml").write_text('version: 1\nweights: w.npz\nchecks:\n  - layer: "layers.0.up"\n    name: layers.0.check\n')
        cls.model = folder / "wide.onnx"
        tare("attach-checks", MODEL, folder / "checks.yaml", "-o", cls.model)
        cls.calibration = write_npz(folder / "calibration.npz", {"sample_0.input_ids": int64([1, 24], [256, *(draw.randrange(256) for _ in range(23))])})

    def compiled(self, name, *flags, **environment):
        engine = self.folder / name
        tare("compile", self.model, "-o", engine, "--calibration", self.calibration, "--check-precision", "int4", *flags, **environment)
        return engine

    def test_the_emulator_agrees_with_the_cpu(self):
        engine = self.compiled("emu.tare", "--target", "cpu:x86-64-v3,cuda-emu")
        kernels = [k["name"] for k in json.loads(tare("inspect", engine, "--kernels", "--json").stdout)["kernels"]]
        split, fused = [n for n in kernels if n.startswith(WIDE) and self.text(engine, n).find("gemm_f32_carried<") > 0], [n for n in kernels if n.startswith(WIDE) and self.text(engine, n).find("gemm_f32_checked<") > 0]
        self.assertEqual((len(split), len(fused)), (1, 1), kernels)
        self.assertIn("CheckShape<9, 256, 128, ", self.text(engine, split[0]))
        self.assertIn("check_distances<Check>(", self.text(engine, split[0] + "_evaluate"))
        self.assertIn("CheckShape<3, 64, 128, ", self.text(engine, fused[0]))
        result = json.loads(tare("verify", engine, "--json").stdout)
        self.assertEqual([(t["target"], t["ran"]) for t in result["targets"]], [("cpu", True), ("cuda-emu", True)])
        self.assertEqual((result["targets"][1]["violations"], result["verified"]), (0, True))
        self.assertGreater(result["targets"][1]["elements"], 10000)
        bits = [json.loads(tare("run", engine, "--target", target, "--inputs", self.anchored(), "--json").stdout)["check_evaluations"] for target in ("cpu", "cuda-emu")]
        self.assertEqual(bits[0], bits[1])
        self.assertLess(bits[0]["sparse"], bits[0]["dense"])

    def test_launches_for_a_gpu(self):
        engine = self.compiled("gpu.tare", "--target", "cuda:sm_80", TARE_NVRTC="none", TARE_NVCC="none")
        launches = json.loads(tare("inspect", engine, "--plan", "--json").stdout)["cuda"]["launches"]
        at = next(i for i, l in enumerate(launches) if l["kernel"].endswith("_evaluate"))
        self.assertEqual(launches[at]["kernel"], launches[at + 1]["kernel"] + "_evaluate")
        self.assertEqual(launches[at]["step"], launches[at + 1]["step"])
        self.assertEqual(sum(l["kernel"].endswith("_evaluate") for l in launches), 1)

    @staticmethod
    def text(engine, kernel):
        return tare("inspect", engine, "--kernels", "--source", kernel).stdout

    def anchored(self):
        return write_npz(self.folder / "in.npz", {"input_ids": int64([1, 40], [256, *range(39)]), "anchors": npy("<i4", [1, 2], struct.pack("<2i", 12, 30))})


if __name__ == "__main__":
    unittest.main()
