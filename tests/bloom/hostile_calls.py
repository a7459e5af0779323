"""Calls of the compiled kernel that no caller in this package makes, for a kernel that was compiled
with sanitizers.

    python hostile_calls.py SECONDS SEED [INSTRUCTIONS]

Buffers of unusual lengths, at unaligned addresses, that overlap or are no buffers; counts that are
negative, too large or do not fit. Each call either answers or raises. If it reads or writes a byte
outside its buffers, a sanitizer aborts the process.
"""

from __future__ import annotations

import random
import sys
import time

from sbbf_tool.bloom import _kernel

COUNTS = (
    -(2**63) - 1, -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 4, 7, 8, 12, 16, 31, 32, 33,
    2**31 - 1, 2**31, 2**59, 2**63 - 1, 2**63, 2**64,
)  # fmt: skip
ORDERS = ("signed", "unsigned", "bytes", "decimal", "decimal", "", "other", None, 1)
REFUSALS = (TypeError, ValueError, OverflowError, BufferError, MemoryError)


class Calls:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._shared = bytearray(4096)

    def count(self, fitting: int) -> object:
        chance = self._random.random()
        if chance < 0.5:
            return fitting
        return (
            self._random.choice((*COUNTS, fitting - 1, fitting + 1))
            if chance < 0.95
            else self._random.choice((None, 1.5, "1", b"1"))
        )

    def buffer(self, *, of_words: bool = False) -> object:
        """Return any bytes, mostly writable. Bytes that are not copied are followed by memory that
        is not theirs."""
        length = self._random.choice(
            (0, 1, 3, 4, 7, 8, 15, 31, 32, 33, 36, 63, 64, 65, 96, 128, 256, 288, 2048)
        )
        if of_words:
            length = length // 8 * 8
        data = self._random.randbytes(length)
        kind = self._random.randrange(12)
        if kind < 4:
            return bytearray(data)
        if kind < 6:
            return data
        start = self._random.randrange(64)
        if kind < 9:
            return memoryview(self._shared)[start : start + length]
        if kind == 9:
            return memoryview(bytearray(2 * length))[::2]
        if kind == 10:
            return memoryview(bytearray(length // 8 * 8)).cast("Q")
        return self._random.choice((None, 7, "text", [1, 2], memoryview(b"")))

    def offsets(self, width: int) -> bytes:
        """Return offsets of Arrow's layout, some of which decrease or point outside the data."""
        values = [
            self._random.choice((0, 1, 5, 31, 32, 64, 65, 2048, -1, 2 ** (8 * width - 1) - 1))
            for _ in range(self._random.randrange(9))
        ]
        if self._random.random() < 0.5:
            values.sort()
        return b"".join(
            value.to_bytes(width, sys.byteorder, signed=True) for value in values
        ) + bytes(self._random.choice((0, 0, 0, 1, 3)))

    def page(self) -> bytes:
        """Return values prefixed with their lengths, some of which are wrong."""
        parts = []
        for _ in range(self._random.randrange(9)):
            value = self._random.randbytes(self._random.choice((0, 1, 3, 8, 36, 100)))
            length = self._random.choice(
                (len(value), len(value), len(value), len(value) + 1, 2**31, 2**32 - 1)
            )
            parts.append(length.to_bytes(4, "little") + value)
        return b"".join(parts) + bytes(self._random.choice((0, 0, 1, 3)))

    def call_once(self) -> None:
        width = self._random.choice((4, 8))
        bitset = self.buffer()
        blocks = len(bitset) // 32 if isinstance(bitset, bytes | bytearray | memoryview) else 1
        hashes = (
            bitset
            if self._random.random() < 0.1
            else self.buffer(of_words=self._random.random() < 0.8)
        )
        fixed = (bitset, self.count(self._random.choice((1, 4, 8, 12, 16, 36))))
        variable = (
            bitset,
            self.buffer() if self._random.random() < 0.2 else self.offsets(width),
            self.count(width),
        )
        page = (
            self.buffer() if self._random.random() < 0.2 else self.page(),
            self.count(self._random.randrange(9)),
        )
        calls = {
            "hash_fixed": fixed,
            "hash_variable": variable,
            "hash_length_prefixed": page,
            "ends_length_prefixed": page,
            "extremes_fixed": (*fixed, self._random.choice(ORDERS)),
            "extremes_variable": variable,
            "extremes_length_prefixed": page,
            "insert": (bitset, self.count(blocks), hashes),
            "check": (bitset, self.count(blocks), hashes),
            "count_missing": (bitset, self.count(blocks), hashes),
            "fold": (bitset, self.count(blocks)),
            "measure": (bitset, self.count(blocks)),
        }
        name, arguments = self._random.choice(tuple(calls.items()))
        if self._random.random() < 0.02:
            arguments = arguments[: self._random.randrange(len(arguments))]
        getattr(_kernel, name)(*arguments)


def main(seconds: float, seed: int) -> None:
    answers = refused = 0
    calls = Calls(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(500):
            try:
                calls.call_once()
                answers += 1
            except REFUSALS:
                refused += 1
    print(f"{_kernel.__file__} {_kernel.instructions()} {answers} {refused}")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _kernel.use(sys.argv[3])
    main(float(sys.argv[1]), int(sys.argv[2]))
