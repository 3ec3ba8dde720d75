"""The command line itself (bad-inputs B74; spec 12): unknown flags and commands with suggestions, contradictions, shape grammar, thresholds, outputs. Every case exits 2
(6 where a folder cannot be written) before any work is done.
"""
import json
import os
import subprocess
import unittest

from harness import Case, DATA, EXAMPLE, TARE, tare

MODEL = EXAMPLE / "contract-lm.onnx"


class Usage(Case):
    def test_unknown_flag_names_the_nearest(self):
        self.refused(2, "unknown flag --polcy of `tare compile`", "compile", MODEL, "-o", self.output, "--polcy", "strict", hint="did you mean --policy?")
        self.refused(2, "unknown flag --input", "run", self.output, "--input", "x.npz", hint="did you mean --inputs?")
        self.refused(2, "unknown flag --weight-treshold", "check", MODEL, "--weight-treshold=1e-3", hint="did you mean --weight-threshold?")

    def test_unknown_command_names_the_nearest(self):
        self.refused(2, "'compil' is no command of tare", "compil", MODEL, hint="did you mean `tare compile`?")
        self.refused(2, "no command given")

    def test_commands_of_later_versions_do_not_exist(self):
        for name in ["sensitivity"]:
            self.refused(2, f"'{name}' is no command of tare", name, MODEL)

    def test_order_of_verify(self):
        engine = self.folder / "e.tare"
        engine.write_bytes(b"\x89TARE\r\n\x1a" + bytes(64))
        self.refused(2, "the model comes first, then the engine", "verify", engine, MODEL, hint="tare verify MODEL ENGINE")
        self.refused(2, "the engine comes first, then its model", "verify", "--certificate", MODEL, engine, hint="tare verify --certificate ENGINE MODEL")
        self.refused(2, "no file given", "verify", hint="(shadow run)")

    def test_globs(self):
        for flag in ["--keep", "--only"]:
            self.refused(2, f"{flag} 'layers.[1' is no glob", "compile", MODEL, "-o", self.output, flag, "layers.[1", hint="needs a `]`")

    def test_version_and_help_everywhere(self):
        for words in [["--version"], ["compile", "--version"], ["run", "--version"]]:
            done = tare(*words)
            self.assertEqual((done.returncode, done.stdout[:5]), (0, "tare "), done.stderr)
        self.assertIn("Usage: tare check [OPTIONS]", tare("check", "--help").stdout)
        self.assertIn("Usage: tare [OPTIONS]", tare("help").stdout)

    def test_what_matches_nothing_is_said(self):
        rules = self.folder / "rules.yaml"
        rules.write_text("version: 1\nrules:\n  - path: 'blk.*.typo'\n    role: adapter\n")
        done = tare("compile", MODEL, "--rules", rules, "--keep", "typo.*", "--stop-after", "checked", "-o", self.folder / "out.mlir")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the rule at line 3 of", done.stderr)

    def test_extra_argument(self):
        self.refused(2, "unexpected argument 'other.onnx'", "compile", MODEL, "other.onnx", "-o", self.output)

    def test_values(self):
        compile = ["compile", MODEL, "-o", self.output]
        for bad in ["nan", "inf", "-1", "0", "1e-6x", ""]:
            self.refused(2, "--weight-threshold", *compile, f"--weight-threshold={bad}")
        self.refused(2, "out of the range", *compile, "--forward-threshold", "1e400")
        self.refused(2, "--policy 'strickt' is not known", *compile, "--policy", "strickt", hint="did you mean strict?")
        self.refused(2, "--threads '0' is no whole number from 1 to 256", *compile, "--threads", "0")
        self.refused(2, "--seed '-1'", *compile, "--seed=-1")
        self.refused(2, "--fold-limit '1Q'", *compile, "--fold-limit", "1Q")
        self.refused(2, "--fail-on 'rejectd' is not known", *compile, "--fail-on", "rejectd", hint="did you mean rejected?")
        error = self.refused(2, "--disable-pass 'graph-simplfy' is not known", *compile, "--disable-pass", "graph-simplfy", hint="did you mean graph-simplify?")
        self.assertEqual([error["message"].count(name) for name in ("graph-simplify", "graph-fold-constants", "graph-fuse-norms")], [1, 1, 1])
        self.refused(2, "a compile cannot do without it", *compile, "--disable-pass", "graph-mark-layers")
        for twice in ("graph-simplify", "graph-fold-constants"):
            self.assertEqual(tare(*compile, "--disable-pass", twice, "--print-cache-key").returncode, 0)
        self.refused(2, "--stop-after 'fuse' is not known", *compile, "--stop-after", "fuse", hint="did you mean fused?")
        self.refused(2, "--precision 'int8' is not known; it takes f32, f16, bf16", *compile, "--precision", "int8")
        for target in ([], ["--target", "cpu:x86-64-v3"]):
            self.refused(2, "--precision f16: code for CPUs computes in f32, and no CUDA target is asked for", *compile, *target, "--precision", "f16")
            self.refused(2, "--tf32: code for CPUs computes in f32, and no CUDA target is asked for", *compile, *target, "--tf32", hint="--target cpu,cuda:sm_90")
        for precision in ("f16", "bf16"):
            self.refused(2, f"--tf32 is a way to compute products of f32, --precision {precision} asks for others", *compile, "--target", "cuda-emu", "--precision", precision, "--tf32", hint="leave out one of the two")
        self.refused(2, "--precision 'tf32' is not known; it takes f32, f16, bf16", *compile, "--target", "cuda-emu", "--precision", "tf32")
        keys = {tuple(flags): tare(*compile, "--target", "cuda-emu", *flags, "--print-cache-key").stdout for flags in ([], ["--precision", "f32"], ["--precision", "f32", "--tf32"], ["--tf32"], ["--precision", "f16"])}
        self.assertEqual(keys["--precision", "f32", "--tf32"], keys["--tf32",])
        self.assertEqual(keys["--precision", "f32"], keys[()])
        self.assertEqual(len(set(keys.values())), 3, keys)

    def test_targets_to_run_on(self):
        for command in (["run", MODEL, "--inputs", MODEL], ["bench", MODEL, "--shape", "input_ids=1x2"], ["verify", MODEL]):
            for target in ("gpu", "cuda:sm_", "cuda:sm_9x", "cuda:90", "cpu,cuda", "cuda-emu:sm_90"):
                self.refused(2, "is no target that an engine runs on", *command, "--target", target)
            self.refused(2, "'x86-64-v5' is not known", *command, "--target", "cpu:x86-64-v5")

    def test_targets(self):
        self.refused(2, "--target 'cuda-emu:count': 'cuda-emu:count' is no target", "compile", MODEL, "-o", self.output, "--target", "cuda-emu:count")
        compile = ["compile", MODEL, "-o", self.output]
        self.refused(2, "'x86-64-v5' is not known", *compile, "--target", "cpu:x86-64-v5")
        self.refused(2, "'gpu' is no target", *compile, "--target", "gpu")
        self.refused(2, "--source belongs to --kernels", "inspect", self.output, "--source", "gemm")

    def test_cuda_emulator_without_a_compiler(self):
        scratch = self.folder / "tmp"
        scratch.mkdir()
        compile = ["compile", MODEL, "-o", self.output, "--target", "cuda-emu"]
        missing = tare(*compile, env={"TARE_CLANG": "/nonexistent/clang", "TMPDIR": str(scratch)})
        self.assertEqual(missing.returncode, 5, missing.stderr)
        self.assertIn("TARE_CLANG names", missing.stderr)
        self.assertIn("apt install clang-19", missing.stderr)
        self.assertEqual(list(scratch.iterdir()), [])
        none = tare(*compile, env={"TARE_CLANG": "none", "TMPDIR": str(scratch)})
        self.assertEqual(none.returncode, 5, none.stderr)
        self.assertIn("cuda-emu needs clang-19, and there is none", none.stderr)
        for program in ["/bin/true", "/bin/false"]:
            out = tare(*compile, env={"TARE_CLANG": program, "TMPDIR": str(scratch)})
            self.assertEqual(out.returncode, 5, out.stderr)
            self.assertIn("clang-19 does not say its version", out.stderr)
            self.assertIn(program, out.stderr)
        fake = self.folder / "clang"
        for body in ["exit 0", 'for word; do out=$word; done; echo "no object" >"$out"']:
            fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "clang version 19.1.7" && exit 0\n{body}\n')
            fake.chmod(0o755)
            out = tare(*compile, env={"TARE_CLANG": str(fake), "TMPDIR": str(scratch)})
            self.assertEqual(out.returncode, 5, out.stderr)
            self.assertIn("clang-19 succeeded and left no object code", out.stderr)
            self.assertIn(str(fake), out.stderr)
        self.assertEqual(list(scratch.iterdir()), [])
        fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "clang version 19.1.7" && exit 0\nexit 1\n')
        broken = tare(*compile, env={"TARE_CLANG": str(fake), "TMPDIR": str(scratch)})
        self.assertEqual(broken.returncode, 5, broken.stderr)
        self.assertIn("clang-19 failed on the generated kernels (status 1)", broken.stderr)
        kept = [p for p in scratch.iterdir() if p.name.startswith("tare-cuda")]
        self.assertEqual(len(kept), 1) # the text stays for whoever looks into it
        self.assertIn("TARE_KERNEL(128)", (kept[0] / "kernels.cpp").read_text())
        self.assertIn(str(kept[0]), broken.stderr)
        self.assertEqual(self.output.read_bytes(), b"an engine of yesterday")

    def test_contradictions(self):
        self.refused(2, "--stop-after makes none", "compile", MODEL, "--stop-after", "clean", "--verify")
        self.refused(2, "--dry-run writes nothing", "compile", MODEL, "--dry-run", "-o", self.output)
        self.refused(2, "exclude each other", "compile", MODEL, "--dry-run", "--print-cache-key")
        self.refused(2, "--report needs the checks", "compile", MODEL, "--stop-after", "marked", "--report", self.folder / "r.json")
        self.refused(2, "exclude each other", "verify", "--certificate", "a.tare", "b.onnx", "--golden", ".")
        self.refused(2, "inspect shows one of", "inspect", self.output, "--header", "--plan")

    def test_outputs(self):
        self.refused(2, "-o - : this output is a file", "compile", MODEL, "-o", "-", hint="./- is a file that is called -")
        both = tare("report", self.output, "--format", "text", "--json")
        self.assertEqual(both.returncode, 2)
        self.assertIn("--json prints JSON, --format text asks for another form", json.loads(both.stdout)["error"]["message"])
        self.refused(2, "would overwrite the input", "compile", MODEL, "-o", MODEL)
        link = self.folder / "link.onnx"
        os.link(MODEL, link)
        self.refused(2, "would overwrite the input", "compile", MODEL, "-o", link)
        self.refused(2, "would overwrite the input", "compile", MODEL, "-o", self.output, "--calibration", EXAMPLE / "calibration.npz", "--emit-config", EXAMPLE / "calibration.npz")
        # What is only known after the import: external data, files of a Hugging Face folder.
        copy = self.folder / "copy.onnx"
        copy.write_bytes(MODEL.read_bytes())
        weights = self.folder / "contract-lm.weights"
        os.link(DATA / "contract-lm" / "contract-lm.weights", weights)
        os.link(weights, self.folder / "hard.json")
        self.refused(2, "-o would overwrite the input", "compile", copy, "-o", weights)
        for flag, name in [("--report", "hard.json"), ("--emit-onnx", "contract-lm.weights"), ("--depfile", "contract-lm.weights")]:
            self.refused(2, f"{flag} would overwrite the input", "compile", copy, "-o", self.output, flag, self.folder / name)
        self.refused(2, "--emit-config would overwrite the input", "compile", DATA / "bert-tiny", "-o", self.output, "--emit-config", DATA / "bert-tiny" / "config.json")
        self.refused(2, "the folder for -o cannot be used", "compile", MODEL, "-o", self.folder / "missing" / "x.tare", hint="mkdir -p")
        self.refused(6, "-o is a folder", "compile", MODEL, "-o", self.folder)
        self.refused(2, "the ending says no form", "compile", MODEL, "-o", self.output, "--report", self.folder / "r.pdf")
        self.refused(2, "name the same file", "compile", MODEL, "-o", self.output, "--report", self.folder / "r.json", "--emit-config", self.folder / "r.json")

    def test_empty_values(self):
        """A script's variable that was never set must not mean the default."""
        for arguments in [["compile", MODEL, "-o", ""], ["compile", "", "-o", self.output], ["check", MODEL, "--report", ""], ["compile", MODEL, "-o", self.output, "--rules", ""],
                          ["compile", MODEL, "-o", self.output, "--keep", ""], ["run", self.output, "--inputs", ""], ["run", self.output, "--inputs", "x.npz", "--outputs", ""]]:
            self.refused(2, "is empty", *arguments, hint="leave it out")

    def test_shapes(self):
        for shape, said in [("input_ids", "has no NAME="), ("=1x2", "has no NAME="), ("input_ids=1x", "is no size"), ("input_ids=1x-2", "is no size"), ("input_ids=1xq", "is no size"), ("input_ids=1x128,input_ids=1x2", "names input_ids twice"), ("input_ids=1099511627776x1099511627776", "2^40 elements"), ("a=1x1x1x1x1x1x1x1x1", "more than 8 dimensions")]:
            for command in ["bench", "estimate"]:
                self.refused(2, said, command, self.output, "--shape", shape)

    def test_missing_arguments(self):
        self.refused(2, "no MODEL given", "compile")
        self.refused(2, "--inputs", "run", self.output)
        self.refused(2, "--shape", "bench", self.output)


class Streams(unittest.TestCase):
    def test_help_is_ours(self):
        for command in ["", "compile", "check", "run", "bench", "report", "inspect", "verify", "estimate", "diff", "keygen"]:
            out = tare(*command.split(), "--help")
            self.assertEqual((out.returncode, out.stderr), (0, ""))
            for foreign in ["llvm", "mlir", "x86-", "--debug", "verify-machineinstrs"]:
                self.assertNotIn(foreign, out.stdout.replace("x86-64-v3", "").replace("x86-64-v4", "").replace("LLVM", ""), command)
            self.assertIn("-h,--help", out.stdout)

    def test_version(self):
        self.assertRegex(tare("--version").stdout, r"^tare \d+\.\d+\.\d+ \(LLVM 19\.")

    def test_closed_stdout_keeps_the_exit_code(self):
        shell = lambda text: subprocess.run(["sh", "-c", text], capture_output=True, text=True)
        self.assertEqual(shell(f"'{TARE}' --version >&-").returncode, 0)
        self.assertEqual(shell(f"'{TARE}' compile --polcy x >&- 2>&-").returncode, 2)
        self.assertEqual(shell(f"{{ '{TARE}' --help; echo $? >&2; }} | head -c 1").stderr.strip(), "0")
        full = shell(f"'{TARE}' --version >/dev/full")
        self.assertEqual(full.returncode, 6)
        self.assertIn("cannot write to stdout", full.stderr)

    def test_quiet_prints_nothing_but_errors(self):
        out = tare("inspect", "--quiet", "nothing.tare")
        self.assertEqual(out.stdout, "")
        self.assertIn("tare: error:", out.stderr)


if __name__ == "__main__":
    unittest.main()
