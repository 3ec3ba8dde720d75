"""Operands as functions of the machine. In: an Operand and the type that the instruction reads it as. Out: an array over threads, or one value for all."""
import numpy as np

from parser import Unsupported

DTYPES = {"b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32,
          "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f32": np.float32, "f64": np.float64, "pred": np.bool_, "f16": np.uint16, "bf16": np.uint16}


def reader(operand, type_, program):
    """The operand as `type_`; the low part of a wider register."""
    dtype = np.dtype(DTYPES[type_])
    if operand.kind == "register":
        index, declared = operand.value, program.kernel.registers[operand.value]
        if (declared == "pred") != (type_ == "pred"):
            raise Unsupported(f"a {declared} register as {type_}")
        if type_ == "pred":
            return (lambda m: ~m.registers[index]) if operand.negated else (lambda m: m.registers[index])
        size = int(declared[1:]) // 8
        if size == dtype.itemsize:
            return lambda m: m.registers[index].view(dtype)
        if size < dtype.itemsize:
            raise Unsupported(f"a {declared} register as {type_}")
        unsigned = np.dtype(f"u{dtype.itemsize}")
        return lambda m: m.registers[index].astype(unsigned).view(dtype)
    if operand.kind == "special":
        name = operand.value
        return lambda m: m.special[name].astype(dtype) if dtype.itemsize != 4 else m.special[name].view(dtype)
    value = constant(operand, dtype, program)
    return lambda m: value


def constant(operand, dtype, program):
    if operand.kind == "integer":
        if dtype.kind == "f":
            return dtype.type(operand.value)
        if dtype.kind == "b":
            return np.bool_(operand.value)
        return np.array(operand.value & ((1 << 8 * dtype.itemsize) - 1), np.dtype(f"u{dtype.itemsize}")).view(dtype)[()]
    if operand.kind in ("f32", "f64"):
        bits = np.array(operand.value, np.uint32 if operand.kind == "f32" else np.uint64)
        if dtype.itemsize != bits.itemsize:
            bits = bits.view(np.float32 if operand.kind == "f32" else np.float64).astype(dtype)
        return bits.view(dtype)[()]
    if operand.kind == "symbol":
        return dtype.type(program.symbols[operand.value][1] + operand.offset)
    raise Unsupported(f"operand {operand}")


def source(operand, program):
    return reader(operand, "b64", program)


def address(operand, program, static=False):
    """[base + offset] as 64 bits; with `static` the number itself."""
    base, offset = operand.value, operand.offset
    if static:
        return program.symbols[base.value][1] + base.offset + offset
    wide = base.kind != "register" or program.kernel.registers[base.value] == "b64"
    value, step = reader(base, "b64" if wide else "b32", program), np.uint64(offset & ((1 << 64) - 1))
    if wide:
        return lambda m: value(m) + step
    return lambda m: value(m).astype(np.uint64) + step


def writer(operand):
    """A function of (machine, value, mask) that writes the operand."""
    if operand.kind == "sink":
        return lambda m, value, mask: None
    if operand.kind != "register":
        raise Unsupported(f"result {operand}")
    index = operand.value
    return lambda m, value, mask: m.put(index, value, mask)
