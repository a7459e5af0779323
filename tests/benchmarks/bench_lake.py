"""What a lake costs: many small files, and one large file of many row groups, by the local engine and by Spark. Linux; run by hand.

    python tests/benchmarks/bench_lake.py [--files 5000] [--row-groups 100] [--rows 1000000] [--engines local-1 spark-local-2 ...]

Prints one JSON document. Every figure is of a whole process of `sbbf lake add-filter`; what it takes to begin is measured with ten files
and taken off. Between runs the files are cut back to their old length, which is how adding is undone. With the defaults it takes some
seven minutes on two cores and 9 GB of disk; `--files 300 --row-groups 8` takes less than three.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ENGINES = {
    "local-1": (1, ["--jobs", "1"]),
    "local-2": (2, ["--jobs", "2"]),
    "spark-local-1": (1, ["--master", "local[1]"]),
    "spark-local-2": (2, ["--master", "local[2]"]),
    "spark-cluster-2": (2, ["--master", "local-cluster[2,1,1024]"]),
}
"""Cores, and the options of the command."""

_POLL_SECONDS = 0.1


class Timed(NamedTuple):
    """A process that was run; memory is of the largest process of its kind at its highest, in bytes."""

    seconds: float
    python_bytes: int
    jvm_bytes: int


def small_files(folder: Path, count: int) -> list[Path]:
    """Files of 2,000 rows, some 60 KB: a 64-bit key, a text and a number."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    paths = []
    for number in range(count):
        ids = rng.integers(0, 1 << 62, 2000)
        table = pa.table({"id": ids, "name": [f"user-{value}" for value in ids % 100_000], "x": ids * 0.5})
        paths.append(folder / f"part-{number:06d}.parquet")
        pq.write_table(table, paths[-1])
    return paths


def large_file(path: Path, row_groups: int, rows: int) -> Path:
    """40 bytes a row that do not compress, 8 of which are the key."""
    rng = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("payload", pa.binary(32))])
    path.parent.mkdir()
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for _ in range(row_groups):
            payload = pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), rows, [None, pa.py_buffer(rng.bytes(32 * rows))])
            writer.write_table(pa.table({"id": rng.integers(0, 1 << 62, rows), "payload": payload}, schema), row_group_size=rows)
    return path


def run(engine: str, lake: Path, columns: Iterable[str], expected: int, scratch: Path) -> Timed:
    """The command on a folder, whose files all must get their filters."""
    options = [word for column in columns for word in ("-c", column)] + ENGINES[engine][1]
    if engine.startswith("spark"):
        options += ["--conf", f"spark.local.dir={scratch}", "--conf", f"spark.sql.warehouse.dir={scratch / 'warehouse'}"]
    started = time.monotonic()
    command = [sys.executable, "-m", "sbbf_tool", "lake", "add-filter", str(lake), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scratch)
    peaks: dict[str, int] = {}
    while process.poll() is None:
        for pid in _family(process.pid):
            kind, peak = _memory(pid)
            peaks[kind] = max(peaks.get(kind, 0), peak)
        time.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - started
    out, err = process.communicate()
    assert out.startswith(f"{expected:,} file"), out + err
    assert f": {expected:,} done; " in out, out + err
    return Timed(seconds, peaks.get("python", 0), peaks.get("java", 0))


def _family(pid: int) -> list[int]:
    found = [pid]
    for member in found:
        try:
            for task in Path(f"/proc/{member}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _memory(pid: int) -> tuple[str, int]:
    """The kind of a process, and the most memory that it has held."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return ("java" if status["Name"].strip() == "java" else "python"), int(status["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return "python", 0


def measure(args: argparse.Namespace, folder: Path) -> Iterable[dict[str, Any]]:
    scratch = folder / "scratch"
    scratch.mkdir()
    few = small_files(folder / "few", 10)
    small = small_files(folder / "small", args.files)
    large = large_file(folder / "large" / "large.parquet", args.row_groups, args.rows)
    lengths = {path: path.stat().st_size for path in (*few, *small, large)}
    with pq.ParquetFile(large) as file:
        key_bytes = sum(file.metadata.row_group(number).column(0).total_compressed_size for number in range(args.row_groups))
    for engine in args.engines:
        cores = ENGINES[engine][0]
        begin = run(engine, folder / "few", ["id", "name"], 10, scratch).seconds
        many = run(engine, folder / "small", ["id", "name"], args.files, scratch)
        one = run(engine, folder / "large", ["id"], 1, scratch)
        for path, length in lengths.items():
            os.truncate(path, length)
        work, large_work = max(many.seconds - begin, 1e-3), max(one.seconds - begin, 1e-3)
        yield {
            "engine": engine,
            "cores": cores,
            "seconds_to_begin": begin,
            "small_files_seconds": work,
            "files_a_second_a_core": args.files / work / cores,
            "milliseconds_a_file_a_core": 1000 * work * cores / args.files,
            "large_file_seconds": large_work,
            "file_bytes_a_second_a_core": lengths[large] / large_work / cores,
            "key_bytes_a_second_a_core": key_bytes / large_work / cores,
            "peak_python_bytes": max(many.python_bytes, one.python_bytes),
            "peak_jvm_bytes": max(many.jvm_bytes, one.jvm_bytes),
        }


def compared(figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The ratios that the figures are for, of those engines that were measured."""

    def ratio(name: str, one: str, other: str) -> float | None:
        return figures[one][name] / figures[other][name] if one in figures and other in figures else None

    found = {
        "local, two cores over one, small files": ratio("small_files_seconds", "local-1", "local-2"),
        "local, two cores over one, large file": ratio("large_file_seconds", "local-1", "local-2"),
        "spark, two cores over one, small files": ratio("small_files_seconds", "spark-local-1", "spark-local-2"),
        "spark, two cores over one, large file": ratio("large_file_seconds", "spark-local-1", "spark-local-2"),
        "spark's time over the local engine's, small files, one core": ratio("small_files_seconds", "spark-local-1", "local-1"),
        "spark's time over the local engine's, small files, two cores": ratio("small_files_seconds", "spark-local-2", "local-2"),
        "cluster's time over the local engine's, small files": ratio("small_files_seconds", "spark-cluster-2", "local-2"),
    }
    return {name: value for name, value in found.items() if value is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--row-groups", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a row group")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-") as folder:
        figures = {}
        for figure in measure(args, Path(folder)):
            figures[figure["engine"]] = figure
            print(f"{figure['engine']}: {json.dumps(figure)}", file=sys.stderr, flush=True)
        size = 40 * args.row_groups * args.rows
    versions = {name: version(name) for name in ("pyarrow", "pyspark", "numpy")} | {"python": platform.python_version()}
    wish = {"files": args.files, "row_groups": args.row_groups, "rows_a_group": args.rows, "large_file_bytes": size}
    document = {
        "cores": os.cpu_count(),
        "versions": versions,
        "sizes": wish,
        "engines": list(figures.values()),
        "ratios": compared(figures),
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
