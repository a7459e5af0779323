"""What a table may require of its readers and writers (PROTOCOL.md, "Table Features"). Anything unknown is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.records import optional, required, strings

_READER_VERSION, _WRITER_VERSION = 3, 7
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
"""Features with which a commit that replaces files by copies, and carries every field of their actions, stays valid."""

_REASONS = {
    "catalogManaged": "commits of the table go through its catalog",
    "catalogOwned-preview": "commits of the table go through its catalog",
    "coordinatedCommits-preview": "commits of the table go through its commit coordinator",
    "managedCommit-preview": "commits of the table go through its commit coordinator",
    "redirectReaderWriter-preview": "the table redirects to another one",
    "redirectWriterOnly-preview": "the table redirects to another one",
}
_UNKNOWN = "sbbf does not know this feature"


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a table requires. Tables with lower versions than 3 and 7 have fixed sets of features, all of which are supported."""

    reader_version: int
    writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


def parse_protocol(fields: Mapping[str, Any]) -> Protocol:
    """Parse the action `protocol`. Raises UnreadableError."""
    reader, writer = required(fields, "minReaderVersion", int), required(fields, "minWriterVersion", int)
    if optional(fields, "readerFeatures", list) and reader < _READER_VERSION:
        raise UnreadableError(f"readerFeatures need minReaderVersion {_READER_VERSION}, not {reader}")
    return Protocol(reader, writer, strings(fields, "readerFeatures"), strings(fields, "writerFeatures"))


def ensure_readable(protocol: Protocol) -> None:
    """Raise RefusedError, with the feature's name, if the log cannot be interpreted with certainty."""
    for feature in protocol.reader_features:
        if feature not in _READABLE:
            raise RefusedError(f"the table requires the reader feature {feature}: {_REASONS.get(feature, _UNKNOWN)}")
    if protocol.reader_version > _READER_VERSION:
        raise RefusedError(f"the table requires reader version {str(protocol.reader_version)[:40]}; sbbf supports up to {_READER_VERSION}")


def ensure_changeable(protocol: Protocol, properties: Mapping[str, str]) -> None:
    """Raise RefusedError, with the feature's name, if a commit could break the table."""
    for feature in protocol.writer_features:
        if feature not in _WRITABLE:
            raise RefusedError(f"the table requires the writer feature {feature}: {_REASONS.get(feature, _UNKNOWN)}")
    if protocol.writer_version > _WRITER_VERSION:
        raise RefusedError(f"the table requires writer version {str(protocol.writer_version)[:40]}; sbbf supports up to {_WRITER_VERSION}")
    for name in (
        "delta.coordinatedCommits.commitCoordinator-preview",
        "delta.redirectReaderWriter-preview",
        "delta.redirectWriterOnly-preview",
    ):
        if properties.get(name):
            raise RefusedError(
                f"the table has the property {name}: {_REASONS.get(name.removeprefix('delta.'), _REASONS['managedCommit-preview'])}"
            )
