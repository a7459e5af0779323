"""Iceberg tables for tests: made by PyIceberg in a catalog on SQLite, turned into Hadoop tables,
and given delete files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyTable

import sbbf_tool
from sbbf_tool.extensions.tables.iceberg import scan
from sbbf_tool.extensions.tables.iceberg.catalog import CatalogSource
from sbbf_tool.extensions.tables.iceberg.commit_plan import NewSnapshot, build_manifest_list
from sbbf_tool.extensions.tables.iceberg.manifest import (
    ADDITION,
    FILE_PATH_ID,
    IcebergEntry,
    build_entry,
    build_manifest,
    parse_manifest_list,
)
from sbbf_tool.extensions.tables.iceberg.source import MetadataSource, TableState, join
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.running.table import Change, Commit, LiveFile
from support.delta_logs import vector_file

ADD = Change("ADD BLOOM FILTERS", ("id",))


def sql_catalog(folder: Path) -> SqlCatalog:
    """A catalog whose tables are in `folder/warehouse`."""
    (folder / "warehouse").mkdir(exist_ok=True)
    catalog = SqlCatalog(
        "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace_if_not_exists("n")
    return catalog


def rows(start: int, count: int, **columns: Any) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "day": [f"d{number % 3}" for number in numbers],
            **columns,
        }
    )


def source_of(catalog: SqlCatalog, name: str = "n.t") -> CatalogSource:
    return CatalogSource(catalog, "lake", name)


def open_table(catalog: SqlCatalog, name: str = "n.t") -> IcebergTable:
    return IcebergTable(source_of(catalog, name))


def make_copies(
    table: IcebergTable, *, columns: Sequence[str] = ("id",), run: str = "1"
) -> list[Replacement]:
    """Give each file that can be replaced a copy with filters."""
    return [
        make_copy(table, file, columns, run)
        for file in table.live_files()
        if file.unchangeable is None
    ]


def make_copy(
    table: IcebergTable, file: LiveFile, columns: Sequence[str] = ("id",), run: str = "1"
) -> Replacement:
    path = table.copy_path(file, f"sbbf-{run}-0-{os.path.basename(file.path)}")
    sbbf_tool.add_filters(file.path, columns=columns, output=path, allow_table_files=True)
    return Replacement(file.path, path, os.path.getsize(path), 0)


def convert(table: IcebergTable, change: Change = ADD) -> Commit:
    return table.commit(make_copies(table), change)


class RacingSource(MetadataSource):
    """A source in which other things happen right before each of the first commits."""

    def __init__(self, source: MetadataSource, *actions: Callable[[], object]) -> None:
        self.source = source
        self.name = source.name
        self.access = source.access
        self.actions = list(actions)

    def load(self) -> TableState:
        return self.source.load()

    def ensure_changeable(self, state: TableState) -> None:
        self.source.ensure_changeable(state)

    def undo(self, snapshot_id: int) -> str:
        return self.source.undo(snapshot_id)

    def commit(
        self, state: TableState, snapshot: Mapping[str, Any], properties: Mapping[str, str]
    ) -> None:
        if self.actions:
            self.actions.pop(0)()
        self.source.commit(state, snapshot, properties)


def to_hadoop(table: PyTable, version: int = 1) -> Path:
    """Make a Hadoop table of a catalog's table, in its folder: the catalog must not be used for it
    any more."""
    folder = Path(table.location().removeprefix("file://"))
    metadata = folder / "metadata"
    data = Path(table.metadata_location.removeprefix("file://")).read_bytes()
    for path in metadata.glob("*.metadata.json"):
        path.unlink()
    (metadata / f"v{version}.metadata.json").write_bytes(data)
    (metadata / "version-hint.text").write_text(str(version))
    return folder


def make_later(table: PyTable, seconds: float) -> int:
    """Let the metadata of a catalog's table be written by a machine whose clock is ahead; return
    the latest time that it states, in milliseconds since 1970."""
    path = Path(table.metadata_location.removeprefix("file://"))
    tree = json.loads(path.read_text())
    ahead = round(1000 * seconds)
    for record in (tree, tree["snapshots"][-1], tree["snapshot-log"][-1]):
        name = "last-updated-ms" if record is tree else "timestamp-ms"
        record[name] = time.time_ns() // 1_000_000 + ahead
    path.write_text(json.dumps(tree))
    latest: int = tree["snapshot-log"][-1]["timestamp-ms"]
    return latest


def times_of(metadata_file: str) -> tuple[int, int]:
    """Return the time of the last update in a metadata file, and the latest of all other times but
    those of its newest snapshot."""
    tree = json.loads(Path(metadata_file.removeprefix("file://")).read_text())
    entries = [*tree["metadata-log"], *tree["snapshots"], *tree["snapshot-log"]]
    times = {entry["timestamp-ms"] for entry in entries}
    updated: int = tree["last-updated-ms"]
    return updated, max(times - {updated})


def newest_metadata(folder: Path) -> Path:
    return max(
        (folder / "metadata").glob("v*.metadata.json"),
        key=lambda path: int(path.name[1:].partition(".")[0]),
    )


def open_static(folder: Path) -> PyTable:
    """A Hadoop table, read by PyIceberg."""
    return StaticTable.from_metadata(str(newest_metadata(folder)))


def ids_of(table: PyTable) -> list[int]:
    """All values of the column `id`, in order, as PyIceberg reads them."""
    ids: list[int] = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    return sorted(ids)


def delete_by_position(
    source: MetadataSource, folder: Path, positions: dict[str, list[int]], *, bounds: bool = True
) -> Path:
    """Commit a position delete file: rows by the location of a data file, as the table spells
    it."""
    pairs = sorted(
        (location, position) for location, numbers in positions.items() for position in numbers
    )
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(FILE_PATH_ID)}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    path = folder / f"deletes-{os.urandom(4).hex()}.parquet"
    pq.write_table(
        pa.table(
            [[location for location, _ in pairs], [position for _, position in pairs]],
            schema=schema,
        ),
        path,
    )
    limits = {"lower_bounds": pairs[0][0], "upper_bounds": pairs[-1][0]} if bounds else {}
    encoded = {
        name: [{"key": FILE_PATH_ID, "value": value.encode()}] for name, value in limits.items()
    }
    add_delete_file(
        source,
        path,
        {"lower_bounds": None, "upper_bounds": None, **encoded, "record_count": len(pairs)},
    )
    return path


def delete_by_value(
    source: MetadataSource, folder: Path, field_id: int, column: str, values: list[int]
) -> None:
    """Commit an equality delete file."""
    path = folder / f"deletes-{os.urandom(4).hex()}.parquet"
    schema = pa.schema([pa.field(column, pa.int64(), False, {"PARQUET:field_id": str(field_id)})])
    pq.write_table(pa.table([values], schema=schema), path)
    add_delete_file(
        source,
        path,
        {
            "content": 2,
            "equality_ids": [field_id],
            "lower_bounds": None,
            "upper_bounds": None,
            "record_count": len(values),
        },
    )


def delete_by_vectors(
    source: MetadataSource, folder: Path, positions: Mapping[str, Sequence[int]], **fields: Any
) -> Path:
    """Commit deletion vectors, all in one Puffin file, for data files given by location; `fields`
    change all entries."""
    path = folder / f"deletes-{os.urandom(4).hex()}.puffin"
    data = b"PFA1"
    blobs = []
    entries = []
    for location, numbers in positions.items():
        vector = vector_file(list(numbers))
        properties = {"referenced-data-file": location, "cardinality": str(len(numbers))}
        blob = {"type": "deletion-vector-v1", "fields": [2147483645], "properties": properties}
        place = {"offset": len(data), "length": len(vector)}
        blobs.append({**blob, **place, "snapshot-id": -1, "sequence-number": -1})
        entry = {
            "file_format": "PUFFIN",
            "referenced_data_file": location,
            "content_offset": len(data),
            "content_size_in_bytes": len(vector),
            "record_count": len(numbers),
            "lower_bounds": None,
            "upper_bounds": None,
        }
        entries.append({**entry, **fields})
        data += vector
    path.write_bytes(data + puffin_footer({"blobs": blobs}))
    add_delete_file(source, path, *entries)
    return path


def puffin_footer(tree: Mapping[str, Any]) -> bytes:
    footer = json.dumps(tree).encode()
    return b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"


def deletes_of(source: MetadataSource) -> tuple[list[IcebergEntry], list[IcebergEntry]]:
    """The entries of the current snapshot's delete manifests: those that are live, and those that
    this snapshot removed."""
    state = source.load()
    assert state.metadata.current is not None
    _, manifests = scan.read_manifest_list(state, state.metadata.current)
    live = []
    removed = []
    for manifest in manifests:
        if manifest.content == 1:
            for entry in scan.open_manifest(state, manifest).entries():
                (removed if entry.status == 2 else live).append(entry)
    return live, removed


def add_delete_file(source: MetadataSource, path: Path, *deletes: Mapping[str, Any]) -> None:
    """Commit a delete file with the partition of the first data file: an entry per delete, with
    these fields."""
    state = source.load()
    metadata = state.metadata
    assert metadata.current is not None
    header, manifests = scan.read_manifest_list(state, metadata.current)
    assert header is not None
    model = scan.open_manifest(state, next(file for file in manifests if file.content == 0))
    snapshot = NewSnapshot.after(metadata, 1000 + len(metadata.snapshots), metadata.last_updated_ms)
    data_entry = next(model.live_entries())
    model_entry = build_entry(data_entry, ADDITION, snapshot.id, metadata.format_version)
    # What a writer of deletes leaves out is null; numbers are those of the commit.
    nulls = dict.fromkeys(
        ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "split_offsets")
    )
    entries = []
    for fields in deletes:
        file = {
            **model_entry["data_file"],
            **nulls,
            "content": 1,
            "file_path": f"file://{path}",
            "file_size_in_bytes": path.stat().st_size,
            **{name: value for name, value in fields.items() if name != "sequence_number"},
        }
        if metadata.format_version > 2:
            file["first_row_id"] = None
        sequence_number = fields.get("sequence_number")
        numbers = {"sequence_number": sequence_number, "file_sequence_number": None}
        entries.append({**model_entry, **numbers, "data_file": file})
    data = build_manifest(model.header, entries, metadata.format_version, of_deletes=True)
    location = join(state.metadata_folder, f"{os.urandom(8).hex()}.avro")
    Path(location.removeprefix("file://")).write_bytes(data)
    record = {
        **model.file.record,
        **dict.fromkeys(
            (
                "existing_files_count",
                "deleted_files_count",
                "existing_rows_count",
                "deleted_rows_count",
            ),
            0,
        ),
        "manifest_path": location,
        "manifest_length": len(data),
        "content": 1,
        "sequence_number": snapshot.sequence_number,
        "min_sequence_number": snapshot.sequence_number,
        "added_snapshot_id": snapshot.id,
        "added_files_count": len(entries),
        "added_rows_count": sum(fields["record_count"] for fields in deletes),
    }
    list_data, added_rows = build_manifest_list(metadata, header, manifests, {}, snapshot)
    complete = _append_record(list_data, record, metadata.format_version)
    location = join(state.metadata_folder, f"snap-{snapshot.id}.avro")
    Path(location.removeprefix("file://")).write_bytes(complete)
    lineage = {}
    if metadata.format_version > 2:
        lineage = {"first-row-id": metadata.next_row_id, "added-rows": added_rows}
    source.commit(
        state,
        {
            "snapshot-id": snapshot.id,
            "parent-snapshot-id": metadata.current.id,
            "sequence-number": snapshot.sequence_number,
            "timestamp-ms": snapshot.timestamp_ms,
            "summary": {**metadata.current.summary, "operation": "overwrite"},
            "manifest-list": location,
            "schema-id": metadata.schema_id,
            **lineage,
        },
        {},
    )


def _append_record(data: bytes, record: dict[str, Any], format_version: int) -> bytes:
    from sbbf_tool.extensions.tables.iceberg.manifest import build_manifest_list as build_list

    header, manifests = parse_manifest_list(data)
    return build_list(
        header, [*(manifest.record for manifest in manifests), record], format_version, {}
    )


def edit_metadata(folder: Path, **fields: Any) -> None:
    """Change fields of the newest metadata of a Hadoop table; `...` removes a field."""
    path = newest_metadata(folder)
    tree = {
        **json.loads(path.read_text()),
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    path.write_text(json.dumps({name: value for name, value in tree.items() if value is not ...}))
