"""Writers that are set by properties, as names and values, which `parse` reads into filter specs,
and `build` builds of them.

    parquet-java   parquet.bloom.filter.enabled#C = true, also fpp#C, expected.ndv#C and max.bytes: Hadoop's configuration, options of Spark
    Iceberg        write.parquet.bloom-filter-enabled.column.C = true, also -fpp.column.C, -ndv.column.C and -max-bytes: properties of the
                   table, for Spark, Trino, Flink and Impala (https://iceberg.apache.org/docs/latest/configuration/#write-properties)
    DataFusion     format.bloom_filter_enabled::C, also ndv and fpp: options of COPY
    Trino          parquet_bloom_filter_columns = ARRAY['C']: a property of the table

`parse` and `build` are inverse to each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.rules.filter_spec import FilterSpec, Judge
from sbbf_tool.writers.writer import (
    DICTIONARIES,
    Request,
    Setting,
    Writer,
    join_lines,
    specs_of,
    write_key,
    write_sql,
    write_table_properties,
    write_text,
)


class Properties(NamedTuple):
    """The names of a writer's properties: `prefix`, what is set, and after `separator` the column;
    without a column, they hold for all."""

    prefix: str
    separator: str
    ndv: str = "ndv"
    max_bytes: str = "max-bytes"

    def parse(
        self, settings: Mapping[str, str], column_of: Callable[[str], str] = str
    ) -> tuple[FilterSpec, ...]:
        """Parse the properties among these settings, as one spec for each column that they enable.

        `column_of` returns the name of the column that a property names. Raises UsageError for a
        value with no meaning.
        """
        parsers = {
            "enabled": _parse_flag,
            self.ndv: _parse_count,
            "fpp": _parse_fpp,
            self.max_bytes: _parse_count,
        }
        values: dict[str, dict[str, Any]] = {name: {} for name in parsers}
        for key, value in settings.items():
            setting, _, column = key.removeprefix(self.prefix).partition(self.separator)
            if key.startswith(self.prefix) and setting in parsers:
                values[setting][column_of(column) if column else ""] = parsers[setting](key, value)

        def find(setting: str, column: str) -> Any:
            return values[setting].get(column, values[setting].get(""))

        return tuple(
            declare(
                column, find("fpp", column), find(self.ndv, column), find(self.max_bytes, column)
            )
            for column, is_enabled in values["enabled"].items()
            if column and is_enabled
        )

    def build(
        self, specs: Iterable[FilterSpec], name_of: Callable[[str], str] = str
    ) -> dict[str, str]:
        """Build the properties, in which a column has the name that `name_of` returns. The largest
        of the limits holds for all columns."""
        properties: dict[str, str] = {}
        limits: list[int] = []
        for spec in specs:
            fpp = None if spec.judge == "existence" and spec.ndv is None else spec.fpp
            values = {"enabled": "true", self.ndv: spec.ndv, "fpp": fpp}
            properties |= {
                f"{self.prefix}{name}{self.separator}{name_of(column)}": str(value)
                for column in spec.columns
                for name, value in values.items()
                if value is not None
            }
            limits += [spec.max_bytes] if isinstance(spec.max_bytes, int) else []
        return properties | ({f"{self.prefix}{self.max_bytes}": str(max(limits))} if limits else {})


def declare(
    column: str, fpp: float | None = None, ndv: int | None = None, max_bytes: int | None = None
) -> FilterSpec:
    """Return the spec of a column for which a writer adds filters. Filters have the FPP unless the
    number of values sets their size."""
    judge: Judge = "existence" if fpp is None or ndv is not None else "fpp"
    return FilterSpec((column,), DEFAULT_FPP if fpp is None else fpp, ndv, max_bytes, judge=judge)


def _parse_flag(key: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise UsageError(f"{key} must be true or false, not {value!r}")
    return value.strip().lower() == "true"


def _parse_count(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key} must be a whole number, not {value!r}") from None


def _parse_fpp(key: str, value: str) -> float:
    try:
        if 0 < float(value) < 1:
            return float(value)
    except ValueError:
        pass
    raise UsageError(f"{key} must be a number above 0 and below 1, not {value!r}")


PARQUET_JAVA_PROPERTIES = Properties("parquet.bloom.filter.", "#", "expected.ndv", "max.bytes")
_USUAL_MOST = 1 << 20
"""The largest bitset that parquet-java builds unless it is set to build larger ones."""


def _build_parquet_java(settings: Sequence[Setting]) -> dict[str, str]:
    most = max(setting.num_bytes for setting in settings)
    return PARQUET_JAVA_PROPERTIES.build(specs_of(settings, most if most > _USUAL_MOST else None))


def _write_parquet_java(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    for name, value in _build_parquet_java(settings).items():
        yield f"{write_key(name)}={value}"


def _write_spark(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "("
    yield "    df.write"
    for name, value in _build_parquet_java(settings).items():
        yield f"    .option({write_text(name)}, {write_text(value)})"
    yield '    .parquet("data")'
    yield ")"


PARQUET_JAVA = Writer(_write_parquet_java, "#", (DICTIONARIES,))
SPARK = Writer(_write_spark, "#", (DICTIONARIES,))

ICEBERG_PROPERTIES = Properties("write.parquet.bloom-filter-", ".column.")


def _write_iceberg(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    # Releases that do not know the NDV build filters of the largest size.
    yield from write_table_properties(
        ICEBERG_PROPERTIES.build(specs_of(settings, max(setting.num_bytes for setting in settings)))
    )


def _problem_of_iceberg(column: Column) -> str | None:
    return (
        "columns in lists and maps have other names in the table" if column.max_repetition else None
    )


ICEBERG = Writer(
    _write_iceberg,
    "--",
    (
        DICTIONARIES,
        "Iceberg 1.10 and older do not know the property -ndv: all their filters have -max-bytes",
    ),
    _problem_of_iceberg,
)


_RECORD = "sbbf.set-properties"
"""Property of a table: those that `sbbf` has set, as JSON."""


def record_properties(
    before: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str | None]:
    """Return these properties with a record of those that the table does not have already, for
    `take_back`."""
    ours = _parse_record(before)
    ours |= {name: text for name, text in properties.items() if before.get(name) != text}
    return {**properties, **({_RECORD: json.dumps(ours, sort_keys=True)} if ours else {})}


def take_back(before: Mapping[str, str], columns: Sequence[str]) -> dict[str, str | None]:
    """Return the change that removes the properties that `sbbf` has set for these columns (all if
    empty) and that are still as it set them.

    `columns` are named as in properties.
    """
    ours = _parse_record(before)
    about = {name: name.partition(".column.")[2] for name in ours}
    left = {name for name in ours if columns and about[name] not in ("", *columns)}
    # What is for all columns stays as long as one of them is left.
    left |= {name for name in ours if left and not about[name]}
    removed: dict[str, str | None] = {
        name: None for name, text in ours.items() if name not in left and before.get(name) == text
    }
    if ours.keys() > left:
        removed[_RECORD] = (
            json.dumps({name: ours[name] for name in left}, sort_keys=True) if left else None
        )
    return removed


def _parse_record(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        record = json.loads(properties.get(_RECORD, "{}"))
    except (ValueError, RecursionError):
        return {}
    return (
        {name: text for name, text in record.items() if isinstance(text, str)}
        if isinstance(record, dict)
        else {}
    )


DATAFUSION_PROPERTIES = Properties("format.bloom_filter_", "::")


def _write_datafusion(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    options = [
        f"    {write_sql(name)} {write_sql(value)}"
        for name, value in DATAFUSION_PROPERTIES.build(specs_of(settings)).items()
    ]
    yield "COPY my_table TO 'data.parquet' STORED AS PARQUET OPTIONS ("
    yield from join_lines(options)
    yield ");"


def _problem_of_datafusion(column: Column) -> str | None:
    if any("." in part for part in column.path):
        return "a dot separates the fields of structs"
    if column.max_repetition:
        return "the elements of lists have other names in memory"
    if any(part != part.lower() for part in column.path):
        return (
            "names of options are lower case (in Python, ParquetWriterOptions takes the "
            "name as it is)"
        )
    return None


DATAFUSION = Writer(_write_datafusion, "--", problem_of=_problem_of_datafusion)


class TrinoProperty(NamedTuple):
    """The property of a table with the names of its columns alone."""

    name: str = "parquet_bloom_filter_columns"

    def parse(self, settings: Mapping[str, str]) -> tuple[FilterSpec, ...]:
        """Parse `a, b`, `["a", "b"]` or `ARRAY['a', 'b']`."""
        value = settings.get(self.name, "")
        match = re.fullmatch(r"\s*(?:ARRAY)?\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
        parts = (match[1] if match else value).split(",")
        return tuple(declare(name) for part in parts if (name := part.strip().strip("'\"")))

    def build(self, specs: Iterable[FilterSpec]) -> dict[str, str]:
        return {
            self.name: f"ARRAY[{', '.join(write_sql(column) for spec in specs for column in spec.columns)}]"
        }


TRINO_PROPERTIES = TrinoProperty()


def _write_trino(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "ALTER TABLE my_table SET PROPERTIES"
    properties = TRINO_PROPERTIES.build(declare(setting.path.lower()) for setting in settings)
    yield from (f"    {name} = {value};" for name, value in properties.items())


_TYPES_OF_TRINO = ("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY")


def _problem_of_trino(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    logical = column.logical
    is_written = logical is None and column.physical in _TYPES_OF_TRINO
    if logical is not None:
        is_written = logical.kind in ("STRING", "UUID") or (
            logical.kind == "INT" and logical.signed and logical.bits in (32, 64)
        )
    return None if is_written else f"Trino writes no filters for {column.type_name}"


TRINO = Writer(
    _write_trino,
    "--",
    (
        "Trino takes neither NDV nor FPP; the property is one of Iceberg tables, and of Hive "
        "tables when they are created",
        "Trino writes no filter length, without which parquet-java 1.14.0 to 1.15.2 may lose "
        "rows; a repair adds it",
    ),
    _problem_of_trino,
    uses_formula=False,
    takes_ndv=False,
    takes_fpp=False,
)
