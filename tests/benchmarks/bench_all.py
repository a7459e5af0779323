"""Print all figures of speed in one run, each beside its target, as a table or as JSON.

    python tests/benchmarks/bench_all.py [--json FILE] [--rounds 3] [--scale 1.0]
        [--only NAME ...] [--folder DIR]

Takes some minutes and, while files of 200 columns are about, some 30 GB of disk; `--scale 0.01`
tries it out. `bench_kernel.py` and `bench_files.py` describe what is measured and how;
`bench_runners.py` measures runs over many files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import bench_files
import bench_index
import bench_kernel
from figures import Figure, Target

BENCHMARKS = bench_files.BENCHMARKS | bench_index.BENCHMARKS


def of_kernel(rounds: int, scale: float) -> Iterator[Figure]:
    layout = "{:.1f} ns per value"
    with tempfile.TemporaryDirectory() as folder:
        library = bench_kernel.compile_floor(Path(folder))
        for column, faster, of_floor in (
            (bench_kernel.integers(int(10_000_000 * scale)), 8, 1.2),
            (bench_kernel.strings(int(2_000_000 * scale)), 4, 1.6),
        ):
            times = bench_kernel.measure(column, library, rounds)
            name, ours, note = (
                f"hash and insert, {column.name}",
                times["compiled"],
                f"numpy kernel: {layout.format(times['numpy'])}",
            )
            yield Figure(
                name,
                ours,
                "pyarrow, what a filter adds",
                times["pyarrow, extra"],
                Target.times_faster(faster),
                note,
                layout,
            )
            if "floor" in times:
                yield Figure(
                    name,
                    ours,
                    "lower bound",
                    times["floor"],
                    Target.of_the_peer(of_floor),
                    layout=layout,
                )


def of_files(name: str, rounds: int, scale: float, parent: str | None) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-", dir=parent) as folder:
        yield from BENCHMARKS[name](Path(folder), rounds, scale)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures here, too")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="measurements of each contestant, of which the median counts",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the rows")
    parser.add_argument(
        "--only", nargs="+", choices=("kernel", *BENCHMARKS), default=("kernel", *BENCHMARKS)
    )
    parser.add_argument(
        "--folder",
        help="where files are made; the system's place for temporary files by default, or "
        "one in memory",
    )
    chosen = parser.parse_args()
    # A process that may not keep its bytecode compiles every module each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    packages = ("sbbf-tool", "pyarrow", "duckdb", "datafusion")
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
    )
    print(f"{machine}\n\n| what | sbbf | other tool | ratio | target |\n|---|---|---|---|---|")
    figures = []
    for name in chosen.only:
        source = (
            of_kernel(chosen.rounds, chosen.scale)
            if name == "kernel"
            else of_files(name, chosen.rounds, chosen.scale, chosen.folder)
        )
        for figure in source:
            figures.append(figure)
            amounts = (
                f"{figure.layout.format(figure.amount)} | {figure.peer}, "
                f"{figure.layout.format(figure.peer_amount)}"
            )
            verdict = "" if figure.is_reached else ", **not reached**"
            print(
                f"| {figure.name} | {amounts} | {figure.ratio} | {figure.target.text}{verdict} |",
                flush=True,
            )
            if figure.note:
                print(f"  {figure.note}", file=sys.stderr, flush=True)
    if chosen.json:
        rows = [
            {
                **figure._asdict(),
                "target": figure.target.text,
                "ratio": figure.ratio,
                "reached": figure.is_reached,
            }
            for figure in figures
        ]
        document = {"machine": machine, "figures": rows}
        Path(chosen.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
