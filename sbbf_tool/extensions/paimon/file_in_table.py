"""A data file and its table: the table around it, and its columns by their names in the file."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sbbf_tool.extensions.paimon.files import FileIO, parent
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.snapshots import is_table
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, open_table
from sbbf_tool.extensions.paimon.table_schema import TableSchema, indexed_type, resolve_column
from sbbf_tool.storage import places

_MAX_LEVELS = 20


class FileInTable(NamedTuple):
    """A data file, and the table whose latest snapshot has it."""

    table: PaimonTable
    live: IndexedFile

    @property
    def schema(self) -> TableSchema:
        """The schema of the data file. Raises UnreadableError when it is missing."""
        return self.table.schema_of(self.live.file)


def find_table_around(files: FileIO, data_path: str) -> FileInTable | None:
    """Find the table of a data file; None if no table has the file in its latest snapshot.

    Searches the parent directories, up to `_MAX_LEVELS` levels, because partitions are nested
    directories.
    """
    # A path may be relative; an address such as `file:/lake/...` is absolute.
    if ":" not in data_path:
        data_path = places.absolute(data_path)
    directory = data_path
    for _ in range(_MAX_LEVELS):
        directory = parent(directory)
        if not directory:
            return None
        if is_table(files, directory):
            name = data_path.rpartition("/")[2]
            return _find_in_table(open_table(files, directory), name)
    return None


def _find_in_table(table: PaimonTable, name: str) -> FileInTable | None:
    for live in table.live_files:
        if live.file.name == name:
            return FileInTable(table, live)
    return None


def request_in_file(
    table: PaimonTable, live: IndexedFile, request: IndexRequest
) -> IndexRequest | None:
    """Translate a request from current names to the names and types in the schema of a data file.

    Return None if the schema lacks the column.
    """
    indexed, field, _ = resolve_column(table.schema, request.column)
    schema = table.schema_of(live.file)
    stored = schema.field_by_id(field.id)
    if stored is None:
        return None
    renamed = replace(indexed, column=stored.name)
    data_type = indexed_type(schema, renamed)
    if data_type is None:
        return None
    return replace(request, column=str(renamed), type=data_type)
