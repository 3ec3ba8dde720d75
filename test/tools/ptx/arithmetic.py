"""Elementwise instructions. In: a parsed instruction. Out: a function of (machine, mask). Semantics by the PTX ISA's chapters on integer, floating-point, comparison, logic
and data movement instructions. Every suffix is looked at: one that changes the meaning and is not listed (.ftz, .sat, other roundings, .approx) raises Unsupported.
"""
import numpy as np

import rounding
from operands import DTYPES, reader, writer
from parser import Unsupported

WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
FLOATS = ("f32", "f64")


def compiled(instruction, program):
    base, parts = instruction.parts[0], instruction.parts[1:]
    if base not in TABLE:
        raise Unsupported(f"`{instruction.text}`")
    return TABLE[base](instruction, parts, program)


def known(instruction, parts, *modifiers):
    """The type; whatever stands before it must be among `modifiers`."""
    for part in parts[:-1]:
        if part not in modifiers:
            raise Unsupported(f".{part} of `{instruction.text}`")
    return parts[-1]


def elementwise(instruction, program, function, types, result=None):
    """d = function(a, b, ...), the operands read as `types`."""
    put = writer(instruction.operands[0])
    if len(types) != len(instruction.operands) - 1:
        raise Unsupported(f"`{instruction.text}`")
    values = [reader(o, t, program) for o, t in zip(instruction.operands[1:], types)]
    if len(values) == 1:
        first, = values
        return lambda m, mask: put(m, function(first(m)), mask)
    if len(values) == 2:
        first, second = values
        return lambda m, mask: put(m, function(first(m), second(m)), mask)
    return lambda m, mask: put(m, function(*(v(m) for v in values)), mask)


def unsigned(type_):
    return "u" + type_[1:]


def rounded(instruction, parts):
    """The type of a float instruction; f32 and f64 round to nearest even, and must say so where the ISA asks for it."""
    return known(instruction, parts, "rn")


def add(instruction, parts, program):
    function = {"add": np.add, "sub": np.subtract}[instruction.parts[0]]
    type_ = rounded(instruction, parts)
    return elementwise(instruction, program, function, [type_ if type_ in FLOATS else unsigned(type_)] * 2)


def high_product(a, b):
    """Upper 64 bits of u64 products."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = a & mask, a >> shift, b & mask, b >> shift
    middle = (al * bl >> shift) + (ah * bl & mask) + (al * bh & mask)
    return ah * bh + (ah * bl >> shift) + (al * bh >> shift) + (middle >> shift)


def product(instruction, parts):
    """(function of two factors, type that it reads, type that it gives)."""
    type_, mode = parts[-1], parts[0]
    if len(parts) != 2 or mode not in ("lo", "hi", "wide"):
        raise Unsupported(f"`{instruction.text}`")
    if mode == "lo":
        return np.multiply, unsigned(type_), unsigned(type_)
    if mode == "wide":
        wide = DTYPES[WIDER[type_]]
        return (lambda a, b: np.multiply(a, b, dtype=wide)), type_, WIDER[type_]
    if type_ == "u64":
        return high_product, type_, type_
    if type_ not in WIDER:
        raise Unsupported(f"`{instruction.text}`")
    wide, bits = DTYPES[WIDER[type_]], int(type_[1:])
    return (lambda a, b: (np.multiply(a, b, dtype=wide) >> wide(bits)).astype(DTYPES[type_])), type_, type_


def mul(instruction, parts, program):
    if parts[-1] in FLOATS:
        return elementwise(instruction, program, np.multiply, [rounded(instruction, parts)] * 2)
    function, reads, _ = product(instruction, parts)
    return elementwise(instruction, program, function, [reads] * 2)


def mad(instruction, parts, program):
    function, reads, gives = product(instruction, parts)
    gives = unsigned(gives)

    def run(a, b, c):
        return np.asarray(function(a, b)).view(DTYPES[gives]) + c
    return elementwise(instruction, program, run, [reads, reads, gives])


def fma(instruction, parts, program):
    if parts not in (["rn", "f32"], ["rn", "f64"]):
        raise Unsupported(f"`{instruction.text}`")
    return elementwise(instruction, program, rounding.fma32 if parts[1] == "f32" else rounding.fma64, [parts[1]] * 3)


def quotient(a, b):
    """Truncated; by zero every bit is set, which stands for the ISA's "unspecified"."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, np.array(-1, np.int64).astype(b.dtype), (a - np.fmod(a, safe)) // safe)


def rest(a, b):
    zero = b == 0
    return np.where(zero, np.array(-1, np.int64).astype(b.dtype), np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def div(instruction, parts, program):
    if parts[-1] in FLOATS:
        if parts[:-1] != ["rn"]:
            raise Unsupported(f"`{instruction.text}`")
        return elementwise(instruction, program, np.divide, [parts[-1]] * 2)
    return elementwise(instruction, program, quotient, [known(instruction, parts)] * 2)


def rem(instruction, parts, program):
    return elementwise(instruction, program, rest, [known(instruction, parts)] * 2)


def root(instruction, parts, program):
    if parts not in (["rn", "f32"], ["rn", "f64"]):
        raise Unsupported(f"`{instruction.text}`")
    one = DTYPES[parts[1]](1)
    return elementwise(instruction, program, np.sqrt if instruction.parts[0] == "sqrt" else (lambda a: np.divide(one, a)), [parts[1]])


def extreme(instruction, parts, program):
    larger, type_ = instruction.parts[0] == "max", known(instruction, parts, "NaN")
    if type_ in FLOATS:
        return elementwise(instruction, program, lambda a, b: rounding.minimum(a, b, larger, "NaN" in parts), [type_] * 2)
    return elementwise(instruction, program, np.maximum if larger else np.minimum, [type_] * 2)


def sign(instruction, parts, program):
    """neg and abs. Of floats only the sign bit changes."""
    type_, negate = known(instruction, parts), instruction.parts[0] == "neg"
    if type_ in FLOATS:
        bits = DTYPES["b" + type_[1:]]
        top = bits(1 << (int(type_[1:]) - 1))
        return elementwise(instruction, program, (lambda a: a ^ top) if negate else (lambda a: a & ~top), ["b" + type_[1:]])
    return elementwise(instruction, program, (lambda a: a.dtype.type(0) - a) if negate else np.abs, [type_])


def logic(instruction, parts, program):
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[instruction.parts[0]]
    return elementwise(instruction, program, function, [known(instruction, parts)] * 2)


def inverted(instruction, parts, program):
    return elementwise(instruction, program, np.invert, [known(instruction, parts)])


def shift(instruction, parts, program):
    """Amounts at or above the width leave nothing (or only the sign)."""
    left, type_ = instruction.parts[0] == "shl", known(instruction, parts)
    bits, dtype = int(type_[1:]), np.dtype(DTYPES[type_])

    def run(a, b):
        amount = np.minimum(b, np.uint32(bits - 1)).astype(dtype)
        moved = a << amount if left else a >> amount
        return moved if dtype.kind == "i" and not left else np.where(b >= bits, dtype.type(0), moved)
    return elementwise(instruction, program, run, [type_, "u32"])


def funnel(instruction, parts, program):
    if len(parts) != 3 or parts[0] not in ("l", "r") or parts[1] not in ("wrap", "clamp") or parts[2] != "b32":
        raise Unsupported(f"`{instruction.text}`")

    def run(a, b, c):
        n = (c & np.uint32(31) if parts[1] == "wrap" else np.minimum(c, np.uint32(32))).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
        return (both >> (np.uint64(32) - n) if parts[0] == "l" else both >> n).astype(np.uint32)
    return elementwise(instruction, program, run, ["b32", "b32", "u32"])


def extract(instruction, parts, program):
    """bfe: len bits from pos on; signed ones take the topmost of them (or of the operand) as sign."""
    type_ = known(instruction, parts)
    bits, dtype = int(type_[1:]), DTYPES["u" + type_[1:]]

    def run(a, b, c):
        pos, length = (b & np.uint32(255)).astype(np.int64), (c & np.uint32(255)).astype(np.int64)
        mask = np.where(length >= bits, dtype(-1 & (1 << bits) - 1), (dtype(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype(1))
        value = np.where(pos >= bits, dtype(0), a >> np.minimum(pos, bits - 1).astype(dtype)) & mask
        if type_[0] == "u":
            return value
        top = np.minimum(pos + length - 1, bits - 1)
        negative = (length > 0) & ((a >> np.maximum(top, 0).astype(dtype)) & dtype(1)).astype(bool)
        present = np.clip(bits - pos, 0, length)  # bits that came from the operand
        fill = np.where(present >= bits, dtype(0), ~((dtype(1) << np.minimum(present, bits - 1).astype(dtype)) - dtype(1)))
        return np.where(negative, value | fill, value)
    return elementwise(instruction, program, run, ["u" + type_[1:], "u32", "u32"])


def insert(instruction, parts, program):
    """bfi: the low len bits of a into b at pos."""
    type_ = known(instruction, parts)
    bits, dtype = int(type_[1:]), DTYPES[type_]

    def run(a, b, c, d):
        pos, length = (c & np.uint32(255)).astype(np.int64), (d & np.uint32(255)).astype(np.int64)
        low = np.where(length >= bits, dtype((1 << bits) - 1), (dtype(1) << np.minimum(length, bits - 1).astype(dtype)) - dtype(1))
        at = np.minimum(pos, bits - 1).astype(dtype)
        mask = np.where(pos >= bits, dtype(0), low << at)
        return (b & ~mask) | ((a << at) & mask)
    return elementwise(instruction, program, run, [type_, type_, "u32", "u32"])


def permute(instruction, parts, program):
    if parts != ["b32"]:
        raise Unsupported(f"`{instruction.text}`")

    def run(a, b, c):
        both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
        result = np.uint32(0)
        for i in range(4):
            selector = (c >> np.uint32(4 * i)) & np.uint32(15)
            byte = (both >> ((selector & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(255)
            byte = np.where(selector >= 8, np.where(byte >= 128, np.uint32(255), np.uint32(0)), byte)
            result = result | byte << np.uint32(8 * i)
        return result
    return elementwise(instruction, program, run, ["b32"] * 3)


def lop3(instruction, parts, program):
    if parts != ["b32"] or instruction.operands[4].kind != "integer":
        raise Unsupported(f"`{instruction.text}`")
    table = instruction.operands.pop(4).value

    def run(a, b, c):
        result = np.uint32(0)
        for i in range(8):
            if table >> i & 1:
                result = result | (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
        return result
    return elementwise(instruction, program, run, ["b32"] * 3)


def count(instruction, parts, program):
    type_ = known(instruction, parts)
    bits = int(type_[1:])

    def ones(a):
        return sum(((a >> a.dtype.type(i)) & a.dtype.type(1)).astype(np.uint32) for i in range(bits))

    def zeros(a):
        for i in (1, 2, 4, 8, 16, 32)[:5 + (bits == 64)]:
            a = a | a >> a.dtype.type(i)
        return np.uint32(bits) - ones(a)
    return elementwise(instruction, program, ones if instruction.parts[0] == "popc" else zeros, [type_])


# ---- comparison ------------------------------------------------------------------------------------------------------------------------------
def ordered(function):
    return lambda a, b: function(a, b) & (a == a) & (b == b)


def unordered(function):
    return lambda a, b: function(a, b) | (a != a) | (b != b)


PLAIN = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
SAME = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}  # of unsigned integers
OF_FLOATS = {**{k: ordered(f) for k, f in PLAIN.items()}, **{k + "u": unordered(f) for k, f in PLAIN.items()},
             "num": lambda a, b: (a == a) & (b == b), "nan": lambda a, b: (a != a) | (b != b)}
BOOLEAN = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def compare(instruction, parts, program):
    """setp.op[.bool].type p[|q], a, b[, c]: q takes the opposite comparison, then the same bool."""
    type_, operands = parts[-1], instruction.operands
    function = OF_FLOATS[parts[0]] if type_ in FLOATS else {**PLAIN, **(SAME if type_[0] == "u" else {})}[parts[0]]
    combine = BOOLEAN[parts[1]] if len(parts) == 3 else None
    if len(parts) > 3 or len(operands) != (4 if combine else 3):
        raise Unsupported(f"`{instruction.text}`")
    puts = [writer(o) for o in (operands[0].value if operands[0].kind == "pair" else [operands[0]])]
    a, b = (reader(o, type_, program) for o in operands[1:3])
    c = reader(operands[3], "pred", program) if combine else None

    def run(m, mask):
        result = function(a(m), b(m))
        both, third = (result, ~np.asarray(result)), c(m) if combine else None
        for put, value in zip(puts, both):
            put(m, combine(value, third) if combine else value, mask)
    return run


def select(instruction, parts, program):
    type_ = known(instruction, parts)
    put = writer(instruction.operands[0])
    a, b = (reader(o, type_, program) for o in instruction.operands[1:3])
    p = reader(instruction.operands[3], "pred", program)
    return lambda m, mask: put(m, np.where(p(m), a(m), b(m)), mask)


# ---- movement and conversion -----------------------------------------------------------------------------------------------------------------
def move(instruction, parts, program):
    """mov, with the packing and unpacking of vectors: the first element is the lowest."""
    type_, (target, origin) = known(instruction, parts), instruction.operands
    if "vector" not in (target.kind, origin.kind):
        return elementwise(instruction, program, lambda a: a, [type_])
    bits = int(type_[1:])
    pieces = (target if target.kind == "vector" else origin).value
    each = bits // len(pieces)
    if target.kind == "vector":
        puts, whole = [writer(o) for o in pieces], reader(origin, type_, program)

        def unpack(m, mask):
            value = np.array(np.broadcast_to(whole(m), m.count))
            for i, put in enumerate(puts):
                put(m, (value >> value.dtype.type(each * i)).astype(DTYPES[f"b{each}"]), mask)
        return unpack
    put, parts_of = writer(target), [reader(o, f"b{each}", program) for o in pieces]
    wide = DTYPES[type_]

    def pack(m, mask):
        value = wide(0)
        for i, part in enumerate(parts_of):
            value = value | np.asarray(part(m)).astype(wide) << wide(each * i)
        put(m, value, mask)
    return pack


def convert(instruction, parts, program):
    """cvt.[rounding.]to.from"""
    to, origin, modes = parts[-2], parts[-1], parts[:-2]
    if to in ("f16x2", "bf16x2") and modes == ["rn"] and origin == "f32" and len(instruction.operands) == 3:
        half = rounding.f16_bits if to == "f16x2" else rounding.bf16_bits
        return elementwise(instruction, program, lambda a, b: half(a).astype(np.uint32) << np.uint32(16) | half(b).astype(np.uint32), ["f32", "f32"])
    special = {("rn", "f16", "f32"): rounding.f16_bits, ("rn", "bf16", "f32"): rounding.bf16_bits, ("rna", "tf32", "f32"): rounding.tf32_bits,
               ("f32", "f16"): lambda a: a.view(np.float16).astype(np.float32), ("f32", "bf16"): rounding.bf16_value}
    if tuple(parts) in special:
        return elementwise(instruction, program, special[tuple(parts)], [origin])
    if to in FLOATS and origin in FLOATS:
        if modes != ([] if (to, origin) == ("f64", "f32") else ["rn"] if to != origin else None):
            raise Unsupported(f"`{instruction.text}`")
        return elementwise(instruction, program, lambda a: np.asarray(a).astype(DTYPES[to]), [origin])
    if to in FLOATS:  # of an integer; numpy rounds to nearest even
        if modes != ["rn"] and not (modes == [] and to == "f64" and origin[1:] != "64"):
            raise Unsupported(f"`{instruction.text}`")
        return elementwise(instruction, program, lambda a: np.asarray(a).astype(DTYPES[to]), [origin])
    if origin in FLOATS:
        if len(modes) != 1 or modes[0] not in ("rzi", "rni", "rmi", "rpi"):
            raise Unsupported(f"`{instruction.text}`")
        return elementwise(instruction, program, lambda a: rounding.to_integer(a, DTYPES[to], modes[0]), [origin])
    if modes not in ([], ["sat"]):
        raise Unsupported(f"`{instruction.text}`")
    if modes:
        info = np.iinfo(DTYPES[to])
        return elementwise(instruction, program, lambda a: np.array([min(max(int(x), info.min), info.max) for x in np.atleast_1d(a)], DTYPES[to]), [origin])
    return elementwise(instruction, program, lambda a: np.asarray(a).astype(DTYPES[to]), [origin])


TABLE = {"add": add, "sub": add, "mul": mul, "mad": mad, "fma": fma, "div": div, "rem": rem, "sqrt": root, "rcp": root, "min": extreme, "max": extreme, "neg": sign,
         "abs": sign, "and": logic, "or": logic, "xor": logic, "not": inverted, "shl": shift, "shr": shift, "shf": funnel, "bfe": extract, "bfi": insert, "prmt": permute,
         "lop3": lop3, "popc": count, "clz": count, "setp": compare, "selp": select, "mov": move, "cvt": convert}
