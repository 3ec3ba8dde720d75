"""--target cuda:... under bad circumstances: unknown architectures, no compiler, one that is too old, broken or refuses our text; damaged images. In: TARE, TARE_DATA. The
compilers here are scripts with nvcc's manners, so that the tests need no CUDA; what they make is no cubin but looks like one.
"""
import ctypes
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import time
import unittest

from harness import Case, DATA, TARE, tare
from npz import int64, write_npz

MODEL = DATA / "bert-tiny"
NONE = {"TARE_NVRTC": "none", "TARE_NVCC": "none", "TARE_CLANG": "none"}
# Arguments: -arch=sm_XX ... --keep-dir=FOLDER SOURCE -o RESULT. LOG gets a line per compile. The empty kernel that every compiler is tried with is compiled by PROBE.
SCRIPT = """#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release @VERSION@, V@VERSION@.1"; exit 0 ;;
--list-gpu-arch) printf '@KNOWN@'; exit 0 ;;
esac
for word; do case "$word" in -arch=*) arch=${word#-arch=} ;; --keep-dir=*) kept=${word#--keep-dir=} ;; *.cu) source=$word ;; esac; result=$word; done
if grep -q tare_probe "$source"; then
name=tare_probe
@PROBE@
fi
name=$(sed -n 's/.*TARE_[A-Z]*KERNEL([0-9]*) *\\([a-z0-9_]*\\)(.*/\\1/p' "$source" | tail -1)
echo "$arch $name" >>'@LOG@'
@BODY@
"""
MAKES = """
printf '\\177ELF %s' "$name" >"$result"
echo ".visible .entry $name ($arch)" >"$kept/kernel.ptx"
"""
GOOD = MAKES + """
spill=0
case "$name" in gemm_*) spill=12 ;; esac
cat <<EOF
ptxas info    : Compiling entry function '$name' for '$arch'
    0 bytes stack frame, $spill bytes spill stores, 0 bytes spill loads
ptxas info    : Used 77 registers, used 1 barriers
EOF
"""


class Cuda(Case):
    def setUp(self):
        super().setUp()
        self.scratch, self.log = self.folder / "tmp", self.folder / "log"
        self.scratch.mkdir()
        self.log.touch()

    def fake(self, body=GOOD, version="13.0", known="compute_80 compute_90 compute_120", probe=MAKES + "exit 0"):
        path = self.folder / "nvcc"
        text = SCRIPT.replace("@BODY@", body).replace("@PROBE@", probe).replace("@LOG@", str(self.log)).replace("@VERSION@", version).replace("@KNOWN@", known.replace(" ", "\\n") + "\\n")
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return {**NONE, "TARE_NVCC": str(path), "TMPDIR": str(self.scratch)}

    def script(self, body, path=None, interpreter="#!/bin/sh"):
        path = path or self.folder / f"program{len(list(self.folder.iterdir()))}"
        path.write_text((interpreter + "\n" if interpreter else "\x7f") + body + "\n")
        path.chmod(0o755)
        return path

    def compiled(self, environment, *flags, target="cuda:sm_80,sm_90", name="e.tare"):
        out = tare("compile", MODEL, "-o", self.folder / name, "--target", target, *flags, env=environment)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out

    def fails(self, environment, *said, target="cuda:sm_90"):
        """Exit 5, one error, the old output as it was."""
        out = tare("compile", MODEL, "-o", self.output, "--target", target, "--quiet", env={"TMPDIR": str(self.scratch), **environment})
        self.assertEqual(out.returncode, 5, out.stderr)
        self.assertEqual(out.stderr.count("error:"), 1 + sum(word.count("error:") for word in said), out.stderr)
        for words in said:
            self.assertIn(words, out.stderr)
        self.assertEqual(self.output.read_bytes(), b"an engine of yesterday")
        return out

    def test_architectures(self):
        """One error each, which lists what is known and says what was probably meant."""
        compile = ["compile", MODEL, "-o", self.output, "--target"]
        known = "it takes sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121"
        for word, hint in [("sm90", "did you mean sm_90?"), ("90", "did you mean sm_90?"), ("9.0", "did you mean sm_90?"), ("sm_9", "did you mean sm_90?"), ("sm_9O", "did you mean sm_90?"), ("SM_90", "did you mean sm_90?"), ("sm-120", "did you mean sm_120?"),
                           ("sm_90a", "did you mean sm_90? (the kernels use nothing that only sm_90a has)"), ("compute_80", "did you mean sm_80? (every engine has PTX"), ("sm_75", "GPUs before sm_80 are not supported"),
                           ("sm_88", "take sm_87: its code runs on sm_88"), ("sm_95", "take sm_90: its code runs on sm_95"), ("sm_130", "take sm_121: its PTX runs on sm_130")]:
            error = self.refused(2, f"architecture '{word}' is not known; {known}", *compile, "cuda:" + word, hint=hint)
            self.assertTrue(error["hint"].startswith(hint), error)
        self.refused(2, "architecture 'sm_9O' is not known", *compile, "cpu,cuda:sm_80,sm_9O", hint="did you mean sm_90?")
        self.refused(2, "architecture 'x86-64-v3' is not known", *compile, "cuda:sm_80,x86-64-v3")
        self.refused(2, "architecture '' is not known", *compile, "cuda:")
        self.refused(2, "cuda needs an architecture", *compile, "cpu,cuda", hint="cuda:sm_90")
        for word, meant in [("CUDA:sm_90", "cuda:sm_90"), ("CUDA", "cuda:sm_90"), ("cuda=sm_80", "cuda:sm_80"), ("sm_90", "cuda:sm_90"), ("sm_9", "cuda:sm_90"), ("90", "cuda:sm_90"), ("gpu", "cuda:sm_90"), ("cuda-emulator", "cuda-emu"),
                            ("cuda_emu", "cuda-emu"), ("cuda-emu:count", "cuda-emu"), ("emulator", "cuda-emu"), ("x86-64-v3", "cpu:x86-64-v3"), ("CPU", "cpu"), ("cpus", "cpu")]:
            error = self.refused(2, f"'{word}' is no target", *compile, word)
            self.assertTrue(error["hint"].startswith(f"did you mean {meant}? targets: cpu[:x86-64-v3"), error)
            self.assertIn("cuda:sm_80, sm_86", error["hint"])
        for word, meant in [("cuda:sm90", "cuda:sm_90"), ("cuda:90", "cuda:sm_90"), ("CUDA:sm_90", "cuda:sm_90"), ("sm_90", "cuda:sm_90"), ("cuda-emulator", "cuda-emu"), ("cuda-emu:stats", "cuda-emu"), ("x86-64-v3", "cpu:x86-64-v3"), ("Cpu", "cpu")]:
            for command in [("run", "--inputs", "none.npz"), ("bench", "--shape", "x=1"), ("verify",)]:
                error = self.refused(2, f"--target '{word}' is no target that an engine runs on", *command, self.output, "--target", word)
                self.assertTrue(error["hint"].startswith(f"did you mean {meant}? one of cpu"), error)

    def test_no_compiler(self):
        out = self.fails(NONE, "the target cuda needs a compiler of CUDA text, and there is none")
        for word in ["CUDA Toolkit", "CUDA_HOME", "apt install clang-19"]:
            self.assertIn(word, out.stderr)
        self.fails({**NONE, "TARE_CLANG": "/nonexistent"}, "the compiler that TARE_CLANG names is not there")
        self.fails({**NONE, "TARE_NVCC": "/nonexistent"}, "the compiler that TARE_NVCC names is not there")
        self.fails({**NONE, "TARE_NVRTC": "/nonexistent.so"}, "this NVRTC cannot be loaded: /nonexistent.so")
        self.fails({**NONE, "TARE_NVRTC": "libm.so.6"}, "this NVRTC is older than CUDA 11.2, or damaged")
        self.fails({**NONE, "TARE_NVCC": "/bin/false"}, "nvcc does not say its version (status 1)", "TARE_NVCC=none")
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_named_compiler_that_does_not_work(self):
        """No other one is taken in its place: an error with the program's name, whatever goes wrong."""
        others = {"TARE_NVRTC": "none"}  # clang-19 would work
        for program, said in [("/bin/false", "nvcc does not say its version (status 1)"), ("/bin/true", "nvcc does not say its version (status 0)"), (self.script("kill -SEGV $$"), "nvcc does not say its version (status -2)"),
                              (self.script("", interpreter=None), "nvcc does not say its version")]:
            out = self.fails({**others, "TARE_NVCC": str(program)}, said, "TARE_NVCC=none")
            self.assertIn(str(program), out.stderr)
        for probe, said in [('echo "nvcc fatal   : Failed to preprocess host compiler properties." >&2; exit 1', "nvcc fatal   : Failed to preprocess host compiler properties."), ("exit 0", "no result"),
                            ('echo hello >"$result"; exit 0', "no result"), ("kill -SEGV $$", "nvcc 13.0 does not compile an empty kernel")]:
            out = self.fails({**self.fake(probe=probe), **others}, "nvcc 13.0 does not compile an empty kernel for sm_80", said, "TARE_NVCC=none")
            self.assertIn("g++", out.stderr)
        for program in ["/bin/true", "/bin/false", self.script("kill -SEGV $$")]:
            out = self.fails({**NONE, "TARE_CLANG": str(program)}, "clang-19 does not say its version", "TARE_CLANG=none")
            self.assertIn(str(program), out.stderr)
        self.fails({**NONE, "TARE_CLANG": str(self.script('test "$1" = --version && echo "clang version 19.1.7"; exit 0'))}, "clang 19.1.7 does not compile an empty kernel for compute_80: no result")
        self.assertEqual((self.log.read_text(), list(self.scratch.iterdir())), ("", []))

    def test_a_broken_compiler_that_is_found_is_passed_over(self):
        """The next one compiles, and a warning, which no engine keeps, says what is wrong."""
        cache = self.folder / "cache"  # of kernels: engines are written anew

        def compiled(environment, name="e.tare"):
            for entry in cache.glob("*.tare"):
                entry.unlink()
            return self.compiled({"TARE_NVRTC": "none", **environment}, "--cache-dir", cache, target="cuda:sm_80", name=name)

        compiled({}, "wanted.tare")  # by nvcc or clang-19, whatever is here
        found = self.folder / "found"
        found.mkdir()
        path = f"{found}:{os.environ['PATH']}"
        for body, said in [("exit 1", "nvcc does not say its version (status 1)"), ("kill -SEGV $$", "nvcc does not say its version"), ("exit 0", "nvcc does not say its version (status 0)")]:
            self.script(body, found / "nvcc")
            out = compiled({"PATH": path})
            self.assertRegex(out.stderr, r"warning: " + re.escape(said) + r".*\(" + re.escape(str(found / "nvcc")) + r"\); (nvcc|clang) [0-9.]+ compiles instead")
            self.assertEqual((self.folder / "e.tare").read_bytes(), (self.folder / "wanted.tare").read_bytes())
        self.fake(probe='echo "gcc: not found"; exit 127')
        os.replace(self.folder / "nvcc", found / "nvcc")
        out = compiled({"PATH": path})
        self.assertIn("warning: nvcc 13.0 does not compile an empty kernel for sm_80: gcc: not found", out.stderr)
        self.assertEqual((self.folder / "e.tare").read_bytes(), (self.folder / "wanted.tare").read_bytes())
        home = self.folder / "cuda" # its NVRTC is no library, or not one
        (home / "lib64").mkdir(parents=True)
        library = home / "lib64" / "libnvrtc.so"
        library.write_bytes(b"\x7fELF and nothing else")
        out = compiled({"TARE_NVRTC": "", "CUDA_HOME": str(home), "TARE_NVCC": "none", "LD_LIBRARY_PATH": ""})
        self.assertRegex(out.stderr, r"warning: this NVRTC cannot be loaded: .*libnvrtc\.so.*; (NVRTC|clang) [0-9.]+ compiles instead")
        library.unlink()
        library.symlink_to(next(p for p in ["/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6", "/lib64/libm.so.6"] if os.path.exists(p)))
        out = compiled({"TARE_NVRTC": "", "CUDA_HOME": str(home), "TARE_NVCC": "none", "LD_LIBRARY_PATH": ""})
        self.assertIn(f"warning: this NVRTC is older than CUDA 11.2, or damaged ({library}); ", out.stderr)
        out = self.fails({**NONE, "TARE_NVCC": "", "TARE_CLANG": "none", "PATH": str(found), "CUDA_HOME": str(self.folder / "nowhere")}, "and none works: nvcc 13.0 does not compile an empty kernel")
        self.assertIn("apt install clang-19", out.stderr)

    def test_too_old(self):
        out = self.fails(self.fake(version="11.0", known="compute_70 compute_80"), "nvcc 11.0 cannot compile for sm_90; it knows sm_70, sm_80", target="cuda:sm_80,sm_90")
        self.assertIn("CUDA Toolkit 11.8 or later", out.stderr)
        self.assertEqual(self.log.read_text(), "")

    def test_a_text_that_does_not_compile_is_kept(self):
        self.fails(self.fake(body='echo "in file"; echo "kernel.cu(7): error: no such template"; exit 2'), "nvcc 13.0 failed on the generated kernel", "kernel.cu(7): error: no such template")
        kept = [p for p in self.scratch.iterdir()]
        self.assertEqual(len(kept), 1)
        self.assertEqual((kept[0] / "log").read_text(), "in file\nkernel.cu(7): error: no such template\n")
        text, = kept[0].glob("*.cu")
        self.assertIn("TARE_KERNEL(128) " + text.stem, text.read_text())
        out = self.fails(self.fake(body='echo hello >"$result"'), "the result is neither a cubin nor PTX of this kernel")
        self.assertIn("are kept in", out.stderr)
        self.fails(self.fake(body="exit 0"), "the compiler left no result")

    def test_engine_report_and_spills(self):
        environment = self.fake()
        out = self.compiled(environment, "--report", self.folder / "r.json")
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(report["targets"], ["cuda:sm_80,sm_90"])
        cuda = report["cuda"]
        self.assertEqual((cuda["toolkit"], cuda["images"]), ("nvcc 13.0", ["sm_80", "sm_90", "compute_80"]))
        gemm = next(k for k in cuda["kernels"] if k["kind"] == "gemm")
        self.assertEqual([r["architecture"] for r in gemm["resources"]], ["sm_80", "sm_90"])
        self.assertEqual((gemm["resources"][0]["registers"], gemm["resources"][0]["spill_store_bytes"]), (77, 12))
        self.assertIn(f"warning: {gemm['name']} spills registers on sm_80: 12 bytes stored, 0 loaded", out.stderr)
        self.assertTrue(any(f"{gemm['name']} spills registers on sm_90" in w for w in report["warnings"]))
        self.assertFalse(any("row_" in w for w in report["warnings"]))
        shown = json.loads(tare("inspect", self.folder / "e.tare", "--kernels", "--json").stdout)
        self.assertEqual(shown["levels"], [])
        self.assertEqual([i["architecture"] for i in shown["cuda"]["images"]], ["sm_80", "sm_90", "compute_80"])
        self.assertEqual({k["name"]: k["resources"] for k in shown["cuda"]["kernels"]}, {k["name"]: k["resources"] for k in cuda["kernels"]})
        text = tare("inspect", self.folder / "e.tare", "--kernels", "--source", gemm["name"])
        self.assertIn("TARE_KERNEL(128) " + gemm["name"], text.stdout)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_cache_and_determinism(self):
        environment = self.fake()
        self.compiled(environment, "--threads", "1", name="a.tare")
        made = sorted(self.log.read_text().split("\n"))
        self.compiled(environment, "--threads", "3", "--cache-dir", self.folder / "cache", name="b.tare")
        self.assertEqual(sorted(self.log.read_text().split("\n")[len(made) - 1:]), made)
        for entry in (self.folder / "cache").glob("*.tare"):
            entry.unlink() # the engine itself is cached, too
        self.log.write_text("")
        out = self.compiled(environment, "--cache-dir", self.folder / "cache", name="c.tare")
        self.assertEqual(self.log.read_text(), "")
        calls = len(made) - 1  # for two architectures; those of the lower one make its PTX, too
        self.assertIn(f"0 images compiled, {calls // 2 * 3} from the cache", out.stderr)
        for name in ["b.tare", "c.tare"]:
            self.assertEqual((self.folder / name).read_bytes(), (self.folder / "a.tare").read_bytes())
        def key(target, environment):
            return tare("compile", MODEL, "--target", target, "--print-cache-key", env=environment).stdout

        keys = {key("cuda:sm_80", environment), key("cuda:sm_90", environment)}
        keys.add(key("cuda:sm_80", self.fake(version="13.1"))) # another compiler, other bytes
        self.assertEqual(len(keys), 3)

    def test_a_cache_that_cannot_be_written(self):
        """What it holds is used, what it lacks is compiled, the terminal says so once, and the engine shows nothing of it."""
        environment, cache = self.fake(), self.folder / "cache"
        self.compiled(environment, "--cache-dir", cache, target="cuda:sm_80")
        self.compiled(environment, name="wanted.tare")
        for entry in cache.glob("*.tare"):
            entry.unlink()
        held = sorted(p.name for p in cache.iterdir())
        kernels = len(held) // 2
        cache.chmod(0o555)
        self.addCleanup(cache.chmod, 0o755)

        def obey_permissions():  # root does not, unless it gives that up for what it starts
            if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1) != 0:  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
                os._exit(77)

        self.log.write_text("")
        out = tare("compile", MODEL, "-o", self.folder / "e.tare", "--target", "cuda:sm_80,sm_90", "--cache-dir", cache, env=environment, preexec_fn=obey_permissions)
        if out.returncode == 77:
            self.skipTest("root that cannot give up its privileges")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stderr.count("warning: kernels were not kept in the cache: "), 1, out.stderr)
        self.assertIn(f"CUDA kernels: {kernels} images compiled, {2 * kernels} from the cache", out.stderr)
        self.assertEqual(self.log.read_text().count("sm_80 "), 0)
        self.assertEqual((self.folder / "e.tare").read_bytes(), (self.folder / "wanted.tare").read_bytes())
        self.assertEqual(sorted(p.name for p in cache.iterdir()), held)

    def test_compiles_that_share_a_cache(self):
        environment, cache = self.fake(), self.folder / "cache"
        self.compiled(environment, name="wanted.tare")
        running = [subprocess.Popen([TARE, "compile", MODEL, "-o", self.folder / f"{i}.tare", "--target", "cuda:sm_80,sm_90", "--cache-dir", cache, "--quiet"], env={**os.environ, **environment}) for i in range(3)]
        self.assertEqual([process.wait(120) for process in running], [0, 0, 0])
        for i in range(3):
            self.assertEqual((self.folder / f"{i}.tare").read_bytes(), (self.folder / "wanted.tare").read_bytes())
        names = [p.name for p in cache.iterdir()]
        self.assertTrue(all(re.fullmatch(r"[0-9a-f]{64}\.(cubin|tare)", name) for name in names), names)
        self.assertEqual(sum(name.endswith(".tare") for name in names), 1)

    def test_verify_where_it_cannot_run(self):
        out = tare("compile", MODEL, "-o", self.output, "--target", "cuda:sm_80", "--verify", env={**self.fake(), "TARE_LIBCUDA": "/nonexistent/libcuda.so.1"})
        self.assertEqual(out.returncode, 5, out.stderr)
        self.assertIn("leave out --verify", out.stderr)
        self.assertEqual(self.output.read_bytes(), b"an engine of yesterday")

    def test_an_engine_for_gpus_without_a_driver(self):
        """It is inspected, reported, estimated and checked on any machine; what would run it is exit 5, which says what is needed."""
        self.compiled({"TARE_NVRTC": "none", "TARE_NVCC": "none"}, target="cuda:sm_80")  # clang-19: PTX of CUDA 11.0
        engine, nowhere = self.folder / "e.tare", {"TARE_LIBCUDA": "/nonexistent/libcuda.so.1"}
        for command in [("inspect", engine), ("inspect", engine, "--kernels"), ("inspect", engine, "--plan"), ("report", engine, "--format", "text"), ("estimate", engine, "--shape", "input_ids=1x8"), ("verify", engine)]:
            out = tare(*command, env=nowhere)
            self.assertEqual(out.returncode, 0, out.stderr)
        inputs = write_npz(self.folder / "in.npz", {"input_ids": int64([1, 3], [1, 2, 3])})
        for command in [("run", engine, "--inputs", inputs), ("run", engine, "--inputs", inputs, "--target", "cuda"), ("bench", engine, "--shape", "input_ids=1x8"), ("verify", MODEL, engine), ("verify", engine, "--target", "cuda")]:
            out = tare(*command, env=nowhere)
            self.assertEqual(out.returncode, 5, out.stderr)
            self.assertRegex(out.stderr, "no CUDA driver on this machine.*needs an NVIDIA driver for CUDA 11.4 or later")
        out = tare("run", engine, "--inputs", inputs, "--target", "cpu", env=nowhere)
        self.assertEqual(out.returncode, 5, out.stderr)
        self.assertIn("the engine has no code for CPUs", out.stderr)

    def test_a_damaged_image_is_refused(self):
        self.compiled(self.fake(), target="cpu:x86-64-v3,cuda:sm_80")
        engine = bytearray((self.folder / "e.tare").read_bytes())
        engine[engine.index(b"\x7fELF row_") + 6] ^= 1
        (self.folder / "e.tare").write_bytes(engine)
        self.refused(3, "hash mismatch: section cuda module was changed", "verify", self.folder / "e.tare")
        self.refused(3, "hash mismatch: section cuda module was changed", "inspect", self.folder / "e.tare")

    def test_a_signal_takes_the_compilers_along(self):
        sleeping = self.folder / "sleeping"
        environment = self.fake(f"echo $$ >>'{sleeping}'; touch \"$TMPDIR/own\"; sleep 100 & wait")
        for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            sleeping.write_text("")
            process = subprocess.Popen([TARE, "compile", MODEL, "-o", self.output, "--target", "cuda:sm_90", "--threads", "2", "--quiet"],
                                       env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            begun = time.monotonic()
            while len(sleeping.read_text().split()) < 2 and time.monotonic() - begun < 60:
                time.sleep(0.02)
            started = sleeping.read_text().split()
            self.assertGreaterEqual(len(started), 2)
            process.send_signal(number)
            process.wait(60)
            process.stderr.close()
            self.assertEqual(process.returncode, code)
            self.assertEqual(list(self.scratch.iterdir()), [])
            begun = time.monotonic()
            while any(self.runs(pid) for pid in started) and time.monotonic() - begun < 10:
                time.sleep(0.02)
            self.assertEqual([pid for pid in started if self.runs(pid)], [])

    @staticmethod
    def runs(pid):
        """A killed process that nobody has waited for (Z) does not."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
