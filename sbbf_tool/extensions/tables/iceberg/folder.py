"""Tables in folders. Hadoop tables have `metadata/v<N>.metadata.json`, and `version-hint.text` with
an N: the newest version is the last that exists. A commit creates the next file, which must not
exist; local file systems can commit, and object stores are only read.

The metadata of a catalog's table is called `<n>-<uuid>.metadata.json`. Only the catalog knows which
file counts; the one with the largest number is read, and changes are refused.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sbbf_tool.errors import RefusedError, UncertainWriteError, UnreadableError, WriteError
from sbbf_tool.extensions.tables.iceberg.metadata import (
    MAX_METADATA,
    build_metadata,
    parse_metadata,
)
from sbbf_tool.extensions.tables.iceberg.source import (
    CommitConflictError,
    MetadataSource,
    TableState,
    is_local,
    join,
    open_name,
    read_file,
)
from sbbf_tool.running.table import change_properties
from sbbf_tool.storage import local, places
from sbbf_tool.storage.folders import LocalFolders

HINT = "version-hint.text"
_HADOOP_NAME = re.compile(r"v([0-9]{1,18})(?:(?:\.gz)?\.metadata\.json|\.metadata\.json\.gz)")
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CATALOG_NAME = re.compile(
    rf"(?!{_UUID}\.)v?([0-9]{{1,18}})-[0-9A-Za-z-]+(?:(?:\.gz)?\.metadata\.json|\.metadata\.json\.gz)"
)
"""Number and id. An id alone, which may begin with eight digits, is a file that Java will rename to
the version of a Hadoop table."""
_LARGEST_HINT = 1000  # bytes
_BY_CATALOG = (
    "name the table by its catalog: CATALOG:NAMESPACE.TABLE, with the catalog in "
    "PyIceberg's configuration"
)


class FolderSource(MetadataSource):
    """The metadata in the folder of a table."""

    undo_lacks_names = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder = places.absolute(name).rstrip("/")
        self._files = places.open_folders(self._folder)
        self._metadata_folder = join(self._folder, "metadata")

    def load(self) -> TableState:
        try:
            names = self._files.list(self._metadata_folder)
        except OSError as error:
            raise UnreadableError(
                f"cannot be listed: {error.strerror or error}", file=self._metadata_folder
            ) from error
        versions = _hadoop_versions(names)
        if versions:
            name = versions[self._find_version(versions)]
        else:
            name = self._find_catalog_name(names)
        location = join(self._metadata_folder, name)
        metadata = read_file(self._files, location, MAX_METADATA, parse_metadata)
        return TableState(metadata, location, self._files)

    def _find_version(self, versions: Mapping[int, str]) -> int:
        """Return the newest version: the hint may lag behind."""
        hint = self._read_hint()
        version = max(versions)
        if hint.isascii() and hint.isdigit() and int(hint) in versions:
            version = int(hint)
        while version + 1 in versions:
            version += 1
        return version

    def _read_hint(self) -> str:
        try:
            data = self._files.read(join(self._metadata_folder, HINT), _LARGEST_HINT)
            return data.decode("ascii").strip()
        except (OSError, ValueError):
            return ""

    def _find_catalog_name(self, names: Sequence[str]) -> str:
        hint = self._read_hint()
        for name in (hint, f"{hint}.metadata.json"):
            if name in names and _CATALOG_NAME.fullmatch(name):
                return name
        numbers: dict[int, list[str]] = {}
        for name in names:
            match = _CATALOG_NAME.fullmatch(name)
            if match:
                numbers.setdefault(int(match[1]), []).append(name)
        if not numbers:
            raise UnreadableError(
                "not an Iceberg table: the folder metadata has no *.metadata.json", file=self.name
            )
        newest = numbers[max(numbers)]
        if len(newest) > 1:
            raise UnreadableError(
                f"{len(newest)} metadata files have the largest number, and only the table's "
                "catalog knows which of them counts",
                file=self.name,
                hint=_BY_CATALOG,
            )
        return newest[0]

    @property
    def why_unchangeable(self) -> RefusedError | None:
        if not is_local(self._folder):
            reason = (
                "the table is in an object store, where its folder alone does not "
                "permit safe commits"
            )
        elif any(map(_CATALOG_NAME.fullmatch, self._files.list(self._metadata_folder))):
            reason = "the table belongs to a catalog, through which commits must go"
        else:
            return None
        return RefusedError(reason, file=self.name, hint=_BY_CATALOG)

    def ensure_changeable(self, state: TableState) -> None:
        refusal = self.why_unchangeable
        if refusal is not None:
            raise refusal
        where = open_name(state.metadata.location)
        if not is_local(where) or os.path.realpath(where) != os.path.realpath(self._folder):
            raise RefusedError(
                f"the table was moved or copied: its metadata says that it is at {where}",
                file=self.name,
            )
        self._files.ensure_exclusive(self._metadata_folder)

    def commit(
        self,
        state: TableState,
        snapshot: Mapping[str, Any] | None,
        properties: Mapping[str, str | None],
    ) -> None:
        match = _HADOOP_NAME.fullmatch(os.path.basename(state.location))
        assert match is not None, "ensure_changeable refuses other tables"
        version = int(match[1]) + 1
        before = join(join(state.metadata.location, "metadata"), os.path.basename(state.location))
        data = build_metadata(state.metadata, before, snapshot, properties)
        after = change_properties(state.metadata.properties, properties)
        name = f"v{version}.metadata.json"
        if after.get("write.metadata.compression-codec", "none").lower() == "gzip":
            data = gzip.compress(data, mtime=0)
            name = f"v{version}.gz.metadata.json"
        path = join(self._metadata_folder, name)
        if version in _hadoop_versions(self._files.list(self._metadata_folder)):
            raise CommitConflictError
        self._create(path, data)
        self._write_hint(version)

    def _create(self, path: str, data: bytes) -> None:
        try:
            local.remove_stale_checksum(path)
            self._files.create(path, data)
        except FileExistsError:
            raise CommitConflictError from None
        except OSError as error:
            # The file may exist without being durable.
            if not self._has_bytes(path, data):
                raise WriteError(
                    f"cannot be written: {error.strerror or error}", file=path
                ) from error
            raise UncertainWriteError(
                f"the commit was made, but may not be durable: {error.strerror or error}", file=path
            ) from error
        # Hadoop's rename on a local disk replaces an existing file: a Java writer that looked just
        # before may have replaced this one.
        if not self._has_bytes(path, data):
            raise CommitConflictError
        with suppress(OSError):
            local.remove_stale_checksum(path)

    def _has_bytes(self, path: str, data: bytes) -> bool:
        try:
            return self._files.read(path) == data
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UncertainWriteError(
                f"it is unknown whether the commit succeeded: {error.strerror or error}", file=path
            ) from error

    def _write_hint(self, version: int) -> None:
        """Write the hint; readers look for later versions than that of the hint, so the commit is
        valid if this fails."""
        path = join(self._metadata_folder, HINT)
        with suppress(OSError, RefusedError, WriteError):
            # A checksum of the old bytes would make Hadoop's reader fail; without one it does not
            # check.
            local.remove_stale_checksum(path)
            LocalFolders().replace(path, str(version).encode())
            local.remove_stale_checksum(path)

    def undo(self, snapshot_id: int) -> str:
        call = f"CALL CATALOG.system.rollback_to_snapshot('NAMESPACE.TABLE', {snapshot_id})"
        return f"{call} in Spark, with the names of its Hadoop catalog and of the table"


def _hadoop_versions(names: Sequence[str]) -> dict[int, str]:
    """Return the metadata files of a Hadoop table by version; if a version has two files, Iceberg
    reads the one without compression."""
    versions = {}
    for name in sorted(names, key=len, reverse=True):
        match = _HADOOP_NAME.fullmatch(name)
        if match:
            versions[int(match[1])] = name
    return versions
