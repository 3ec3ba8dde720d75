"""Same input and flags give the same bytes (spec 11, issue point 9): compiled again from another directory, with another time zone, locale, umask, TMPDIR and number of threads. And the
cache key: it follows the bytes of model, external data, calibration and flags, and nothing else (bugs B51). Standard library only; TARE and TARE_DATA in the environment.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TARE, DATA = os.environ["TARE"], pathlib.Path(os.environ["TARE_DATA"])
MODEL = "contract-lm.onnx"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Determinism(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tare-determinism-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.copy = self.folder / "elsewhere" / "deeper ü"
        self.copy.mkdir(parents=True)
        for name in [MODEL, "contract-lm.weights", "calibration.npz"]:
            shutil.copy(DATA / "contract-lm" / name, self.copy / name)

    def tare(self, *arguments, cwd, env=None, umask=0o022):
        done = subprocess.run([TARE, *map(str, arguments)], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, preexec_fn=lambda: os.umask(umask), timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_engine_and_report(self):
        files = {}
        for name, where, env, umask, threads in [("a", DATA / "contract-lm", {"TZ": "UTC", "LC_ALL": "C"}, 0o022, 1),
                                                 ("b", self.copy, {"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TMPDIR": str(self.folder), "SOURCE_DATE_EPOCH": "1", "HOME": "/nonexistent"}, 0o077, 2)]:
            out = self.folder / name
            out.mkdir()
            # Relative in one case, absolute in the other.
            model = MODEL if name == "b" else where / MODEL
            self.tare("compile", model, "--calibration", where / "calibration.npz", "-o", out / "x.tare", "--report", out / "r.json", "--report", out / "r.html", "--report", out / "r.sarif", "--report", out / "r.xml",
                      "--threads", threads, "--emit-config", out / "c.yaml", cwd=where if name == "b" else "/", env=env, umask=umask)
            files[name] = {p.name: digest(p) for p in sorted(out.iterdir())}
        self.assertEqual(files["a"], files["b"])

    def key(self, *flags):
        return self.tare("compile", self.copy / MODEL, "--print-cache-key", *flags, cwd="/").strip()

    def test_cache_key(self):
        base = self.key()
        self.assertRegex(base, "^[0-9a-f]{64}$")
        self.assertEqual(base, self.tare("compile", DATA / "contract-lm" / MODEL, "--print-cache-key", "--threads", 2, cwd=self.folder, env={"TZ": "Asia/Tokyo"}).strip())
        keys = {base, self.key("--policy", "proved"), self.key("--seed", "1"), self.key("--weight-threshold", "1e-7"), self.key("--keep", "*"), self.key("--target", "cpu:x86-64-v3"),
                self.key("--calibration", self.copy / "calibration.npz"), self.key("--strict-nans"), self.key("--disable-pass", "graph-simplify")}
        self.assertEqual(len(keys), 9)
        weights = bytearray((self.copy / "contract-lm.weights").read_bytes())
        weights[1000] ^= 1
        (self.copy / "contract-lm.weights").write_bytes(weights)
        self.assertNotIn(self.key(), keys)

    def test_cache_dir(self):
        cache = self.folder / "cache"
        first = self.folder / "first.tare"
        flags = ["--cache-dir", cache, "--target", "cpu:x86-64-v3"]
        self.tare("compile", self.copy / MODEL, "-o", first, *flags, cwd="/")
        kept = list(cache.iterdir())
        self.assertEqual([p.name for p in kept], [self.key("--target", "cpu:x86-64-v3") + ".tare"])
        second = self.folder / "second.tare"
        self.tare("compile", self.copy / MODEL, "-o", second, *flags, "--emit-config", self.folder / "c.yaml", cwd="/")
        self.assertEqual(digest(first), digest(second))
        # A damaged entry is not used.
        data = bytearray(kept[0].read_bytes())
        data[len(data) // 2] ^= 1
        kept[0].write_bytes(data)
        self.tare("compile", self.copy / MODEL, "-o", second, *flags, cwd="/")
        self.assertEqual(digest(first), digest(second))


if __name__ == "__main__":
    unittest.main()
