"""The part of a run on Spark that does not scale: seconds of the driver outside tasks, per 1,000 files, from the event log. Run by hand.

    python tests/benchmarks/bench_driver.py [--files 1000 10000 100000] [--masters local[1] local-cluster[2,1,1024]] [--command inspect]

Each run is a process of `sbbf inspect` over hard links to one small file. While no task runs, the driver lists, plans or collects, or a
session starts or ends; the seconds before the first task and after the last are printed apart. Files are made and removed in the folder for
temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LINKS_PER_FILE = 10_000


def link_files(folder: Path, count: int) -> None:
    """Make hard links in one flat folder; file systems limit the links to one file."""
    folder.mkdir()
    for number in range(count):
        path = folder / f"part-{number:07d}.parquet"
        if number % LINKS_PER_FILE == 0:
            pq.write_table(pa.table({"id": range(100)}), path)
            source = path
        else:
            os.link(source, path)


def events(log: Path) -> Iterator[dict]:
    for path in sorted(path for path in log.rglob("*") if path.is_file() and path.stat().st_size):
        with open(path) as lines:
            yield from (json.loads(line) for line in lines if line.startswith("{"))


def covered_seconds(intervals: Iterable[tuple[int, int]]) -> float:
    """Return the seconds in at least one of the intervals, which are in milliseconds."""
    covered, end = 0, 0
    for start, stop in sorted(intervals):
        covered += max(0, stop - max(start, end))
        end = max(end, stop)
    return covered / 1000


def measure(folder: Path, master: str, command: list[str], count: int) -> dict[str, float]:
    log = folder / f"log-{count}-{master.partition('[')[0]}"
    log.mkdir()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{log}", "spark.local.dir": str(folder / "blocks")}
    settings |= {"spark.eventLog.compress": "false", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    lake = folder / f"lake-{count}"
    done = subprocess.run(
        [sys.executable, "-m", "sbbf_tool", command[0], str(lake), *command[1:], "--master", master, *conf],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert f"{count:,} files: " in done.stdout, done.stdout + done.stderr
    tasks, start, end = [], 0, 0
    for event in events(log):
        kind = event["Event"]
        if kind == "SparkListenerTaskEnd":
            info = event["Task Info"]
            tasks.append((info["Launch Time"], info["Finish Time"]))
        elif kind == "SparkListenerApplicationStart":
            start = event["Timestamp"]
        elif kind == "SparkListenerApplicationEnd":
            end = event["Timestamp"]
    first, last = min(begin for begin, _ in tasks), max(stop for _, stop in tasks)
    outside = (last - first) / 1000 - covered_seconds(tasks)
    return {
        "files": count,
        "tasks": len(tasks),
        "seconds_with_tasks": covered_seconds(tasks),
        "seconds_between_tasks": outside,
        "seconds_before_first_task": (first - start) / 1000,
        "seconds_after_last_task": (end - last) / 1000,
        "outside_per_1000_files": 1000 * outside / count,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local-cluster[2,1,1024]"])
    parser.add_argument("--command", nargs="+", default=["inspect"], help="words of the command, without the files")
    args = parser.parse_args()
    print("| master | files | tasks | with tasks | driver between tasks | per 1,000 files | before the first | after the last |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-") as name:
        for count in args.files:
            link_files(Path(name) / f"lake-{count}", count)
            for master in args.masters:
                row = measure(Path(name), master, args.command, count)
                print(
                    f"| `{master}` | {count:,} | {row['tasks']:,} | {row['seconds_with_tasks']:.1f} s "
                    f"| {row['seconds_between_tasks']:.1f} s | {row['outside_per_1000_files']:.3f} s "
                    f"| {row['seconds_before_first_task']:.1f} s | {row['seconds_after_last_task']:.1f} s |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
