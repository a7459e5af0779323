"""What is known of a column that the file does not have: the rows are null in it, or have the
partition's value.

In a table, only its schema makes an absence certain. It is not if the table gives the column a
default value, or if the file may have the column under another name. Of files outside of tables,
the folder may state the value, and other names are those that differ by case or by what follows the
first dot.
"""

from __future__ import annotations

import os
import re
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import ErrorPlace, NoColumnError, SbbfError, UsageError
from sbbf_tool.file.partitions import doubtful_keys, parse_value, partition_values
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.file.texts import text_of
from sbbf_tool.parquet.columns import quote, unquote
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports.rows import NamedColumn

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.storage.places import TableFinder

_ALL_NULL = "the file does not have the column, so that all its rows are null"
_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{4,}-\d{1,2}-\d{1,2}[ T]\d|\d{2}:\d{2}"
_ZONE = r"([Zz]|UTC|:\d\d(\.\d+)?\s*[-+]\d\d(:?\d\d)?)$"
_RELATIVE_ERROR = Decimal("1e-6")
"""Difference below which two numbers may be the same value of a FLOAT."""


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
        if self.partition_type is not None:
            with ErrorPlace(None, f"column {self.name}"):
                may_be_equal = may_be_equal_in_type(stored, value, self.partition_type)
        else:
            may_be_equal = stored is not None and _may_be_equal(stored, value)
        return MAYBE if may_be_equal else ABSENT

    def is_in_all_rows(self, value: object) -> bool:
        """Return whether each row certainly has the value."""
        stored = self.partition_value
        if not self.is_certain:
            return False
        if value is None or stored is None:
            return value is None and stored is None
        if self.partition_type is not None:
            return is_equal_in_type(stored, value, self.partition_type)
        # Without a type, some readers take these texts for null.
        return stored == str(value) and stored not in ("", "null")

    def name_column(self, error: NoColumnError) -> NamedColumn:
        """Describe the column for a report; `error` says that the file lacks it."""
        if self.is_partition:
            return NamedColumn(self.name, "partition")
        reason = str(SbbfError(error.message, hint=error.hint))
        return NamedColumn(self.name, None, reason)


def find_missing(
    file: ParquetFile, name: object, column: str, *, strict: bool, tables: TableFinder
) -> MissingColumn | None:
    """Return what is known of a column that the file lacks; None if that is an error.

    It is an error with `strict`, unless `name`, by which the file was opened, is that of a file in
    a table with a schema. `tables` caches which folders are tables.
    """
    if isinstance(name, TableFile):
        return _find_in_table(file, name, column)
    return None if strict else _find_in_folder(file, column, tables)


def _find_in_folder(file: ParquetFile, column: str, tables: TableFinder) -> MissingColumn:
    """Return what is known of a column that a file outside of tables lacks."""
    if _may_belong_to_table(file, tables):
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


def _may_belong_to_table(file: ParquetFile, tables: TableFinder) -> bool:
    if not file.source.can_reopen:
        return False
    try:
        return tables.managing_table(file.name) is not None
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


def _may_be_equal(stored: str, value: object) -> bool:
    """Return whether a partition value, as text of an unknown type, may equal a value; False is
    certain."""
    if not isinstance(value, str | int | float | Decimal | date):
        return True
    text = _text_of(value)
    if re.search(_TIME, stored) or re.search(_TIME, text):
        return True
    stored = _pad_date(stored.strip())
    text = _pad_date(text.strip())
    if stored.casefold() == text.casefold():
        return True
    if re.fullmatch(_DATE, stored):
        has_digits = any(map(str.isdigit, text))
        return has_digits and not re.fullmatch(_DATE, text)
    stored_number = _number(stored)
    number = _number(text)
    if stored_number is None or number is None:
        return text.startswith(("0x", "0X"))
    if _is_float(stored) or _is_float(text):
        return _are_close(stored_number, number)
    return stored_number == number


def _pad_date(text: str) -> str:
    """Write 2024-1-3, which DuckDB reads as a date, as 2024-01-03."""
    return re.sub(r"(?<=\d-)\d\b", r"0\g<0>", text)


def _are_close(first: Decimal, second: Decimal) -> bool:
    """Return whether two numbers may be the same value of a FLOAT."""
    if not (first.is_finite() and second.is_finite()):
        return True
    try:
        largest = max(abs(first), abs(second))
        return abs(first - second) <= _RELATIVE_ERROR * largest
    except ArithmeticError:
        # One of them is beyond the range of Decimal.
        return True


def is_equal_in_type(stored: str, value: object, type_name: str) -> bool:
    """Return whether a partition value of a table certainly equals a value."""
    text = _text_of(value)
    try:
        key = parse_value(text, type_name)
        stored_key = parse_value(stored, type_name)
    except UsageError:
        return False
    # Bytes have several forms as text, and NaN equals itself for some readers only.
    is_number = isinstance(key, tuple) and isinstance(key[-1], Decimal)
    is_nan = is_number and key[0]
    if key is None or is_nan:
        return False
    if _differ_in_zone(stored, text, type_name):
        return False
    return bool(key == stored_key)


def _text_of(value: object) -> str:
    """Return the text of a value as tables write it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _differ_in_zone(stored: str, text: str, type_name: str) -> bool:
    if not type_name.lower().startswith("timestamp"):
        return False
    has_stored_zone = bool(re.search(_ZONE, stored))
    has_zone = bool(re.search(_ZONE, text))
    return has_stored_zone != has_zone


def may_be_equal_in_type(stored: str | None, value: object, type_name: str) -> bool:
    """Return whether a partition value of a table may equal a value; False is certain. Raises
    UsageError if the type has no such value."""
    text = _text_of(value)
    key = parse_value(text, type_name)
    if stored is None:
        return False
    try:
        stored_key = parse_value(stored, type_name)
    except UsageError:
        return True
    if key is None or _differ_in_zone(stored, text, type_name):
        # Bytes have several forms as text, and a reader may take a timestamp without a zone for
        # local time.
        return True
    if type_name.lower().startswith(("float", "double", "real")):
        return _may_be_equal(stored, text)
    return bool(key == stored_key)


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return None


def _is_float(text: str) -> bool:
    return not re.fullmatch(r"\s*[-+]?\d+\s*", text)
