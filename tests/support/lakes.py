"""Small lakes for tests: many files, a file of many row groups, and a lake with every kind of
unusable file."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from sbbf_tool.reports.rows import Row
from sbbf_tool.verbs.add_filter import AddReport, add_filters
from sbbf_tool.verbs.verify import verify

ROWS = 200


def table(number: int, rows: int = ROWS) -> pa.Table:
    ids = np.arange(number * rows, (number + 1) * rows)
    return pa.table({"id": ids, "name": [f"u{value}" for value in ids], "x": ids * 0.5})


def small_files(folder: Path, count: int) -> Path:
    """Write files of 200 rows; the ids of file n begin at 200 n."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pq.write_table(table(number), folder / f"part-{number:05d}.parquet")
    return folder


def linked_files(folder: Path, count: int, rows: int = 100) -> Path:
    """Write one file of some kilobytes, and make hard links to it: as many files as there are
    names, in one flat folder.

    A file system has a limit of links to one file, so there is a file per 10,000 names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"part-{number:07d}.parquet"
        if number % 10_000 == 0:
            pq.write_table(table(0, rows).select(["id", "name"]), path)
            source = path
        else:
            os.link(source, path)
    return folder


def partitioned(folder: Path, days: int = 3, regions: tuple[str, ...] = ("eu", "us")) -> Path:
    """Write one file per day and region in the layout of Hive."""
    for day in range(1, days + 1):
        for region in regions:
            small_files(folder / f"dt=2026-01-{day:02d}" / f"region={region}", 1)
    return folder


def large_file(path: Path, row_groups: int, rows_a_group: int = 50_000) -> Path:
    """Write a file whose values do not compress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(row_groups)
    schema = pa.schema([("id", pa.int64()), ("key", pa.int64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for number in range(row_groups):
            ids = np.arange(number * rows_a_group, (number + 1) * rows_a_group)
            writer.write_table(
                pa.table({"id": ids, "key": rng.integers(0, 1 << 62, rows_a_group)}),
                row_group_size=rows_a_group,
            )
    return path


MIXED = {
    "broken": "failed",
    "empty": "failed",
    "encrypted": "refused",
    "filtered": "skipped",
    "good-1": "ok",
    "good-2": "ok",
    "half-filtered": "ok",
    "managed/orders/part": "refused",
    "no-rows": "skipped",
    "no-such-column": "skipped",
    "unreadable-pages": "failed",
}
"""The expected status of each file of `mixed` after adding filters of `id` and `name`."""


def mixed(folder: Path) -> Path:
    """Write sound files among broken, empty, encrypted, filtered and table-managed ones."""
    small_files(folder, 1)
    good = folder / "part-00000.parquet"
    for name in ("good-1", "good-2", "filtered", "half-filtered", "unreadable-pages", "broken"):
        shutil.copyfile(good, folder / f"{name}.parquet")
    good.unlink()
    add_filters(folder / "filtered.parquet", ["id", "name"], in_place=True)
    add_filters(folder / "half-filtered.parquet", ["id"], in_place=True)
    (folder / "empty.parquet").touch()
    unreadable = folder / "broken.parquet"
    unreadable.write_bytes(unreadable.read_bytes()[:-20] + b"\0" * 12 + b"PAR1....")
    _spoil_pages(folder / "unreadable-pages.parquet")
    _encrypted(folder / "encrypted.parquet")
    managed = small_files(folder / "managed" / "orders", 1) / "part-00000.parquet"
    managed.rename(managed.with_name("part.parquet"))
    (folder / "managed" / "orders" / "_delta_log").mkdir()
    pq.write_table(pa.table({"other": [1]}), folder / "no-such-column.parquet")
    pq.write_table(table(0).slice(0, 0), folder / "no-rows.parquet")
    return folder


def _spoil_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + 200] = bytes(200)
    path.write_bytes(data)


class _Base64(pe.KmsClient):
    """Encodes keys instead of wrapping them, which suffices to write an encrypted file."""

    def __init__(self, configuration: pe.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)


def _encrypted(path: Path) -> None:
    configuration = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": ["id", "name"]})
    properties = pe.CryptoFactory(_Base64).file_encryption_properties(
        pe.KmsConnectionConfig(), configuration
    )
    with pq.ParquetWriter(path, table(0).schema, encryption_properties=properties) as writer:
        writer.write_table(table(0))


def statuses(folder: Path, outcomes: Iterable[Row[AddReport]]) -> dict[str, str]:
    """Return the status of each file by its name below the folder, without its extension."""
    return {
        outcome.path.removeprefix(f"{folder}/").removesuffix(".parquet"): outcome.status
        for outcome in outcomes
    }


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder, hidden ones included."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_has_filters(folder: Path, columns: tuple[str, ...]) -> None:
    """Assert that every file is readable, has a verified filter for each of the columns in each row
    group, and left nothing behind."""
    assert not [path for path in folder.rglob(".*") if path.is_file()]
    for path in sorted(folder.rglob("*.parquet")):
        report = verify(path)
        metadata = pq.read_metadata(path)
        expected = {
            (number, column) for number in range(metadata.num_row_groups) for column in columns
        }
        assert {
            (result.row_group, result.column) for result in report.filters if result.is_verified
        } >= expected, path
        pq.read_table(path)
