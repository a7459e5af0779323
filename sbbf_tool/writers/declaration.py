"""What the settings of a table or of a writer promise: the columns for which new files get filters.

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
from sbbf_tool.writers import iceberg, paimon, parquet_java, trino
from sbbf_tool.writers.properties import FilterSetting

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
    of_hadoop = parquet_java.parse_properties(settings)
    parts = (iceberg.parse_properties(settings, column_of), of_hadoop, trino.parse_properties(settings))
    names = tuple(dict.fromkeys(column.column for part in parts for column in part.columns))
    # Sizes count whichever property adds the filter.
    first, second = iceberg.parse_properties(settings, column_of, names), parquet_java.parse_properties(settings, names=names)
    sizes = [
        FilterSetting._make(y if x is None else x for x, y in zip(a, b, strict=True))
        for a, b in zip(first.columns, second.columns, strict=True)
    ]
    targets = ((size.column, Target(size.fpp, size.max_bytes)) for size in sizes if size.fpp is not None and size.ndv is None)
    paimon_columns = tuple(column.column for column in paimon.parse_properties(settings).columns)
    return Declaration(names, tuple(targets), of_hadoop.is_for_all, paimon_columns)


def find_declaration(settings: Mapping[str, str], column_of: Callable[[str], str] = str) -> Declaration:
    """Return the filters that settings promise. Raises UsageError if there are none that can be checked."""
    declaration = parse_declaration(settings, column_of)
    if declaration.columns:
        return declaration
    if declaration.is_for_all:
        hint = "name the columns that must have a filter"
        raise UsageError(f"{parquet_java.ENABLED}=true declares filters for all columns, which is not checked", hint=hint)
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
