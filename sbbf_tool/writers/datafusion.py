"""DataFusion: options of COPY per column, `format.bloom_filter_enabled::C`, also `ndv` and `fpp`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.parquet.columns import Column
from sbbf_tool.writers.properties import Properties
from sbbf_tool.writers.writer import Request, Setting, Writer, join_lines, specs_of, write_sql

_PROPERTIES = Properties("format.bloom_filter_", "::")
parse_properties, build_properties = _PROPERTIES.parse, _PROPERTIES.build


def _write_datafusion(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    options = [f"    {write_sql(name)} {write_sql(value)}" for name, value in build_properties(specs_of(settings)).items()]
    yield "COPY my_table TO 'data.parquet' STORED AS PARQUET OPTIONS ("
    yield from join_lines(options)
    yield ");"


def _problem_of_datafusion(column: Column) -> str | None:
    if any("." in part for part in column.path):
        return "a dot separates the fields of structs"
    if column.max_repetition:
        return "the elements of lists have other names in memory"
    if any(part != part.lower() for part in column.path):
        return "names of options are lower case (in Python, ParquetWriterOptions takes the name as it is)"
    return None


DATAFUSION = Writer(_write_datafusion, "--", problem_of=_problem_of_datafusion)
