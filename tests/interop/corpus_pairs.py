"""Pairs of files of the corpus: one without filters, as its writer left it, and the output of
`add_filters` for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from interop.corpus_readers import Texts, written_values
from interop.corpus_writers import BY_NAME, write
from sbbf_tool import add_filters
from sbbf_tool.file.parquet_file import ParquetFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREADABLE = {
    "spark": {
        "f16",
        "f16_zero",
        "dec76",
        "fixed4",
        "fixed16",
        "clock_ms",
        "clock_us",
        "clock_ns",
        "at_ns",
        "local_ns",
    }
    | {"span", "key", "clock_tz", "midnight", "geometry", "variant"},
    "polars": {"variant", "span"},
}
"""Columns for which an engine refuses the whole file; it gets files without them, unless it wrote
them itself."""


class Pair(NamedTuple):
    """A pair of files and their values, leaf by leaf, as text."""

    before: Path
    after: Path
    stored: Texts
    absent: Texts
    """Values between the stored ones that are not stored; leaves without any are missing."""


class PairMaker:
    """`pairs(writer, engine, variant)`: the pair of a style of writing that the engine can read,
    made at the first call."""

    def __init__(self, folder: Path, spark: Callable[[], SparkSession]) -> None:
        self._folder = folder
        self._spark = spark
        self._pairs: dict[tuple[str, str, frozenset[str]], Pair] = {}

    def __call__(self, writer: str, engine: str, variant: str = "many") -> Pair:
        unreadable = frozenset(
            UNREADABLE.get(engine, ()) if BY_NAME[writer].writer != engine else ()
        )
        key = (writer, variant, unreadable)
        if key not in self._pairs:
            self._pairs[key] = self._make(*key)
        return self._pairs[key]

    def _make(self, writer: str, variant: str, unreadable: frozenset[str]) -> Pair:
        style = BY_NAME[writer].without(unreadable)
        pytest.importorskip({"spark": "pyspark"}.get(style.writer, style.writer))
        name = f"{writer}-{variant}-{len(self._pairs)}"
        before = write(
            style, variant, self._folder / f"{name}-before.parquet", self._spark, filters=False
        )
        between = write(
            style, "others", self._folder / f"{name}-others.parquet", self._spark, filters=False
        )
        after = self._folder / f"{name}-after.parquet"
        with ParquetFile.open(before) as file:
            columns = [
                column.name
                for column in file.footer.columns
                if column.physical != "BOOLEAN" and not column.variant
            ]
        add_filters(before, columns, output=after, fpp=0.001)
        stored, candidates = written_values(before, style), written_values(between, style)
        absent = {
            path: sorted(set(texts) - set(stored.get(path, ())))
            for path, texts in candidates.items()
        }
        return Pair(before, after, stored, {path: texts for path, texts in absent.items() if texts})
