"""Writers that are set by properties, as names and values, which `parse` reads into filter specs,
and `build` builds of them.

    parquet-java   parquet.bloom.filter.enabled#C = true, also fpp#C, expected.ndv#C and max.bytes:
                   Hadoop's configuration, options of Spark
    Iceberg        write.parquet.bloom-filter-enabled.column.C = true, also -fpp.column.C,
                   -ndv.column.C and -max-bytes: properties of the table, for Spark, Trino, Flink
                   and Impala
                   (https://iceberg.apache.org/docs/latest/configuration/#write-properties)
    DataFusion     format.bloom_filter_enabled::C, also ndv and fpp: options of COPY
    Trino          parquet_bloom_filter_columns = ARRAY['C']: a property of the table

`parse` and `build` are inverse to each other.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.rules.filter_spec import FilterSpec, Judge
from sbbf_tool.writers.writer import (
    DICTIONARIES,
    Request,
    Setting,
    Writer,
    list_properties,
    specs_of,
    write_key,
    write_sql,
    write_table_properties,
    write_text,
)


class Properties(NamedTuple):
    """The names of a writer's properties: `prefix`, a setting, `separator`, the column.

    A property without a column holds for all columns.
    """

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
        values = self._parse_values(settings, column_of)

        def find(setting: str, column: str) -> Any:
            return values[setting].get(column, values[setting].get(""))

        specs = []
        for column, is_enabled in values["enabled"].items():
            if column and is_enabled:
                fpp = find("fpp", column)
                ndv = find(self.ndv, column)
                specs.append(declare(column, fpp, ndv, find(self.max_bytes, column)))
        return tuple(specs)

    def _parse_values(
        self, settings: Mapping[str, str], column_of: Callable[[str], str]
    ) -> dict[str, dict[str, Any]]:
        """Parse the values of each setting by column; the column is empty where all are meant."""
        parsers = {
            "enabled": _parse_flag,
            self.ndv: _parse_count,
            "fpp": _parse_fpp,
            self.max_bytes: _parse_count,
        }
        values: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in settings.items():
            setting, _, name = key.removeprefix(self.prefix).partition(self.separator)
            if key.startswith(self.prefix) and setting in parsers:
                column = column_of(name) if name else ""
                values[setting][column] = parsers[setting](key, value)
        return values

    def build(
        self, specs: Iterable[FilterSpec], name_of: Callable[[str], str] = str
    ) -> dict[str, str]:
        """Build the properties of these specs; the largest of their limits holds for all columns.

        `name_of` returns the name that a column has in properties.
        """
        properties = {}
        limits = []
        for spec in specs:
            values = {"enabled": "true"}
            if spec.ndv is not None:
                values[self.ndv] = str(spec.ndv)
            is_fpp_open = spec.judge == "existence" and spec.ndv is None
            if not is_fpp_open:
                values["fpp"] = str(spec.fpp)
            for column in spec.columns:
                for setting, value in values.items():
                    name = f"{self.prefix}{setting}{self.separator}{name_of(column)}"
                    properties[name] = value
            if isinstance(spec.max_bytes, int):
                limits.append(spec.max_bytes)
        if limits:
            properties[f"{self.prefix}{self.max_bytes}"] = str(max(limits))
        return properties


def declare(
    column: str, fpp: float | None = None, ndv: int | None = None, max_bytes: int | None = None
) -> FilterSpec:
    """Return the spec of a column for which a writer adds filters.

    Filters have the FPP unless the number of values sets their size.
    """
    judge: Judge = "existence" if fpp is None or ndv is not None else "fpp"
    if fpp is None:
        fpp = DEFAULT_FPP
    return FilterSpec((column,), fpp, ndv, max_bytes, judge=judge)


def _parse_flag(key: str, value: str) -> bool:
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise UsageError(f"{key} must be true or false, not {value!r}")
    return word == "true"


def _parse_count(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key} must be a whole number, not {value!r}") from None


def _parse_fpp(key: str, value: str) -> float:
    try:
        fpp = float(value)
    except ValueError:
        fpp = 0.0
    if not 0 < fpp < 1:
        raise UsageError(f"{key} must be a number above 0 and below 1, not {value!r}")
    return fpp


PARQUET_JAVA_PROPERTIES = Properties("parquet.bloom.filter.", "#", "expected.ndv", "max.bytes")
_DEFAULT_MAX_BYTES = 1 << 20
"""The largest bitset that parquet-java builds unless it is set to build larger ones."""


def _largest_bitset(settings: Sequence[Setting]) -> int:
    return max(setting.num_bytes for setting in settings)


def _build_parquet_java(settings: Sequence[Setting]) -> dict[str, str]:
    max_bytes = None
    largest = _largest_bitset(settings)
    if largest > _DEFAULT_MAX_BYTES:
        max_bytes = largest
    return PARQUET_JAVA_PROPERTIES.build(specs_of(settings, max_bytes))


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
    specs = specs_of(settings, _largest_bitset(settings))
    yield from write_table_properties(ICEBERG_PROPERTIES.build(specs))


def _problem_of_iceberg(column: Column) -> str | None:
    if column.max_repetition:
        return "columns in lists and maps have other names in the table"
    return None


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
    """Return these properties, with a record for `take_back` of those that the table lacks."""
    ours = _parse_record(before)
    for name, text in properties.items():
        if before.get(name) != text:
            ours[name] = text
    change: dict[str, str | None] = {**properties}
    if ours:
        change[_RECORD] = _build_record(ours)
    return change


def build_for_new_files(
    before: Mapping[str, str], spec: FilterSpec, name_of: Callable[[str], str]
) -> dict[str, str | None]:
    """Return the change of a table's properties by which its writers add these filters to new
    files; see `Properties.build`."""
    # The limit in bytes of a table is for all its columns.
    settings = ICEBERG_PROPERTIES.build([replace(spec, max_bytes=None)], name_of)
    return record_properties(before, settings)


def take_back(before: Mapping[str, str], columns: Sequence[str]) -> dict[str, str | None]:
    """Return the change that removes the properties that `sbbf` has set for these columns.

    `columns` are named as in properties; empty for all. A property that is no longer as `sbbf` set
    it stays.
    """
    ours = _parse_record(before)
    for_all = {}
    kept = {}
    for name, text in ours.items():
        column = name.partition(".column.")[2]
        if not column:
            for_all[name] = text
        elif columns and column not in columns:
            kept[name] = text
    if kept:
        # What is for all columns stays as long as the property of a column does.
        kept |= for_all
    change: dict[str, str | None] = {}
    for name, text in ours.items():
        if name not in kept and before.get(name) == text:
            change[name] = None
    if len(kept) < len(ours):
        change[_RECORD] = _build_record(kept) if kept else None
    return change


def _build_record(properties: Mapping[str, str]) -> str:
    return json.dumps(properties, sort_keys=True)


def _parse_record(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        record = json.loads(properties.get(_RECORD, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {name: text for name, text in record.items() if isinstance(text, str)}


DATAFUSION_PROPERTIES = Properties("format.bloom_filter_", "::")


def _write_datafusion(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    properties = DATAFUSION_PROPERTIES.build(specs_of(settings))
    yield "COPY my_table TO 'data.parquet' STORED AS PARQUET OPTIONS ("
    yield from list_properties(properties, " ")
    yield ");"


def _problem_of_datafusion(column: Column) -> str | None:
    if any("." in part for part in column.path):
        return "a dot separates the fields of structs"
    if column.max_repetition:
        return "the elements of lists have other names in memory"
    name = ".".join(column.path)
    if name != name.lower():
        return (
            "names of options are lower case "
            "(in Python, ParquetWriterOptions takes the name as it is)"
        )
    return None


DATAFUSION = Writer(_write_datafusion, "--", problem_of=_problem_of_datafusion)


class TrinoProperty(NamedTuple):
    """The property of a table with the names of its columns alone."""

    name: str = "parquet_bloom_filter_columns"

    def parse(self, settings: Mapping[str, str]) -> tuple[FilterSpec, ...]:
        """Parse `a, b`, `["a", "b"]` or `ARRAY['a', 'b']`."""
        value = settings.get(self.name, "")
        array = re.fullmatch(r"\s*(?:ARRAY)?\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
        text = array[1] if array else value
        specs = []
        for part in text.split(","):
            name = part.strip().strip("'\"")
            if name:
                specs.append(declare(name))
        return tuple(specs)

    def build(self, specs: Iterable[FilterSpec]) -> dict[str, str]:
        names: list[str] = []
        for spec in specs:
            names += map(write_sql, spec.columns)
        return {self.name: f"ARRAY[{', '.join(names)}]"}


TRINO_PROPERTIES = TrinoProperty()


def _write_trino(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "ALTER TABLE my_table SET PROPERTIES"
    specs = [declare(setting.path.lower()) for setting in settings]
    for name, value in TRINO_PROPERTIES.build(specs).items():
        yield f"    {name} = {value};"


_TYPES_OF_TRINO = ("INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY")


def _problem_of_trino(column: Column) -> str | None:
    if column.nested:
        return "only top-level columns"
    logical = column.logical
    if logical is None:
        is_written = column.physical in _TYPES_OF_TRINO
    elif logical.kind == "INT":
        is_written = logical.signed and logical.bits in (32, 64)
    else:
        is_written = logical.kind in ("STRING", "UUID")
    if is_written:
        return None
    return f"Trino writes no filters for {column.type_name}"


TRINO = Writer(
    _write_trino,
    "--",
    (
        "Trino takes neither NDV nor FPP; "
        "the property is one of Iceberg tables, and of Hive tables when they are created",
        "Trino writes no filter length, "
        "without which parquet-java 1.14.0 to 1.15.2 may lose rows; a repair adds it",
    ),
    _problem_of_trino,
    uses_formula=False,
    takes_ndv=False,
    takes_fpp=False,
)
