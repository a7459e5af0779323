"""The state of a table at a version: the result of applying its actions in order (PROTOCOL.md,
"Action Reconciliation"), and what it requires of readers and writers ("Valid Feature Names")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.delta.actions import Action, count_of, decode, texts_of, vector_id
from sbbf_tool.extensions.tables.delta.schema import Schema, parse_schema
from sbbf_tool.frozen import Frozen
from sbbf_tool.records import optional, required, strings

_READER_VERSION = 3
_WRITER_VERSION = 7
"""The versions from which a table names its features; they are also the highest ones."""

_READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
}
_WRITABLE = _READABLE | {
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "inCommitTimestamp-preview",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
}
"""Features with which a commit that replaces files by copies, and carries every field of their
actions, stays valid."""

_REASONS = {
    "catalogManaged": "commits of the table go through its catalog",
    "catalogOwned-preview": "commits of the table go through its catalog",
    "coordinatedCommits-preview": "commits of the table go through its commit coordinator",
    "managedCommit-preview": "commits of the table go through its commit coordinator",
    "redirectReaderWriter-preview": "the table redirects to another one",
    "redirectWriterOnly-preview": "the table redirects to another one",
}
_UNKNOWN = "sbbf does not know this feature"


class Protocol(Frozen):
    """What a table requires. Tables with lower versions than 3 and 7 have fixed sets of features,
    all of which are supported."""

    reader_version: int
    writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


def parse_protocol(fields: Mapping[str, Any]) -> Protocol:
    """Parse the action `protocol`. Raises UnreadableError."""
    reader = required(fields, "minReaderVersion", int)
    writer = required(fields, "minWriterVersion", int)
    if optional(fields, "readerFeatures", list) and reader < _READER_VERSION:
        raise UnreadableError(
            f"readerFeatures need minReaderVersion {_READER_VERSION}, not {reader}"
        )
    return Protocol(
        reader, writer, strings(fields, "readerFeatures"), strings(fields, "writerFeatures")
    )


def ensure_readable(protocol: Protocol) -> None:
    """Raise RefusedError, with the feature's name, if the log cannot be interpreted with
    certainty."""
    for feature in protocol.reader_features:
        if feature not in _READABLE:
            reason = _REASONS.get(feature, _UNKNOWN)
            raise RefusedError(f"the table requires the reader feature {feature}: {reason}")
    if protocol.reader_version > _READER_VERSION:
        version = str(protocol.reader_version)[:40]
        raise RefusedError(
            f"the table requires reader version {version}; sbbf supports up to {_READER_VERSION}"
        )


Key = tuple[str, str | None]
"""Decoded path, and id of the deletion vector: what identifies a logical file."""


class DeltaMetadata(Frozen):
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
    """The state of a table. `is_wanted` returns whether the whole action of the file with this path
    in the log is kept."""

    is_wanted: Callable[[str], bool] | None = None
    version: int = -1
    files: dict[Key, FileEntry] = field(default_factory=dict)
    _protocol: Protocol | Action | None = None
    _metadata: DeltaMetadata | Action | None = None
    _partitions: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = field(
        default_factory=dict
    )

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
        has_row_ids = optional(fields, "baseRowId", int) is not None
        vector = optional(fields, "deletionVector", dict)
        size = count_of(fields, "size")
        action = fields if is_wanted else None
        entry = FileEntry(path, size, shared, has_row_ids, vector, action)
        self.files[decode(path), vector_id(fields)] = entry

    def ensure_complete(self) -> tuple[Protocol, DeltaMetadata]:
        """Return protocol and metadata, which every table has; only the last ones count.

        Raises UnreadableError, and RefusedError for features that change how the log is read.
        """
        if self._protocol is None:
            raise UnreadableError("the log has no action protocol")
        if self._metadata is None:
            raise UnreadableError("the log has no action metaData")
        if not isinstance(self._protocol, Protocol):
            with ErrorPlace(None, "protocol"):
                self._protocol = parse_protocol(self._protocol)
        ensure_readable(self._protocol)
        if not isinstance(self._metadata, DeltaMetadata):
            with ErrorPlace(None, "metaData"):
                self._metadata = parse_metadata(self._metadata)
        return self._protocol, self._metadata

    def ensure_changeable(self) -> None:
        """Raise RefusedError, with the feature's name, if a commit could break the table."""
        protocol, metadata = self.ensure_complete()
        for feature in protocol.writer_features:
            if feature not in _WRITABLE:
                reason = _REASONS.get(feature, _UNKNOWN)
                raise RefusedError(f"the table requires the writer feature {feature}: {reason}")
        if protocol.writer_version > _WRITER_VERSION:
            version = str(protocol.writer_version)[:40]
            raise RefusedError(
                f"the table requires writer version {version}; sbbf supports up to "
                f"{_WRITER_VERSION}"
            )
        for feature in (
            "coordinatedCommits.commitCoordinator-preview",
            "redirectReaderWriter-preview",
            "redirectWriterOnly-preview",
        ):
            if metadata.properties.get(f"delta.{feature}"):
                reason = _REASONS.get(feature, _REASONS["managedCommit-preview"])
                raise RefusedError(f"the table has the property delta.{feature}: {reason}")


def parse_metadata(fields: Mapping[str, Any]) -> DeltaMetadata:
    """Parse the action `metaData`. Raises UnreadableError, and RefusedError if the data files are
    not Parquet."""
    provider = optional(optional(fields, "format", dict) or {}, "provider", str)
    if provider is not None and provider.lower() != "parquet":
        raise RefusedError(f"the data files of the table are {provider!r:.40}, not Parquet")
    properties = {
        name: text for name, text in texts_of(fields, "configuration").items() if text is not None
    }
    mode = properties.get("delta.columnMapping.mode", "none").lower()
    schema = parse_schema(required(fields, "schemaString", str), mode)
    return DeltaMetadata(properties, strings(fields, "partitionColumns"), schema)
