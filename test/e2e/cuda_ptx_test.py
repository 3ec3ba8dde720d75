#!/usr/bin/env python3
"""The PTX that engines carry, executed by an interpreter written from the PTX ISA (test/tools/ptx), against the emulator: launch by launch, every byte of device memory. In: the build
folder and a case. Out: exit 0, or 1 and the kernels that differ; 77 where clang-19 is missing. The runtime opens an engine on the fake driver as a GPU that is newer than every cubin,
so it takes the PTX; requests run on the emulator and are recorded; each is replayed. PTX of clang-19 always, NVRTC's or nvcc's where a CUDA Toolkit is. Of each kernel the first launch
with each grid is replayed (TARE_PTX_ALL=1: all launches). At the end PTX with seeded mistakes, which must be noticed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

BUILD, CASE = pathlib.Path(sys.argv[1]), sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = BUILD / "e2e" / "cuda-ptx" / CASE
MODELS = BUILD / "data" / "models"
COMPILERS = {"clang": {"TARE_NVRTC": "none", "TARE_NVCC": "none"}, "toolkit": {"TARE_CLANG": "none"}}
LAUNCHES = 10**9 if os.environ.get("TARE_PTX_ALL") else 1
CLANG = shutil.which(os.environ.get("TARE_CLANG", "clang-19"))
sys.path += [str(ROOT / "test" / "tools" / "ptx"), str(ROOT / "tools" / "python")]
random = np.random.default_rng(20261201)


# ---- cases: a model, its flags, and requests -------------------------------------------------------------------------------------------------
def ids(batch, tokens, below):
    return random.integers(1, below, (batch, tokens))


def contract_lm(*precision):
    """Three fused checks in int4, GEMMs on tensor cores: sparse over two tiles of rows (bits are carried into the second), and dense."""
    model = MODELS / "contract-lm"
    flags = [model / "contract-lm.onnx", "--calibration", model / "calibration.npz", *precision, "--check-precision", "int4"]
    anchors = np.array([[20, 63, 68, -1]], np.int32)
    return flags, [{"input_ids": ids(1, 70, 256), "anchors": anchors}, {"input_ids": ids(1, 3, 256)}]


def contract_lm_kv():
    """Checks in f32 and a cache that is extended in place; runs from a graph; what the toolkit's compiler made where there is one."""
    links = [(f"past_key_values.{layer}.{part}", f"present.{layer}.{part}", 16) for layer in range(8) for part in ("key", "value")]
    anchors = np.array([[7]], np.int32)
    return None, [links, {"input_ids": ids(1, 5, 256), "anchors": anchors}, *({"input_ids": ids(1, 1, 256), "anchors": anchors} for _ in range(2))]


def llama():
    """Grouped heads, rotary embedding in double, a cache in place; bf16."""
    links = [(f"past_key_values.{layer}.{part}", f"present.{layer}.{part}", 8) for layer in range(8) for part in ("key", "value")]
    return [MODELS / "llama-pro-tiny", "--precision", "bf16"], [links, {"input_ids": ids(1, 5, 256)}, {"input_ids": ids(1, 1, 256)}]


def minilm():
    """A layer of MiniLM's shape with padding, f16."""
    import cuda_minilm_test as shape
    shape.LAYERS, shape.FOLDER = 1, FOLDER / "model"
    shape.save(shape.weights())
    mask = np.ones((2, 5), np.int64)
    mask[1, 3:] = 0
    return [shape.FOLDER, "--precision", "f16"], [{"input_ids": ids(2, 5, shape.VOCABULARY), "attention_mask": mask}]


def checks(rank, precision):
    """Random models of checks_numpy_test.py with padded prompts; the rows are evaluated in the GEMM, or before it by a launch of their own."""
    import checks_numpy_test as small
    model = small.Model(np.random.default_rng(rank), 40, 64, 3, rank)
    import onnx
    onnx.save(model.onnx(False), FOLDER / "plain.onnx")
    np.savez(FOLDER / "checks.npz", **model.tensors())
    (FOLDER / "checks.yaml").write_text('{"weights": "checks.npz", "checks": [{"layer": "layers.*.up", "name": "layers.{1}.check"}]}')
    subprocess.run([BUILD / "bin" / "tare", "attach-checks", FOLDER / "plain.onnx", FOLDER / "checks.yaml", "-o", FOLDER / "model.onnx"], check=True, stdout=subprocess.DEVNULL)
    requests = []
    for tokens, anchors in [(70, [[20, 63, 68], [2, -1, 70]]), (9, None)]:
        mask = np.ones((2, tokens), np.int64)
        mask[1, :4] = 0
        requests.append({"input_ids": ids(2, tokens, small.VOCABULARY), "attention_mask": mask, "past": np.zeros((2, 0, 40), np.float32)})
        if anchors:
            requests[-1]["anchors"] = np.array(anchors, np.int32)
    return [FOLDER / "model.onnx", "--check-precision", precision], requests


CASES = {"contract-lm": lambda: contract_lm("--precision", "f16"), "contract-lm-tf32": lambda: contract_lm("--tf32"), "contract-lm-kv": contract_lm_kv, "llama": llama, "minilm": minilm, "checks-fused": lambda: checks(33, "int4"),
         "checks-split": lambda: checks(700, "int8")}


# ---- record ----------------------------------------------------------------------------------------------------------------------------------
def session(engine, requests):
    """In a process of its own, whose environment names the fake driver: the recorder writes when it ends."""
    import tare
    context = tare.Context(tare.Engine(engine, max_level="cuda"))
    for request in np.load(requests, allow_pickle=True):
        if isinstance(request, list):
            for link in request:
                context.link_state(*link)
        else:
            context.run(request)


def recorded(engine, kernels, requests, folder):
    """The file of launches."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = np.empty(len(requests), object)
    listed[:] = requests
    np.save(folder / "requests.npy", listed, allow_pickle=True)
    environment = {**os.environ, "TARE_LIBCUDA": str(BUILD / "lib" / "libfakecuda.so"), "FAKE_CUDA_KERNELS": str(kernels), "FAKE_CUDA_CAPABILITY": "130", "FAKE_CUDA_VERSION": "13000",
                   "FAKE_CUDA_RECORD": str(folder), "FAKE_CUDA_LOG": str(folder / "driver.log")}
    subprocess.run([sys.executable, "-B", __file__, BUILD, CASE, engine, folder / "requests.npy"], check=True, env=environment)
    log = (folder / "driver.log").read_text()
    if "wrong:\nheld:\n" not in log:
        raise SystemExit("the fake driver: " + log[log.index("wrong:"):])
    return next(folder.glob("*.launches"))


def compiled(flags, compiler):
    """An engine for sm_80, or None where this compiler is not here."""
    engine = FOLDER / f"{compiler}.tare"
    done = subprocess.run([BUILD / "bin" / "tare", "compile", *map(str, flags), "--target", "cuda:sm_80", "-o", engine, "--quiet"], capture_output=True, text=True, env={**os.environ, **COMPILERS[compiler]})
    if done.returncode == 5:
        print(f"{compiler}: not here, left out")
        return None
    if done.returncode:
        raise SystemExit(f"compile by {compiler}:\n{done.stderr}")
    return engine


def engines(flags):
    """(compiler, engine) and the library of host kernels: all compilers get the same text."""
    if flags is None:
        return [("fixture", BUILD / "e2e" / "contract-lm-kv-cuda.tare")], BUILD / "e2e" / "contract-lm-kv-cuda.so"
    made = [(name, engine) for name in COMPILERS if (engine := compiled(flags, name))]
    library = FOLDER / "kernels.so"
    subprocess.run([sys.executable, "-B", ROOT / "test" / "support" / "fakecuda" / "host_kernels.py", CLANG, ROOT, made[0][1], library], check=True, stdout=subprocess.DEVNULL)
    return made, library


# ---- replay ----------------------------------------------------------------------------------------------------------------------------------
class FirstOfEach:
    """The first launch of each kernel with each grid."""

    def __init__(self):
        self.seen = {}

    def __call__(self, launch):
        key = (launch.module, launch.kernel, launch.grid)
        self.seen[key] = self.seen.get(key, 0) + 1
        return self.seen[key] <= LAUNCHES


# What is changed in a kernel's text, first occurrence: pattern and replacement. All of them keep the text valid.
MISTAKES = {
    "two registers of an mma's A exchanged": (r"(mma\.sync\.\S+\s*\{[^}]*\}, *\{)([^,]+), *([^,]+),", r"\1\3,\2,"),
    "the wrong half of an mma's B": (r"(mma\.sync\.\S+\s*\{[^}]*\}, *\{[^}]*\}, *\{)([^,]+), *([^}]+)\}", r"\1\3,\2}"),
    "a shuffle from the neighbour's neighbour": (r"(shfl\.sync\.bfly\.b32 [^;]*?), *(\w+|%r\d+), *(0x1f|31)", r"\1, 3, \3"),
    "ldmatrix without .trans": (r"(ldmatrix\S*)\.trans", r"\1"),
    "a wait for one group less": (r"cp\.async\.wait_group 0", r"cp.async.wait_group 9"),
    "a sum of other terms": (r"(fma\.rn\.f32 +\t?\S+, *)(\S+), *(\S+), *(\S+);", r"\1\2, \2, \4;"),
    "an address one element on": (r"(ld\.global\.f32\s+\S+, *\[%rd\d+)\]", r"\1+4]"),
}


def mistakes(path, wanted):
    """Each of MISTAKES in the first launch that has it (or the next ones, where the changed value does not matter): how many were noticed."""
    import machine
    import parser
    import replay
    reader, missed = replay.Reader(path), dict.fromkeys(wanted, 0)
    for launch in reader.launches():
        if not missed:
            break
        text = entry(reader.images[launch.module].decode(), launch.kernel)
        for name in list(missed):
            pattern, replacement = MISTAKES[name]
            changed, count = re.subn(pattern, replacement, text, count=1)
            if not count or changed == text or missed[name] == 4:
                continue
            try:
                noticed = bool(replay.compare(launch, parser.parse(changed)))
            except machine.Fault:
                noticed = True
            missed[name] += 1
            if noticed:
                del missed[name]
    for name, tried in missed.items():
        print(f"WRONG: {name}: {'not noticed in any of %d launches' % tried if tried else 'no kernel has the instruction'}")
    return len(missed)


def entry(text, kernel):
    if f".entry {kernel}(" not in text:
        raise SystemExit(f"no {kernel} in its module")
    return text


def main():
    if not CLANG:
        print("skipped: no clang-19 here")
        return 77
    import replay
    FOLDER.mkdir(parents=True, exist_ok=True)
    flags, requests = CASES[CASE]()
    made, library = engines(flags)
    wrong = 0
    for compiler, engine in made:
        path = recorded(engine, library, requests, FOLDER / compiler)
        count, kernels, lines = replay.replay(path, FirstOfEach())
        print(f"{CASE}, PTX of {compiler}: {count} launches of {len(kernels)} kernels, {len(lines)} differ from the emulator", *lines, sep="\n", flush=True)
        wrong += len(lines) + (count == 0)
        if compiler == made[0][0]:
            wrong += mistakes(path, {"llama": list(MISTAKES)[:4], "contract-lm-tf32": list(MISTAKES)[:2], "contract-lm-kv": list(MISTAKES)[4:]}.get(CASE, []))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(session(*sys.argv[3:]) if len(sys.argv) > 3 else main())
