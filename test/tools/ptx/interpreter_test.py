#!/usr/bin/env python3
"""The PTX interpreter against the PTX ISA: small texts whose results follow from its pages, or from numpy in double, and texts that a GPU must not be given. Out: exit 0, or 1.
Every kind of instruction that replays rely on is here; so are mistakes that must be noticed."""
import pathlib
import sys
import unittest
from fractions import Fraction

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine  # noqa: E402
import parser  # noqa: E402
import rounding  # noqa: E402
from tensor import fragments  # noqa: E402

np.seterr(all="ignore")
OUT, IN = 1 << 62, (1 << 62) + (1 << 20)
TEXT = """.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 128 .b8 dynamic[];
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
.maxntid 128, 1, 1
{
  .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<20>; .reg .f64 %fd<9>;
  ld.param.u64 %rd1, [k_param_0]; cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [k_param_1]; cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
BODY
}
"""
STORE = "st.global.u32 [%rd4], %r9; ret;"


def run(body, given=b"", threads=32, blocks=1, shared=1024, bytes_=None, sums="chain"):
    """What the kernel leaves in the first buffer, as u32."""
    module = parser.parse(TEXT.replace("BODY", body))
    memory = {OUT: bytes(bytes_ or 4 * threads * blocks), IN: bytes(given).ljust(4 * threads, b"\0")}
    after = machine.launch(module, "k", (blocks, 1, 1), (threads, 1, 1), shared, [OUT.to_bytes(8, "little"), IN.to_bytes(8, "little")], memory, sums)
    return after.content(OUT).view(np.uint32).copy()


def numbers(*values, dtype=np.uint32):
    return np.array(values, dtype).tobytes()


class Instructions(unittest.TestCase):
    def table(self, code, cases):
        """`code` computes %r9 from %r2, %r3, %r4; cases: (operands, result)."""
        given = numbers(*[v & 0xFFFFFFFF for operands, _ in cases for v in (*operands, 0, 0, 0)[:3]])
        module = f"mul.wide.u32 %rd6, %r1, 12; add.s64 %rd6, %rd2, %rd6; setp.ge.u32 %p1, %r1, {len(cases)}; @%p1 bra DONE; " \
                 f"ld.global.u32 %r2, [%rd6]; ld.global.u32 %r3, [%rd6+4]; ld.global.u32 %r4, [%rd6+8]; {code} st.global.u32 [%rd4], %r9; DONE: ret;"
        for (operands, want), got in zip(cases, run(module, given)):
            self.assertEqual(hex(got), hex(want & 0xFFFFFFFF), f"{code} of {[hex(o & 0xFFFFFFFF) for o in operands]}")

    def test_integers(self):
        self.table("shr.s32 %r9, %r2, %r3;", [((-8, 1), -4), ((-8, 40), -1), ((8, 40), 0)])
        self.table("shr.u32 %r9, %r2, %r3;", [((0x80000000, 31), 1), ((0x80000000, 32), 0)])
        self.table("shl.b32 %r9, %r2, %r3;", [((3, 31), 0x80000000), ((3, 32), 0), ((3, 0xFFFFFFFF), 0)])
        self.table("bfe.u32 %r9, %r2, %r3, %r4;", [((0xABCD1234, 8, 8), 0x12), ((0xABCD1234, 28, 8), 0xA), ((0xABCD1234, 0, 32), 0xABCD1234), ((5, 0, 0), 0)])
        self.table("bfe.s32 %r9, %r2, %r3, %r4;", [((0x00000F80, 4, 8), -8), ((0x0780, 4, 8), 0x78), ((0x80000000, 28, 8), -8), ((-1, 0, 0), 0)])
        self.table("bfi.b32 %r9, %r2, %r3, 8, 4;", [((0xFF, 0), 0xF00), ((0, 0xFFFF), 0xF0FF)])
        self.table("prmt.b32 %r9, %r2, %r3, %r4;", [((0x33221100, 0x77665544, 0x7410), 0x77441100), ((0x80, 0, 0x9988), 0x0000FFFF)])
        self.table("lop3.b32 %r9, %r2, %r3, %r4, 0xCA;", [((0xF0F0F0F0, 0x12345678, 0x9ABCDEF0), 0xF0F0F0F0 & 0x12345678 | 0x0F0F0F0F & 0x9ABCDEF0)])
        self.table("shf.l.wrap.b32 %r9, %r2, %r3, %r4;", [((0x80000001, 0x2, 1), 0x5), ((1, 2, 32), 2)])
        self.table("shf.r.wrap.b32 %r9, %r2, %r3, %r4;", [((0x1, 0x3, 1), 0x80000000), ((0x10, 0x3, 36), 0x30000001)])
        self.table("div.s32 %r9, %r2, %r3;", [((-7, 2), -3), ((7, -2), -3)])
        self.table("rem.s32 %r9, %r2, %r3;", [((-7, 2), -1), ((7, -2), 1)])
        self.table("mul.hi.u32 %r9, %r2, %r3;", [((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE)])
        self.table("mad.lo.s32 %r9, %r2, %r3, %r4;", [((-3, 5, 7), -8)])
        self.table("popc.b32 %r9, %r2;", [((0xF0F00001,), 9)])
        self.table("clz.b32 %r9, %r2;", [((1,), 31), ((0,), 32), ((0x80000000,), 0)])
        self.table("min.s32 %r9, %r2, %r3;", [((-1, 1), -1)])
        self.table("min.u32 %r9, %r2, %r3;", [((-1, 1), 1)])
        self.table("cvt.s64.s32 %rd7, %r2; shr.s64 %rd7, %rd7, 32; cvt.u32.u64 %r9, %rd7;", [((-5,), -1), ((5,), 0)])
        square = "cvt.u64.u32 %rd7, %r2; shl.b64 %rd7, %rd7, 32; mul.hi.u64 %rd8, %rd7, %rd7; "
        self.table(square + "mov.b64 {%r9, _}, %rd8;", [((0xFFFFFFFF,), 1)])
        self.table(square + "mov.b64 {_, %r9}, %rd8;", [((0xFFFFFFFF,), 0xFFFFFFFE)])
        self.table("setp.lt.s32 %p2, %r2, %r3; setp.eq.or.u32 %p3|%p4, %r2, %r4, %p2; selp.u32 %r9, 1, 0, %p3; @%p4 add.u32 %r9, %r9, 2;", [((-1, 1, 9), 3), ((5, 1, 5), 1), ((5, 1, 6), 2)])

    def test_floats(self):
        one, tiny, nan, inf = 0x3F800000, 1, 0x7FC00000, 0x7F800000
        load = "mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b32 %f4, %r4; "
        self.table(load + "min.f32 %f9, %f2, %f3; mov.b32 %r9, %f9;", [((nan, one), one), ((0, 0x80000000), 0x80000000), ((one, nan), one)])
        self.table(load + "max.f32 %f9, %f2, %f3; mov.b32 %r9, %f9;", [((0x80000000, 0), 0), ((one, inf), inf)])
        for name, result in {"eq": 0, "ne": 0, "lt": 0, "neu": 1, "ltu": 1, "equ": 1, "nan": 1, "num": 0}.items():
            self.table(load + f"setp.{name}.f32 %p2, %f2, %f3; selp.u32 %r9, 1, 0, %p2;", [((nan, one), result)])
        self.table(load + "add.f32 %f9, %f2, %f3; mov.b32 %r9, %f9;", [((tiny, tiny), 2)])  # no .ftz: subnormals stay
        self.table(load + "div.rn.f32 %f9, %f2, %f3; mov.b32 %r9, %f9;", [((one, 0x40400000), 0x3EAAAAAB)])
        self.table(load + "cvt.rzi.s32.f32 %r9, %f2;", [((0xBFC00000,), -1), ((nan,), 0), ((0x4F800000,), 0x7FFFFFFF), ((0xCF800000,), 0x80000000)])
        self.table(load + "cvt.rni.s32.f32 %r9, %f2;", [((0x40200000,), 2), ((0x40600000,), 4)])
        self.table(load + "cvt.rn.f16.f32 %rs1, %f2; cvt.u32.u16 %r9, %rs1;", [((one,), 0x3C00), ((0x477FF000,), 0x7C00), ((0x3F801000,), 0x3C00), ((0x3F803000,), 0x3C02)])
        self.table(load + "cvt.rn.bf16.f32 %rs1, %f2; cvt.u32.u16 %r9, %rs1;", [((0x3F808000,), 0x3F80), ((0x3F818000,), 0x3F82), ((0x3F808001,), 0x3F81)])
        self.table(load + "cvt.rna.tf32.f32 %r9, %f2;", [((0x3F801000,), 0x3F802000), ((0x3F800FFF,), one), ((inf,), inf)])
        self.table(load + "neg.f32 %f9, %f2; mov.b32 %r9, %f9;", [((0,), 0x80000000)])
        self.table(load + "abs.f32 %f9, %f2; mov.b32 %r9, %f9;", [((0xFF800000,), inf)])

    def test_fma_rounds_once(self):
        random = np.random.default_rng(1)
        a, b, c = (random.integers(0, 1 << 32, 4000, np.uint64).astype(np.uint32).view(np.float32) for _ in range(3))
        # Sums that cancel, that end on the middle of two floats, and subnormal ones.
        a[:1000], b[:1000] = 1 + random.integers(0, 4096, 1000) * 2.0**-12, 1 + random.integers(0, 4096, 1000) * 2.0**-12
        c[:500], c[500:1000] = -1, random.choice([1, -1], 500) * 2.0 ** -random.integers(40, 90, 500)
        a[1000:1500], b[1000:1500], c[1000:1500] = 2.0**-75 * a[:500], 2.0**-74 * b[:500], 2.0**-149 * random.integers(-9, 9, 500)
        got = rounding.fma32(a, b, c)
        for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got):
            if all(np.isfinite([x, y, z])) and np.isfinite(r):
                self.assert_nearest(Fraction(x) * Fraction(y) + Fraction(z), r, np.float32)
        x, y, z = random.normal(size=2000), random.normal(size=2000), random.normal(size=2000)
        z[:1000] = -x[:1000] * y[:1000]
        for i, r in enumerate(rounding.fma64(x, y, z)):
            self.assertEqual(float(Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i])), r)

    def assert_nearest(self, exact, r, dtype):
        below, above = (np.nextafter(r, dtype(s)) for s in (-np.inf, np.inf))
        error = abs(exact - Fraction(float(r)))
        for other in (below, above):
            if np.isfinite(other):
                far = abs(exact - Fraction(float(other)))
                self.assertTrue(error < far or error == far and r.view(np.uint32) % 2 == 0, (exact, r))


class Warps(unittest.TestCase):
    def shuffle(self, mode, b, c):
        return run(f"add.u32 %r2, %r1, 100; shfl.sync.{mode}.b32 %r9|%p1, %r2, {b}, {c}, 0xffffffff; @!%p1 add.u32 %r9, %r9, 1000; {STORE}").tolist()

    def test_shuffles(self):
        lanes = range(32)
        self.assertEqual(self.shuffle("up", 1, 0), [1100] + [99 + i for i in lanes][1:])
        self.assertEqual(self.shuffle("down", 3, 31), [103 + i if i < 29 else 1100 + i for i in lanes])
        self.assertEqual(self.shuffle("bfly", 5, 31), [100 + (i ^ 5) for i in lanes])
        self.assertEqual(self.shuffle("idx", 7, 31), [107] * 32)
        self.assertEqual(self.shuffle("down", 1, 0x181F), [101 + i if i % 8 < 7 else 1100 + i for i in lanes])  # segments of 8 lanes
        self.assertEqual(self.shuffle("idx", 2, 0x1C1F), [100 + i // 4 * 4 + 2 for i in lanes])
        self.assertEqual(self.shuffle("idx", 33, 31), [101] * 32)  # only five bits of b count

    def test_votes(self):
        self.assertEqual(run(f"and.b32 %r2, %r1, 2; setp.ne.u32 %p1, %r2, 0; vote.sync.ballot.b32 %r9, %p1, 0xffffffff; {STORE}").tolist(), [0xCCCCCCCC] * 32)
        code = "setp.ne.u32 %p1, %r1, LAST; bar.red.and.pred %p2, 0, %p1; selp.u32 %r9, 1, 0, %p2; " + STORE
        self.assertEqual(set(run(code.replace("LAST", "63"), threads=64)), {0})
        self.assertEqual(set(run(code.replace("LAST", "64"), threads=64)), {1})

    def test_divergence(self):
        """Lanes leave a loop one by one and meet again; the block behind comes first in the text."""
        body = f"""mov.u32 %r9, 0; mov.u32 %r3, %r1; bra TEST;
          JOIN: shfl.sync.bfly.b32 %r9, %r9, 1, 0x1f, 0xffffffff; {STORE}
          TEST: setp.eq.u32 %p1, %r3, 0; @%p1 bra JOIN; add.u32 %r9, %r9, 3; sub.u32 %r3, %r3, 1; bra.uni TEST;"""
        self.assertEqual(run(body).tolist(), [3 * (i ^ 1) for i in range(32)])

    def test_a_divergent_collective_is_a_fault(self):
        with self.assertRaisesRegex(machine.Fault, "never come"):
            run(f"setp.eq.u32 %p1, %r1, 3; @%p1 bra DONE; shfl.sync.bfly.b32 %r9, %r1, 1, 0x1f, 0xffffffff; {STORE} DONE: ret;")
        with self.assertRaisesRegex(machine.Fault, "different barriers"):
            run("setp.lt.u32 %p1, %r1, 32; @%p1 bra OTHER; bar.sync 0; ret; OTHER: bar.sync 0; ret;", threads=64)
        with self.assertRaisesRegex(machine.Fault, "not in the mask"):
            run("bar.warp.sync 0x7fffffff; ret;")

    def test_mma(self):
        """Every shape against a product in double, fragments placed by the ISA's formulas: element i of a lane, row and column."""
        random = np.random.default_rng(2)
        for shape, kind, k, per_register in [("m16n8k16", "f16", 16, 2), ("m16n8k16", "bf16", 16, 2), ("m16n8k8", "tf32", 8, 1), ("m16n8k32", "s8", 32, 4), ("m16n8k32", "u8", 32, 4)]:
            integer = kind in ("s8", "u8")
            low, high = {"s8": (-128, 128), "u8": (0, 256)}.get(kind, (-8, 9))
            a, b = random.integers(low, high, (16, k)), random.integers(low, high, (k, 8))
            c = random.integers(-50, 50, (16, 8))
            store = {"f16": lambda x: x.astype(np.float16).view(np.uint16), "bf16": lambda x: rounding.bf16_bits(x.astype(np.float32)),
                     "tf32": lambda x: x.astype(np.float32).view(np.uint32), "s8": lambda x: x.astype(np.int8), "u8": lambda x: x.astype(np.uint8)}[kind]
            na, nb = 16 * k // 32 // per_register, 8 * k // 32 // per_register
            lane = np.arange(32)
            group, member = lane // 4, lane % 4

            def place(matrix, count, rows, columns):
                elements = np.stack([matrix[rows(i), columns(i)] for i in range(count)], 1)
                return np.ascontiguousarray(elements).view(np.uint32).T
            w = per_register  # neighbours of one register
            if shape == "m16n8k8":
                fa = place(store(a), 4, lambda i: group + 8 * (i % 2), lambda i: member + 4 * (i // 2))
                fb = place(store(b), 2, lambda i: member + 4 * i, lambda i: group)
            else:
                fa = place(store(a), 4 * w, lambda i: group + 8 * (i // w % 2), lambda i: member * w + i % w + 4 * w * (i // (2 * w)))
                fb = place(store(b), 2 * w, lambda i: member * w + i % w + 4 * w * (i // w), lambda i: group)
            fc = place(c.astype(np.int32) if integer else c.astype(np.float32).view(np.int32), 4, lambda i: group + 8 * (i // 2), lambda i: member * 2 + i % 2)
            given = np.concatenate([fa, fb, fc]).astype(np.uint32)
            registers = [f"%r{i + 2}" for i in range(na + nb)]
            out = [f"%f{i}" for i in range(4)] if not integer else [f"%r{i + 12}" for i in range(4)]
            type_ = "f32" if not integer else "s32"
            body = "".join(f"ld.global.u32 {r}, [%rd5+{128 * i}];" for i, r in enumerate(registers + out))
            body += f"mma.sync.aligned.{shape}.row.col.{type_}.{kind}.{kind}.{type_} {{{','.join(out)}}}, {{{','.join(registers[:na])}}}, {{{','.join(registers[na:])}}}, {{{','.join(out)}}};"
            body += "".join(f"st.global.b32 [%rd4+{128 * i}], {r};" for i, r in enumerate(out)) + "ret;"
            for sums in ("chain", "exact"):
                got = run(body, given.tobytes(), bytes_=512, sums=sums).reshape(4, 32)
                want = place((a @ b + c).astype(np.int32) if integer else (a @ b + c).astype(np.float32).view(np.int32), 4, lambda i: group + 8 * (i // 2), lambda i: member * 2 + i % 2)
                np.testing.assert_array_equal(got, want, f"{shape} {kind}")
            # The same with two operands exchanged must not pass.
            swapped = body.replace(f"{{{registers[0]},{registers[1]}", f"{{{registers[1]},{registers[0]}")
            self.assertFalse((run(swapped, given.tobytes(), bytes_=512).reshape(4, 32) == want).all(), f"{shape} {kind}: swapped operands")

    def test_fragments_cover_their_matrices(self):
        for shape in ("m16n8k16", "m16n8k8", "m16n8k32"):
            for fragment in fragments(shape):
                places = set(zip(fragment.rows.reshape(-1).tolist(), fragment.columns.reshape(-1).tolist()))
                self.assertEqual(len(places), fragment.shape[0] * fragment.shape[1])

    def test_ldmatrix(self):
        """Matrix i in shared memory holds 100 i + 10 row + column; a lane gets row lane / 4, columns lane % 4 * 2 and the next."""
        fill = """mov.u32 %r2, 0; LOOP: shl.b32 %r3, %r1, 4; shl.b32 %r4, %r2, 1; add.u32 %r3, %r3, %r4;
          shr.u32 %r5, %r1, 3; and.b32 %r6, %r1, 7; mul.lo.u32 %r5, %r5, 100; mad.lo.u32 %r5, %r6, 10, %r5; add.u32 %r5, %r5, %r2; cvt.u16.u32 %rs1, %r5;
          mov.u32 %r7, dynamic; add.u32 %r7, %r7, %r3; st.shared.u16 [%r7], %rs1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra LOOP; bar.sync 0;
          shl.b32 %r3, %r1, 4; mov.u32 %r7, dynamic; add.u32 %r7, %r7, %r3; ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%r10,%r11,%r12,%r13}, [%r7];
          """ + "".join(f"st.global.u32 [%rd4+{128 * i}], %r{10 + i};" for i in range(4)) + "ret;"
        for transposed in (False, True):
            got = run(fill.replace("TRANS", ".trans" if transposed else ""), bytes_=512).reshape(4, 32)
            for i in range(4):
                for lane in range(32):
                    row, column = lane // 4, lane % 4 * 2
                    want = [100 * i + (10 * (column + e) + row if transposed else 10 * row + column + e) for e in (0, 1)]
                    self.assertEqual([got[i, lane] & 0xFFFF, got[i, lane] >> 16], want)


class Memory(unittest.TestCase):
    COPY = """mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd2, %rd6; shl.b32 %r3, %r1, 4; mov.u32 %r4, dynamic; add.u32 %r4, %r4, %r3;
      cp.async.cg.shared.global [%r4], [%rd6], 16, VALID; cp.async.commit_group; WAIT ld.shared.u32 %r9, [%r4+4]; """ + STORE

    def test_cp_async(self):
        given = np.arange(128, dtype=np.uint32)
        copy = lambda valid, wait: run(self.COPY.replace("VALID", valid).replace("WAIT", wait), given.tobytes()).tolist()  # noqa: E731
        self.assertEqual(copy("16", "cp.async.wait_group 0;"), [4 * i + 1 for i in range(32)])
        self.assertEqual(copy("4", "cp.async.wait_group 0;"), [0] * 32)  # bytes beyond the valid ones are zeros
        self.assertEqual(copy("16", "cp.async.wait_group 1;"), [0xFFFFFFFF] * 32)  # one group may still be under way: poison
        self.assertEqual(copy("16", ""), [0xFFFFFFFF] * 32)

    def test_bounds_and_alignment(self):
        for body, what in [("st.global.u32 [%rd4+4], %r1; ret;", "outside"), ("ld.global.u64 %rd6, [%rd5]; ret;", "misaligned"), ("ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd5]; ret;", "misaligned"),
                           ("mov.u32 %r2, dynamic; st.shared.u32 [%r2+1024], %r1; ret;", "shared byte 1024"), ("mov.u32 %r2, dynamic; ld.shared.v2.u32 {%r3,%r4}, [%r2+4]; ret;", "misaligned"),
                           ("ld.global.u32 %r2, [%rd2+-4]; ret;", "outside")]:
            with self.assertRaisesRegex(machine.Fault, what, msg=body):
                run(body)

    def test_spaces(self):
        body = "cvta.shared.u64 %rd7, 64; st.u32 [%rd7], %r1; bar.sync 0; mov.u32 %r2, dynamic; ld.shared.u32 %r9, [%r2+64]; setp.eq.u32 %p1, %r1, 31; " + STORE
        self.assertEqual(set(run(body)), {31})
        local = "{ .local .align 8 .b8 mine[16]; mov.u64 %rd7, mine; cvta.local.u64 %rd8, %rd7; st.u32 [%rd8+8], %r1; ld.local.u32 %r9, [%rd7+8]; }" + STORE
        self.assertEqual(run(local.replace("{", "").replace("}", "")).tolist(), list(range(32)))

    def test_blocks(self):
        body = "mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r2, 7; cvt.u64.u32 %rd7, %r3; add.s64 %rd4, %rd4, %rd7; mad.lo.u32 %r9, %r2, 1000, %r1; " + STORE
        self.assertEqual(run(body, blocks=300).tolist(), [1000 * b + t for b in range(300) for t in range(32)])


class Refused(unittest.TestCase):
    def test_what_is_unknown_is_named(self):
        for body in ["ex2.approx.f32 %f1, %f2;", "add.ftz.f32 %f1, %f2, %f3;", "add.rz.f32 %f1, %f2, %f3;", "fma.rn.sat.f32 %f1, %f2, %f3, %f4;", "atom.global.add.u32 %r1, [%rd1], 1;",
                     "div.approx.f32 %f1, %f2, %f3;", "call foo;", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd1,%fd2};", "cvt.f16.f32 %rs1, %f1;",
                     "ld.volatile.shared.v8.u32 %r1, [%rd1];", "bar.arrive 1, 64;"]:
            with self.assertRaises(parser.Unsupported) as caught:
                run(body + " ret;")
            self.assertIn(body.split()[0].split(".")[0], str(caught.exception))

    def test_parameters_are_those_of_the_image(self):
        module = parser.parse(TEXT.replace("BODY", "ret;"))
        with self.assertRaisesRegex(machine.Fault, "the image declares"):
            machine.launch(module, "k", (1, 1, 1), (32, 1, 1), 0, [bytes(8), bytes(4)], {OUT: b"1234"})
        with self.assertRaisesRegex(machine.Fault, "maxntid"):
            machine.launch(module, "k", (1, 1, 1), (256, 1, 1), 0, [bytes(8), bytes(8)], {OUT: b"1234"})


if __name__ == "__main__":
    unittest.main()
