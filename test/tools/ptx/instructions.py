"""What each instruction does. In: a parsed instruction and the program that it is in. Out: a Step, whose function acts on all threads of a mask (None: all of them). The
tables name the instructions that are known, with all their suffixes checked; whatever else occurs raises Unsupported. Elementwise ones are in arithmetic.py, those of
whole warps in tensor.py and here.
"""
from dataclasses import dataclass

import numpy as np

import arithmetic
import tensor
from memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW, Fault, load, store
from operands import DTYPES, address, reader, source, writer
from parser import Unsupported


@dataclass
class Step:
    run: object = None
    kind: str = "plain"  # branch, exit, barrier, collective
    guard: tuple = None
    text: str = ""
    target: int = 0
    lanes: object = None  # of a collective: which threads must take part


def compiled(instruction, program):
    base = instruction.parts[0]
    try:
        if base in CONTROL:
            step = CONTROL[base](instruction, program)
        elif base in MEMORY:
            step = Step(MEMORY[base](instruction, program))
        else:
            step = Step(arithmetic.compiled(instruction, program))
    except (KeyError, ValueError, IndexError) as error:
        raise Unsupported(f"`{instruction.text}` ({type(error).__name__} {error})") from error
    step.guard, step.text = instruction.guard, instruction.text
    return step


# ---- control ---------------------------------------------------------------------------------------------------------------------------------
def allowed(instruction, *names):
    if instruction.name not in names:
        raise Unsupported(f"`{instruction.text}`")


def branch(instruction, program):
    allowed(instruction, "bra", "bra.uni")
    return Step(kind="branch", target=program.target(instruction.operands[0].value))


def end(instruction, program):
    allowed(instruction, "ret", "exit")
    return Step(kind="exit")


def trap(instruction, program):
    def run(m, mask):
        raise Fault("trap")
    return Step(run)


def barrier(instruction, program):
    allowed(instruction, "bar.sync", "barrier.sync", "barrier.sync.aligned", "bar.red.and.pred", "bar.red.or.pred", "barrier.red.and.pred", "barrier.red.and.pred.aligned",
            "barrier.red.aligned.and.pred", "bar.warp.sync")
    if instruction.name == "bar.warp.sync":
        return collective(lambda m, mask: None, reader(instruction.operands[0], "b32", program))
    at = instruction.parts.index("red") if "red" in instruction.parts else -1
    number = instruction.operands[1 if at >= 0 else 0]
    if number.kind != "integer" or len(instruction.operands) != (3 if at >= 0 else 1):
        raise Unsupported(f"`{instruction.text}`")
    if at < 0:
        return Step(lambda m, mask: None, kind="barrier")
    vote, put, every = reader(instruction.operands[2], "pred", program), writer(instruction.operands[0]), "and" in instruction.parts

    def reduce(m, mask):
        votes = np.broadcast_to(vote(m), m.count).reshape(-1, m.per_block)
        those = mask.reshape(-1, m.per_block)
        result = (votes | ~those).all(1) if every else (votes & those).any(1)
        put(m, np.repeat(result, m.per_block), mask)
    return Step(reduce, kind="barrier")


def collective(run, mask_of):
    def lanes(m, here):
        """Bit l of a thread's mask names lane l of its warp; all threads of a warp must name the same."""
        masks = np.broadcast_to(mask_of(m), m.count).reshape(-1, 32)
        present = here.reshape(-1, 32)
        first = masks[np.arange(len(masks)), present.argmax(1)]
        if ((masks != first[:, None]) & present).any():
            raise Fault("lanes of a warp name different masks")
        return ((first[:, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(bool) & present.any(1)[:, None]
    return Step(run, kind="collective", lanes=lanes)


def whole_warp(run):
    return collective(run, lambda m: np.uint32(0xFFFFFFFF))


def vote(instruction, program):
    allowed(instruction, "vote.sync.ballot.b32", "vote.sync.all.pred", "vote.sync.any.pred")
    put, value, mask_of = writer(instruction.operands[0]), reader(instruction.operands[1], "pred", program), reader(instruction.operands[2], "b32", program)
    mode = instruction.parts[2]

    def run(m, mask):
        taking = np.ones(m.count, bool) if mask is None else mask
        votes = (np.broadcast_to(value(m), m.count) & taking).reshape(-1, 32)
        if mode == "ballot":
            result = (votes.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)
        else:
            result = votes.any(1) if mode == "any" else (votes | ~taking.reshape(-1, 32)).all(1)
        put(m, np.repeat(result, 32), mask)
    return collective(run, mask_of)


def shuffle(instruction, program):
    """shfl.sync, by the pseudocode of the ISA: c holds the clamp in bits 0-4 and the segment mask in bits 8-12. A lane whose source is out of range keeps its own value."""
    allowed(instruction, "shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.bfly.b32", "shfl.sync.idx.b32")
    target = instruction.operands[0]
    outs = target.value if target.kind == "pair" else [target]
    puts = [writer(o) for o in outs]
    a, b, c, mask_of = (reader(o, "b32", program) for o in instruction.operands[1:])
    mode = instruction.parts[2]

    def run(m, mask):
        lane = (np.arange(m.count) % 32).astype(np.int64)
        bits, limits = b(m).astype(np.int64) & 31, c(m).astype(np.int64)
        clamp, segment = limits & 31, (limits >> 8) & 31
        most, least = (lane & segment) | (clamp & ~segment), lane & segment
        j = {"up": lane - bits, "down": lane + bits, "bfly": lane ^ bits, "idx": least | (bits & ~segment)}[mode]
        good = j >= most if mode == "up" else j <= most
        j = np.where(good, j, lane)
        from_thread = np.arange(m.count) - lane + j
        if mask is not None and (~mask[from_thread] & mask).any():
            raise Fault("a lane reads a register of one that does not take part")
        puts[0](m, np.broadcast_to(a(m), m.count)[from_thread], mask)
        if len(puts) > 1:
            puts[1](m, np.broadcast_to(good, m.count), mask)
    return collective(run, mask_of)


# ---- memory ----------------------------------------------------------------------------------------------------------------------------------
def space_of(instruction):
    parts = [p for p in instruction.parts[1:-1] if p not in ("v2", "v4", "nc", "volatile", "relaxed", "weak", "sys", "gpu", "cta")]
    if len(parts) > 1 or (parts and parts[0] not in ("global", "shared", "local", "param", "const")):
        raise Unsupported(f"`{instruction.text}`")
    return parts[0] if parts else "generic"


def places(m, space, addresses, size, threads, what):
    """(array, offsets) for threads of one space."""
    if space in ("global", "const"):
        return m.device.bytes, m.device.offsets(addresses, size, what)
    if space == "shared":
        return m.shared.bytes, m.shared.offsets(addresses, size, what, m.block[threads])
    if space == "local":
        return m.local.bytes, m.local.offsets(addresses, size, what, threads)
    raise Unsupported(space)


def split(space, addresses):
    """Generic addresses by what they mean: (space, which threads, addresses there)."""
    if space != "generic":
        return [(space, slice(None), addresses)]
    found = []
    windows = [("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)]
    left = np.ones(len(addresses), bool)
    for name, base in windows:
        inside = (addresses >= np.uint64(base)) & (addresses < np.uint64(base + WINDOW))
        left &= ~inside
        if inside.any():
            found.append((name, inside, addresses[inside] - np.uint64(base)))
    if left.any():
        found.append(("global", left, addresses[left]))
    return found


def vector(operand):
    return operand.value if operand.kind == "vector" else [operand]


def load_from(instruction, program):
    space, dtype = space_of(instruction), DTYPES[instruction.parts[-1]]
    puts = [writer(o) for o in vector(instruction.operands[0])]
    count, where, text = len(puts), instruction.operands[1], instruction.text
    size = count * np.dtype(dtype).itemsize
    if space == "param" and where.value.kind == "symbol":
        at = address(where, program, static=True)
        values = [program.parameters[at + i * size // count:][:size // count].copy().view(dtype)[0] for i in range(count)]

        def constant(m, mask):
            for put, value in zip(puts, values):
                put(m, value, mask)
        return constant
    of = address(where, program)

    def run(m, mask):
        threads = np.arange(m.count) if mask is None else np.flatnonzero(mask)
        addresses = np.broadcast_to(of(m), m.count)[threads]
        values = [np.empty(m.count, dtype) for _ in puts]
        for name, part, there in split(space, addresses):
            if name == "param":
                array, offsets = m.program.parameters, there.astype(np.int64)
            else:
                array, offsets = places(m, name, there, size, threads[part], text)
            for value, piece in zip(values, load(array, offsets, dtype, count)):
                value[threads[part]] = piece
        for put, value in zip(puts, values):
            put(m, value, mask)
    return run


def store_to(instruction, program):
    space, type_ = space_of(instruction), instruction.parts[-1]
    of, text = address(instruction.operands[0], program), instruction.text
    values = [reader(o, type_, program) for o in vector(instruction.operands[1])]
    size = len(values) * np.dtype(DTYPES[type_]).itemsize

    def run(m, mask):
        threads = np.arange(m.count) if mask is None else np.flatnonzero(mask)
        addresses = np.broadcast_to(of(m), m.count)[threads]
        data = [np.broadcast_to(v(m), m.count)[threads] for v in values]
        for name, part, there in split(space, addresses):
            array, offsets = places(m, name, there, size, threads[part], text)
            store(array, offsets, [d[part] for d in data])
    return run


def convert_address(instruction, program):
    """cvta: to a generic address, or with .to from one."""
    space = instruction.parts[-2]
    allowed(instruction, f"cvta.{space}.u64", f"cvta.to.{space}.u64")
    base = {"global": 0, "const": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}[space]
    put, value = writer(instruction.operands[0]), source(instruction.operands[1], program)
    step = np.uint64(base if instruction.parts[1] != "to" else (1 << 64) - base & (1 << 64) - 1)
    return lambda m, mask: put(m, value(m) + step, mask)


def copy_async(instruction, program):
    """cp.async: the target's bytes are poison until the thread has waited for the copy's group. Groups are counted per thread."""
    if instruction.name == "cp.async.commit_group":
        def commit(m, mask):
            m.group[slice(None) if mask is None else mask] += 1
        return commit
    if instruction.name in ("cp.async.wait_group", "cp.async.wait_all"):
        pending = instruction.operands[0].value if instruction.operands else -1
        return lambda m, mask: arrive(m, mask, pending)
    allowed(instruction, "cp.async.cg.shared.global", "cp.async.ca.shared.global")
    to, origin = (address(o, program) for o in instruction.operands[:2])
    size, text = instruction.operands[2].value, instruction.text
    valid = reader(instruction.operands[3], "b32", program) if len(instruction.operands) > 3 else lambda m: np.uint32(size)
    if size != 16 and "cg" in instruction.parts or size not in (4, 8, 16) or len(instruction.operands) > 4:
        raise Unsupported(f"`{text}`")

    def run(m, mask):
        threads = np.arange(m.count) if mask is None else np.flatnonzero(mask)
        a, b, n = (np.broadcast_to(x(m), m.count)[threads] for x in (to, origin, valid))
        if (n > size).any():
            raise Fault(f"{text}: more source bytes than are copied")
        offsets = m.shared.offsets(a, size, text, m.block[threads])
        data = np.zeros((len(threads), size), np.uint8)
        for count in np.unique(n[n > 0]):
            some = n == count
            if (b[some] & np.uint64(size - 1)).any():
                raise Fault(f"{text}: misaligned source")
            at = m.device.offsets(b[some], 1, text)
            m.device.offsets(b[some] + np.uint64(count - 1), 1, text)
            data[some, :count] = m.device.bytes[at[:, None] + np.arange(count)]
        m.shared.bytes[offsets[:, None] + np.arange(size)] = 0xFF
        m.copies.append((threads, m.group[threads], offsets, data))
    return run


def arrive(m, mask, pending):
    """The copies of groups that are not among the thread's last `pending` ones."""
    waits = np.ones(m.count, bool) if mask is None else mask
    left = []
    for threads, groups, offsets, data in m.copies:
        done = waits[threads] & (groups < m.group[threads] - pending)
        m.shared.bytes[offsets[done][:, None] + np.arange(data.shape[1])] = data[done]
        if not done.all():
            left.append((threads[~done], groups[~done], offsets[~done], data[~done]))
    m.copies = left


CONTROL = {"bra": branch, "ret": end, "exit": end, "trap": trap, "bar": barrier, "barrier": barrier, "vote": vote, "shfl": shuffle,
           "mma": lambda i, p: whole_warp(tensor.mma(i, p)), "ldmatrix": lambda i, p: whole_warp(tensor.ldmatrix(i, p))}
MEMORY = {"ld": load_from, "st": store_to, "cvta": convert_address, "cp": copy_async}
