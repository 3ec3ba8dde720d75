"""The memories of one launch: device allocations, and shared, local and parameter memory of a batch of blocks. In: addresses of threads. Out: values. Must hold: every
access lies inside one allocation (or the block's shared memory, the thread's local memory) and is aligned to its size, as a GPU asks for; generic addresses of shared and
local memory are windows that no allocation lies in.
"""
import numpy as np

SHARED_WINDOW, LOCAL_WINDOW, WINDOW, GLOBALS = 1 << 57, 1 << 58, 1 << 32, 1 << 59
GUARD = 256  # bytes between allocations in the arena, and its alignment


class Fault(Exception):
    """What a GPU would stop for, or must not be relied on."""


class DeviceMemory:
    """Allocations by address, in one array."""

    def __init__(self, allocations):
        """`allocations`: address -> bytes."""
        self.bases = np.array(sorted(allocations), np.uint64)
        sizes = [len(allocations[int(b)]) for b in self.bases]
        self.ends = self.bases + np.array(sizes, np.uint64)
        starts, at = [], 0
        for size in sizes:
            starts.append(at)
            at += (size + GUARD - 1) // GUARD * GUARD + GUARD
        self.starts = np.array(starts, np.uint64)
        self.bytes = np.zeros(max(at, GUARD), np.uint8)
        for base, start, size in zip(self.bases, starts, sizes):
            self.bytes[start:start + size] = np.frombuffer(allocations[int(base)], np.uint8)

    def content(self, address):
        i = int(np.searchsorted(self.bases, np.uint64(address)))
        start = int(self.starts[i])
        return self.bytes[start:start + int(self.ends[i] - self.bases[i])]

    def offsets(self, addresses, size, what):
        aligned(addresses, size, what)
        low, high = addresses.min(), addresses.max()
        i = int(np.searchsorted(self.bases, low, "right")) - 1
        if i >= 0 and high + np.uint64(size) <= self.ends[i]:
            return (addresses - self.bases[i] + self.starts[i]).astype(np.int64)
        i = np.searchsorted(self.bases, addresses, "right").astype(np.int64) - 1
        bad = (i < 0) | (addresses + np.uint64(size) > self.ends[i])
        if bad.any():
            raise Fault(f"{what}: {size} bytes at {int(addresses[bad][0]):#x}, outside of every allocation")
        return (addresses - self.bases[i] + self.starts[i]).astype(np.int64)


def aligned(addresses, size, what):
    misaligned = (addresses & np.uint64(size - 1)) != 0
    if misaligned.any():
        raise Fault(f"{what}: {size} bytes at {int(addresses[misaligned][0]):#x}, misaligned")


class BlockMemory:
    """The same number of bytes for each block or thread, in one array that starts as NaN."""

    def __init__(self, owners, size, name):
        self.size, self.name = size, name
        self.pitch = (size + 15) // 16 * 16 + 16
        self.bytes = np.full(owners * self.pitch, 0xFF, np.uint8)

    def offsets(self, addresses, size, what, owner):
        aligned(addresses, size, what)
        bad = addresses + np.uint64(size) > np.uint64(self.size)
        if bad.any():
            raise Fault(f"{what}: {size} bytes at {self.name} byte {int(addresses[bad][0])} of {self.size}")
        return addresses.astype(np.int64) + owner * self.pitch


def load(array, offsets, dtype, count):
    """`count` values of `dtype` per offset: [count][n]."""
    view, at = array.view(dtype), offsets // np.dtype(dtype).itemsize
    return [view[at + i] for i in range(count)]


def store(array, offsets, values):
    for i, value in enumerate(values):
        view = array.view(value.dtype)
        view[offsets // value.dtype.itemsize + i] = value
