"""`check --declared` and `--declared-by`: the filters that settings of a table or a writer promise, and the answer about them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport
    from sbbf_tool.tables.table import Table
    from sbbf_tool.writers.declaration import Declaration

_MAX_BYTES = 16 << 20

_OPTIONS = (
    click.option(
        "--declared", "by_properties", is_flag=True, help="Require the filters that the properties of the table promise; run no other rule."
    ),
    click.option(
        "--declared-by",
        metavar="FILE",
        help="Require the filters that this file of properties, JSON or TOML promises (Iceberg, Spark, Hudi, Trino); run no other rule.",
    ),
)


def declaration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class DeclaredFilters:
    """The columns that settings promise filters for, and how many files have them."""

    def __init__(self, declaration: Declaration, source: str) -> None:
        self.columns = declaration.columns
        self.targets = declaration.targets
        self._source = os.path.basename(source.rstrip("/"))
        self._files = 0
        self._incomplete_files = 0
        self._weak_files = 0
        self._files_by_column: Counter[str] = Counter()

    def add(self, report: CheckReport) -> None:
        """Count a file that was checked."""
        from sbbf_tool.rules.policy import FPP_ABOVE_LIMIT, MISSING_FILTER

        columns = {finding.column for finding in report.findings if finding.rule == MISSING_FILTER and finding.column}
        self._files += 1
        self._weak_files += any(finding.rule == FPP_ABOVE_LIMIT for finding in report.findings)
        self._incomplete_files += bool(columns)
        self._files_by_column.update(columns)

    def describe(self) -> str:
        """Return the answer in one line."""
        files = format_count(self._files, "file")
        weak = f"; weaker than declared in {self._weak_files:,} of {files}" if self._weak_files else ""
        if not self._incomplete_files:
            return f"{self._source}: all declared filters exist: {', '.join(self.columns)} in {files}{weak}"
        columns = ", ".join(f"{column} in {count:,}" for column, count in self._files_by_column.most_common())
        return f"{self._source}: declared but missing in {self._incomplete_files:,} of {files}: {columns}{weak}"

    def totals(self) -> dict[str, object]:
        return {
            "columns": list(self.columns),
            "files": self._files,
            "files_without": self._incomplete_files,
            "files_weaker": self._weak_files,
            "files_without_by_column": dict(self._files_by_column),
        }


def choose_declaration(table: Callable[[], Table | None], by_properties: bool, declared_by: str | None) -> DeclaredFilters | None:
    """Return what the options choose; None without them. Raises UsageError."""
    if by_properties and declared_by is not None:
        raise click.UsageError("give either --declared or --declared-by")
    if declared_by is not None:
        return _read_declaration(declared_by, table())
    if not by_properties:
        return None
    from sbbf_tool.writers.declaration import find_declaration

    table_of_path = table()
    if table_of_path is None:
        raise click.UsageError("--declared takes one table as its PATH; for files, --declared-by names a file of settings")
    try:
        declaration = find_declaration(table_of_path.properties, table_of_path.column_of_property)
    except UsageError as error:
        raise error.at(file=table_of_path.name) from None
    return DeclaredFilters(declaration, redact(table_of_path.name))


def _read_declaration(path: str, table: Table | None) -> DeclaredFilters:
    """Read the file of --declared-by. Raises UsageError if it cannot be read, or declares no filter."""
    from sbbf_tool.storage.system_errors import reason_of
    from sbbf_tool.writers.declaration import find_declaration, parse_settings

    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise UsageError(reason_of(error), file=path) from None
    except UnicodeDecodeError as error:
        raise UsageError("the file is not UTF-8 text", file=path, place=f"byte {error.start}") from None
    if len(data) > _MAX_BYTES:
        raise UsageError(f"the file is larger than {_MAX_BYTES >> 20} MiB", file=path)
    try:
        settings = parse_settings(text, os.path.splitext(path)[1].lower())
        return DeclaredFilters(find_declaration(settings, str if table is None else table.column_of_property), path)
    except UsageError as error:
        raise error.at(file=path) from None
