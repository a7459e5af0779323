"""The settings by which a writer adds the advised filters to the files that it writes: text to
paste, with NDV and FPP per column.

Most writers size a filter by the closed formula of the format's first draft, which gives too few
bits for the FPP that it is given. The settings therefore state an FPP with which the writer chooses
the size that the target needs. What a writer cannot be set to do is a note.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from sbbf_tool.bloom import sizing
from sbbf_tool.display import escape
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load, named
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.writers.properties import (
    DATAFUSION,
    ICEBERG,
    ICEBERG_PROPERTIES,
    PARQUET_JAVA,
    PARQUET_JAVA_PROPERTIES,
    SPARK,
    TRINO,
    TRINO_PROPERTIES,
)
from sbbf_tool.writers.writer import (
    ColumnSettings,
    FilteredColumn,
    Request,
    Setting,
    Writer,
    WriterSettings,
    write_text,
)


def _write_duckdb(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    # Room for more values than were counted: a chunk whose dictionary exceeds the limit gets no
    # filter.
    limit = 1 << max(setting.ndv for setting in settings).bit_length()
    yield "COPY my_table TO 'data.parquet' ("
    yield "    FORMAT parquet,"
    yield f"    BLOOM_FILTER_FALSE_POSITIVE_RATIO {settings[0].fpp:g},"
    yield f"    DICTIONARY_SIZE_LIMIT {limit}"
    yield ");"


DUCKDB = Writer(
    _write_duckdb,
    "--",
    (
        "DuckDB takes neither columns nor NDV: "
        "it writes filters for all dictionary-encoded chunks, and for no others",
        "a chunk is dictionary-encoded if it has at most DICTIONARY_SIZE_LIMIT distinct values; "
        "text also has a limit in bytes, STRING_DICTIONARY_PAGE_SIZE_LIMIT",
    ),
    takes_ndv=False,
    has_one_fpp=True,
)


def _options_of_arrow(settings: Sequence[Setting], indent: str) -> Iterator[str]:
    for setting in settings:
        name = write_text(setting.path)
        yield f'{indent}{name}: {{"ndv": {setting.ndv}, "fpp": {setting.fpp:g}}},'


def _write_pyarrow(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "import pyarrow.parquet as pq"
    yield ""
    yield "pq.write_table("
    yield "    table,"
    yield '    "data.parquet",'
    yield "    bloom_filter_options={"
    yield from _options_of_arrow(settings, " " * 8)
    yield "    },"
    yield ")"


def _write_polars(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "frame.write_parquet("
    yield '    "data.parquet",'
    yield "    use_pyarrow=True,"
    yield "    pyarrow_options={"
    yield '        "bloom_filter_options": {'
    yield from _options_of_arrow(settings, " " * 12)
    yield "        },"
    yield "    },"
    yield ")"


PYARROW = Writer(_write_pyarrow, "#", ("pyarrow writes filters since version 24",))
POLARS = Writer(
    _write_polars,
    "#",
    (
        "Polars writes no filters itself; "
        "with use_pyarrow=True, pyarrow (24 or newer) writes the file",
        "add filters to files of sink_parquet and of other ways to write when they are finished",
    ),
)


def _write_sbbf(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    columns = ", ".join(write_text(setting.name) for setting in settings)
    for number, pattern in enumerate(request.patterns):
        if number:
            yield ""
        yield "[[filters]]"
        yield f"paths = {write_text(pattern)}"
        yield f"columns = [{columns}]"
        yield f"fpp = {request.fpp:g}"


SBBF = Writer(_write_sbbf, "#", uses_formula=False, takes_ndv=False)

WRITERS = {
    "spark": SPARK,
    "parquet-java": PARQUET_JAVA,
    "pyarrow": PYARROW,
    "duckdb": DUCKDB,
    "datafusion": DATAFUSION,
    "polars": POLARS,
    "iceberg": ICEBERG,
    "trino": TRINO,
    "sbbf": SBBF,
}
"""The writers of Parquet by name."""


def ensure_writer(name: str) -> None:
    """Raise UsageError if the settings of this writer are not known."""
    known = [*WRITERS, *named("writers")]
    if name not in known:
        raise UsageError(
            f"the settings of {name!r} are not known", hint=f"the writers are {', '.join(known)}"
        )


def parse_settings(
    properties: Mapping[str, str],
    column_of: Callable[[str], str] = str,
    *,
    is_required: bool = True,
) -> tuple[FilterSpec, ...]:
    """Return the filters that the properties of a table promise.

    `column_of` returns the name of the column that a property of an Iceberg table names. Raises
    UsageError if the properties promise no filter although one `is_required`.
    """
    specs = (
        *ICEBERG_PROPERTIES.parse(properties, column_of),
        *PARQUET_JAVA_PROPERTIES.parse(properties),
        *TRINO_PROPERTIES.parse(properties),
    )
    if not specs and is_required:
        raise UsageError(
            "the properties of the table declare no filter of a Parquet column",
            hint="expected write.parquet.bloom-filter-enabled.column.COLUMN or "
            "parquet.bloom.filter.enabled#COLUMN",
        )
    return specs


def build_settings(writer: str, request: Request) -> WriterSettings:
    """Build the settings of a writer, which must be known."""
    kind: Writer | None = WRITERS.get(writer)
    if kind is None:
        kind = load(named("writers")[writer])
    settings = []
    problems = []
    for column in request.columns:
        problem = kind.problem_of(column.column)
        if problem is None:
            settings.append(_choose(column, request, by_formula=kind.uses_formula))
        else:
            problems.append(f"cannot be set for {column.column.name}: {problem}")
    if kind.has_one_fpp and settings:
        fpp = min(setting.fpp for setting in settings)
        settings = [_with_fpp(setting, fpp) for setting in settings]
    notes = _build_notes(kind, request, settings, problems)
    lines = [f"{kind.comment} {escape(note)}" for note in notes]
    if settings:
        lines += kind.write(settings, request)
    return WriterSettings(
        writer=writer,
        text="\n".join([*lines, ""]),
        columns=tuple(map(partial(_describe, kind), settings)),
        notes=tuple(notes),
    )


def _choose(column: FilteredColumn, request: Request, *, by_formula: bool) -> Setting:
    """Choose the FPP with which the writer gives a filter the size that the target needs."""
    ndv = max(1, math.ceil(column.ndv))
    num_bytes = sizing.bytes_for(ndv, request.fpp)
    fpp = request.fpp
    while by_formula and sizing.formula_bytes(ndv, fpp) < num_bytes:
        fpp = fpp / 2
    return Setting(".".join(column.column.path), column.column.name, ndv, fpp, num_bytes)


def _with_fpp(setting: Setting, fpp: float) -> Setting:
    return setting._replace(fpp=fpp, num_bytes=sizing.formula_bytes(setting.ndv, fpp))


def _build_notes(
    writer: Writer, request: Request, settings: Sequence[Setting], problems: Sequence[str]
) -> list[str]:
    """Build the notes: conditions, and `problems` of the columns that get no filter."""
    notes = []
    if settings and writer.takes_ndv:
        largest = max(column.values for column in request.columns)
        notes.append(
            f"NDV as counted here, for row groups of up to {largest:,} values; "
            "other sizes of row groups need other numbers"
        )
    if settings or not request.columns:
        notes += writer.notes
    notes += problems
    if writer.takes_fpp and any(setting.fpp < request.fpp for setting in settings):
        notes.append(
            f"an FPP below {request.fpp:g} makes up for the formula by which the writer chooses "
            "sizes, which gives too few bits"
        )
    if not settings:
        notes.append("no column gets a filter")
    return notes


def _describe(writer: Writer, setting: Setting) -> ColumnSettings:
    return ColumnSettings(
        column=setting.name,
        ndv=setting.ndv if writer.takes_ndv else None,
        fpp=setting.fpp if writer.takes_fpp else None,
        bitset_bytes=setting.num_bytes if writer.uses_formula else None,
    )
