"""Runs build/bin/tare for the tests of this folder. In: the environment variables TARE (binary) and TARE_DATA (models). Out: exit code, stdout, stderr.
Every refused command is run twice, plain and with --json, with an existing output whose hash must not change; nothing may be left behind. Standard library only.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TARE = os.environ["TARE"]
DATA = pathlib.Path(os.environ["TARE_DATA"])
ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "contract-lm"


def tare(*arguments, cwd=None, env=None, stdin=subprocess.DEVNULL, timeout=120, **options):
    """One run; text output."""
    return subprocess.run([TARE, *map(str, arguments)], cwd=cwd, env={**os.environ, **(env or {})}, stdin=stdin, timeout=timeout, capture_output=True, text=True, errors="replace", **options)


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tare-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.output = self.folder / "old.tare"
        self.output.write_bytes(b"an engine of yesterday")

    def refused(self, code, said, *arguments, hint=None, cwd=None):
        """Exit code and message in both forms; no stdout in the plain one; the old output and the folder are as they were."""
        before, files = digest(self.output), sorted(p.name for p in self.folder.iterdir())
        plain = tare(*arguments, cwd=cwd)
        self.assertEqual(plain.returncode, code, plain.stderr)
        self.assertIn(said, plain.stderr)
        self.assertEqual(plain.stdout, "")
        self.assertNotIn("see current operation", plain.stderr)  # the compiler's own notes are no hints
        if hint:
            self.assertIn(hint, plain.stderr)
        with_json = tare(*arguments, "--json", cwd=cwd)
        self.assertEqual(with_json.returncode, code, with_json.stderr)
        error = json.loads(with_json.stdout)["error"]
        self.assertEqual(set(error), {"code", "kind", "message", "file", "node", "tensor", "hint"})
        self.assertEqual(error["code"], code)
        self.assertEqual(digest(self.output), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), files)
        return error
