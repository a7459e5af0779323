"""Every type that a writer can write: our filter holds every stored value, and where the writer
made one, ours is the same.

The corpus is made here, by each writer in each of its ways (`corpus_writers`), and read back by
another (`corpus_readers`). Documented differences between a writer's filter and ours of the same
size, and no others, are listed in `HOLDS_MORE` and `OTHER_BITS`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interop.corpus import VARIANTS, ZEROS_AND_NANS, table
from interop.corpus_readers import texts_of, written_values
from interop.corpus_writers import BY_NAME, STYLES, Style, write
from sbbf_tool import add_filters, probe
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.values import read_chunk
from support.tables import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines

SIZE = 4096
"""Bytes of the filters that ours are built in, before they are folded to a writer's size."""

HOLDS_MORE = {*(kind.name for kind in ZEROS_AND_NANS), "huge"}
"""Both zeros where one is stored, and the canonical NaNs where any is: +0 and -0 are equal in SQL,
and so are NaNs. (A HUGEINT of DuckDB's is a DOUBLE in the file.) Filters of INT96 hold more as
well: the other form of instants before 1970. The normalised intervals that we insert into files of
DuckDB's are no difference: DuckDB does too.
"""

DAY_OF_EPOCH, NANOS_PER_DAY = 2_440_588, 86_400 * 10**9

OTHER_BITS = {("spark", "f32_zero", "extremes"), ("spark", "f64_zero", "extremes")}
"""parquet-java 1.17 stores the canonical NaN and hashes the one it was given: a payload is in its
filter and not in its pages."""

NEVER_INSERTED = {"spark": {"flag"}}
"""parquet-java writes filters for BOOLEAN columns and puts nothing in them."""

Corpus = Callable[[str, str], Path]
FILES = list(product(STYLES, VARIANTS))
FIRST_STYLES = {
    style.writer: style for style in reversed(STYLES) if style.writer != "spark"
}.values()
QUICK = [
    (style, variant)
    for style, variant in FILES
    if style.writer != "spark"
    and (variant == "extremes" or (variant == "many" and style in FIRST_STYLES))
]
every_file = each("style, variant", QUICK, heavy=[file for file in FILES if file not in QUICK])


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """`corpus(style, variant)`: a file, made at the first call, with the filters of its writer."""
    folder = tmp_path_factory.mktemp("corpus")

    def spark() -> SparkSession:
        session: SparkSession = request.getfixturevalue("spark")
        return session

    def make(style: str, variant: str) -> Path:
        pytest.importorskip({"spark": "pyspark"}.get(BY_NAME[style].writer, BY_NAME[style].writer))
        path = folder / f"{style}-{variant}.parquet"
        return path if path.exists() else write(BY_NAME[style], variant, path, spark)

    return make


@pytest.fixture(scope="session")
def with_ours(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The same files, with our filters instead of the writer's on every leaf but BOOLEAN and the
    parts of VARIANT, each of `SIZE` bytes."""
    folder = tmp_path_factory.mktemp("with_ours")

    def make(style: str, variant: str) -> Path:
        output = folder / f"{style}-{variant}.parquet"
        if not output.exists():
            path = corpus(style, variant)
            columns = [
                column.name
                for column in leaves(path)
                if column.physical != "BOOLEAN" and not column.variant
            ]
            add_filters(path, columns, output=output, rebuild="all", ndv=10**6, max_bytes=SIZE)
        return output

    return make


def leaves(path: Path) -> tuple[Column, ...]:
    with ParquetFile.open(path) as file:
        return file.footer.columns


def stored_filter(file: ParquetFile, row_group: int, column: Column) -> BloomFilter | None:
    stored = file.stored_filter(row_group, column)
    return (
        None
        if stored is None
        else BloomFilter(file.source.read(stored.bitset_offset, stored.header.num_bytes))
    )


@every_file
def test_every_stored_value_is_maybe(
    corpus: Corpus, with_ours: Corpus, style: Style, variant: str
) -> None:
    """As another engine reads the values, and as a person writes them."""
    path, ours = corpus(style.name, variant), with_ours(style.name, variant)
    texts = written_values(path, style)

    for column in leaves(ours):
        if column.physical != "BOOLEAN":
            texts_of_column = texts.get(column.short_path, [])
            assert len(texts_of_column) == count(path, column)
            report = probe(ours, column.name, sorted(set(texts_of_column)))
            assert [answer.value for answer in report.values if answer.is_absent] == []


def count(path: Path, column: Column) -> int:
    with ParquetFile.open(path) as file:
        groups = range(file.footer.num_row_groups)
        return sum(
            len(values)
            for group in groups
            for values in read_chunk(file.footer, group, column, file.pages(group, column))
        )


@each("style", FIRST_STYLES)
def test_values_that_are_not_stored_are_absent(
    corpus: Corpus, with_ours: Corpus, style: Style
) -> None:
    """Otherwise a filter with every bit set would pass."""
    stored = written_values(corpus(style.name, "many"), style)
    absent_texts = texts_of(table(style.kinds, "others"))
    by_path = {column.short_path: column for column in leaves(with_ours(style.name, "many"))}

    count = 0
    for path, texts in absent_texts.items():
        absent = set(texts) - set(stored[path])
        if (
            by_path[path].physical == "INT96"
        ):  # fewer than nine digits may be shown of a finer instant
            absent = {
                "{}.{:0<9}".format(*text.removesuffix("Z").partition(".")[::2]) for text in absent
            }
        report = probe(
            with_ours(style.name, "many"), by_path[path].name, sorted(absent), filters_only=True
        )
        assert [answer.value for answer in report.values if not answer.is_absent] == []
        count += len(absent)
    assert count > 50 * len(absent_texts)


@every_file
def test_ours_is_bit_for_bit_the_writers(
    corpus: Corpus, with_ours: Corpus, style: Style, variant: str
) -> None:
    """Folded to its size, what `add_filters` built is the filter that the writer wrote."""
    compared = set()
    with (
        ParquetFile.open(corpus(style.name, variant)) as theirs,
        ParquetFile.open(with_ours(style.name, variant)) as ours,
    ):
        for row_group in range(theirs.footer.num_row_groups):
            for column in theirs.footer.columns:
                name = column.path[0]
                their_filter, our_filter = (
                    stored_filter(theirs, row_group, column),
                    stored_filter(ours, row_group, column),
                )
                if their_filter is None:
                    continue
                compared.add(name)
                if name in NEVER_INSERTED.get(style.writer, ()):
                    assert their_filter.bits_set == 0
                    continue
                if column.physical == "BOOLEAN":  # arrow-rs hashes a byte; `add_filters` refuses
                    our_filter = build(theirs, row_group, column)
                assert our_filter is not None
                folded = our_filter.fold_to_bytes(their_filter.num_bytes)
                if (style.writer, name, variant) in OTHER_BITS:
                    assert folded != their_filter, column.name
                elif name in HOLDS_MORE or column.physical == "INT96":
                    assert folded == with_other_forms(their_filter, theirs, row_group, column), (
                        column.name
                    )
                else:
                    assert folded == their_filter, column.name
    assert compared >= must_have_filters(style, variant)


def must_have_filters(style: Style, variant: str) -> set[str]:
    """The columns whose filters are compared at least; parquet-java and DuckDB leave out some
    chunks for what is in them."""
    names = {"n", *(kind.name for kind in style.kinds)}
    match style.writer:
        case "pyarrow":
            return names - {"flag"}
        case "datafusion" if variant != "none":  # it writes no row group without rows
            return names
        case "spark" if variant != "none" and not style.dictionary:
            return names
        case "duckdb" if variant in ("few", "many") and style.dictionary:
            return names - {"flag", "dec38"} | {"span", "key", "json", "huge"}
    return set()


def build(file: ParquetFile, row_group: int, column: Column) -> BloomFilter:
    bloom = BloomFilter.empty(SIZE)
    for values in read_chunk(file.footer, row_group, column, file.pages(row_group, column)):
        bloom.insert_hashes(values.hashes())
    return bloom


def with_other_forms(
    their_filter: BloomFilter, file: ParquetFile, row_group: int, column: Column
) -> BloomFilter:
    """The writer's filter, and in it also what equals a stored zero, NaN, or INT96 instant before
    1970."""
    bloom = their_filter.copy()
    if column.physical == "INT96":
        for values in read_chunk(file.footer, row_group, column, file.pages(row_group, column)):
            for position in range(len(values)):
                nanos, day = struct.unpack("<qi", values[position])
                if day < DAY_OF_EPOCH and nanos:
                    bloom.insert(struct.pack("<qi", nanos - NANOS_PER_DAY, day + 1))
        return bloom
    layout = {2: "<e", 4: "<f", 8: "<d"}[column.width or 0]
    for values in read_chunk(file.footer, row_group, column, file.pages(row_group, column)):
        for position in range(len(values)):
            (number,) = struct.unpack(layout, values[position])
            if number == 0 or number != number:
                for form in (0.0, -0.0) if number == 0 else (math.nan, math.copysign(math.nan, -1)):
                    bloom.insert(struct.pack(layout, form))
    return bloom
