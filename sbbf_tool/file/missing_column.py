"""What is known of a column that the file does not have: the rows are null in it, or have the
partition's value.

In a table, only its schema makes an absence certain. It is not if the table gives the column a
default value, or if the file may have the column under another name. Of files outside of tables,
the folder may state the value, and other names are those that differ by case or by what follows the
first dot.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import ErrorPlace, NoColumnError, SbbfError, UsageError
from sbbf_tool.file.partition_order import (
    EQUAL,
    is_certainly_equal,
    judge_stated,
    orders_of,
    parse_value,
    text_in_table,
)
from sbbf_tool.file.partitions import doubtful_keys, partition_values
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.file.texts import text_of
from sbbf_tool.parquet.columns import quote, unquote
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.predicates import ANYTHING, Comparison, IsNull, Truth
from sbbf_tool.reports.rows import PARTITION, NamedColumn

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile

_ALL_NULL = "the file does not have the column, so that all its rows are null"


class MissingColumn(NamedTuple):
    """A column of the table, or of other files of a run, that the file does not have."""

    name: str
    reason: str
    """Why all row groups have the same answers."""
    partition_value: str | None = None
    """The value of all rows, if the partition has one."""
    is_partition: bool = False
    """Whether the folder of the file states the value, which may be null."""
    is_certain: bool = True
    """Whether it is known what the rows hold."""
    partition_type: str | None = None
    """Type of the value in a table that states it."""

    def answer(self, value: object) -> str:
        """Return whether the rows may hold a value (text or a Python object; None is null):
        `absent`, `maybe` or `cannot say`."""
        if not self.is_certain:
            return CANNOT_SAY
        if value is None or (isinstance(value, str) and value.lower() == "null"):
            # The value `null` is text if the column holds text.
            is_null = value is None
            has_value = self.is_partition and self.partition_value not in (None, "", "null")
            return ABSENT if is_null and has_value else MAYBE
        stored = self.partition_value
        with ErrorPlace(None, f"column {self.name}"):
            if stored is None:
                if self.partition_type is not None:
                    parse_value(text_in_table(value), self.partition_type)
                return ABSENT
            orders = orders_of(stored, value, self.partition_type)
        return MAYBE if orders & EQUAL else ABSENT

    def is_in_all_rows(self, value: object) -> bool:
        """Return whether each row certainly has the value."""
        stored = self.partition_value
        if not self.is_certain:
            return False
        if value is None or stored is None:
            return value is None and stored is None
        return is_certainly_equal(stored, value, self.partition_type)

    def judge(self, part: Comparison | IsNull) -> Truth:
        """Return what a part of a condition on the column may be."""
        if not self.is_certain:
            return ANYTHING
        return judge_stated(part, self.partition_value, self.partition_type)

    def name_column(self, error: NoColumnError) -> NamedColumn:
        """Describe the column for a report; `error` says that the file lacks it."""
        if self.is_partition:
            return NamedColumn(self.name, PARTITION)
        reason = str(SbbfError(error.message, hint=error.hint))
        return NamedColumn(self.name, None, reason)


def find_missing(file: ParquetFile, column: str, *, strict: bool) -> MissingColumn | None:
    """Return what is known of a column that the file lacks; None if that is an error.

    It is an error with `strict`, unless a folder states its value, or the file is in a table with a
    schema.
    """
    if isinstance(file.path, TableFile):
        return _find_in_table(file, file.path, column)
    missing = _find_in_folder(file, column)
    if strict and not missing.is_partition:
        return None
    return missing


def _find_in_folder(file: ParquetFile, column: str) -> MissingColumn:
    """Return what is known of a column that a file outside of tables lacks."""
    if _may_belong_to_table(file):
        reason = "the file does not have the column, to which its table may give another name"
        return MissingColumn(column, reason, is_certain=False)
    names = {part.casefold() for part in (_first_part(column), column)}
    if file.source.can_reopen:
        folder = os.path.dirname(file.name)
        for name in sorted(names):
            statement = statement_of(folder, name)
            if statement is not None:
                return statement._replace(name=column)
    similar = [other for other in file.footer.columns if other.path[0].casefold() in names]
    if not similar:
        return MissingColumn(column, _ALL_NULL)
    last_part = column.rpartition(".")[2].casefold()
    # Of the columns of a group, the one with the same last part.
    similar.sort(key=lambda other: other.path[-1].casefold() != last_part)
    reason = (
        f"the file does not have the column, but {similar[0].name}, which readers may take for it"
    )
    return MissingColumn(column, reason, is_certain=False)


@lru_cache(maxsize=1024)
def statement_of(folder: str, name: str) -> MissingColumn | None:
    """Return what a folder states of a column, by its name in lower case. Cached, since the row
    groups of all files in it share it."""
    for key, value in partition_values(f"{folder}/").items():
        if key.casefold() != name:
            continue
        if key in doubtful_keys(f"{folder}/"):
            reason = f"folders state {key} twice, and readers take the first or the last"
            return MissingColumn(key, reason, is_partition=True, is_certain=False)
        reason = f"the folder states {key}={text_of(value)}"
        return MissingColumn(key, reason, value, is_partition=True)
    return None


def _first_part(column: str) -> str:
    try:
        return unquote(column)[0]
    except UsageError:
        return column


def _may_belong_to_table(file: ParquetFile) -> bool:
    if not file.source.can_reopen:
        return False
    try:
        return file.context.reuse.tables.managing_table(file.name) is not None
    except SbbfError:
        # The store denies listing.
        return True


def _find_in_table(file: ParquetFile, name: TableFile, column: str) -> MissingColumn | None:
    """Return what is known of a column that a file of a table lacks; None if the table has no
    schema."""
    if not name.columns.table_paths:
        return None
    path = name.columns.path_of(column)
    if path is None:
        reason = "the file does not have a column of this name"
        return MissingColumn(column, reason, is_certain=False)
    full_name = quote(path)
    footer = file.footer
    why_not_null = name.columns.why_not_null(path, footer.metadata.schema, footer.columns)
    if why_not_null is not None:
        reason = f"the file does not have the column, and {why_not_null}"
        return MissingColumn(full_name, reason, is_certain=False)
    keys = [full_name]
    if len(path) == 1:
        keys += path
    for key in keys:
        value = name.partition.get(key)
        if value is not None:
            reason = f"the value of the partition is {value}"
            partition_type = name.partition_types.get(key)
            return MissingColumn(full_name, reason, value, partition_type=partition_type)
    return MissingColumn(full_name, _ALL_NULL)
