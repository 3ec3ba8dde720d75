"""`cmake --install` as a user has it: the tree, find_package(Tare) from another project, examples/c against the installed runtime, tare_add_engine with its depfile, and the Python
wrapper on the installed library. In: BUILD (this build folder), GENERATOR, CC, DATA from the environment. Standard library only; the wrapper needs NumPy and is skipped
without.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD, DATA = pathlib.Path(os.environ["BUILD"]), pathlib.Path(os.environ["DATA"])


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tare install "))  # a blank in the path
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        run("cmake", "--install", BUILD, "--prefix", cls.folder / "first")
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)  # relocatable
        cls.model = cls.folder / "model"
        shutil.copytree(DATA / "llama-pro-tiny", cls.model)
        cls.consumer = cls.folder / "build"
        run("cmake", "-S", ROOT / "test" / "e2e" / "consumer", "-B", cls.consumer, "-G", os.environ["GENERATOR"], f"-DCMAKE_PREFIX_PATH={cls.prefix}", f"-DCMAKE_C_COMPILER={os.environ['CC']}",
            f"-DSOURCE={ROOT / 'examples' / 'c' / 'run.c'}", f"-DMODEL={cls.model}")
        run("cmake", "--build", cls.consumer)
        cls.engine = pathlib.Path((cls.consumer / "engine.txt").read_text())

    def test_the_tree(self):
        tree = sorted(str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file())
        self.assertEqual(tree, ["bin/tare", "bin/tare-run", "include/tare/tare.h", "include/tare/tare.hpp", "include/tare/tare_anchors.h", "lib/cmake/Tare/TareConfig.cmake", "lib/cmake/Tare/TareConfigVersion.cmake",
                                "lib/cmake/Tare/TareEngine.cmake", "lib/libtare_anchors.so", "lib/libtare_anchors.so.0", "lib/libtare_anchors.so.0.1.0", "lib/libtare_rt.so", "lib/libtare_rt.so.0", "lib/libtare_rt.so.0.1.0", "share/tare/LICENSE", "share/tare/report-schema.json"])
        for tool in ["tare", "tare-run"]:
            self.assertIn("0.1.0", run(self.prefix / "bin" / tool, "--version"))
        for text in self.prefix.rglob("*.cmake"):
            self.assertNotIn(str(BUILD), text.read_text())

    def test_the_program_runs(self):
        out = run(self.consumer / "run", self.engine, *range(1, 9))
        self.assertRegex(out, r"^next token \d+, logit -?\d+\.\d{4}\n$")
        self.assertEqual(out, run(self.consumer / "run", self.engine, *range(1, 9)))
        missing = subprocess.run([self.consumer / "run", self.folder / "none.tare", "1"], capture_output=True, text=True)
        self.assertEqual((missing.returncode, missing.stdout), (6, ""))
        self.assertIn("cannot open engine", missing.stderr)

    def test_the_engine_is_rebuilt_when_a_shard_changes(self):
        before = self.engine.stat().st_mtime_ns
        run("cmake", "--build", self.consumer)
        self.assertEqual(self.engine.stat().st_mtime_ns, before)
        shard = next(self.model.glob("*.safetensors"))  # named by nothing but the depfile: MODEL is the folder
        os.utime(shard)
        run("cmake", "--build", self.consumer)
        self.assertGreater(self.engine.stat().st_mtime_ns, before)

    def test_the_version_is_checked(self):
        said = subprocess.run(["cmake", "-S", str(ROOT / "test" / "e2e" / "consumer"), "-B", str(self.folder / "other"), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_FIND_PACKAGE_PREFER_CONFIG=ON",
                               f"-DTare_DIR={self.folder}"], capture_output=True, text=True)
        self.assertNotEqual(said.returncode, 0)
        version = (self.prefix / "lib" / "cmake" / "Tare" / "TareConfigVersion.cmake").read_text()
        self.assertTrue(re.search(r'PACKAGE_VERSION "0\.1\.0"', version))

    def test_python_wrapper_on_the_installed_library(self):
        python = next((p for p in [BUILD / "venv" / "bin" / "python", pathlib.Path(sys.executable)] if p.exists()), None)
        if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
            self.skipTest("NumPy is not installed")
        self.assertIsNotNone(importlib.util.find_spec("ctypes"))
        code = ("import numpy as np, sys, tare\n"
                "engine = tare.Engine(sys.argv[1])\n"
                "ids = np.arange(1, 9, dtype=np.int64)[None]\n"
                "whole = tare.Context(engine, threads=2).run({'input_ids': ids}, ['logits'])\n"
                "assert list(whole) == ['logits'], whole.keys()\n"
                "step = tare.Context(engine)\n"
                "for layer in range(99):\n"
                "    pairs = [(f'past_key_values.{layer}.{k}', f'present.{layer}.{k}') for k in ('key', 'value')]\n"
                "    if pairs[0][0] not in [i['name'] for i in engine.inputs]: break\n"
                "    for pair in pairs: step.link_state(*pair, 16)\n"
                "for i in range(8): last = step.run({'input_ids': ids[:, i:i + 1]}, ['logits'])['logits']\n"
                "assert np.abs(whole['logits'][:, -1] - last[:, -1]).max() < 1e-4\n"
                "print(whole['logits'][0, -1].argmax())\n")
        out = run(python, "-B", "-c", code, self.engine, env={**os.environ, "TARE_LIBRARY": str(self.prefix / "lib" / "libtare_rt.so"), "PYTHONPATH": str(ROOT / "tools" / "python")})
        self.assertEqual(out.split()[0], run(self.consumer / "run", self.engine, *range(1, 9)).split()[2].rstrip(","))


if __name__ == "__main__":
    unittest.main()
