"""Small Paimon tables, written without Paimon: schema, data files, manifests and snapshots in the
layout of Paimon 0.9."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.extensions.avro.file import AvroHeader, build_file
from sbbf_tool.extensions.paimon.corpus import (
    ENTRY_FIELDS,
    FILE_FIELDS,
    LIST_FIELDS,
    avro_header,
    describe_file,
    nullable,
    record,
)
from sbbf_tool.extensions.paimon.manifest import build_list_record
from sbbf_tool.extensions.paimon.partition import build_row
from sbbf_tool.extensions.paimon.table_schema import parse_table_schema, parse_type_text

ALL_LIST_FIELDS = {**LIST_FIELDS, "_MIN_BUCKET": nullable("int"), "_MAX_BUCKET": nullable("int")}


def manifest_header(extra: Mapping[str, object] | None = None) -> AvroHeader:
    """Return the schema of manifests; `extra` fields go into the description of the file."""
    return avro_header(
        {**ENTRY_FIELDS, "_FILE": record("record__FILE", {**FILE_FIELDS, **(extra or {})})},
        "zstandard",
    )


@dataclass
class NewFile:
    """A data file to be added: its columns, and its index in the manifest."""

    columns: Mapping[str, pa.Array]
    schema_id: int = 0
    partition: tuple[Any, ...] = ()
    embedded: bytes | None = None
    extra_files: tuple[str, ...] = ()
    external_path: str | None = None
    name: str = ""
    path: Path = field(default=Path(), compare=False)


@dataclass
class TableMaker:
    """A table below `root`. Each `commit` makes a snapshot that adds data files, each `drop` one
    that removes them."""

    root: Path
    fields: Sequence[tuple[str, str]]
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    extra_file_fields: Mapping[str, object] = field(default_factory=dict)
    extra_list_fields: Mapping[str, object] = field(default_factory=dict)
    extra_snapshot_fields: Mapping[str, object] = field(default_factory=dict)
    manifest_suffix: str = ""
    snapshots: int = 0
    manifests: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    committed: list[NewFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("schema", "snapshot", "manifest"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self.put_schema(0, [(at, name, kind) for at, (name, kind) in enumerate(self.fields)])

    def put_schema(self, schema_id: int, fields: Sequence[tuple[int, str, Any]]) -> None:
        """Return fields with their numbers, names and types."""
        tree = {
            "version": 3,
            "id": schema_id,
            "fields": [{"id": number, "name": name, "type": kind} for number, name, kind in fields],
            "highestFieldId": len(fields),
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
            "timeMillis": 0,
        }
        (self.root / "schema" / f"schema-{schema_id}").write_text(json.dumps(tree))

    def commit(self, *files: NewFile, directory: str = "bucket-0") -> None:
        """Make a snapshot with these files; write their Parquet data below `directory`."""
        for new in files:
            new.name = (
                new.name
                or f"data-{zlib.crc32(str(self.root).encode()):08x}-{len(self.committed)}.parquet"
            )
            new.path = (
                Path(new.external_path) if new.external_path else self.root / directory / new.name
            )
            new.path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(dict(new.columns)), new.path)
            self.committed.append(new)
        self._snapshot(
            [self._entry(0, new) for new in files], sum(self._rows(new) for new in files)
        )

    def drop(self, *files: NewFile) -> None:
        self._snapshot(
            [self._entry(1, new) for new in files], -sum(self._rows(new) for new in files)
        )

    @staticmethod
    def _rows(new: NewFile) -> int:
        return len(next(iter(new.columns.values())))

    def _entry(self, kind: int, new: NewFile) -> dict[str, Any]:
        file = describe_file(
            new.name,
            new.path.stat().st_size,
            self._rows(new),
            _SCHEMA_ID=new.schema_id,
            _EXTRA_FILES=list(new.extra_files),
            _EMBEDDED_FILE_INDEX=new.embedded,
            _EXTERNAL_PATH=new.external_path,
            **dict.fromkeys(self.extra_file_fields),
        )
        return {
            "_VERSION": 2,
            "_KIND": kind,
            "_PARTITION": self._partition(new),
            "_BUCKET": 0,
            "_TOTAL_BUCKETS": -1,
            "_FILE": file,
        }

    def _partition(self, new: NewFile) -> bytes:
        types = dict(self.fields)
        return build_row(
            new.partition, [parse_type_text(types[key]) for key in self.partition_keys]
        )

    def _snapshot(self, entries: list[dict[str, Any]], rows: int) -> None:
        self.snapshots += 1
        self.rows += rows
        number = self.snapshots
        manifest = build_file(manifest_header(self.extra_file_fields), entries)
        schema = parse_table_schema((self.root / "schema" / "schema-0").read_bytes())
        pairs = [(entry["_KIND"], entry) for entry in entries]
        list_entry = build_list_record(
            ALL_LIST_FIELDS,
            f"manifest-{number}{self.manifest_suffix}",
            len(manifest),
            pairs,
            schema,
        )
        list_entry |= dict.fromkeys(self.extra_list_fields)
        header = avro_header({**ALL_LIST_FIELDS, **self.extra_list_fields}, "zstandard")
        folder = self.root / "manifest"
        (folder / list_entry["_FILE_NAME"]).write_bytes(manifest)
        (folder / f"manifest-list-{number}-0").write_bytes(build_file(header, self.manifests))
        (folder / f"manifest-list-{number}-1").write_bytes(build_file(header, [list_entry]))
        self.manifests.append(list_entry)
        snapshot = {
            "version": 3,
            "id": number,
            "schemaId": max(
                int(path.name.removeprefix("schema-")) for path in (self.root / "schema").iterdir()
            ),
            "baseManifestList": f"manifest-list-{number}-0",
            "deltaManifestList": f"manifest-list-{number}-1",
            "changelogManifestList": None,
            "commitUser": "test",
            "commitIdentifier": number,
            "commitKind": "APPEND",
            "timeMillis": 1_700_000_000_000 + number,
            "logOffsets": {},
            "totalRecordCount": self.rows,
            "deltaRecordCount": rows,
            "changelogRecordCount": 0,
            **self.extra_snapshot_fields,
        }
        (self.root / "snapshot" / f"snapshot-{number}").write_text(json.dumps(snapshot))
        (self.root / "snapshot" / "LATEST").write_text(str(number))


NewTable = Callable[..., TableMaker]
"""The fixture `new_table`."""


def columns(first: int = 0) -> dict[str, pa.Array]:
    return {
        "id": pa.array(range(first, first + 50)),
        "s": pa.array([f"value {at}" for at in range(first, first + 50)]),
    }


def contents(root: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
