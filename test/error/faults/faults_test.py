"""Failing system calls on output files, their order, and writers that are killed or many (faults F02, F03, F09, F24): every call of the write recipe fails once, for every command that writes a file. In: TARE,
TARE_MAKE_ENGINE (writes the small test engine), TARE_SHIM from the environment. Must hold: exit 6 (the maker: not 0), the old output untouched, no temporary left; and
write ... fsync, close, rename, fsync of the folder, in this order.
"""
import errno
import os
import pathlib
import subprocess
import sys
import unittest
from random import Random

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import Case, DATA, TARE, digest  # noqa: E402
from npz import int64, write_npz  # noqa: E402

CALLS = ["open", "write", "fsync", "close", "rename", "fsyncdir"]


class Faults(Case):
    def faulty(self, command, fault=None):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        env = {**os.environ, "LD_PRELOAD": os.environ["TARE_SHIM"], "TARE_FAULT_LOG": str(log)}
        if fault:
            env["TARE_FAULT"] = "%s:%d:%d" % fault
        out = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=120)
        calls = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return out, calls

    def every_call_fails_once(self, command, writes=None, code=6):
        """`writes`: which of the writes fail; all of them by default."""
        good, calls = self.faulty(command)
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertEqual({c: calls.count(c) for c in CALLS if c != "write"}, {"open": 1, "fsync": 1, "close": 1, "rename": 1, "fsyncdir": 1}, calls)
        # F24: what is renamed is on the disk, and then the name is. Nothing is written between.
        self.assertEqual([c for c in calls if c != "write"], CALLS[:1] + CALLS[2:])
        self.assertEqual(calls[-4:], ["fsync", "close", "rename", "fsyncdir"])
        self.output.write_bytes(b"an engine of yesterday")
        before, files = digest(self.output), sorted(p.name for p in self.folder.iterdir())
        for call in CALLS:
            for number in (writes or range(1, calls.count("write") + 1)) if call == "write" else [1]:
                for why in (errno.EIO, errno.EDQUOT) if number == 1 else (errno.EIO,):
                    out, done = self.faulty(command, (call, number, why))
                    text = f"{call} {number} {errno.errorcode[why]}: {out.stderr}"
                    if code is None:
                        self.assertNotEqual(out.returncode, 0, text)
                        self.assertGreater(out.returncode, 0, text)
                    else:
                        self.assertEqual(out.returncode, code, text)
                        self.assertIn(os.strerror(why), out.stderr)
                    self.assertIn(call, done)
                    self.assertEqual(sorted(p.name for p in self.folder.iterdir()), files, text)
                    if call == "fsyncdir":  # the file is in place and complete; only its name may be lost with the power
                        self.assertNotEqual(digest(self.output), before, text)
                        self.output.write_bytes(b"an engine of yesterday")
                    self.assertEqual(digest(self.output), before, text)

    def test_the_engine_writer(self):
        self.every_call_fails_once([os.environ["TARE_MAKE_ENGINE"], self.output], code=None)

    def test_outputs_of_a_run_and_reports(self):
        engine, inputs = self.folder / "e.tare", write_npz(self.folder / "in.npz", {"input_ids": int64([1, 3], [1, 2, 3])})
        done = subprocess.run([TARE, "compile", DATA / "bert-tiny", "-o", engine, "--target", "cpu:x86-64-v3", "--quiet"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.every_call_fails_once([TARE, "run", engine, "--inputs", inputs, "--outputs", self.output], writes=[1])
        self.every_call_fails_once([TARE, "report", engine, "--format", "html", "-o", self.output], writes=[1])

    def test_killed_at_any_time(self):  # F03: the old output or the new one, whole; a temporary left behind is in nobody's way
        make = [os.environ["TARE_MAKE_ENGINE"], self.output]
        self.assertEqual(subprocess.run(make).returncode, 0)
        good, random = digest(self.output), Random(7)
        self.output.write_bytes(b"an engine of yesterday")
        outcomes = {digest(self.output): 0, good: 0}
        for _ in range(60):
            process = subprocess.Popen(make, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=random.uniform(0, 0.06))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.assertIn(digest(self.output), outcomes)
            outcomes[digest(self.output)] += 1
            if digest(self.output) == good:
                self.output.write_bytes(b"an engine of yesterday")
        self.assertEqual(subprocess.run(make).returncode, 0)
        self.assertEqual(digest(self.output), good)

    def test_many_writers_of_one_output(self):  # F09: never a mix
        make = [os.environ["TARE_MAKE_ENGINE"], self.output]
        self.assertEqual(subprocess.run(make).returncode, 0)
        good = digest(self.output)
        writers = [subprocess.Popen(make) for _ in range(8)]
        for _ in range(20):
            self.assertEqual(digest(self.output), good)
        self.assertEqual([w.wait() for w in writers], [0] * 8)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["old.tare"])

    def test_compile(self):
        compile = [TARE, "compile", DATA / "bert-tiny", "-o", self.output, "--target", "cpu:x86-64-v3", "--quiet"]
        good, calls = self.faulty(compile)
        self.assertEqual((good.returncode, calls[-4:]), (0, ["fsync", "close", "rename", "fsyncdir"]), good.stderr)
        before = digest(self.output)
        for call, number in [("write", calls.count("write")), ("close", 1), ("rename", 1)]:
            out, _ = self.faulty(compile, (call, number, errno.EIO))
            self.assertEqual(out.returncode, 6, out.stderr)
            self.assertIn("Input/output error", out.stderr)
            self.assertEqual((digest(self.output), [p.name for p in self.folder.iterdir()]), (before, ["old.tare"]))
        verified, calls = self.faulty([*compile, "--verify"])  # written, compared with the source, then put in place
        self.assertEqual((verified.returncode, calls[-4:]), (0, ["rename", "fsyncdir"] * 2), verified.stderr)
        for call in ["rename", "fsyncdir"]:
            self.output.write_bytes(b"an engine of yesterday")
            out, _ = self.faulty([*compile, "--verify"], (call, 2, errno.EIO))
            self.assertEqual(out.returncode, 6, out.stderr)
            self.assertEqual([p.name for p in self.folder.iterdir()], ["old.tare"])
            self.assertEqual(self.output.read_bytes() == b"an engine of yesterday", call == "rename")


if __name__ == "__main__":
    unittest.main()
