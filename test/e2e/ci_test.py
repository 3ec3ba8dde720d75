"""examples/ci as it is written: the CMake project with TARE_COMPILER, and every `run:` line of workflow.yml in a repository with a checkpoint. In: TARE, GENERATOR from the
environment. Must hold: each step exits 0, a second build does nothing, touched weights compile again; then the gates of the same lines do fail when they should.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "error" / "cli"))
from npz import int64, write_npz  # noqa: E402

EXAMPLES, TARE = ROOT / "examples", pathlib.Path(os.environ["TARE"])


def steps(workflow):
    """The shell text of each `run:`, folded ones (`>`) joined as YAML does."""
    found = re.findall(r"^( +)run:(?: >\n((?:\1 +.*\n)+)| (.*)\n)", workflow, re.M)
    return [" ".join(folded.split()) if folded else single for _, folded, single in found]


def calibrate(path):
    """One short sample in place of the example's, whose checks take most of the time."""
    path.unlink(missing_ok=True)
    write_npz(path, {"sample_0.input_ids": int64([1, 16], [256, *range(40, 55)])})


class Ci(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tare-ci-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def shell(self, line):
        env = {**os.environ, "PATH": f"{TARE.parent}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(self.folder / "github-output")}
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], cwd=self.folder, env=env, capture_output=True, text=True)

    def test_cmake_project(self):
        for name in ["ci", "contract-lm"]:
            shutil.copytree(EXAMPLES / name, self.folder / "examples" / name, ignore=shutil.ignore_patterns("*.xz", "cases"))
        calibrate(self.folder / "examples" / "contract-lm" / "calibration.npz")
        shutil.copytree(ROOT / "cmake", self.folder / "cmake")
        engine = self.folder / "build-ci" / "contract-lm.tare"
        configure = f"cmake -S examples/ci -B build-ci -G '{os.environ['GENERATOR']}' -DTARE_COMPILER={TARE} -DCMAKE_DISABLE_FIND_PACKAGE_Tare=ON && cmake --build build-ci"
        done = self.shell(configure)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        made = engine.stat().st_mtime_ns
        self.assertEqual(self.shell("cmake --build build-ci").returncode, 0)
        self.assertEqual(engine.stat().st_mtime_ns, made)
        os.utime(self.folder / "examples" / "contract-lm" / "contract-lm.weights")
        done = self.shell("cmake --build build-ci")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(engine.stat().st_mtime_ns, made)

    def test_workflow_lines(self):
        lines = steps((EXAMPLES / "ci" / "workflow.yml").read_text())
        self.assertEqual(len(lines), 4, lines)
        model = self.folder / "model"
        model.mkdir()
        shutil.copy(EXAMPLES / "contract-lm" / "contract-lm.onnx", model / "model.onnx")
        shutil.copy(EXAMPLES / "contract-lm" / "contract-lm.weights", model)
        calibrate(model / "calibration.npz")
        first = self.shell("tare check model/model.onnx --calibration model/calibration.npz --report model/last-report.json")
        self.assertEqual(first.returncode, 0, first.stderr)
        for line in lines:
            # One level instead of four: the time of the test, not its subject.
            done = self.shell(line.replace("-o model.tare", "-o model.tare --target cpu:x86-64-v3"))
            self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}\n{done.stderr}")
        self.assertRegex((self.folder / "github-output").read_text(), r"^key=[0-9a-f]{64}\n$")
        self.assertEqual(sorted(p.suffix for p in self.folder.glob("report.*")), [".html", ".json", ".sarif", ".xml"])
        self.assertEqual(len(list((self.folder / "engines").glob("*.tare"))), 1)
        # The gate of the last line: a layer that was removable last time is rejected now.
        report = json.loads((self.folder / "report.json").read_text())
        pruned = next(c for c in report["candidates"] if c["verdict"] == "pruned")
        pruned.update(verdict="rejected", code="WEIGHT_ABOVE_THRESHOLD", line="[PRUNING_REJECTED: WEIGHT_ABOVE_THRESHOLD] it grew")
        (self.folder / "report.json").write_text(json.dumps(report))
        done = self.shell(lines[-1])
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("newly-rejected", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
