"""Progress (cli.md): on a terminal one line that is rewritten and names the stage and the layer that is being worked on; elsewhere plain lines, one per stage;
nothing with --quiet, nothing on stdout. In: TARE, TARE_DATA. Standard library only; the terminal is a pseudo terminal.
"""
import os
import pty
import re
import subprocess
import unittest

from harness import Case, EXAMPLE, TARE, tare
from npz import int64, write_npz

MODEL = EXAMPLE / "contract-lm.onnx"


class Progress(Case):
    def on_terminal(self, *arguments):
        """What a terminal on stderr gets to see."""
        master, slave = pty.openpty()
        env = {k: v for k, v in os.environ.items() if k != "CI"} | {"TERM": "xterm", "COLUMNS": "200"}
        process = subprocess.Popen([TARE, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, env=env)
        os.close(slave)
        seen = b""
        try:
            while part := os.read(master, 65536):
                seen += part
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(master)
        out = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0, seen)
        return seen.decode(), out.decode()

    def test_the_terminal_names_the_layer(self):
        calibration = write_npz(self.folder / "calibration.npz", {"input_ids": int64([1, 300], [i % 256 for i in range(300)])})
        seen, out = self.on_terminal("check", MODEL, "--calibration", calibration, "--report", self.folder / "report.txt")
        self.assertEqual(out, "")
        drawn = seen.split("\r\x1b[K")
        layers = {m.group(1) for line in drawn if (m := re.match(r"\[3/5\] check layers: (layers\.\d+)\S* \(sample \d of \d, (forward|gradient \d of \d)\)", line))}
        self.assertGreater(len(layers), 1, seen[-2000:])
        self.assertTrue(all(line.startswith("[") or not line for line in drawn[:-1]), seen[-2000:])

    def test_plain_lines_elsewhere(self):
        calibration = write_npz(self.folder / "calibration.npz", {"input_ids": int64([1, 4], range(4))})
        done = tare("check", MODEL, "--calibration", calibration, "--report", self.folder / "report.txt")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertNotIn("\x1b", done.stderr)
        self.assertIn("tare: [3/5] check layers\n", done.stderr)
        self.assertRegex(done.stderr, r"tare: \d+ of \d+ candidates pruned, .*\(policy strict\)\n")  # the report is in the file, so the terminal gets its summary
        self.assertNotIn("candidates pruned", tare("check", MODEL, "--calibration", calibration).stderr)
        quiet = tare("compile", MODEL, "--stop-after", "marked", "-o", self.folder / "m.mlir", "--quiet")
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
