"""What a module of a writer says of the writer, and what several modules write: quoted text, and
properties of tables in SQL."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column
from sbbf_tool.rules.filter_spec import FilterSpec

DICTIONARIES = "parquet-java writes no filter for a chunk whose pages are all dictionary-encoded"


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


def pattern_of(path: str) -> str:
    """Return the pattern of the files with this name.

    The pattern is relative to the working folder if the files are below it.
    """
    name = path
    if os.path.isabs(path):
        with suppress(OSError):  # the working folder is gone
            name = os.path.relpath(path)
    if name.startswith(".."):
        name = path
    if os.path.lexists(path):
        name = glob.escape(name)
    if name.endswith("/") or os.path.isdir(path):
        return f"{name.rstrip('/')}/**"
    return name


class Setting(NamedTuple):
    path: str
    """The path of the column, as writers name it."""
    name: str
    """The name of the column, as this package writes it."""
    ndv: int
    fpp: float
    num_bytes: int
    """The size of the bitset that the writer chooses."""


def specs_of(settings: Sequence[Setting], max_bytes: int | None = None) -> list[FilterSpec]:
    """Return the specs of these columns, by the names that writers use, with one limit in bytes."""
    return [
        FilterSpec((setting.path,), setting.fpp, setting.ndv, max_bytes) for setting in settings
    ]


class Writer(NamedTuple):
    write: Callable[[Sequence[Setting], Request], Iterator[str]]
    comment: str
    notes: tuple[str, ...] = ()
    problem_of: Callable[[Column], str | None] = lambda column: None
    uses_formula: bool = True
    takes_ndv: bool = True
    takes_fpp: bool = True
    has_one_fpp: bool = False
    """Whether all columns have the same FPP."""


def write_text(text: str) -> str:
    """Write a string of Python or TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def write_key(text: str) -> str:
    """Write a key of a properties file."""
    return re.sub(r"([\\=:\s])", r"\\\1", text).replace("\n", "n")


def write_table_properties(properties: Mapping[str, str]) -> Iterator[str]:
    yield "ALTER TABLE my_table SET TBLPROPERTIES ("
    yield from list_properties(properties, " = ")
    yield ");"


def list_properties(properties: Mapping[str, str], sign: str) -> Iterator[str]:
    """Yield a line of SQL for each property, with the sign between its name and its value."""
    lines = []
    for name, value in properties.items():
        text = sign.join(map(write_sql, (name, value)))
        lines.append(f"    {text}")
    return join_lines(lines)


def join_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with commas between them."""
    for line in lines[:-1]:
        yield f"{line},"
    yield lines[-1]


class ColumnSettings(Frozen):
    """What a writer is set to do for one column."""

    column: str
    ndv: int | None
    """None if the writer cannot be given it; so with `fpp`."""
    fpp: float | None
    bitset_bytes: int | None
    """The size that the writer chooses per row group; None if it chooses by other rules."""


class WriterSettings(Frozen):
    """The settings by which a writer adds the filters that are advised or kept to new files."""

    writer: str
    text: str
    """Settings to paste, with the notes as comments."""
    columns: tuple[ColumnSettings, ...]
    notes: tuple[str, ...]
    """Conditions, and what the writer cannot be set to do."""
