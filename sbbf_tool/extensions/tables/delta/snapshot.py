"""The state of a table at a version: the result of applying its actions in order (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.delta.actions import Action, count_of, texts_of, vector_id
from sbbf_tool.extensions.tables.delta.features import Protocol, ensure_readable, parse_protocol
from sbbf_tool.extensions.tables.delta.paths import decode
from sbbf_tool.extensions.tables.delta.schema import Schema, parse_schema
from sbbf_tool.records import optional, required, strings

Key = tuple[str, str | None]
"""Decoded path, and id of the deletion vector: what identifies a logical file."""


@dataclass(frozen=True, slots=True)
class DeltaMetadata:
    properties: Mapping[str, str]
    partition_columns: tuple[str, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A live file."""

    path: str
    """As in the log: a URI."""
    bytes: int
    partition: Mapping[str, str | None]
    """By physical names."""
    has_row_ids: bool
    vector: Action | None
    """The descriptor of its deletion vector."""
    action: Action | None
    """The whole action `add`, if the file is one of those whose actions are kept."""


@dataclass
class DeltaSnapshot:
    """The state of a table. `is_wanted` returns whether the whole action of the file with this path in the log is kept."""

    is_wanted: Callable[[str], bool] | None = None
    version: int = -1
    files: dict[Key, FileEntry] = field(default_factory=dict)
    _protocol: Protocol | Action | None = None
    _metadata: DeltaMetadata | Action | None = None
    _partitions: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = field(default_factory=dict)

    def apply(self, actions: Iterable[tuple[str, Action]]) -> None:
        """Apply actions in order; unknown ones change nothing. Raises UnreadableError."""
        for number, (name, fields) in enumerate(actions, 1):
            with ErrorPlace(None, partial("action {}".format, number)):
                self._apply(name, fields)

    def _apply(self, name: str, fields: Action) -> None:
        if name == "add":
            self._add(fields)
        elif name == "remove":
            self.files.pop((decode(required(fields, "path", str)), vector_id(fields)), None)
        elif name == "protocol":
            self._protocol = fields
        elif name == "metaData":
            self._metadata = fields

    def _add(self, fields: Action) -> None:
        path = required(fields, "path", str)
        partition = texts_of(fields, "partitionValues")
        shared = self._partitions.setdefault(tuple(partition.items()), partition)
        is_wanted = self.is_wanted is not None and self.is_wanted(path)
        has_row_ids, vector = optional(fields, "baseRowId", int) is not None, optional(fields, "deletionVector", dict)
        entry = FileEntry(path, count_of(fields, "size"), shared, has_row_ids, vector, fields if is_wanted else None)
        self.files[decode(path), vector_id(fields)] = entry

    def ensure_complete(self) -> tuple[Protocol, DeltaMetadata]:
        """Return protocol and metadata, which every table has; only the last ones count.

        Raises UnreadableError, and RefusedError for features that change how the log is read.
        """
        if self._protocol is None or self._metadata is None:
            raise UnreadableError(f"the log has no action {'protocol' if self._protocol is None else 'metaData'}")
        if not isinstance(self._protocol, Protocol):
            with ErrorPlace(None, "protocol"):
                self._protocol = parse_protocol(self._protocol)
        ensure_readable(self._protocol)
        if not isinstance(self._metadata, DeltaMetadata):
            with ErrorPlace(None, "metaData"):
                self._metadata = parse_metadata(self._metadata)
        return self._protocol, self._metadata


def parse_metadata(fields: Mapping[str, Any]) -> DeltaMetadata:
    """Parse the action `metaData`. Raises UnreadableError, and RefusedError if the data files are not Parquet."""
    provider = optional(optional(fields, "format", dict) or {}, "provider", str)
    if provider is not None and provider.lower() != "parquet":
        raise RefusedError(f"the data files of the table are {provider!r:.40}, not Parquet")
    properties = {name: text for name, text in texts_of(fields, "configuration").items() if text is not None}
    mode = properties.get("delta.columnMapping.mode", "none").lower()
    schema = parse_schema(required(fields, "schemaString", str), mode)
    return DeltaMetadata(properties, strings(fields, "partitionColumns"), schema)
