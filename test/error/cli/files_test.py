"""Files that a command writes (bad-inputs F01-F05, F14, F23; spec 12): gates, full disks, signals, closed streams. An old output stays, temporaries go, exit codes are kept."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from harness import Case, EXAMPLE, ROOT, TARE, digest, tare
from schema import breaches

MODEL = EXAMPLE / "contract-lm.onnx"
FAST = ["--target", "cpu:x86-64-v3", "--calibration", EXAMPLE / "calibration.npz"]


class Files(Case):
    def names(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_gate_writes_reports_but_no_engine(self):
        before = digest(self.output)
        out = tare("compile", MODEL, "-o", self.output, *FAST, "--fail-on", "rejected", "--report", self.folder / "r.json", "--json")
        self.assertEqual(out.returncode, 4, out.stderr)
        self.assertIn("gate --fail-on: layers.0.pos_enc is rejected (WEIGHT_ABOVE_THRESHOLD)", out.stderr)
        self.assertEqual(digest(self.output), before)
        report = json.loads(out.stdout)
        self.assertEqual(report["error"]["code"], 4)
        self.assertEqual(len(report["candidates"]), 8)
        self.assertEqual(self.names(), ["old.tare", "r.json"])

    def test_every_report_form_and_configuration(self):
        flags = [word for ending in ["json", "html", "xml", "sarif", "txt"] for word in ("--report", self.folder / f"r.{ending}")]
        out = tare("check", MODEL, *FAST, *flags, "--emit-config", self.folder / "c.yaml", "--depfile", self.folder / "r.d")
        self.assertEqual((out.returncode, out.stdout), (0, ""), out.stderr)
        self.assertIn("pruned_layers: [layers.1.pos_enc, layers.2.pos_enc, layers.4.pos_enc", (self.folder / "c.yaml").read_text())
        depfile = (self.folder / "r.d").read_text()
        for read in ["contract-lm.onnx", "contract-lm.weights", "calibration.npz"]:
            self.assertIn(read, depfile)
        self.assertIn("<!doctype html>", (self.folder / "r.html").read_text())
        self.assertEqual(json.loads((self.folder / "r.sarif").read_text())["version"], "2.1.0")
        schema = json.loads((ROOT / "docs" / "report-schema.json").read_text())
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(breaches(schema, report), [])
        xml.etree.ElementTree.parse(self.folder / "r.xml")
        del report["candidates"][0]["weights"]["elements"]
        report["zero_rate"] = 2
        self.assertEqual(len(breaches(schema, report)), 2)

    def test_full_disk(self):
        before = digest(self.output)
        out = tare("check", MODEL, *FAST, "--report", "/dev/full", "--report", self.folder / "r.json")
        self.assertEqual(out.returncode, 2)  # the ending says no form
        out = subprocess.run(["sh", "-c", f"ulimit -f 8; exec '{TARE}' compile '{MODEL}' -o '{self.output}' --target cpu:x86-64-v3"], capture_output=True, text=True, timeout=300)
        self.assertEqual(out.returncode, 6, out.stderr)
        self.assertEqual(digest(self.output), before)
        self.assertEqual(self.names(), ["old.tare"])
        out = subprocess.run(["sh", "-c", f"'{TARE}' check '{MODEL}' >/dev/full"], capture_output=True, text=True, timeout=300)
        self.assertEqual(out.returncode, 6, out.stderr)

    def test_signals_remove_temporaries(self):
        before = digest(self.output)
        for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            for delay in [0.05, 0.4, 1.2]:
                process = subprocess.Popen([TARE, "compile", MODEL, "-o", self.output, "--target", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(delay)
                process.send_signal(number)
                begun = time.monotonic()
                process.communicate(timeout=60)
                self.assertLess(time.monotonic() - begun, 10)
                # 0: it was done before the signal came; -number: the signal came before main did.
                self.assertIn(process.returncode, (code, 0, -number) if delay < 0.1 else (code, 0))
                self.assertEqual(self.names(), ["old.tare"])
                if process.returncode:
                    self.assertEqual(digest(self.output), before)
                before = digest(self.output)

    def test_closed_stdout_still_writes_the_engine(self):
        out = subprocess.run(["sh", "-c", f"'{TARE}' compile '{MODEL}' -o '{self.output}' --target cpu:x86-64-v3 >&- 2>&-"], timeout=300)
        self.assertEqual(out.returncode, 0)
        self.assertEqual(tare("verify", self.output).returncode, 0)

    def test_nothing_on_stdout_and_plain_progress(self):
        out = tare("compile", MODEL, "-o", self.folder / "with space $x.tare", *FAST, "--depfile", self.folder / "d")
        self.assertEqual((out.returncode, out.stdout), (0, ""), out.stderr)
        self.assertIn("[1/10] import", out.stderr)
        self.assertNotIn("\r", out.stderr)
        self.assertTrue((self.folder / "d").read_text().startswith(str(self.folder).replace(" ", "\\ ") + "/with\\ space\\ $$x.tare:"))
        self.assertEqual(oct((self.folder / "with space $x.tare").stat().st_mode & 0o777), oct(0o666 & ~umask()))

    def test_stop_after_and_dry_run(self):
        for phase, has in [("imported", "graph.matmul"), ("marked", "graph.layer"), ("checked", "graph.evidence"), ("pruned", "graph.matmul"), ("fused", "graph.group"), ("planned", "plan.program")]:
            out = tare("compile", MODEL, "--stop-after", phase, *FAST)
            self.assertEqual(out.returncode, 0, out.stderr)
            self.assertTrue(has in out.stdout, f"{phase}: no {has}")
            self.assertLess(len(out.stdout), 2_000_000)
        self.assertFalse("graph.layer " in tare("compile", MODEL, "--stop-after", "pruned", *FAST).stdout)
        said = json.loads(tare("compile", MODEL, "--stop-after", "clean", "--json", *FAST).stdout)
        self.assertEqual((set(said), said["phase"]), ({"phase", "mlir", "report"}, "clean"))
        self.assertIn("graph.matmul", said["mlir"])
        self.assertEqual(set(json.loads(tare("compile", MODEL, "--stop-after", "marked", "--json", "-o", "-", *FAST).stdout)), {"phase", "mlir"})
        self.assertEqual(json.loads(tare("compile", MODEL, "--stop-after", "marked", "--json", "-o", self.folder / "m.mlir", *FAST).stdout), {"phase": "marked", "output": str(self.folder / "m.mlir")})
        self.assertEqual((self.folder / "m.mlir").read_text(), tare("compile", MODEL, "--stop-after", "marked", "-o", "-", *FAST).stdout)
        self.assertFalse(pathlib.Path("-").exists())
        (self.folder / "m.mlir").unlink()
        dry = tare("compile", MODEL, "--dry-run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("MatMul", dry.stdout)
        self.assertEqual(self.names(), ["old.tare"])
        self.assertIn("LayerNormalization", tare("--supported").stdout)


def umask():
    value = os.umask(0)
    os.umask(value)
    return value


if __name__ == "__main__":
    unittest.main()
