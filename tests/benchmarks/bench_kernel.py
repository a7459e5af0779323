"""How fast values become bits: hash and insert, on each fast kernel, beside two yardsticks.
`bench_all.py --only kernel` runs it.

Two columns of distinct values, 10 M of int64 and 2 M of 36-byte strings, go into filters with an
FPP of 1 %. The yardsticks:

- pyarrow: the *extra* time that its Parquet writer takes when it also builds the filter of the same
  column.
- floor: what any kernel has to do, and nothing else: a C loop that reads every value, picks a
  random block by one multiplication, and reads and writes that block, with cache lines requested
  ahead. Needs a C compiler.

Everything is measured in turn, round after round, so that a busy minute of the machine hits all
alike; figures are medians.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.bloom import kernels, sizing
from sbbf_tool.bloom.buffers import new_bitset
from sbbf_tool.errors import UsageError

FPP = 0.01

# A row batch of ordinary size: hashes of one are inserted before the next is hashed.
BATCH = 1 << 16

FLOOR = r"""
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t block __attribute__((vector_size(32)));

static uint64_t load(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

static size_t at(const uint8_t *value, uint64_t num_blocks)
{
    return (size_t)((((load(value) * UINT64_C(0x9E3779B185EBCA87)) >> 32) * num_blocks) >> 32) * 32;
}

void touch(uint8_t *bitset, uint64_t num_blocks, const uint8_t *values, size_t width, size_t count)
{
    for (size_t i = 0; i < count; i++, values += width) {
        if (i + 32 < count)
            __builtin_prefetch(bitset + at(values + 32 * width, num_blocks), 1);
        uint64_t sum = 0;
        for (size_t k = 0; k + 8 <= width; k += 8)
            sum ^= load(values + k);
        block b;
        memcpy(&b, bitset + at(values, num_blocks), 32);
        b |= sum;
        memcpy(bitset + at(values, num_blocks), &b, 32);
    }
}
"""


class Column(NamedTuple):
    """Distinct values as Arrow holds them and as the bytes behind it; `offsets` for strings
    only."""

    name: str
    array: pa.Array
    width: int
    data: memoryview
    offsets: memoryview | None

    @property
    def num_bytes(self) -> int:
        return sizing.bytes_for(len(self.array), FPP)


def integers(count: int) -> Column:
    values = np.random.default_rng(1).integers(-(2**63), 2**63, count, dtype=np.int64)
    return Column("int64", pa.array(values), 8, memoryview(values).cast("B"), None)


def strings(count: int) -> Column:
    """UUIDs in their usual spelling."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[
        np.random.default_rng(2).integers(0, 16, (count, 36), dtype=np.uint8)
    ]
    digits[:, (8, 13, 18, 23)] = ord("-")
    data, offsets = digits.tobytes(), np.arange(0, 36 * (count + 1), 36, dtype=np.int32)
    array = pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return Column("36-byte string", array, 36, memoryview(data), memoryview(offsets))


def build_with(name: str, column: Column) -> Callable[[], float]:
    """Seconds to hash and insert the column on kernel `name`, batch after batch."""
    kernel = kernels.load(name)
    bitset, num_blocks, width = new_bitset(column.num_bytes), column.num_bytes // 32, column.width

    def once() -> float:
        start = time.process_time()
        for first in range(0, len(column.array), BATCH):
            if column.offsets is None:
                hashes = kernel.hash_fixed(
                    column.data[first * width : (first + BATCH) * width], width
                )
            else:
                hashes = kernel.hash_variable(
                    column.data, column.offsets[first : first + BATCH + 1], 4
                )
            kernel.insert(bitset, num_blocks, hashes)
        return time.process_time() - start

    return once


def write_with_pyarrow(column: Column, *, with_filter: bool) -> Callable[[], float]:
    """Seconds in which pyarrow writes the column, plain and uncompressed, to nowhere."""
    table = pa.table({"c": column.array})
    options = {"c": {"ndv": len(column.array), "fpp": FPP}} if with_filter else None

    def once() -> float:
        start = time.process_time()
        pq.write_table(
            table,
            pa.MockOutputStream(),
            row_group_size=len(column.array),
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            bloom_filter_options=options,
        )
        return time.process_time() - start

    return once


def touch_blocks(column: Column, library: Path) -> Callable[[], float]:
    """Seconds of the floor."""
    touch = ctypes.CDLL(str(library)).touch
    touch.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
    )
    bitset, data = (
        np.frombuffer(new_bitset(column.num_bytes), np.uint8),
        np.frombuffer(column.data, np.uint8),
    )

    def once() -> float:
        start = time.process_time()
        touch(
            bitset.ctypes.data,
            column.num_bytes // 32,
            data.ctypes.data,
            column.width,
            len(column.array),
        )
        return time.process_time() - start

    return once


def compile_floor(folder: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    (folder / "floor.c").write_text(FLOOR)
    subprocess.run(
        [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", "floor.so", "floor.c"],
        cwd=folder,
        check=True,
    )
    return folder / "floor.so"


def measure(column: Column, library: Path | None, rounds: int) -> dict[str, float]:
    """Return the nanoseconds per value of each kernel, of the floor, and what a filter adds to
    pyarrow's writing."""
    contestants: dict[str, Callable[[], float]] = {}
    for name in ("compiled", "numpy"):
        try:
            contestants[name] = build_with(name, column)
        except UsageError as error:
            print(error, file=sys.stderr)
    contestants["pyarrow without filter"] = write_with_pyarrow(column, with_filter=False)
    contestants["pyarrow with filter"] = write_with_pyarrow(column, with_filter=True)
    if library:
        contestants["floor"] = touch_blocks(column, library)

    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant()  # once without counting: memory is mapped, code is loaded
    for _ in range(rounds):
        for name, contestant in contestants.items():
            seconds[name].append(contestant())
    per_value = {
        name: statistics.median(times) / len(column.array) * 1e9 for name, times in seconds.items()
    }
    return per_value | {
        "pyarrow, extra": per_value["pyarrow with filter"] - per_value["pyarrow without filter"]
    }
