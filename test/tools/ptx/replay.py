#!/usr/bin/env python3
"""Launches that the fake driver recorded (test/support/fakecuda/Record.h), executed again by the interpreter of their PTX. In: files of launches. Out: exit 0, or 1 and the
first words of device memory that differ from what the emulator left. Must hold: every byte of every allocation is the same, NaNs of f32 among one another.
`compare` is for tests that change a module first.
"""
import pathlib
import struct
import sys
import time
from dataclasses import dataclass

import numpy as np

import machine
import parser

np.seterr(all="ignore")


@dataclass
class Launch:
    module: int
    kernel: str
    grid: tuple
    block: tuple
    shared: int
    parameters: list
    before: dict  # address -> bytes
    after: dict


class Reader:
    """The records of one file: images by number, then launches one by one."""

    def __init__(self, path):
        self.data, self.at, self.images, self.memory = pathlib.Path(path).read_bytes(), 0, {}, {}

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def text(self):
        size, = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def writes(self):
        for _ in range(self.take("Q")[0]):
            address, = self.take("Q")
            piece = self.text()
            base = max(b for b in self.memory if b <= address)
            self.memory[base][address - base:address - base + len(piece)] = piece

    def launches(self):
        while self.at < len(self.data):
            tag = self.take("c")[0]
            if tag == b"M":
                number, = self.take("Q")
                self.images[number] = self.text()
                continue
            module, kernel = self.take("Q")[0], self.text().decode()
            grid, block, shared = self.take("3I"), self.take("3I"), self.take("I")[0]
            parameters = [self.text() for _ in range(self.take("Q")[0])]
            sizes = dict(self.take("2Q") for _ in range(self.take("Q")[0]))
            self.memory = {a: self.memory[a] if a in self.memory and len(self.memory[a]) == n else bytearray(n) for a, n in sizes.items()}
            self.writes()
            before = {a: bytes(m) for a, m in self.memory.items()}
            if self.take("c")[0] != b"E":
                raise SystemExit("a launch that did not end")
            self.writes()
            yield Launch(module, kernel, grid, block, shared, parameters, before, self.memory)


def differences(device, after):
    """Words that differ: [(address, got, want)]."""
    found = []
    for address, want in after.items():
        got = device.content(address)
        if bytes(got) == bytes(want):
            continue
        a, b = (np.frombuffer(bytes(x).ljust((len(want) + 3) // 4 * 4, b"\0"), np.uint32) for x in (got, want))
        both_nan = np.isnan(a.view(np.float32)) & np.isnan(b.view(np.float32))
        found += [(address + 4 * int(i), int(a[i]), int(b[i])) for i in np.flatnonzero((a != b) & ~both_nan)]
    return found


def compare(launch, module):
    return differences(machine.launch(module, launch.kernel, launch.grid, launch.block, launch.shared, launch.parameters, launch.before), launch.after)


def shown(word):
    return f"{word:#010x} ({np.uint32(word).view(np.float32)})"


def replay(path, chosen=lambda launch: True, verbose=False):
    """(launches executed, kernels among them, lines about what is wrong). `chosen` may leave launches out."""
    reader, modules, wrong, kernels, count = Reader(path), {}, [], set(), 0
    for launch in reader.launches():
        image = reader.images[launch.module]
        if image[:4] == b"\x7fELF":
            raise SystemExit(f"{launch.kernel}: the module is a cubin, not PTX")
        if not chosen(launch):
            continue
        if launch.module not in modules:
            modules[launch.module] = parser.parse(image.decode())
        begun = time.monotonic()
        try:
            found = compare(launch, modules[launch.module])
        except machine.Fault as fault:
            wrong.append(f"{launch.kernel} {launch.grid}: {fault}")
            continue
        count += 1
        kernels.add(launch.kernel)
        if verbose:
            print(f"{launch.kernel} {launch.grid}: {time.monotonic() - begun:.2f} s, {len(found)} words differ", flush=True)
        if found:
            wrong.append(f"{launch.kernel} {launch.grid}: {len(found)} words differ, the first at {found[0][0]:#x}: {shown(found[0][1])}, the emulator's {shown(found[0][2])}")
    return count, kernels, wrong


if __name__ == "__main__":
    bad = 0
    for name in sys.argv[1:]:
        executed, names, lines = replay(name, verbose=True)
        print(*lines, sep="\n")
        print(f"{name}: {executed} launches of {len(names)} kernels, {len(lines)} differ")
        bad += len(lines)
    sys.exit(1 if bad else 0)
