"""`IcebergTable`: the current snapshot of the branch `main` of an Iceberg table. Other branches, and tags, keep their files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from sbbf_tool.errors import ErrorPlace
from sbbf_tool.extensions.tables.iceberg import publish, scan
from sbbf_tool.extensions.tables.iceberg.catalog import load_source
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.paths import is_below, is_local, join, open_name, parent
from sbbf_tool.extensions.tables.iceberg.schema import build_column_names, leaves
from sbbf_tool.extensions.tables.iceberg.source import MetadataSource
from sbbf_tool.extensions.tables.lake_table import LakeTable, Replacement
from sbbf_tool.parquet.columns import quote
from sbbf_tool.running.table import Change, Commit, LiveFile


class IcebergTable(LakeTable):
    """One version of an Iceberg table. See `Table`."""

    format = "Iceberg"
    takes_properties = True

    def __init__(self, source: MetadataSource) -> None:
        self._source = source
        self._state = source.load()
        metadata = self._state.metadata
        with ErrorPlace(self._state.location):
            self.name = source.name
            self.location = open_name(metadata.location)
            self.version = f"snapshot {metadata.current.id}" if metadata.current else "no snapshot"
            self.properties = metadata.properties
            self.columns = build_column_names(metadata.schema, metadata.properties)
            self.partition_types = scan.partition_texts(metadata).types
            self.why_unchangeable = source.why_unchangeable
            self._full_names = {leaf.name: leaf.path for leaf in leaves(metadata.schema)}

    def column_of_property(self, name: str) -> str:
        """Return the name of the column: Iceberg counts `element` of a list as a part of the name."""
        return quote(self._full_names[name]) if name in self._full_names else name

    def name_for_property(self, column: str) -> str:
        path = self.columns.path_of(column)
        return next((name for name, full_path in self._full_names.items() if full_path == path), column)

    def live_files(self) -> Iterable[LiveFile]:
        return scan.list_live_files(self._state)

    def all_files(self) -> tuple[Iterable[LiveFile], AbstractSet[str]]:
        return scan.list_all_files(self._state)

    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        publish.ensure_changeable(self._source, self._state)

    def copy_path(self, file: LiveFile, name: str) -> str:
        """Return the path beside the file, or in the table's folder of data if the file is outside the table. A local folder is created."""
        if is_below(file.path, self.location):
            return join(parent(file.path), name)
        with ErrorPlace(self._state.location):
            folder = open_name(self._state.data_folder)
        if is_local(folder):
            with suppress(OSError):  # the writer of the copy reports the error
                os.makedirs(folder, exist_ok=True)
        return join(folder, name)

    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        return publish.Publication(self._source, replacements, change).run()

    def referenced_names(self, names: AbstractSet[str]) -> AbstractSet[str]:
        return scan.find_referenced(self._source.load(), names)


def open_folder(name: str) -> IcebergTable:
    """Open the table in a folder, or below a URL. Raises UnreadableError."""
    return IcebergTable(FolderSource(name))


def open_in_catalog(name: str) -> IcebergTable:
    """Open a table by `CATALOG:NAMESPACE.TABLE`, through PyIceberg. Raises UnreadableError, and UsageError without PyIceberg."""
    return IcebergTable(load_source(name))
