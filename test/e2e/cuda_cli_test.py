"""Engines for CPU and GPU on the command line: which target is taken, what is said when a driver, a device or memory is missing, exit codes. In: TARE, TARE_RUN, ENGINE (contract-lm-kv for
cpu and cuda:sm_90), FAKE (the fake driver), KERNELS (its host kernels). The fake's log must show no misuse and nothing held after every command. Standard library only.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "error" / "cli"))
from npz import int64, npy, write_npz  # noqa: E402

TARE, TARE_RUN, ENGINE, FAKE, KERNELS = (os.environ[name] for name in ("TARE", "TARE_RUN", "ENGINE", "FAKE", "KERNELS"))
CUDA_MODULE = 11  # runtime/format.h SectionKind
IMAGES = [i["architecture"] for i in json.loads(subprocess.run([TARE, "inspect", ENGINE, "--kernels", "--json"], check=True, capture_output=True, text=True).stdout)["cuda"]["images"]]
TOOLKIT = json.loads(subprocess.run([TARE, "report", ENGINE, "--format", "json"], check=True, capture_output=True, text=True).stdout)["cuda"]["toolkit"]
OWN = IMAGES[0]  # of a GPU with sm_90: the cubin, or the PTX where there was no toolkit to make one


class CudaCommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tare-cuda-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        arrays = {"input_ids": int64([1, 3], [5, 6, 7])}
        for layer in range(8):
            for part in ("key", "value"):
                arrays[f"past_key_values.{layer}.{part}"] = npy("<f4", [1, 4, 0, 32], b"")
        self.inputs = write_npz(self.folder / "in.npz", arrays)

    def run_tool(self, *command, driver=FAKE, **settings):
        log = self.folder / "driver.log"
        log.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FAKE_", "TARE_"))}
        environment |= {"TARE_LIBCUDA": driver, "FAKE_CUDA_KERNELS": KERNELS, "FAKE_CUDA_LOG": str(log)} | {f"FAKE_CUDA_{k.upper()}": str(v) for k, v in settings.items()}
        done = subprocess.run([*map(str, command), "--json"], capture_output=True, text=True, env=environment)
        self.log, self.stderr = log.read_text() if log.exists() else "", done.stderr
        if self.log:
            self.assertIn("wrong:\nheld:\nlaunches:", self.log)
        return done.returncode, json.loads(done.stdout)

    def taken(self, *target, tool=(TARE, "run"), **more):
        code, result = self.run_tool(*tool, ENGINE, "--inputs", self.inputs, "--fetch", "logits", *target, **more)
        return result["isa"] if code == 0 else (code, result["error"]["message"])

    def refused(self, wanted, *parts, target=("--target", "cuda"), **more):
        code, message = self.taken(*target, **more)
        self.assertEqual(code, wanted, message)
        for part in parts:
            self.assertIn(part, message)

    def test_the_target_that_is_taken(self):
        self.assertEqual(self.taken(), "x86-64-v3")
        self.assertEqual(self.log, "")  # no driver was touched
        self.assertEqual(self.taken("--target", "cpu", driver="/nowhere"), "x86-64-v3")
        self.assertEqual(self.taken("--target", "cuda"), f"cuda:{OWN}")
        self.assertIn("cuLaunchKernel", self.log)
        self.assertEqual(self.taken("--target", f"cuda:{OWN}", tool=(TARE_RUN,)), f"cuda:{OWN}")
        self.assertEqual(self.taken("--target", "cuda", capability=120, version=13000), "cuda:compute_90")

    def test_what_is_missing(self):
        self.refused(5, "no CUDA driver", "--target cpu", driver="/nowhere")
        self.refused(5, "CUDA_ERROR_NO_DEVICE", devices=0)
        self.refused(5, "for CUDA 11.2", "or later is needed", version=11020)
        self.refused(5, "no code for this GPU", "is sm_80", "cuda:sm_80", capability=80)
        self.refused(5, "asked for: sm_90", capability=100, target=("--target", "cuda:sm_90"))
        self.refused(7, "the GPU's memory does not hold the weights", memory=100000)

    def test_the_device_that_is_asked_for(self):
        two = {"devices": 2, "capability_1": 120, "version": 13000}
        for device, level in [("0", OWN), ("1", "compute_90")]:
            for tool in [(TARE, "run"), (TARE_RUN,)]:
                self.assertEqual(self.taken("--target", "cuda", "--device", device, tool=tool, **two), f"cuda:{level}")
                self.assertIn(f"cuDeviceGet {device}\n", self.log)
        code, result = self.run_tool(TARE, "bench", ENGINE, "--shape", "input_ids=1x2", "--repeat", "1", "--target", "cuda", "--device", "1", **two)
        self.assertEqual((code, result["isa"]), (0, "cuda:compute_90"), str(result)[:300])
        code, result = self.run_tool(TARE, "verify", ENGINE, "--device", "1", **two)
        self.assertEqual((code, [t["code"] for t in result["targets"]]), (0, ["x86-64-v3", "cuda:compute_90"]), result)
        missing = ["device 2 is asked for, the driver has 2 (0: Fake GPU, 1: Fake GPU #1)"]
        self.refused(5, *missing, target=("--target", "cuda", "--device", "2"), **two)
        for command in [("bench", ENGINE, "--shape", "input_ids=1x2"), ("verify", ENGINE)]:
            code, result = self.run_tool(TARE, *command, "--target", "cuda", "--device", "2", **two)
            self.assertEqual(code, 5, result)
            self.assertIn(missing[0], result["error"]["message"])
        self.refused(2, "runs its code for x86-64-v3", target=("--device", "1"), **two)
        self.refused(2, "--target cpu runs on the CPU", target=("--target", "cpu", "--device", "1"), **two)
        for text in ["one", "-1", "1.5", ""]:
            self.refused(2, "--device", target=("--target", "cuda", "--device", text), **two)

    def test_no_driver(self):
        """What needs no GPU works; what does says which driver the images need."""
        toolkit = re.match(r"(?:NVRTC|nvcc) (\d+)", TOOLKIT)  # its cubins want a driver of its own major version; clang's PTX is that of CUDA 11.8
        needed = f"needs an NVIDIA driver for CUDA {toolkit[1] + '.0' if toolkit and int(toolkit[1]) > 11 else '11.8'} or later"
        for command in [("run", ENGINE, "--inputs", self.inputs, "--target", "cuda"), ("bench", ENGINE, "--shape", "input_ids=1x2", "--target", "cuda"), ("verify", ENGINE, "--target", "cuda")]:
            code, result = self.run_tool(TARE, *command, driver="/nowhere")
            self.assertEqual(code, 5, result)
            for part in ["no CUDA driver", needed, "--target cpu"]:
                self.assertIn(part, result["error"]["message"])
        for command in [("inspect", ENGINE, "--kernels"), ("estimate", ENGINE, "--shape", "input_ids=1x2"), ("bench", ENGINE, "--shape", "input_ids=1x2", "--repeat", "1"), ("report", ENGINE, "--format", "json")]:
            code, result = self.run_tool(TARE, *command, driver="/nowhere")
            self.assertEqual(code, 0, result)
        code, result = self.run_tool(TARE, "verify", ENGINE, driver="/nowhere")
        self.assertEqual((code, result["targets"][1]["ran"]), (0, False), result)
        self.assertIn(needed, result["targets"][1]["why"])

    def test_a_driver_that_refuses_graphs(self):
        code, result = self.run_tool(TARE, "bench", ENGINE, "--shape", "input_ids=1x2", "--repeat", "2", "--target", "cuda", refuse="cuStreamBeginCapture=801")
        self.assertEqual(code, 0, str(result)[:300])
        self.assertEqual(self.log.count("cuStreamBeginCapture"), 1)
        self.assertIn("warning: the driver refuses CUDA graphs (CUresult 801)", self.stderr)
        self.run_tool(TARE, "bench", ENGINE, "--shape", "input_ids=1x2", "--repeat", "2", "--target", "cuda")
        self.assertNotIn("refuses", self.stderr)

    def test_a_tampered_cubin_is_refused(self):
        data = bytearray(pathlib.Path(ENGINE).read_bytes())
        count, = struct.unpack_from("<I", data, 20)
        offset, size = next((offset, size) for kind, _, offset, size in (struct.unpack_from("<IIQQ", data, 64 + 64 * i) for i in range(count)) if kind == CUDA_MODULE)
        data[offset + size // 2] ^= 1
        bad = self.folder / "bad.tare"
        bad.write_bytes(data)
        for target in ("cuda", "cpu"):
            code, result = self.run_tool(TARE, "run", bad, "--inputs", self.inputs, "--target", target)
            self.assertEqual((code, self.log), (3, ""), result)
            self.assertIn("cuda module", result["error"]["message"])

    def test_bench_and_verify(self):
        code, result = self.run_tool(TARE, "bench", ENGINE, "--shape", "input_ids=1x2", "--repeat", "1", "--target", "cuda")
        self.assertEqual((code, result["isa"]), (0, f"cuda:{OWN}"), str(result)[:300])
        self.assertGreater(sum(step["ms"] > 0 for step in result["steps"]), 40)
        code, result = self.run_tool(TARE, "verify", ENGINE)
        self.assertEqual((code, [t["target"] for t in result["targets"]]), (0, ["cpu", "cuda"]), result)
        self.assertEqual(result["targets"][1]["violations"], 0)
        self.assertGreater(result["targets"][1]["max_difference"], 0)


if __name__ == "__main__":
    unittest.main()
