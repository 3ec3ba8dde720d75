"""Floating-point operations that numpy has not, rounded as the PTX ISA says ("Floating-Point Instructions"). In and out: arrays. Must hold: .rn results are the exact
result rounded once, subnormals included.
"""
from fractions import Fraction

import numpy as np

U32, U64, F32, F64 = np.uint32, np.uint64, np.float32, np.float64


def two_sum(a, b):
    """a + b rounded, and the exact error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def to_odd(s, error):
    """s + error, whose nearest double is s, rounded to odd: the odd one of the two doubles around it. Rounding that to a narrower format is right (Boldo and Melquiond
    2008): no information about "above, below or on a tie" was lost."""
    move = (error != 0) & (error == error) & ((s.view(U64) & U64(1)) == 0) & np.isfinite(s)
    return np.where(move, np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s)


def fma32(a, b, c):
    """fma.rn.f32. A product of two f32 is exact in double (48 bits of 53). Its sum with c is rounded to double first, and then to f32. The second rounding can only go
    wrong where the double lies on the middle between two f32 (its low 29 bits are 1000...), or where the f32 is subnormal and has other middles: there from the sum
    rounded to odd. Elsewhere the exact sum lies on the same side of every middle as the double, since a middle is itself a double."""
    product = np.multiply(a, b, dtype=F64)
    total = np.add(product, c, dtype=F64)
    result = total.astype(F32)
    doubtful = np.atleast_1d((total.view(U64) & U64(0x1FFFFFFF)) == U64(0x10000000)) | np.atleast_1d(np.abs(total) < 1.2e-38)
    if doubtful.any():
        total = np.atleast_1d(total)
        p, q = (np.broadcast_to(x, total.shape)[doubtful].astype(F64) for x in (product, c))
        result = np.atleast_1d(result)
        result[doubtful] = to_odd(*two_sum(p, q)).astype(F32)
    return result


def two_product(a, b):
    """a b rounded, and the exact error (Veltkamp, Dekker)."""
    def split(x):
        t = x * 134217729.0
        high = t - (t - x)
        return high, x - high
    p = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fma64(a, b, c):
    """fma.rn.f64 by error-free transformations and one rounding to odd (Boldo and Melquiond 2008, "Emulation of FMA"); by fractions where a step could under- or
    overflow."""
    a, b, c = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, F64)) for x in (a, b, c)))
    high, low = two_product(a, b)
    sum_high, sum_low = two_sum(c, low)
    total, rest = two_sum(high, sum_high)
    result = total + to_odd(*two_sum(rest, sum_low))
    size = [np.abs(x) for x in (a, b, high, c)]
    usual = np.logical_and.reduce([((s > 1e-140) & (s < 1e140)) | (x == 0) for s, x in zip(size, (a, b, high, c))]) & ((high != 0) | (a == 0) | (b == 0))
    for i in np.flatnonzero(~usual):
        x, y, z = float(a.flat[i]), float(b.flat[i]), float(c.flat[i])
        if not all(np.isfinite(v) for v in (x, y, z)) or x == 0 or y == 0:
            result.flat[i] = x * y + z
        else:
            exact = Fraction(x) * Fraction(y) + Fraction(z)
            result.flat[i] = x * y + z if exact == 0 else fraction64(exact)
    return result


def fraction64(value):
    try:
        return float(value)  # CPython divides the two integers with one rounding
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def bf16_bits(x):
    """cvt.rn.bf16.f32: the upper half, to nearest even; NaN is 0x7fff."""
    bits = np.asarray(x, F32).view(U32)
    rounded = (bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)
    return np.where(np.isnan(x), U32(0x7FFF), rounded).astype(np.uint16)


def bf16_value(bits):
    return (np.asarray(bits).astype(U32) << U32(16)).view(F32)


def f16_bits(x):
    """cvt.rn.f16.f32; NaN is 0x7fff."""
    return np.where(np.isnan(x), np.uint16(0x7FFF), np.asarray(x).astype(np.float16).view(np.uint16))


def tf32_bits(x):
    """cvt.rna.tf32.f32: 10 bits of mantissa, to nearest, ties away from zero; the low 13 bits are 0."""
    bits = np.asarray(x, F32).view(U32)
    rounded = (bits + U32(0x1000)) & U32(0xFFFFE000)
    finite = (bits & U32(0x7F800000)) != U32(0x7F800000)
    return np.where(finite, rounded, np.where(np.isnan(x), U32(0x7FFFE000), bits))


def to_integer(x, dtype, rounding):
    """cvt to an integer: rounded, clamped to the range, NaN is 0 (as for .rzi of all sources on sm_80 and later)."""
    whole = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}[rounding](np.asarray(x, F64))
    info = np.iinfo(dtype)
    inside = (whole > float(info.min) - 1) & (whole < float(info.max) + (1 if info.bits < 64 else 0))
    safe = np.where(inside, whole, 0.0).astype(dtype)
    return np.where(np.isnan(whole), dtype(0), np.where(inside, safe, np.where(whole > 0, dtype(info.max), dtype(info.min))))


def minimum(a, b, larger, nan_wins):
    """min, max: the operand that is no NaN, unless .NaN; -0 is below +0."""
    pick = (np.maximum if nan_wins else np.fmax) if larger else (np.minimum if nan_wins else np.fmin)
    result = pick(a, b)
    zeros = (a == 0) & (b == 0)
    if zeros.any():
        unsigned = U32 if result.dtype == F32 else U64
        both = (np.asarray(a).view(unsigned) & np.asarray(b).view(unsigned)) if larger else (np.asarray(a).view(unsigned) | np.asarray(b).view(unsigned))
        result = np.where(zeros, both.view(result.dtype), result)
    return result
