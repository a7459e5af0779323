"""The state of a table at a version: the result of applying its actions in order (PROTOCOL.md,
"Action Reconciliation"), and its schema ("Schema Serialization Format", "Column Mapping").

With column mapping, a file has physical names, or field ids by which its columns are found; users
know logical names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.delta.actions import Action, count_of, decode, texts_of, vector_id
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import MAX_DEPTH
from sbbf_tool.parquet.logical import readings_of_texts
from sbbf_tool.records import optional, parse_object, required, strings

Path = tuple[str, ...]
_MODES = ("none", "name", "id")


class DeltaLeaf(Frozen):
    """A column of a primitive type. Paths are without the scaffolding of lists and maps."""

    physical: Path
    logical: Path
    field_id: int | None
    type: str


class Schema(Frozen):
    logical_names: Mapping[str, str]
    """Names that users know, by the physical names of top-level columns."""
    names: ColumnNames
    types: Mapping[str, str]
    """Types of the top-level columns that are primitive, by the names that users know."""


def parse_schema(text: str, mode: str) -> Schema:
    """Parse the schema in a table's metadata, for a mode of column mapping. Raises
    UnreadableError."""
    if mode not in _MODES:
        raise UnreadableError(
            f"delta.columnMapping.mode must be one of {', '.join(_MODES)}, not {mode!r:.40}"
        )
    with ErrorPlace(None, "schemaString"):
        root = parse_object(text.encode(errors="surrogatepass"), "the schema")
        leaves = tuple(_walk(root, (), (), None, {}, mode != "none", 0))
        with_default = {
            required(field, "name", str) for field in _fields(root) if _has_default(field)
        }
        logical_names = {
            _physical_name(field, mode != "none"): required(field, "name", str)
            for field in _fields(root)
        }
        types = {
            required(field, "name", str): kind
            for field in _fields(root)
            if isinstance(kind := field.get("type"), str)
        }
    defaults = frozenset(leaf.logical for leaf in leaves if leaf.logical[0] in with_default)
    by_id, by_path, unmapped = {}, {}, frozenset[Path]()
    if mode == "none":
        unmapped = frozenset(leaf.logical for leaf in leaves)
    else:
        by_id = (
            {leaf.field_id: leaf.logical for leaf in leaves if leaf.field_id is not None}
            if mode == "id"
            else {}
        )
        by_path = {leaf.physical: leaf.logical for leaf in leaves}
    return Schema(
        logical_names,
        ColumnNames(
            by_id,
            by_path,
            unmapped,
            defaults,
            readings_of_texts(root),
            {leaf.logical: leaf.type for leaf in leaves},
        ),
        types,
    )


def _walk(
    kind: Any,
    physical: Path,
    logical: Path,
    field_id: int | None,
    nested_ids: Mapping[str, Any],
    maps: bool,
    depth: int,
) -> Iterator[DeltaLeaf]:
    """Yield the leaves of a type. `nested_ids` are the ids of list elements, keys and values, by
    names such as `col.element`."""
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    if kind == "variant":
        yield from (
            DeltaLeaf((*physical, part), (*logical, part), None, "binary")
            for part in ("metadata", "value")
        )
        return
    if isinstance(kind, str):
        yield DeltaLeaf(physical, logical, field_id, kind)
        return
    if not isinstance(kind, dict):
        raise UnreadableError(f"a type must be a text or an object, not {kind!r:.60}")
    name = kind.get("type")
    if name == "struct":
        for field in _fields(kind):
            metadata = optional(field, "metadata", dict) or {}
            here = _physical_name(field, maps)
            ids = optional(metadata, "delta.columnMapping.nested.ids", dict) or {}
            below = {
                path.removeprefix(here): number
                for path, number in ids.items()
                if isinstance(path, str)
            }
            own_id = optional(metadata, "delta.columnMapping.id", int)
            path = (*logical, required(field, "name", str))
            yield from _walk(
                field.get("type"), (*physical, here), path, own_id, below, maps, depth + 1
            )
    elif name == "array":
        yield from _walk(
            kind.get("elementType"),
            physical,
            logical,
            *_nested(nested_ids, ".element"),
            maps,
            depth + 1,
        )
    elif name == "map":
        for part in ("key", "value"):
            own_id, below = _nested(nested_ids, f".{part}")
            yield from _walk(
                kind.get(f"{part}Type"),
                (*physical, part),
                (*logical, part),
                own_id,
                below,
                maps,
                depth + 1,
            )
    elif name == "udt":
        yield from _walk(
            kind.get("sqlType"), physical, logical, field_id, nested_ids, maps, depth + 1
        )
    else:
        raise UnreadableError(f"unknown type {name!r:.60}")


def _nested(ids: Mapping[str, Any], part: str) -> tuple[int | None, dict[str, Any]]:
    """Return the id of a part of a list or map, and the ids of the parts below it."""
    own_id = ids.get(part)
    return own_id if isinstance(own_id, int) else None, {
        path.removeprefix(part): ids[path] for path in ids if path.startswith(f"{part}.")
    }


def _fields(struct: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = required(struct, "fields", list)
    if not all(isinstance(field, dict) for field in fields):
        raise UnreadableError("the fields of a struct must be objects")
    return fields


def _physical_name(field: Mapping[str, Any], maps: bool) -> str:
    name = required(field, "name", str)
    return (
        optional(optional(field, "metadata", dict) or {}, "delta.columnMapping.physicalName", str)
        if maps
        else None
    ) or name


def _has_default(field: Mapping[str, Any]) -> bool:
    return any(
        name in (optional(field, "metadata", dict) or {})
        for name in ("CURRENT_DEFAULT", "EXISTS_DEFAULT")
    )


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
    reader, writer = (
        required(fields, "minReaderVersion", int),
        required(fields, "minWriterVersion", int),
    )
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
            raise RefusedError(
                f"the table requires the reader feature {feature}: "
                f"{_REASONS.get(feature, _UNKNOWN)}"
            )
    if protocol.reader_version > _READER_VERSION:
        raise RefusedError(
            f"the table requires reader version {str(protocol.reader_version)[:40]}; sbbf "
            f"supports up to {_READER_VERSION}"
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
        has_row_ids, vector = (
            optional(fields, "baseRowId", int) is not None,
            optional(fields, "deletionVector", dict),
        )
        entry = FileEntry(
            path,
            count_of(fields, "size"),
            shared,
            has_row_ids,
            vector,
            fields if is_wanted else None,
        )
        self.files[decode(path), vector_id(fields)] = entry

    def ensure_complete(self) -> tuple[Protocol, DeltaMetadata]:
        """Return protocol and metadata, which every table has; only the last ones count.

        Raises UnreadableError, and RefusedError for features that change how the log is read.
        """
        if self._protocol is None or self._metadata is None:
            raise UnreadableError(
                f"the log has no action {'protocol' if self._protocol is None else 'metaData'}"
            )
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
                raise RefusedError(
                    f"the table requires the writer feature {feature}: "
                    f"{_REASONS.get(feature, _UNKNOWN)}"
                )
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
                raise RefusedError(
                    f"the table has the property delta.{feature}: "
                    f"{_REASONS.get(feature, _REASONS['managedCommit-preview'])}"
                )


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
