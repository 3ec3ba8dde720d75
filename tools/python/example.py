#!/usr/bin/env python3
"""Runs an engine on the arrays of a .npz and prints the results' shapes. Usage: example.py ENGINE IN.npz"""
import sys

import numpy as np

import tare

engine = tare.Engine(sys.argv[1])
print("inputs ", [(i["name"], i["dtype"], i["dims"]) for i in engine.inputs], "level", engine.level)
arrays = {name: array for name, array in np.load(sys.argv[2]).items() if name in {i["name"] for i in engine.inputs}}
for name, array in tare.Context(engine).run(arrays).items():
    print(name, array.dtype, array.shape)
