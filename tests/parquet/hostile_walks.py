"""Calls of the compiled walker that no caller in this package makes, for an extension that was
compiled with sanitizers.

    python hostile_walks.py SECONDS SEED FOOTER...

Footers that are damaged in many places, tables and positions that are not those of the footer. Each
call answers or raises. If it reads or writes a byte outside its buffers, a sanitizer aborts the
process.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from sbbf_tool.parquet import _compact, footer_structs


class Calls:
    def __init__(self, seed: int, footers: list[bytes]) -> None:
        self._random = random.Random(seed)
        self._footers = footers
        self._table = footer_structs.table_of_structs()
        self._fields = b"".join(bytes(pair) for pair in footer_structs._field_ids().values())

    def damage(self, data: bytes, most: int) -> bytes:
        copy = bytearray(data)
        for _ in range(self._random.randrange(most)):
            at = self._random.randrange(len(copy) or 1)
            match self._random.randrange(4):
                case 0:
                    copy[at : at + 1] = bytes([self._random.randrange(256)])
                case 1:
                    copy[at:at] = self._random.randbytes(self._random.randrange(5))
                case 2:
                    del copy[at : at + self._random.randrange(9)]
                case _:
                    copy[at : at + 1] = b"\xff" * self._random.choice((1, 4, 9)) + b"\x0f"
        return bytes(
            copy[: self._random.randrange(len(copy) + 1)] if self._random.random() < 0.1 else copy
        )

    def positions(self, size: int) -> bytes:
        numbers = (
            self._random.choice((0, 4, size, size + 1, -1, 2**62, self._random.randrange(size + 9)))
            for _ in range(5)
        )
        return b"".join(
            number.to_bytes(8, sys.byteorder, signed=True) for number in numbers
        ) + bytes(self._random.choice((0, 0, 0, 3)))

    def call_once(self) -> bool:
        """Make one call; return whether it answered."""
        data = self.damage(self._random.choice(self._footers), 6)
        if self._random.random() < 0.3:
            walk = self._random.choice((_compact.walk, _compact.outline))
            return walk(data, self.damage(self._table, 3)) is not None
        if self._random.random() < 0.2:
            start = self._random.choice((0, 4, len(data), len(data) + 1, -1, 2**62))
            names = self._random.choice((b"", b"\3geo", b"\3geo\xff", self._random.randbytes(9)))
            return bool(_compact.pairs(data, start, self._random.choice((0, 1, 9, 2**62)), names))
        positions = _compact.walk(data, self._table)
        fields = self.damage(self._fields, 2)
        if positions is None or self._random.random() < 0.3:
            return bool(_compact.numbers(data, self.positions(len(data)), fields))
        # The positions of a footer that has changed since.
        return bool(_compact.numbers(self.damage(data, 3), positions[3], fields))


def main(seconds: float, seed: int, paths: list[str]) -> None:
    answers = refused = 0
    calls = Calls(seed, [Path(path).read_bytes() for path in paths])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(200):
            try:
                is_answer = calls.call_once()
            except ValueError:
                is_answer = False
            answers += is_answer
            refused += not is_answer
    print(f"{_compact.__file__} {answers} {refused}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
