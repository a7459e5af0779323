"""What a file has under the names of columns that a request names."""

from __future__ import annotations

from collections.abc import Iterable

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import NoColumnError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.reports.named_columns import NamedColumn


def name_columns(file: ParquetFile, names: Iterable[str]) -> tuple[NamedColumn, ...]:
    """Describe what the file has under each of these names. Raises UsageError for a name with several meanings."""
    return tuple(_name_column(file, name) for name in as_names(names))


def _name_column(file: ParquetFile, name: str) -> NamedColumn:
    try:
        return NamedColumn(name, find_column(file.footer.columns, name).type_name)
    except NoColumnError as error:
        return NamedColumn(name, None, str(error))
