#!/usr/bin/env python3
"""The Python wrapper on the small test engine: results, states, errors. Usage: python_test.py PACKAGE_FOLDER LIBRARY ENGINE. Exit 77 (skipped) without NumPy."""
import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

sys.path.insert(0, sys.argv[1])
os.environ["TARE_LIBRARY"] = sys.argv[2]
import tare  # noqa: E402

engine = tare.Engine(sys.argv[3])
assert [i["name"] for i in engine.inputs] == ["x", "mask", "cache"], engine.inputs
assert engine.inputs[1] == {"name": "mask", "dtype": "int64", "dims": ["batch", "past + sequence"], "optional": True, "default": "ones"}, engine.inputs[1]
assert engine.section("configuration") == b"pruned_layers: [layers.1.pos_enc]\n" and engine.section("report") is None
context = tare.Context(engine, threads=2, profile=True)
x = np.array([[1, 2], [3, 4]], np.float32)
results = context.run({"x": x})
assert np.array_equal(results["y"], 4 * np.cumsum(x, 1)), results  # w[0]^2 = 4
assert results["new_cache"].shape == (2, 2, 4)
results = context.run({"x": x.T})  # not contiguous
assert np.array_equal(results["y"], 4 * np.cumsum(x.T, 1)), results
masked = context.run({"x": x, "mask": np.array([[0, 1], [1, 1]])}, ["y"])
assert np.array_equal(masked["y"], [[0, 8], [12, 28]]), masked
assert np.array_equal(context.run({"x": x})["y"], 4 * np.cumsum(x, 1))  # the mask is its default again
assert '"traceEvents"' in context.profile() and "tare_runs_total 4" in context.metrics()
for bad, text in [({"x": np.zeros(3, np.float32)}, "wrong shape"), ({}, "missing"), ({"x": x, "z": x}, "no such input"), ({"x": x.astype(np.int32)}, "wrong dtype")]:
    try:
        context.run(bad)
    except tare.TareError as error:
        assert error.code == 3 and text in str(error), error
    else:
        raise AssertionError(f"accepted {bad}")
context.run({"x": x})  # the runs before were refused
assert context.check_stats() == {"checks": 0, "evaluations_dense": 0, "evaluations_sparse": 0, "anchor_hits": 0, "flops_saved": 0, "milliseconds_saved": 0.0, "fidelity_score": None}
assert context.check_memory() == {"weight_bytes": 0, "run_bytes": 0}
for call in [lambda: context.check_bits(0), lambda: context.check_trace(0)]:  # an engine without checks; e2e-checks-numpy has the others
    try:
        call()
    except tare.TareError as error:
        assert error.code == 2, error
    else:
        raise AssertionError("bits without checks")
decoder = tare.Context(engine)
decoder.link_state("cache", "new_cache", 4)
steps = [decoder.run({"x": x[:1, i:i + 1]})["y"][0, 0] for i in range(2)]
assert steps == [4, 12], steps
decoder.reset()
assert decoder.run({"x": x[:1, :1]})["y"][0, 0] == 4
engine.close()
assert np.array_equal(context.run({"x": x})["y"], 4 * np.cumsum(x, 1))
try:
    tare.Engine("/nonexistent")
except tare.TareError as error:
    assert error.code == 6
print("ok")
