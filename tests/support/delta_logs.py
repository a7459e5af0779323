"""Logs of Delta written by hand, and commits of sbbf with plain copies of data files. No other
implementation is imported here."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import zlib
from base64 import b85encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.running.table import Change, Commit, LiveFile

CHANGE = Change("ADD BLOOM FILTERS", ("id",))


def copies_of(
    table: DeltaTable, files: Iterable[LiveFile] | None = None, run: str = "run-1"
) -> list[Replacement]:
    """Copy live files of a table byte by byte; those that cannot be replaced or are missing are
    left out."""
    replacements = []
    for file in table.live_files() if files is None else files:
        if file.unchangeable is None and os.path.exists(file.path):
            new = _copy_path(table, file, run)
            shutil.copyfile(file.path, new)
            replacements.append(
                Replacement(file.path, new, os.path.getsize(new), 1_700_000_000_000)
            )
    return replacements


def find_copies(table: DeltaTable, run: str = "run-1") -> list[Replacement]:
    """Return the replacements of live files whose copies are beside them."""
    pairs = [(file.path, _copy_path(table, file, run)) for file in table.live_files()]
    return [
        Replacement(old, new, os.path.getsize(new), 1_700_000_000_000)
        for old, new in pairs
        if os.path.exists(new)
    ]


def _copy_path(table: DeltaTable, file: LiveFile, run: str) -> str:
    """Return the path of a copy that has the name of the first file, as those of real runs: a name
    of many runs would be too long."""
    return table.copy_path(
        file, f"sbbf-{run}-{re.sub(r'^(sbbf-[a-z]+-[0-9]+-)+', '', os.path.basename(file.path))}"
    )


def open_table(path: Path | str) -> DeltaTable:
    table = DeltaTable(str(path))
    table.ensure_changeable()
    return table


def commit_copies(path: Path | str, run: str = "run-1") -> Commit:
    """Replace all live files by copies, in one commit."""
    table = open_table(path)
    return table.commit(copies_of(table, run=run), CHANGE)


def actions_of(path: Path, version: int) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    ]


def write_version(path: Path, version: int, *actions: dict[str, Any] | str) -> None:
    """Write a version of a log by hand."""
    lines = [action if isinstance(action, str) else json.dumps(action) for action in actions]
    (path / "_delta_log").mkdir(parents=True, exist_ok=True)
    (path / "_delta_log" / f"{version:020d}.json").write_text(
        "".join(f"{line}\n" for line in lines)
    )


def protocol(
    reader: int = 3, writer: int = 7, features: Iterable[str] = (), writer_only: Iterable[str] = ()
) -> dict[str, Any]:
    names = list(features)
    fields: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader >= 3:
        fields["readerFeatures"] = names
    if writer >= 7:
        fields["writerFeatures"] = [*names, *writer_only]
    return {"protocol": fields}


def metadata(
    configuration: dict[str, str] | None = None,
    fields: list[dict[str, Any]] | None = None,
    by: list[str] | None = None,
) -> dict[str, Any]:
    fields = fields or [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {
        "metaData": {
            "id": "x",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": by or [],
            "configuration": configuration or {},
        }
    }


def add(path: str, **fields: Any) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": 3,
            "modificationTime": 1,
            "dataChange": True,
            **fields,
        }
    }


def remove(path: str, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def before_create(
    table: DeltaTable, monkeypatch: pytest.MonkeyPatch, rival: Callable[[], object], times: int = 1
) -> list[str]:
    """Let `rival` act just before each of the first `times` versions is created; return the list of
    versions that were tried."""
    create = table._folders.create
    tries: list[str] = []

    def create_late(path: str, data: bytes) -> None:
        tries.append(path)
        if len(tries) <= times:
            rival()
        create(path, data)

    monkeypatch.setattr(table._folders, "create", create_late)
    return tries


_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline_vector(rows: list[int]) -> dict[str, Any]:
    """Return a deletion vector of an even number of rows below 65,536, with its content in the
    log."""
    bitmap = struct.pack("<iiHHi", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(
        f"<{len(rows)}H", *rows
    )
    data = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    text = b85encode(data).translate(bytes.maketrans(_B85, _Z85)).decode()
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


def vector_bytes(rows: list[int]) -> bytes:
    """Return a deletion vector."""
    from pyroaring import BitMap64

    data: bytes = struct.pack("<I", 1681511377) + BitMap64(rows).serialize()
    return data


def vector_file(rows: list[int]) -> bytes:
    """Return a deletion vector as it is in a file, with its length and checksum."""
    data = vector_bytes(rows)
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def write_table_with_vector(path: Path, kind: str, rows: list[int]) -> None:
    """Make a table of 40 rows in one file, and delete rows from it by a deletion vector."""
    data = pa.table({"id": pa.array(range(40), pa.int64())})
    path.mkdir(parents=True)
    pq.write_table(data, path / "a.parquet", row_group_size=16)
    file = {"size": (path / "a.parquet").stat().st_size}
    descriptor = inline_vector(rows)
    if kind != "i":
        name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
        folder = path / "ab" if kind == "u" else path / "other place"
        folder.mkdir()
        (folder / name).write_bytes(b"\1" * 7 + vector_file(rows))
        # The name is the example of PROTOCOL.md.
        text = "ab^-aqEH.-t@S}K{vb[*k^" if kind == "u" else f"file://{path}/other%20place/{name}"
        size = len(vector_bytes(rows))
        descriptor = {
            "storageType": kind,
            "pathOrInlineDv": text,
            "offset": 7,
            "sizeInBytes": size,
            "cardinality": len(rows),
        }
    write_version(
        path, 0, protocol(features=["deletionVectors"]), metadata(), add("a.parquet", **file)
    )
    write_version(path, 1, remove("a.parquet"), add("a.parquet", deletionVector=descriptor, **file))
