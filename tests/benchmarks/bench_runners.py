"""What many small files cost, and one large file of many row groups, by the local runner and by
Spark. Linux; run by hand.

    python tests/benchmarks/bench_runners.py [--scale 1] [--json]
        [--runners local-1 spark-local-2 ...]

At `--scale 1` there are 5,000 small files, and one file of 4 GB with 100 row groups; less makes
fewer files, and smaller row groups. Every figure of a runner is of a whole process of `sbbf
add-filter`; what it takes to begin is measured with ten files and taken off. Between runs the files
are cut back to their old length, which is how adding is undone. What Spark's scheduling costs, and
how fast files are listed, is measured by itself; from all that follows, by `estimate`, what
docs/explanation/million-files.md says.

The whole takes some 15 minutes on two cores, and 9 GB of disk.
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
from collections.abc import Callable, Iterable
from importlib.metadata import version
from operator import sub, truediv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.running.discover import discover

RUNNERS = {
    "local-1": (1, ["--jobs", "1"]),
    "local-2": (2, ["--jobs", "2"]),
    "spark-local-1": (1, ["--on", "spark:local[1]"]),
    "spark-local-2": (2, ["--on", "spark:local[2]"]),
    "spark-cluster-2": (2, ["--on", "spark:local-cluster[2,1,1024]"]),
}
"""Cores, and the options of the command."""

_POLL_SECONDS = 0.1


class Timed(NamedTuple):
    """A process that was run, and the most memory, in bytes, that any one process of a kind
    held."""

    seconds: float
    peaks: dict[str, int]


def small_files(folder: Path, count: int) -> list[Path]:
    """Files of 2,000 rows, some 60 KB: a 64-bit key, a text and a number."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    paths = []
    for number in range(count):
        ids = rng.integers(0, 1 << 62, 2000)
        table = pa.table(
            {"id": ids, "name": [f"user-{value}" for value in ids % 100_000], "x": ids * 0.5}
        )
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
            payload = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(32), rows, [None, pa.py_buffer(rng.bytes(32 * rows))]
            )
            writer.write_table(
                pa.table({"id": rng.integers(0, 1 << 62, rows), "payload": payload}, schema),
                row_group_size=rows,
            )
    return path


def run(runner: str, files: Path, columns: Iterable[str], expected: int, scratch: Path) -> Timed:
    """The command on a folder, whose files all must get their filters."""
    options = [word for column in columns for word in ("-c", column)] + RUNNERS[runner][1]
    if runner.startswith("spark"):
        settings = scratch / "spark.toml"
        settings.write_text(
            f"[spark]\nlocal.dir = '{scratch}'\nsql.warehouse.dir = '{scratch / 'warehouse'}'\n"
        )
        options += ["--config", str(settings)]
    started = time.monotonic()
    command = [sys.executable, "-m", "sbbf_tool", "add-filter", str(files), "--in-place", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scratch
    )
    peaks: dict[str, int] = {}
    while process.poll() is None:
        for pid in _family(process.pid):
            kind, peak = _memory(pid)
            kind = "driver" if pid == process.pid else kind
            peaks[kind] = max(peaks.get(kind, 0), peak)
        time.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - started
    out, err = process.communicate()
    assert f"{expected:,} file{'s' * (expected > 1)}: {expected:,} done; " in out, out + err
    return Timed(seconds, peaks)


def _family(pid: int) -> list[int]:
    processes = [pid]
    for member in processes:
        try:
            for task in Path(f"/proc/{member}/task").iterdir():
                processes += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return processes


def _memory(pid: int) -> tuple[str, int]:
    """The kind of a process, and the most memory that it has held."""
    try:
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        return ("jvm" if status["Name"].strip() == "java" else "worker"), int(
            status["VmHWM"].split()[0]
        ) * 1024
    except (OSError, KeyError, ValueError):
        return "worker", 0


# Run by itself, on one core: what a task with a Python worker costs when there is nothing to do in
# it.
_TASKS = 200
_EMPTY_TASKS = f"""
import time
from sbbf_tool.spark.causes import quiet_about_pandas
from sbbf_tool.spark.session import session

spark = session("local[1]")
with quiet_about_pandas():
    ids = spark.range({_TASKS}, numPartitions={_TASKS})
    frame = ids.mapInArrow(lambda batches: batches, "id long")
    frame.limit(1).collect()
    started = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    print(time.monotonic() - started)
spark.stop()
"""


def seconds_a_task(scratch: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _EMPTY_TASKS],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1]) / _TASKS


def files_listed_a_second(folder: Path) -> float:
    started = time.monotonic()
    count = sum(1 for _ in discover([str(folder)]))
    return count / (time.monotonic() - started)


def measure(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    scratch = folder / "scratch"
    scratch.mkdir()
    few = small_files(folder / "few", 10)
    small = small_files(folder / "small", args.files)
    large = large_file(folder / "large" / "large.parquet", args.row_groups, args.rows)
    lengths = {path: path.stat().st_size for path in (*few, *small, large)}
    with pq.ParquetFile(large) as file:
        key_bytes = sum(
            file.metadata.row_group(number).column(0).total_compressed_size
            for number in range(args.row_groups)
        )

    def cut_back() -> None:
        for path, length in lengths.items():
            os.truncate(path, length)

    run(
        "local-1", folder / "few", ["id", "name"], 10, scratch
    )  # whose modules then are in the page cache for all
    cut_back()
    runners: dict[str, dict[str, Any]] = {}
    for runner in args.runners:
        cores = RUNNERS[runner][0]
        begin = run(runner, folder / "few", ["id", "name"], 10, scratch).seconds
        many = run(runner, folder / "small", ["id", "name"], args.files, scratch)
        rates = run(runner, folder / "large", ["id"], 1, scratch)
        cut_back()
        work, large_work = max(many.seconds - begin, 1e-3), max(rates.seconds - begin, 1e-3)
        peaks = {
            kind: max(many.peaks.get(kind, 0), rates.peaks.get(kind, 0))
            for kind in ("driver", "worker", "jvm")
        }
        runners[runner] = {
            "cores": cores,
            "seconds_to_begin": begin,
            "small_files_seconds": work,
            "files_a_second_a_core": args.files / work / cores,
            "milliseconds_a_file_a_core": 1000 * work * cores / args.files,
            "large_file_seconds": large_work,
            "file_bytes_a_second_a_core": lengths[large] / large_work / cores,
            "key_bytes_a_second_a_core": key_bytes / large_work / cores,
            "peak_driver_bytes": peaks["driver"],
            "peak_worker_bytes": peaks["worker"]
            or peaks["driver"],  # one process is its own worker
            "peak_jvm_bytes": peaks["jvm"],
        }
        print(f"{runner}: {json.dumps(runners[runner])}", file=sys.stderr, flush=True)
    workload = {
        "files": args.files,
        "small_file_bytes": sum(path.stat().st_size for path in small) / args.files,
    }
    workload |= {
        "row_groups": args.row_groups,
        "large_file_bytes": lengths[large],
        "key_bytes": key_bytes,
    }
    alone = {"files_listed_a_second": files_listed_a_second(folder / "small")}
    if any(runner.startswith("spark") for runner in args.runners):
        alone["seconds_a_task"] = seconds_a_task(scratch)
    return {"sizes": workload, "runners": runners, **alone}


def compared(figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The ratios that the figures are for, of those runners that were measured."""

    def of(
        compute: Callable[[float, float], float], name: str, first: str, second: str
    ) -> float | None:
        return (
            compute(figures[first][name], figures[second][name])
            if first in figures and second in figures
            else None
        )

    more = "milliseconds_a_file_a_core"
    ratios = {
        "local, two cores over one, small files": of(
            truediv, "small_files_seconds", "local-1", "local-2"
        ),
        "local, two cores over one, large file": of(
            truediv, "large_file_seconds", "local-1", "local-2"
        ),
        "spark, two cores over one, small files": of(
            truediv, "small_files_seconds", "spark-local-1", "spark-local-2"
        ),
        "spark, two cores over one, large file": of(
            truediv, "large_file_seconds", "spark-local-1", "spark-local-2"
        ),
        "spark's time over the local runner's, small files, one core": of(
            truediv, "small_files_seconds", "spark-local-1", "local-1"
        ),
        "spark's time over the local runner's, small files, two cores": of(
            truediv, "small_files_seconds", "spark-local-2", "local-2"
        ),
        "cluster's time over the local runner's, small files, two cores": of(
            truediv, "small_files_seconds", "spark-cluster-2", "local-2"
        ),
        "spark's cost over the local runner, ms a file a core, one core": of(
            sub, more, "spark-local-1", "local-1"
        ),
        "spark's cost over the local runner, ms a file a core, two cores": of(
            sub, more, "spark-local-2", "local-2"
        ),
        "cluster's cost over the local runner, ms a file a core, two cores": of(
            sub, more, "spark-cluster-2", "local-2"
        ),
    }
    return {name: value for name, value in ratios.items() if value is not None}


FILES, CORES, TASKS_A_CORE = 1_000_000, 400, 4
LARGER_FILE_BYTES = 128e6
STORAGE_BYTES_A_SECOND = 20e9


def estimate(measurements: dict[str, Any]) -> dict[str, float]:
    """Seconds that a million files take on 100 executors of 4 cores, by the formula of
    million-files.md, from what the cluster did here."""
    cluster = next(
        (
            measurements["runners"][name]
            for name in ("spark-cluster-2", "spark-local-2")
            if name in measurements["runners"]
        ),
        None,
    )
    if cluster is None:
        return {}
    small_bytes = measurements["sizes"]["small_file_bytes"]
    parts = {
        "begin": cluster["seconds_to_begin"],
        "list": FILES / measurements["files_listed_a_second"],
        "schedule": TASKS_A_CORE * measurements["seconds_a_task"],
        "work, small files": FILES * cluster["milliseconds_a_file_a_core"] / 1000 / CORES,
        "work, files of 128 MB": FILES
        * LARGER_FILE_BYTES
        / cluster["file_bytes_a_second_a_core"]
        / CORES,
        "storage, small files": 2 * FILES * small_bytes / STORAGE_BYTES_A_SECOND,
        "storage, files of 128 MB": 2 * FILES * LARGER_FILE_BYTES / STORAGE_BYTES_A_SECOND,
    }
    before = parts["begin"] + parts["list"] + parts["schedule"]
    for size in ("small files", "files of 128 MB"):
        parts[f"together, {size}"] = before + max(parts[f"work, {size}"], parts[f"storage, {size}"])
    return parts


def table(document: dict[str, Any]) -> str:
    """The rows of the tables in docs/explanation/million-files.md."""
    sizes = document["sizes"]
    lines = [
        f"{sizes['files']:,} files of {sizes['small_file_bytes']:,.0f} bytes; one of "
        f"{sizes['large_file_bytes']:,} with "
        f"{sizes['row_groups']} row groups; {document['cores']} cores; {document['versions']}",
        "| runner | to begin | small files | files/s | files/s a core | large file | MB/s a core "
        "| of the column, MB/s a core "
        "| largest worker, MiB | largest JVM, MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rates in document["runners"].items():
        cells = [
            *(f"{rates['seconds_to_begin']:.1f} s", f"{rates['small_files_seconds']:.1f} s"),
            *(
                f"{rates['files_a_second_a_core'] * rates['cores']:.0f}",
                f"{rates['files_a_second_a_core']:.0f}",
            ),
            f"{rates['large_file_seconds']:.1f} s",
            *(f"{rates[f'{kind}_bytes_a_second_a_core'] / 1e6:.0f}" for kind in ("file", "key")),
            *(f"{rates[f'peak_{kind}_bytes'] / (1 << 20):,.0f}" for kind in ("worker", "jvm")),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"listed, files/s: {document['files_listed_a_second']:,.0f}")
    if "seconds_a_task" in document:
        lines.append(
            "an empty task of Spark's, with a Python worker: "
            f"{1000 * document['seconds_a_task']:.0f} ms"
        )
    lines += [f"{name}: {value:.2f}" for name, value in document["ratios"].items()]
    lines += [
        f"a million files on {CORES} cores, {name}: {value:,.1f} s"
        for name, value in document["a_million_files"].items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="of the number of small files, and of the rows of the large file's groups",
    )
    parser.add_argument("--row-groups", type=int, default=100)
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=list(RUNNERS))
    parser.add_argument("--json", action="store_true", help="one JSON document rather than tables")
    args = parser.parse_args()
    args.files, args.rows = (
        max(20, round(5000 * args.scale)),
        max(1000, round(1_000_000 * args.scale)),
    )
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-") as folder:
        document = measure(args, Path(folder))
    document["cores"] = os.cpu_count()
    document["versions"] = {name: version(name) for name in ("pyarrow", "pyspark", "numpy")} | {
        "python": platform.python_version()
    }
    document["ratios"] = compared(document["runners"])
    document["a_million_files"] = estimate(document)
    document["seconds_of_this_benchmark"] = time.monotonic() - started
    print(json.dumps(document, indent=1) if args.json else table(document))


if __name__ == "__main__":
    main()
