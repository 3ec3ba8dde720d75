"""Executes one launch of a kernel. In: a Kernel, grid, block, dynamic shared memory, parameters, device memory. Out: device memory as the kernel left it. The threads of
several blocks advance together, registers are arrays over threads. Of all threads that can run those with the lowest address run next, so that they meet again behind a
branch. Barriers wait for every thread of a block that has not ended, warp operations for the lanes that their mask names, all at one instruction: who waits for
somebody who never comes is a Fault, as a GPU would hang or give anything.
"""
import numpy as np

import instructions
from memory import GLOBALS, BlockMemory, DeviceMemory, Fault
from parser import Unsupported

RUNS, AT_BARRIER, AT_COLLECTIVE, ENDED = range(4)
FOREVER = 1 << 60
BATCH = 8192  # threads


def launch(module, name, grid, block, shared_bytes, parameters, allocations, sums="chain"):
    """`parameters`: bytes of each. Returns DeviceMemory. `sums`: how mma adds, see tensor.py."""
    kernel = module.kernels[name]
    threads = block[0] * block[1] * block[2]
    if kernel.threads and threads > kernel.threads:
        raise Fault(f"{name}: {threads} threads, .maxntid {kernel.threads}")
    symbols, extra = {}, {}
    for i, v in enumerate(module.globals):
        symbols[v.name] = ("global", GLOBALS + 4096 * 16 * i)
        extra[symbols[v.name][1]] = v.initial.ljust(v.size, b"\0")
    device = DeviceMemory({**allocations, **extra})
    program = Program(module, kernel, symbols, parameters, shared_bytes)
    blocks = grid[0] * grid[1] * grid[2]
    step = max(1, BATCH // threads)
    for first in range(0, blocks, step):
        Machine(program, device, grid, block, range(first, min(first + step, blocks)), sums).run()
    return device


def laid_out(variables, symbols, space, at=0):
    for v in variables:
        at = (at + v.align - 1) // v.align * v.align
        symbols[v.name] = (space, at)
        at += v.size
    return at


class Program:
    """A kernel whose symbols have addresses and whose instructions are functions."""

    def __init__(self, module, kernel, symbols, parameters, shared_bytes):
        self.kernel, self.symbols = kernel, symbols
        declared = [v.size for v in kernel.parameters.values()]
        if declared != [len(p) for p in parameters]:
            raise Fault(f"{kernel.name}: parameters of {[len(p) for p in parameters]} bytes, the image declares {declared}")
        size = laid_out(kernel.parameters.values(), symbols, "param")
        if size > 4096:
            raise Fault(f"{kernel.name}: {size} bytes of parameters")
        self.parameters = np.zeros((size + 15) // 8 * 8, np.uint8)
        for v, data in zip(kernel.parameters.values(), parameters):
            at = symbols[v.name][1]
            self.parameters[at:at + v.size] = np.frombuffer(data, np.uint8)
        self.local_bytes = laid_out(kernel.local, symbols, "local")
        static = laid_out(kernel.shared, symbols, "shared")
        self.shared_bytes = max(laid_out([v], symbols, "shared", static) for v in module.shared) + shared_bytes if module.shared else static
        self.code = [instructions.compiled(i, self) for i in kernel.code]

    def target(self, label):
        if label not in self.kernel.labels:
            raise Unsupported("label " + label)
        return self.kernel.labels[label]


class Machine:
    def __init__(self, program, device, grid, block, blocks, sums):
        self.program, self.device, self.sums = program, device, sums
        per_block = block[0] * block[1] * block[2]
        if per_block % 32:
            raise Unsupported("blocks that are not whole warps")
        self.per_block, self.count = per_block, per_block * len(blocks)
        self.block = np.repeat(np.arange(len(blocks)), per_block)
        self.thread = np.tile(np.arange(per_block), len(blocks))
        number = np.repeat(np.array(blocks, np.int64), per_block)
        self.special = {"laneid": (self.thread % 32).astype(np.uint32)}
        for prefix, index, size in [("tid", self.thread, block), ("ctaid", number, grid)]:
            for axis, value in zip("xyz", (index % size[0], index // size[0] % size[1], index // (size[0] * size[1]))):
                self.special[f"{prefix}.{axis}"] = value.astype(np.uint32)
                self.special[f"n{prefix}.{axis}"] = np.uint32(size["xyz".index(axis)])
        # What a register holds before it is written is anybody's guess.
        kinds = {"pred": (bool, True), "b16": (np.uint16, 0xA5A5), "b32": (np.uint32, 0xFFC5A5A5), "b64": (np.uint64, 0xFFF5A5A5A5A5A5A5)}
        self.registers = [np.full(self.count, kinds[t][1], kinds[t][0]) for t in program.kernel.registers]
        self.shared = BlockMemory(len(blocks), program.shared_bytes, "shared")
        self.local = BlockMemory(self.count, program.local_bytes, "local")
        self.pc = np.zeros(self.count, np.int64)
        self.state = np.full(self.count, RUNS, np.int8)
        self.copies, self.group = [], np.zeros(self.count, np.int64)  # cp.async under way; the group that a thread fills

    def put(self, index, value, mask):
        """A result into a register; narrower ones are extended by their sign."""
        register = self.registers[index]
        value = np.asarray(value)
        if value.dtype.itemsize != register.dtype.itemsize:
            value = value.astype(np.dtype(f"{'i' if value.dtype.kind == 'i' else 'u'}{register.dtype.itemsize}"))
        value = value.view(register.dtype)
        if mask is None:
            register[...] = value
        else:
            np.copyto(register, value, where=mask)

    def run(self):
        while True:
            runs = self.state == RUNS
            if not runs.any():
                if (self.state == ENDED).all():
                    return
                if not self.release_barriers():
                    raise Fault(self.stuck())
                continue
            at = int(self.pc[runs].min())
            mask = runs & (self.pc == at)
            others = runs & ~mask
            self.advance(at, mask, int(self.pc[others].min()) if others.any() else FOREVER)

    def advance(self, at, mask, limit):
        """The threads of `mask` from `at` on, until others are to go first, or they part, wait or end."""
        code, full = self.program.code, None if mask.all() else mask
        while at < limit:
            step = code[at]
            active = full
            if step.guard:
                taken = self.registers[step.guard[0]]
                active = ~taken if step.guard[1] else taken
                active = active if full is None else active & full
                if active.all():
                    active = None
                elif not active.any():
                    at += 1
                    continue
            if step.kind == "plain":
                step.run(self, active)
                at += 1
                continue
            chosen = mask if active is None else active
            rest = mask & ~chosen
            self.pc[rest] = at + 1
            if step.kind == "branch":
                if not rest.any():
                    at = step.target
                    continue
                self.pc[chosen] = step.target
                return
            if step.kind == "collective":
                if self.collective(step, at, chosen) and not rest.any():
                    at += 1
                    continue
                return
            self.pc[chosen] = at
            self.state[chosen] = ENDED if step.kind == "exit" else AT_BARRIER
            if step.kind == "barrier":
                self.release_barriers()
            return
        self.pc[mask] = at

    def collective(self, step, at, mask):
        """True when exactly the threads of `mask` went on; else who can has gone on, and the others wait."""
        here = mask | ((self.state == AT_COLLECTIVE) & (self.pc == at))
        lanes = here.reshape(-1, 32)
        named = step.lanes(self, here).reshape(-1, 32)
        outside = here & ~named.reshape(-1)
        if outside.any():
            raise Fault(f"thread {self.thread[outside][0]} is not in the mask of its own `{step.text}`")
        ready = np.repeat(~(named & ~lanes).any(1), 32) & here
        self.pc[here] = at
        self.state[here & ~ready] = AT_COLLECTIVE
        if ready.any():
            self.state[ready] = RUNS
            self.pc[ready] = at + 1
            step.run(self, None if ready.all() else ready)
        return (ready == mask).all()

    def release_barriers(self):
        """Blocks whose threads all wait or have ended go on. True when one did."""
        state, pc = self.state.reshape(-1, self.per_block), self.pc.reshape(-1, self.per_block)
        waits = state == AT_BARRIER
        free = (waits | (state == ENDED)).all(1) & waits.any(1)
        for b in np.flatnonzero(free):
            places = np.unique(pc[b][waits[b]])
            if len(places) > 1:
                raise Fault("threads of a block wait at different barriers: " + "; ".join(self.program.code[p].text for p in places))
        if not free.any():
            return False
        going = (waits & free[:, None]).reshape(-1)
        for at in np.unique(self.pc[going]):
            here = going & (self.pc == at)
            self.program.code[at].run(self, here)
            self.state[here], self.pc[here] = RUNS, at + 1
        return True

    def stuck(self):
        t = int(np.flatnonzero(self.state != ENDED)[0])
        return f"thread {self.thread[t]} waits for others that never come: `{self.program.code[self.pc[t]].text}`"
