"""ldmatrix and mma.sync. In: a warp's registers. Out: its fragments. Layouts from the PTX ISA, "Matrix Fragments for mma.m16n8k16", ".m16n8k8", ".m16n8k32" and
"Warp-level matrix load instruction: ldmatrix"; group = lane / 4, member = lane % 4. Which order the sums of a tensor core have the ISA leaves open: "chain" adds one exact
product after the other in f32 (what kernels/cuda/emu does, so results can be compared bit by bit), "exact" adds all in double and rounds once.
"""
import numpy as np

import rounding
from memory import Fault
from operands import address, reader, writer
from parser import Unsupported

LANE = np.arange(32)[:, None]
GROUP, MEMBER = LANE // 4, LANE % 4


class Fragment:
    """Where element i of a lane lies: row(i) and column(i), each [32][elements]."""

    def __init__(self, rows, columns, shape):
        self.rows, self.columns, self.shape = np.broadcast_to(rows, columns.shape), np.broadcast_to(columns, rows.shape), shape

    def matrix(self, elements):
        """[warps][32][elements] as [warps][rows][columns]."""
        result = np.empty((len(elements), *self.shape), elements.dtype)
        result[:, self.rows, self.columns] = elements
        return result

    def elements(self, matrix):
        return matrix[:, self.rows, self.columns]


def fragments(shape):
    """A, B, C of one instruction; i counts the elements of a lane."""
    def i(n):
        return np.arange(n)[None, :]
    c = Fragment(GROUP + 8 * (i(4) >= 2), MEMBER * 2 + (i(4) & 1), (16, 8))
    if shape == "m16n8k16":
        a = Fragment(GROUP + 8 * ((i(8) >> 1) & 1), MEMBER * 2 + (i(8) & 1) + 8 * (i(8) >= 4), (16, 16))
        b = Fragment(MEMBER * 2 + (i(4) & 1) + 8 * (i(4) >= 2), GROUP + 0 * i(4), (16, 8))
    elif shape == "m16n8k8":
        a = Fragment(GROUP + 8 * (i(4) & 1), MEMBER + 4 * (i(4) >= 2), (16, 8))
        b = Fragment(MEMBER + 4 * i(2), GROUP + 0 * i(2), (8, 8))
    elif shape == "m16n8k32":
        a = Fragment(GROUP + 8 * ((i(16) >> 2) & 1), MEMBER * 4 + (i(16) & 3) + 16 * (i(16) >= 8), (16, 32))
        b = Fragment(MEMBER * 4 + (i(8) & 3) + 16 * (i(8) >= 4), GROUP + 0 * i(8), (32, 8))
    else:
        raise Unsupported("mma." + shape)
    return a, b, c


def halves(registers):
    return registers.view(np.uint16)


# Registers [warps][32][n] of u32 as elements [warps][32][...] in the type that is multiplied. tf32 has 10 bits of mantissa: the low 13 are not looked at.
ELEMENTS = {"f16": lambda r: halves(r).view(np.float16).astype(np.float32), "bf16": lambda r: rounding.bf16_value(halves(r)),
            "tf32": lambda r: (r & np.uint32(0xFFFFE000)).view(np.float32), "s8": lambda r: r.view(np.int8).astype(np.int64), "u8": lambda r: r.view(np.uint8).astype(np.int64)}
KINDS = {("m16n8k16", "f32", "f16", "f16", "f32"), ("m16n8k16", "f32", "bf16", "bf16", "f32"), ("m16n8k8", "f32", "tf32", "tf32", "f32")} | {
    ("m16n8k32", "s32", a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")}


def added(c, a, b, sums):
    """c + a b, [warps][16][8]."""
    if c.dtype == np.int32:  # without .satfinite: wraps
        return (c + np.matmul(a, b)).astype(np.int64).astype(np.int32)
    if sums == "exact":
        return (np.matmul(a.astype(np.float64), b.astype(np.float64)) + c).astype(np.float32)
    for k in range(a.shape[2]):
        x, y = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
        c = rounding.fma32(x, y, c)
    return c


def mma(instruction, program):
    parts = instruction.parts
    if parts[1:3] != ["sync", "aligned"] or parts[4:6] != ["row", "col"] or (parts[3], *parts[6:]) not in KINDS:
        raise Unsupported(f"`{instruction.text}`")
    a_type, b_type, c_dtype = parts[7], parts[8], np.float32 if parts[6] == "f32" else np.int32
    layouts = fragments(parts[3])
    puts = [writer(o) for o in instruction.operands[0].value]
    groups = [[reader(o, "b32", program) for o in operand.value] for operand in instruction.operands[1:]]
    wanted = [layout.rows.shape[1] // (4 // size) for layout, size in zip(layouts, ELEMENT_BYTES[a_type])]
    if [len(g) for g in groups] != wanted or len(puts) != 4:
        raise Unsupported(f"`{instruction.text}`")

    def run(m, mask):
        warps = np.arange(m.count // 32) if mask is None else np.flatnonzero(mask.reshape(-1, 32).all(1))
        a, b, c = (np.ascontiguousarray(np.stack([np.broadcast_to(r(m), m.count).reshape(-1, 32)[warps] for r in group], 2)) for group in groups)
        result = added(layouts[2].matrix(c.view(c_dtype)), layouts[0].matrix(ELEMENTS[a_type](a)), layouts[1].matrix(ELEMENTS[b_type](b)), m.sums)
        elements = layouts[2].elements(result)
        for i, put in enumerate(puts):
            full = np.zeros((m.count // 32, 32), c_dtype)
            full[warps] = elements[:, :, i]
            put(m, full.reshape(-1), mask)
    return run


ELEMENT_BYTES = {"f16": (2, 2, 4), "bf16": (2, 2, 4), "tf32": (4, 4, 4), "s8": (1, 1, 4), "u8": (1, 1, 4)}


def ldmatrix(instruction, program):
    """Lane 8 i + r has the address of row r of matrix i; lane l gets two elements of row l / 4 from column l % 4 * 2 on, of the transposed matrix with .trans."""
    parts = instruction.parts
    transposed = "trans" in parts
    rest = [p for p in parts[1:] if p not in ("sync", "aligned", "trans", "shared")]
    if len(rest) != 3 or rest[0] != "m8n8" or rest[1] not in ("x1", "x2", "x4") or rest[2] != "b16" or "shared" not in parts:
        raise Unsupported(f"`{instruction.text}`")
    count, text = int(rest[1][1:]), instruction.text
    target = instruction.operands[0]
    puts, of = [writer(o) for o in (target.value if target.kind == "vector" else [target])], address(instruction.operands[1], program)
    if len(puts) != count:
        raise Fault(f"{text}: {count} matrices")

    def run(m, mask):
        warps = np.arange(m.count // 32) if mask is None else np.flatnonzero(mask.reshape(-1, 32).all(1))
        lanes = (warps[:, None] * 32 + np.arange(8 * count)).reshape(-1)
        rows = m.shared.offsets(np.broadcast_to(of(m), m.count)[lanes], 16, text, m.block[lanes])
        matrices = m.shared.bytes[rows[:, None] + np.arange(16)].view(np.uint16).reshape(len(warps), count, 8, 8)
        if transposed:
            matrices = matrices.transpose(0, 1, 3, 2)
        pairs = np.ascontiguousarray(matrices).view(np.uint32).reshape(len(warps), count, 32)
        for i, put in enumerate(puts):
            full = np.zeros((m.count // 32, 32), np.uint32)
            full[warps] = pairs[:, i]
            put(m, full.reshape(-1), mask)
    return run
