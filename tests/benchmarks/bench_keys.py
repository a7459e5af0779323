"""What certain answers for the keys of a DataFrame cost on Spark, beside Spark's own semi-join of
all the data, in processor time of the driver, the JVM and the Python workers. Linux; run by hand.

    python tests/benchmarks/bench_keys.py [--files 2000] [--rounds 3] [--json]

The lake has files of 2,000 rows with filters of 1 %. Of the keys of a run, a tenth is stored. Both
ways run in one session, one after the other, and their rows are compared. The whole takes some five
minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_runners import _family, small_files
from figures import Figure, Target, measure

from sbbf_tool.editing.edit import Edit
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.discover import path_of
from sbbf_tool.running.run import run
from sbbf_tool.spark import discover, probe_keys
from sbbf_tool.spark.session import session
from sbbf_tool.verbs.add_filter import AddFilter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TARGETS = {20: 0.3, 20_000: 1.2, 1_000_000: 1.2}
"""Numbers of keys, and the most that they may cost, as a multiple of the semi-join."""
_CPU_FIELDS = slice(11, 15)
"""Of /proc/PID/stat, after the name: user and system time, and those of children that ended."""


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it has started."""
    ticks = 0
    for pid in _family(os.getpid()):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        ticks += sum(map(int, fields[_CPU_FIELDS]))
    return ticks / os.sysconf("SC_CLK_TCK")


def write_keys(lake: list[Path], path: Path, count: int) -> None:
    """Write keys, of which a tenth is stored, in random order."""
    rng = np.random.default_rng(count)
    columns = [pq.read_table(file, columns=["id"])["id"].to_numpy() for file in lake]
    stored = rng.choice(np.concatenate(columns), max(1, count // 10), replace=False)
    keys = np.concatenate([stored, rng.integers(0, 1 << 62, count - len(stored))])
    rng.shuffle(keys)
    pq.write_table(pa.table({"id": keys}), path)


def semi_join(spark: SparkSession, lake: str, keys: str) -> DataFrame:
    rows = spark.read.parquet(lake).select("id", "_metadata.file_path", "_metadata.row_index")
    return rows.join(spark.read.parquet(keys), "id", "left_semi").select(
        "file_path", "row_index", "id"
    )


def certain_rows(spark: SparkSession, lake: str, keys: str) -> DataFrame:
    found = probe_keys(discover(spark, lake), "id", spark.read.parquet(keys), confirm=True)
    return found.where("status = 'present'").select("path", "row", "key")


Way = Callable[["SparkSession", str, str], "DataFrame"]


def cost(way: Way, spark: SparkSession, lake: str, keys: str) -> Callable[[], float]:
    def once() -> float:
        before = processor_seconds()
        way(spark, lake, keys).write.format("noop").mode("overwrite").save()
        return processor_seconds() - before

    return once


def rows_of(way: Way, spark: SparkSession, lake: str, keys: str) -> list[tuple[str, int, int]]:
    rows = way(spark, lake, keys).collect()
    return sorted((path_of(path), row, key) for path, row, key in rows)


def compare(folder: Path, files: int, rounds: int) -> list[Figure]:
    paths = small_files(folder / "lake", files)
    run(AddFilter(FilterSpec("id", fpp=0.01)), str(folder / "lake"), edit=Edit(in_place=True))
    spark = session("local[2]", {"spark.driver.memory": "2g"})
    figures = []
    for count, most in TARGETS.items():
        keys = folder / f"{count}.parquet"
        write_keys(paths, keys, count)
        arguments = (spark, str(folder / "lake"), str(keys))
        # This also loads what both ways need.
        expected = rows_of(semi_join, *arguments)
        if not expected or rows_of(certain_rows, *arguments) != expected:
            raise SystemExit(f"{count:,} keys: the rows are not those of the semi-join")
        figure = measure(
            rounds,
            f"{count:,} keys",
            cost(certain_rows, *arguments),
            "semi-join of Spark",
            cost(semi_join, *arguments),
            Target.of_the_peer(most),
        )
        figures.append(figure)
        print(describe(figure), file=sys.stderr, flush=True)
    spark.stop()
    return figures


def describe(figure: Figure) -> str:
    amounts = f"{figure.amount:.2f} s, {figure.peer} {figure.peer_amount:.2f} s"
    return f"{figure.name}: {amounts}, {figure.ratio}; wanted: {figure.target.text}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON document rather than lines")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-") as folder:
        figures = compare(Path(folder), args.files, args.rounds)
    if args.json:
        document = {figure.name: figure.amount / figure.peer_amount for figure in figures}
        print(json.dumps(document, indent=1))
    return 0 if all(figure.is_reached for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
