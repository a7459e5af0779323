"""Verify in splits: verify the filters of a large file's row groups separately, and combine the results into one report.

plan     divide the row groups of a file into splits, from its footer
verify   verify each filter of a split
report   combine all results of a file into the row that `verify` returns; if the file has changed, verify all filters again
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import chunk_bytes
from sbbf_tool.file.membership import verify_filter
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName
from sbbf_tool.operations.verify import verify
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import PlannedFile, VerifiedFilter, VerifiedSplit
from sbbf_tool.reports.rows import OK, SKIPPED
from sbbf_tool.reports.verify import FilterVerification, VerifyRow
from sbbf_tool.rules.facts import Reads, gather
from sbbf_tool.rules.verification import report_of
from sbbf_tool.runner.failures import row_of
from sbbf_tool.runner.plan import SPLIT_BYTES, split_row_groups

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike


@dataclass(frozen=True)
class VerifyFile:
    """`verify` as work; a runner may also verify the row groups of one file in separate tasks."""

    columns: tuple[str, ...] = ()
    keys: KeysLike = field(default=None, repr=False)
    max_page_bytes: MaxPageBytes = None
    strict: bool = True

    def __call__(self, path: FileName, **options: Any) -> dict[str, object]:
        limit, strict = self.max_page_bytes, self.strict
        return {"report": verify(path, self.columns, keys=self.keys, max_page_bytes=limit, strict=strict, **options)}


def plan_verification(
    path: FileName, columns: tuple[str, ...] = (), keys: KeysLike = None, split_bytes: int = SPLIT_BYTES, *, strict: bool = True
) -> PlannedFile:
    """Plan the splits in which the filters of these columns (if empty, of all) are verified; the row reports a failure."""
    return row_of(PlannedFile, path, partial(_plan_file, path, columns, keys, split_bytes, strict))


def _plan_file(path: FileName, names: tuple[str, ...], keys: KeysLike, split_bytes: int, strict: bool) -> dict[str, object]:
    with ParquetFile.open(path, keys) as file:
        columns = file.find_columns(names, strict=strict)
        row_groups = range(file.footer.num_row_groups)
        chunks = [
            (row_group, column.index)
            for row_group in row_groups
            for column in columns
            if file.footer.filter_place(row_group, column.index) is not None
        ]
        filtered_columns = {index for _, index in chunks}
        return {
            "bytes": file.source.size,
            "fingerprint": file.fingerprint,
            "columns": tuple(column.name for column in columns if column.index in filtered_columns),
            "filters": len(chunks),
            "data_bytes": sum(chunk_bytes(file, key) for key in chunks),
            "splits": tuple(split_row_groups(file, chunks, split_bytes)),
        }


def verify_split(
    path: FileName,
    planned_fingerprint: str | None,
    row_groups: Iterable[int],
    columns: tuple[str, ...] = (),
    keys: KeysLike = None,
    limit: MaxPageBytes = None,
) -> VerifiedSplit:
    """Verify the filters of these row groups that can be queried; the row is `skipped` if the file changed after the plan."""
    return row_of(VerifiedSplit, path, partial(_verify_row_groups, path, planned_fingerprint, tuple(row_groups), columns, keys, limit))


def _verify_row_groups(
    path: FileName,
    planned_fingerprint: str | None,
    row_groups: tuple[int, ...],
    columns: tuple[str, ...],
    keys: KeysLike,
    limit: MaxPageBytes,
) -> dict[str, object]:
    with ParquetFile.open(path, keys, limit) as file:
        if file.fingerprint != planned_fingerprint:
            return {"status": SKIPPED, "reason": "the file changed after the work on it was planned"}
        # The plan has no splits for a file that lacks all the columns.
        facts = gather(file, file.find_columns(columns, strict=False), Reads.DATA, verify_filter, row_groups)
        filters = (
            VerifiedFilter(column_facts.column.index, chunk.verification)
            for column_facts in facts
            for chunk in column_facts.filters
            if chunk.verification is not None
        )
        return {"fingerprint": planned_fingerprint, "filters": tuple(filters)}


def report_verification(
    path: FileName,
    splits: Iterable[VerifiedSplit],
    columns: tuple[str, ...] = (),
    keys: KeysLike = None,
    limit: MaxPageBytes = None,
    *,
    strict: bool = True,
) -> VerifyRow:
    """Build the row of `verify` from the results of the splits; filters without a result are verified here."""
    return row_of(VerifyRow, path, partial(_report_file, path, splits, as_names(columns), keys, limit, strict))


def _report_file(
    path: FileName, splits: Iterable[VerifiedSplit], columns: tuple[str, ...], keys: KeysLike, limit: MaxPageBytes, strict: bool
) -> dict[str, object]:
    verifications: dict[ChunkKey, FilterVerification] = {}
    planned_fingerprint = None
    for split in splits:
        if split.status == OK:
            planned_fingerprint = split.fingerprint
            verifications |= {(verified.verification.row_group, verified.column): verified.verification for verified in split.filters}
        elif split.status != SKIPPED:
            return {"status": split.status, "reason": split.reason, "exit_code": split.exit_code}
    with ParquetFile.open(path, keys, limit) as file:
        if file.fingerprint != planned_fingerprint:
            verifications.clear()

        def look_up(file: ParquetFile, stored: StoredFilter, bloom: BloomFilter) -> FilterVerification:
            return verifications.get((stored.row_group, stored.column)) or verify_filter(file, stored, bloom)

        return {"report": report_of(file, columns, look_up, strict=strict)}
