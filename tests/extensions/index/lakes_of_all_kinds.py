"""Lakes for an index: every type and encoding, with filters and without, and files that an index
must not judge."""

from __future__ import annotations

import datetime as dt
import decimal
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Make = Callable[[np.random.Generator, int], pa.Array]


def _numbers(kind: pa.DataType, low: int, high: int) -> Make:
    return lambda random, count: pa.array(random.integers(low, high, count), pa.int64()).cast(kind)


def _texts(kind: pa.DataType) -> Make:
    return lambda random, count: pa.array(
        [f"v{each:x}" for each in random.integers(0, 1 << 20, count)], pa.string()
    ).cast(kind)


def _floats(kind: pa.DataType) -> Make:
    def make(random: np.random.Generator, count: int) -> pa.Array:
        numbers = random.integers(-1000, 1000, count) / 4
        numbers[0], numbers[1] = np.nan, -0.0
        return pa.array(numbers).cast(kind)

    return make


TYPES: dict[str, Make] = {
    "int64": _numbers(pa.int64(), -(1 << 40), 1 << 40),
    "int32": _numbers(pa.int32(), -(1 << 20), 1 << 20),
    "int16": _numbers(pa.int16(), -(1 << 14), 1 << 14),
    "uint64": _numbers(pa.uint64(), 0, 1 << 40),
    "string": _texts(pa.string()),
    "binary": _texts(pa.binary()),
    "double": _floats(pa.float64()),
    "float": _floats(pa.float32()),
    "fixed": lambda random, count: pa.array(
        [random.bytes(16) for _ in range(count)], pa.binary(16)
    ),
    "decimal": lambda random, count: pa.array(
        [decimal.Decimal(int(each)) / 100 for each in random.integers(0, 10**9, count)],
        pa.decimal128(20, 2),
    ),
    "date": lambda random, count: pa.array(
        [dt.date(2020, 1, 1) + dt.timedelta(int(each)) for each in random.integers(0, 3000, count)]
    ),
    "timestamp": _numbers(pa.timestamp("us", "UTC"), 1_600_000_000_000_000, 1_700_000_000_000_000),
    "time": _numbers(pa.time64("us"), 0, 86_400_000_000),
    "list": lambda random, count: pa.array(
        [[int(each), int(each) + 1] for each in random.integers(0, 1 << 30, count)]
    ),
}
"""How the column `v` of a lake is made, by its name."""
_WAYS: tuple[dict[str, Any], ...] = (
    {"bloom_filter_options": {"v": {"ndv": 400, "fpp": 0.01}}},
    {"use_dictionary": False, "data_page_version": "2.0"},
    {"bloom_filter_options": {"v": {"ndv": 4000, "fpp": 0.001}}, "write_statistics": False},
    {"compression": "zstd", "row_group_size": 100},
    {"bloom_filter_options": {"v": {"ndv": 50, "fpp": 0.01}}, "row_group_size": 60},
    {"use_dictionary": False, "compression": "none"},
)
ROWS = 200


def write_lake(folder: Path, name: str, files: int, seed: int = 0) -> Path:
    """Write files with a column `v` of one type, each in another way; some values are null, and
    some files have only nulls or no rows."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        write_file(folder / f"{number:03}.parquet", name, random, number)
    return folder


def write_file(path: Path, name: str, random: np.random.Generator, number: int) -> None:
    values = TYPES[name](random, ROWS)
    column = pa.array(
        [None if at % 17 == 0 else each for at, each in enumerate(values.to_pylist())], values.type
    )
    if number % 11 == 9:
        column = column.slice(0, 0)
    if number % 13 == 12:
        column = pa.nulls(20, values.type)
    options = dict(_WAYS[number % len(_WAYS)])
    leaf = "v.list.element" if name == "list" else "v"
    if filters := options.pop("bloom_filter_options", None):
        options["bloom_filter_options"] = {leaf: filters["v"]}
    pq.write_table(pa.table({"v": column, "n": pa.array(range(len(column)))}), path, **options)


def values_of(folder: Path, count: int) -> list[Any]:
    """Return some values that files of the lake have, and as many that are likely in none."""
    stored: dict[Any, None] = {}
    for path in sorted(folder.rglob("*.parquet")):
        try:
            column = pq.read_table(path, columns=["v"]).column("v").combine_chunks()
        except (OSError, pa.ArrowInvalid, KeyError):
            continue
        if pa.types.is_list(column.type):
            column = column.flatten()
        stored.update(dict.fromkeys(each for each in column.to_pylist()[::7] if each is not None))
    chosen = list(stored)
    return chosen[:: max(1, len(chosen) // count)][:count]


def change_lake(folder: Path, name: str, seed: int) -> None:
    """Rewrite a file, add one, rename one, and remove one."""
    random = np.random.default_rng(seed)
    paths = sorted(folder.glob("*.parquet"))
    write_file(paths[0], name, random, 0)
    write_file(folder / f"new-{seed}.parquet", name, random, 3)
    paths[1].rename(folder / f"renamed-{seed}.parquet")
    paths[2].unlink()
    shutil.copy(paths[4], folder / f"copy-{seed}.parquet")
