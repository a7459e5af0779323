"""What the settings of a table or of a writer promise: the columns for which new files get filters.

    write.parquet.bloom-filter-enabled.column.C = true     Iceberg, a property of the table (Trino's Iceberg connector sets it too);
                                                           also -fpp.column.C, -ndv.column.C and write.parquet.bloom-filter-max-bytes
    parquet.bloom.filter.enabled#C = true                  parquet-java: Hadoop configuration, Spark and Hudi options, Paimon options;
                                                           also fpp#C, expected.ndv#C and max.bytes
    parquet_bloom_filter_columns = ARRAY['C']              Trino, a property of the table
    file-index.bloom-filter.columns = C                    Paimon, for its own file index; it promises nothing for Parquet files

`parse_declaration` takes the settings as values, `parse_settings` reads them from a file of properties, JSON or TOML.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UsageError
from sbbf_tool.rules.rule import Target

_ICEBERG = "write.parquet.bloom-filter-enabled.column."
_ICEBERG_SIZES = "write.parquet.bloom-filter-"
_PARQUET_JAVA = "parquet.bloom.filter.enabled"
_PARQUET_JAVA_SIZES = "parquet.bloom.filter."
_TRINO = "parquet_bloom_filter_columns"
_PAIMON = "file-index.bloom-filter.columns"
_SPARK = "spark.hadoop."
"""Prefix by which Spark takes settings for Hadoop."""
_MAX_DEPTH = 20
_PROPERTY = re.compile(r"\s*((?:\\.|[^\\=:\s])+)(?:\s*[=:]\s*|\s+|$)(.*)")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The filters that settings promise."""

    columns: tuple[str, ...] = ()
    """Columns that get a filter in every new file, as the settings name them."""
    targets: tuple[tuple[str, Target], ...] = ()
    """Targets of those of these columns that have a declared FPP. A declared NDV determines the size instead."""
    is_for_all: bool = False
    """Whether parquet-java is set to add filters to all columns."""
    paimon_columns: tuple[str, ...] = ()
    """Columns of Paimon's own file index."""


def parse_declaration(settings: Mapping[str, str], column_of: Callable[[str], str] = str) -> Declaration:
    """Return the filters that settings promise; other settings are ignored. Raises UsageError for a value with no meaning.

    `column_of` returns the name of the column that a property of an Iceberg table names.
    """
    columns: dict[str, bool] = {}
    is_for_all = False
    paimon: tuple[str, ...] = ()
    sizes = _Sizes()
    for key, value in settings.items():
        name = key.removeprefix(_SPARK)
        if name.startswith(_ICEBERG):
            columns[column_of(name.removeprefix(_ICEBERG))] = _is_true(key, value)
        elif name.startswith(f"{_PARQUET_JAVA}#"):
            columns[name.removeprefix(f"{_PARQUET_JAVA}#")] = _is_true(key, value)
        elif name == _PARQUET_JAVA:
            is_for_all = _is_true(key, value)
        elif name == _TRINO:
            columns |= dict.fromkeys(_names(value), True)
        elif name == _PAIMON:
            paimon = _names(value)
        elif name.startswith(_ICEBERG_SIZES):
            setting, _, column = name.removeprefix(_ICEBERG_SIZES).partition(".column.")
            sizes.add(setting, column_of(column), key, value)
        elif name.startswith(_PARQUET_JAVA_SIZES):
            setting, _, column = name.removeprefix(_PARQUET_JAVA_SIZES).partition("#")
            sizes.add(setting.removeprefix("expected.").replace(".", "-"), column, key, value)
    names = tuple(column for column, is_enabled in columns.items() if is_enabled)
    targets = ((name, target) for name in names if (target := sizes.target_of(name)) is not None)
    return Declaration(names, tuple(targets), is_for_all, paimon)


def find_declaration(settings: Mapping[str, str], column_of: Callable[[str], str] = str) -> Declaration:
    """Return the filters that settings promise. Raises UsageError if there are none that can be checked."""
    declaration = parse_declaration(settings, column_of)
    if declaration.columns:
        return declaration
    if declaration.is_for_all:
        hint = "name the columns that must have a filter"
        raise UsageError("parquet.bloom.filter.enabled=true declares filters for all columns, which is not checked", hint=hint)
    if declaration.paimon_columns:
        raise UsageError(
            f"file-index.bloom-filter.columns ({', '.join(declaration.paimon_columns)}) applies to Paimon's own file index,"
            " not to the filters of Parquet files",
            hint="the paimon commands inspect it",
        )
    raise UsageError(
        "the settings declare no filter",
        hint="expected write.parquet.bloom-filter-enabled.column.COLUMN, parquet.bloom.filter.enabled#COLUMN"
        " or parquet_bloom_filter_columns",
    )


class _Sizes:
    """Declared sizes, by column; those of the column with an empty name hold for all columns."""

    def __init__(self) -> None:
        self._fpp: dict[str, float] = {}
        self._max_bytes: dict[str, int] = {}
        self._with_ndv: set[str] = set()

    def add(self, setting: str, column: str, key: str, value: str) -> None:
        """Add a setting. Raises UsageError for a value with no meaning."""
        try:
            if setting == "fpp":
                self._fpp[column] = float(value)
                if not 0 < self._fpp[column] < 1:
                    raise ValueError
            elif setting == "max-bytes":
                self._max_bytes[column] = int(value)
            elif setting == "ndv":
                self._with_ndv.add(column)
        except ValueError:
            meaning = "a number above 0 and below 1" if setting == "fpp" else "a whole number"
            raise UsageError(f"{key} must be {meaning}, not {value!r}") from None

    def target_of(self, column: str) -> Target | None:
        """Return the target of a column; None if no FPP is declared, or if an NDV is."""
        fpp = self._fpp.get(column, self._fpp.get(""))
        if fpp is None or not self._with_ndv.isdisjoint((column, "")):
            return None
        return Target(fpp, self._max_bytes.get(column, self._max_bytes.get("")))


def parse_settings(text: str, suffix: str) -> dict[str, str]:
    """Parse settings from the text of a file: JSON if `suffix` is `.json`, TOML if it is `.toml`, else properties.

    Nested objects are joined by dots; the objects `properties` and `options`, as in the metadata of Iceberg and Paimon, and `conf` count as
    the settings themselves. Raises UsageError.
    """
    if suffix not in (".json", ".toml"):
        return dict(_parse_properties(text))
    try:
        document = json.loads(text) if suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the file is not {suffix[1:].upper()}: {error}") from None
    if not isinstance(document, dict):
        raise UsageError("the settings must be an object of names and values")
    for name in ("properties", "options", "conf"):
        if isinstance(document.get(name), dict):
            document = document[name]
    return dict(_flatten(document, "", 0))


def _flatten(document: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        raise UsageError(f"the settings are nested more than {_MAX_DEPTH} deep")
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, value if isinstance(value, str) else json.dumps(value, default=str)


def _parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of lines such as `name=value`, `name: value` and, as in spark-defaults.conf, `name value`."""
    for line in text.replace("\\\n", "").splitlines():
        match = _PROPERTY.fullmatch(line)
        if match and not line.lstrip().startswith(("#", "!")):
            yield re.sub(r"\\(.)", r"\1", match[1]), match[2].strip()


def _is_true(key: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise UsageError(f"{key} must be true or false, not {value!r}")
    return value.strip().lower() == "true"


def _names(value: str) -> tuple[str, ...]:
    """Return the names of a list: `a, b`, `["a", "b"]` or `ARRAY['a', 'b']`."""
    match = re.fullmatch(r"\s*(?:ARRAY)?\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
    parts = (match[1] if match else value).split(",")
    return tuple(name for part in parts if (name := part.strip().strip("'\"")))
