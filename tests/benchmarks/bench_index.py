"""What an index of a lake costs, and what a query of it costs beside one of the files.
`bench_all.py` runs it.

The files are hard links to fifty, which have one row group of 800 values and a filter of 4 KiB:
reading them takes the page cache no space. Whole processes are timed, with their start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from figures import Figure, Target, command, cost_of, measure, python, timed

SBBF = str(Path(sys.executable).with_name("sbbf"))
DISTINCT, ROWS, KEYS, FPP = 50, 800, 50_000, 1e-6
_TABLE = """
import duckdb, sys
glob, table, key = sys.argv[1:]
if key:
    print(duckdb.sql(f"SELECT DISTINCT file FROM '{table}' WHERE v = {key}").fetchall())
else:
    files = f"SELECT v, filename AS file FROM read_parquet('{glob}', filename = true) ORDER BY v"
    duckdb.sql(f"COPY ({files}) TO '{table}' (FORMAT parquet)")
"""
"""A table of each value and its file, made by hand, and a query of it."""


def write_lake(folder: Path, count: int) -> int:
    """Write files of random values; return a value that only the last one has."""
    folder.mkdir()
    random = np.random.default_rng(3)
    values = random.integers(0, 1 << 62, ROWS)
    for number in range(count):
        path = folder / f"{number:07}.parquet"
        if DISTINCT <= number < count - 1:
            os.link(folder / f"{number % DISTINCT:07}.parquet", path)
            continue
        values, options = random.integers(0, 1 << 62, ROWS), {"v": {"ndv": ROWS, "fpp": FPP}}
        pq.write_table(
            pa.table({"v": values}),
            path,
            use_dictionary=False,
            compression="none",
            bloom_filter_options=options,
        )
    return int(values[0])


def index(folder: Path, rounds: int, scale: float) -> Iterator[Figure]:
    for count in (int(number * scale) for number in (1_000, 10_000, 100_000)):
        yield from _of_files(folder, rounds, max(100, count))


def _of_files(folder: Path, rounds: int, count: int) -> Iterator[Figure]:
    lake, built, table, keys = (
        folder / f"{count}{end}" for end in ("", ".sbbfx", "-table.parquet", ".txt")
    )
    name, stored, random = (
        f"index of {count:,} files",
        write_lake(lake, count),
        np.random.default_rng(4),
    )
    keys.write_text("".join(f"{value}\n" for value in random.integers(0, 1 << 62, KEYS)))
    by_hand = python(_TABLE, f"{lake}/*.parquet", table, "")()
    seconds = timed([SBBF, "index", str(lake), "-c", "v", "-o", str(built)])
    note = (
        f"{sum(path.stat().st_size for path in built.iterdir()):,} bytes; table: "
        f"{table.stat().st_size:,}"
    )
    yield Figure(
        f"{name}: built",
        seconds,
        "DuckDB writing a table of value and file",
        by_hand,
        Target.in_seconds(count / 500),
        note,
    )
    for key, what in ((stored, "a value of one file"), (7, "a value of no file")):
        listed = [SBBF, "probe", str(built), "v", str(key), "--format", "names"]
        quick, by_table = [*listed, "--quick"], python(_TABLE, f"{lake}/*.parquet", table, key)
        figure = measure(
            rounds,
            f"{name}: {what}, without a listing",
            command(*quick),
            "the table",
            by_table,
            Target.in_seconds(0.3),
        )
        yield figure._replace(note=cost_of(quick))
        all_files = command(SBBF, "probe", lake, "v", key, "--format", "names")
        figure = measure(
            1,
            f"{name}: {what}",
            command(*listed),
            "sbbf probe of all files",
            all_files,
            Target.times_faster(2),
        )
        yield figure._replace(note=cost_of(listed))
    many = [
        SBBF,
        "probe",
        str(built),
        "-c",
        "v",
        "--values-file",
        str(keys),
        "--quick",
        "--format",
        "names",
    ]
    start = command(SBBF, "--help")
    yield measure(
        1,
        f"{name}: {KEYS:,} values of no file",
        command(*many),
        "start",
        start,
        Target.in_seconds(60),
    )._replace(note=cost_of(many))


BENCHMARKS = {"index": index}
