"""The settings by which a writer adds the advised filters to the files that it writes: text to paste, with NDV and FPP per column.

Most writers size a filter by the closed formula of the format's first draft, which gives too few bits for the FPP that it is given. The
settings therefore state an FPP with which the writer chooses the size that the target needs. What a writer cannot be set to do is a note.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.bloom import sizing
from sbbf_tool.display import escape
from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.reports.advise import ColumnSettings, WriterSettings


@dataclass(frozen=True, slots=True)
class FilteredColumn:
    """A column that gets filters."""

    column: Column
    ndv: float
    """Distinct values in the row group that has the most."""
    values: int
    """Values in the row group that has the most."""


@dataclass(frozen=True, slots=True)
class Request:
    """The filters to configure."""

    columns: tuple[FilteredColumn, ...]
    fpp: float
    patterns: tuple[str, ...]
    """Patterns of the files."""
    row_groups: int
    """Row groups of the file that has the most."""


class _Setting(NamedTuple):
    path: str
    """The path of the column, as writers name it."""
    name: str
    """The name of the column, as this package writes it."""
    ndv: int
    fpp: float
    num_bytes: int
    """The size of the bitset that the writer chooses."""


def ensure_writer(name: str) -> None:
    """Raise UsageError if the settings of this writer are not known."""
    if name not in WRITERS:
        raise UsageError(f"the settings of {name!r} are not known", hint=f"the writers are {', '.join(WRITERS)}")


def build_settings(writer: str, request: Request) -> WriterSettings:
    """Build the settings of a writer, which must be known."""
    row = WRITERS[writer]
    settings, problems = [], []
    for column in request.columns:
        problem = row.problem_of(column.column)
        if problem is None:
            settings.append(_choose(column, request, by_formula=row.uses_formula))
        else:
            problems.append(f"cannot be set for {column.column.name}: {problem}")
    if row.has_one_fpp and settings:
        fpp = min(setting.fpp for setting in settings)
        settings = [setting._replace(fpp=fpp, num_bytes=sizing.formula_bytes(setting.ndv, fpp)) for setting in settings]
    notes = [*(row.notes if settings or not request.columns else ()), *problems]
    if settings and row.takes_ndv:
        most = max(column.values for column in request.columns)
        notes.insert(0, f"NDV as counted here, for row groups of up to {most:,} values; other sizes of row groups need other numbers")
    if row.takes_fpp and any(setting.fpp < request.fpp for setting in settings):
        notes.append(f"an FPP below {request.fpp:g} makes up for the formula by which the writer chooses sizes, which gives too few bits")
    if not settings:
        notes.append("no column gets a filter")
    lines = [*(f"{row.comment} {escape(note)}" for note in notes), *(row.write(settings, request) if settings else ())]
    return WriterSettings(
        writer=writer,
        text="".join(f"{line}\n" for line in lines),
        columns=tuple(
            ColumnSettings(
                setting.name,
                setting.ndv if row.takes_ndv else None,
                setting.fpp if row.takes_fpp else None,
                setting.num_bytes if row.uses_formula else None,
            )
            for setting in settings
        ),
        notes=tuple(notes),
    )


def _choose(column: FilteredColumn, request: Request, *, by_formula: bool) -> _Setting:
    ndv = max(1, math.ceil(column.ndv))
    num_bytes, fpp = sizing.bytes_for(ndv, request.fpp), request.fpp
    while by_formula and sizing.formula_bytes(ndv, fpp) < num_bytes:
        fpp = fpp / 2
    return _Setting(".".join(column.column.path), column.column.name, ndv, fpp, num_bytes)


# --- Texts ---


def _text(text: str) -> str:
    """Write a string of Python or TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _key(text: str) -> str:
    """Write a key of a properties file."""
    return re.sub(r"([\\=:\s])", lambda match: "\\n" if match[1] == "\n" else f"\\{match[1]}", text)


_USUAL_MOST = 1 << 20
"""The largest bitset that parquet-java builds unless it is set to build larger ones."""


def _parquet_java(settings: Sequence[_Setting]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        yield f"parquet.bloom.filter.enabled#{setting.path}", "true"
        yield f"parquet.bloom.filter.expected.ndv#{setting.path}", str(setting.ndv)
        yield f"parquet.bloom.filter.fpp#{setting.path}", f"{setting.fpp:g}"
    if (most := max(setting.num_bytes for setting in settings)) > _USUAL_MOST:
        yield "parquet.bloom.filter.max.bytes", str(most)


def _write_parquet_java(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    for name, value in _parquet_java(settings):
        yield f"{_key(name)}={value}"


def _write_spark(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    yield "("
    yield "    df.write"
    for name, value in _parquet_java(settings):
        yield f"    .option({_text(name)}, {_text(value)})"
    yield '    .parquet("data")'
    yield ")"


def _options_of_arrow(settings: Sequence[_Setting], indent: str) -> Iterator[str]:
    for setting in settings:
        yield f'{indent}{_text(setting.path)}: {{"ndv": {setting.ndv}, "fpp": {setting.fpp:g}}},'


def _write_pyarrow(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    yield "import pyarrow.parquet as pq"
    yield ""
    yield "pq.write_table("
    yield "    table,"
    yield '    "data.parquet",'
    yield "    bloom_filter_options={"
    yield from _options_of_arrow(settings, " " * 8)
    yield "    },"
    yield ")"


def _write_polars(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    yield "frame.write_parquet("
    yield '    "data.parquet",'
    yield "    use_pyarrow=True,"
    yield "    pyarrow_options={"
    yield '        "bloom_filter_options": {'
    yield from _options_of_arrow(settings, " " * 12)
    yield "        },"
    yield "    },"
    yield ")"


def _write_duckdb(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    # Room for more values than were counted: a chunk whose dictionary exceeds the limit gets no filter.
    limit = 1 << max(setting.ndv for setting in settings).bit_length()
    yield "COPY my_table TO 'data.parquet' ("
    yield "    FORMAT parquet,"
    yield f"    BLOOM_FILTER_FALSE_POSITIVE_RATIO {settings[0].fpp:g},"
    yield f"    DICTIONARY_SIZE_LIMIT {limit}"
    yield ");"


def _write_datafusion(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    options = []
    for setting in settings:
        values = (("enabled", "true"), ("ndv", str(setting.ndv)), ("fpp", f"{setting.fpp:g}"))
        options += [f"    {_sql(f'format.bloom_filter_{name}::{setting.path}')} {_sql(value)}" for name, value in values]
    yield "COPY my_table TO 'data.parquet' STORED AS PARQUET OPTIONS ("
    yield from _join(options)
    yield ");"


def _write_properties(properties: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "ALTER TABLE my_table SET TBLPROPERTIES ("
    yield from _join([f"    {_sql(name)} = {_sql(value)}" for name, value in properties])
    yield ");"


def _join(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with commas between them."""
    yield from (f"{line}," for line in lines[:-1])
    yield lines[-1]


def _write_iceberg(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    prefix = "write.parquet.bloom-filter"
    properties = []
    for setting in settings:
        properties.append((f"{prefix}-enabled.column.{setting.path}", "true"))
        properties.append((f"{prefix}-ndv.column.{setting.path}", str(setting.ndv)))
        properties.append((f"{prefix}-fpp.column.{setting.path}", f"{setting.fpp:g}"))
    # Releases that do not know the NDV build filters of the largest size.
    properties.append((f"{prefix}-max-bytes", str(max(setting.num_bytes for setting in settings))))
    yield from _write_properties(properties)


def _write_trino(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    yield "ALTER TABLE my_table SET PROPERTIES"
    yield f"    parquet_bloom_filter_columns = ARRAY[{', '.join(_sql(setting.path.lower()) for setting in settings)}];"


def _write_paimon(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    properties = [("file-index.bloom-filter.columns", ",".join(setting.path for setting in settings))]
    for setting in settings:
        properties.append((f"file-index.bloom-filter.{setting.path}.items", str(setting.ndv * max(1, request.row_groups))))
        properties.append((f"file-index.bloom-filter.{setting.path}.fpp", f"{setting.fpp:g}"))
    yield from _write_properties(properties)


def _write_sbbf(settings: Sequence[_Setting], request: Request) -> Iterator[str]:
    columns = ", ".join(_text(setting.name) for setting in settings)
    for number, pattern in enumerate(request.patterns):
        if number:
            yield ""
        yield "[[filters]]"
        yield f"paths = {_text(pattern)}"
        yield f"columns = [{columns}]"
        yield f"fpp = {request.fpp:g}"


# --- What a writer cannot be set to do ---


def _no_problem(column: Column) -> str | None:
    return None


def _problem_of_datafusion(column: Column) -> str | None:
    if any("." in part for part in column.path):
        return "a dot separates the fields of structs"
    if column.max_repetition:
        return "the elements of lists have other names in memory"
    if any(part != part.lower() for part in column.path):
        return "names of options are lower case (in Python, ParquetWriterOptions takes the name as it is)"
    return None


def _problem_of_iceberg(column: Column) -> str | None:
    return "columns in lists and maps have other names in the table" if column.max_repetition else None


_TYPES_OF_TRINO = ("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY")


def _problem_of_trino(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    logical = column.logical
    is_written = logical is None and column.physical in _TYPES_OF_TRINO
    if logical is not None:
        is_written = logical.kind in ("STRING", "UUID") or (logical.kind == "INT" and logical.signed and logical.bits in (32, 64))
    return None if is_written else f"Trino writes no filters for {column.type_name}"


def _problem_of_paimon(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    if any(character in column.path[0] for character in ".,"):
        return "an option cannot name a column with a dot or a comma"
    kind = column.logical.kind if column.logical else column.physical
    return f"Paimon hashes no values of type {column.type_name}" if kind in ("BOOLEAN", "DECIMAL") else None


class _Writer(NamedTuple):
    write: Callable[[Sequence[_Setting], Request], Iterator[str]]
    comment: str
    notes: tuple[str, ...] = ()
    problem_of: Callable[[Column], str | None] = _no_problem
    uses_formula: bool = True
    takes_ndv: bool = True
    takes_fpp: bool = True
    has_one_fpp: bool = False
    """Whether all columns have the same FPP."""


_DICTIONARIES = "parquet-java writes no filter for a chunk whose pages are all dictionary-encoded"

WRITERS = {
    "spark": _Writer(_write_spark, "#", (_DICTIONARIES,)),
    "parquet-java": _Writer(_write_parquet_java, "#", (_DICTIONARIES,)),
    "pyarrow": _Writer(_write_pyarrow, "#", ("pyarrow writes filters since version 24",)),
    "duckdb": _Writer(
        _write_duckdb,
        "--",
        (
            "DuckDB takes neither columns nor NDV: it writes filters for all dictionary-encoded chunks, and for no others",
            "a chunk is dictionary-encoded if it has at most DICTIONARY_SIZE_LIMIT distinct values; text also has a limit in bytes,"
            " STRING_DICTIONARY_PAGE_SIZE_LIMIT",
        ),
        takes_ndv=False,
        has_one_fpp=True,
    ),
    "datafusion": _Writer(_write_datafusion, "--", problem_of=_problem_of_datafusion),
    "polars": _Writer(
        _write_polars,
        "#",
        (
            "Polars writes no filters itself; with use_pyarrow=True, pyarrow (24 or newer) writes the file",
            "add filters to files of sink_parquet and of other ways to write when they are finished",
        ),
    ),
    "iceberg": _Writer(
        _write_iceberg,
        "--",
        (_DICTIONARIES, "Iceberg 1.10 and older do not know the property -ndv: all their filters have -max-bytes"),
        _problem_of_iceberg,
    ),
    "trino": _Writer(
        _write_trino,
        "--",
        (
            "Trino takes neither NDV nor FPP; the property is one of Iceberg tables, and of Hive tables when they are created",
            "Trino writes no filter length, without which parquet-java 1.14.0 to 1.15.2 may lose rows; a repair adds it",
        ),
        _problem_of_trino,
        uses_formula=False,
        takes_ndv=False,
        takes_fpp=False,
    ),
    "paimon": _Writer(
        _write_paimon,
        "--",
        ("Paimon builds file indexes of its own; items are per data file: at most NDV per row group times row groups",),
        _problem_of_paimon,
        uses_formula=False,
    ),
    "sbbf": _Writer(_write_sbbf, "#", uses_formula=False, takes_ndv=False),
}
"""The writers by name."""
