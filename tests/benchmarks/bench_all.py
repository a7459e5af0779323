"""Print all figures of speed in one run, each beside its target, as a table or as JSON.

    python tests/benchmarks/bench_all.py [--json FILE] [--rounds 3] [--scale 1.0] [--only NAME ...] [--folder DIR]

Takes some minutes and, while files of 200 columns are about, some 30 GB of disk; `--scale 0.01` tries it out. `bench_kernel.py` and
`bench_files.py` describe what is measured and how; `bench_runners.py` measures runs over many files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import bench_files
import bench_kernel


class Figure(NamedTuple):
    """`ratio` is how many times less than the peer we take, or, `of_the_peer`, how many times as much; `wanted` bounds it."""

    name: str
    ours: str
    peer: str
    ratio: float
    target: float
    of_the_peer: bool
    note: str = ""

    @property
    def reaches_target(self) -> bool:
        return self.ratio <= self.target if self.of_the_peer else self.ratio >= self.target


def of_kernel(rounds: int, scale: float) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        library = bench_kernel.compile_floor(Path(folder))
        for column, target in ((bench_kernel.integers(int(10_000_000 * scale)), 8), (bench_kernel.strings(int(2_000_000 * scale)), 4)):
            rows = {row.name: row for row in bench_kernel.measure(column, library, rounds)}
            ours, extra, floor = rows["compiled"], rows["pyarrow, extra"], rows.get("floor")
            name, mine = f"hash and insert, {column.name}", f"{ours.per_value:.1f} ns a value"
            assert ours.pyarrow_over_this is not None
            yield Figure(name, mine, f"pyarrow, {extra.per_value:.1f} ns more with a filter", ours.pyarrow_over_this, target, False)
            if floor is not None and ours.this_over_floor is not None:
                yield Figure(name, mine, f"the lower bound, {floor.per_value:.1f} ns", ours.this_over_floor, 2, True)


TARGETS = {"append": {20: 14.0, 200: 60.0}, "copy": {20: 4.5, 200: 10.0}}
MOST_OF_PLAIN_COPY = 1.4
FOOTER = {"probe": (2.0, False), "add-filter": (1.5, True), "inspect": (1.2, True)}
START = {"--help": 1.5, "probe": 1.8, "inspect": 2.5}


def of_files(name: str, rounds: int, scale: float, parent: str | None) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="sbbf-bench-", dir=parent) as folder:
        for figure in bench_files.BENCHMARKS[name](Path(folder), rounds, scale):
            unit = "bytes" if name == "dictionary" else "s"
            layout = "{:,.0f}" if name == "dictionary" else "{:.2f}"
            target, of_the_peer = _target(name, figure)
            yield Figure(
                figure.name,
                f"{layout.format(figure.seconds)} {unit}",
                f"{figure.peer}, {layout.format(figure.peer_seconds)} {unit}",
                figure.ratio,
                target,
                of_the_peer,
                figure.note,
            )


def _target(name: str, figure: bench_files.Figure) -> tuple[float, bool]:
    figure_name = figure.name
    if figure.peer == bench_files.PLAIN_COPY:
        return MOST_OF_PLAIN_COPY, True
    if name in ("add20", "add200"):
        return TARGETS["append" if "append" in figure_name else "copy"][int(name.removeprefix("add"))], False
    if name == "start":
        return next(ratio for word, ratio in START.items() if word in figure_name), True
    if name == "footer":
        return next(target for word, target in FOOTER.items() if figure_name.startswith(word))
    return {"dictionary": (1.05, True), "probe": (1.0, False), "files": (1.0, False), "advise": (1.5, True)}[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the figures here, too")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each contestant, of which the median counts")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the rows")
    parser.add_argument("--only", nargs="+", choices=("kernel", *bench_files.BENCHMARKS), default=("kernel", *bench_files.BENCHMARKS))
    parser.add_argument("--folder", help="where files are made; the system's place for temporary files by default, or one in memory")
    chosen = parser.parse_args()
    # A process that may not keep its bytecode compiles every module each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    packages = ("sbbf-tool", "pyarrow", "duckdb", "datafusion")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, " + ", ".join(
        f"{name} {version(name)}" for name in packages
    )
    print(f"{machine}\n\n| what | sbbf | peer | ratio | wanted | |\n|---|---|---|---|---|---|")
    figures = []
    for name in chosen.only:
        source = of_kernel(chosen.rounds, chosen.scale) if name == "kernel" else of_files(name, chosen.rounds, chosen.scale, chosen.folder)
        for figure in source:
            figures.append(figure)
            sign, mark = ("at most", "of it") if figure.of_the_peer else ("at least", "faster")
            print(
                f"| {figure.name} | {figure.ours} | {figure.peer} | {figure.ratio:.2f} x {mark} | {sign} {figure.target:g} x | "
                f"{'' if figure.reaches_target else 'not reached'} |",
                flush=True,
            )
    if chosen.json:
        document = {"machine": machine, "figures": [{**figure._asdict(), "reached": figure.reaches_target} for figure in figures]}
        Path(chosen.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
