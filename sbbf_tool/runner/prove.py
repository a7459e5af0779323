"""Verify in pieces: verify the filters of a large file's row groups separately, and combine the results into one report.

plan     the footer -> row groups whose filters are verified together
prove    a piece -> the result of each filter
report   all results of a file -> the same row as `verify` makes; where the file changed in between, all filters are verified again
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import chunk_bytes
from sbbf_tool.file.membership import prove
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.operations.verify import verify
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import PlannedFile, ProvenFilter, ProvenPiece
from sbbf_tool.reports.rows import OK, SKIPPED
from sbbf_tool.reports.verify import FilterProof, VerifyRow
from sbbf_tool.rules.facts import Reads, gather
from sbbf_tool.rules.verification import report_of
from sbbf_tool.runner.failures import row_of
from sbbf_tool.runner.plan import PIECE_BYTES, pieces_of

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


@dataclass(frozen=True)
class VerifyFile:
    """`verify` as work; a runner may also verify the row groups of one file in separate tasks."""

    columns: tuple[str, ...] = ()
    keys: KeysGiven = None
    max_page_bytes: MaxPageBytes = None

    def __call__(self, path: str, **options: Any) -> dict[str, object]:
        return {"report": verify(path, self.columns, keys=self.keys, max_page_bytes=self.max_page_bytes, **options)}


def plan_proofs(path: str, columns: tuple[str, ...] = (), keys: KeysGiven = None, piece_bytes: int = PIECE_BYTES) -> PlannedFile:
    """Plan the pieces in which the filters of these columns (of all, where empty) are verified; a reason where the status is not `ok`."""
    return row_of(PlannedFile, path, partial(_planned, path, columns, keys, piece_bytes))


def _planned(path: str, columns: tuple[str, ...], keys: KeysGiven, piece_bytes: int) -> dict[str, object]:
    with ParquetFile.open(path, keys) as file:
        chosen = file.columns_named(columns)
        numbers = range(file.footer.num_row_groups)
        chunks = [(number, one.index) for number in numbers for one in chosen if file.footer.filter_place(number, one.index) is not None]
        return {
            "bytes": file.source.size,
            "fingerprint": file.fingerprint,
            "columns": tuple(one.name for one in chosen if any(index == one.index for _, index in chunks)),
            "filters": len(chunks),
            "data_bytes": sum(chunk_bytes(file, key) for key in chunks),
            "pieces": tuple(pieces_of(file, chunks, piece_bytes)),
        }


def prove_piece(
    path: str,
    print_of_plan: str | None,
    row_groups: Iterable[int],
    columns: tuple[str, ...] = (),
    keys: KeysGiven = None,
    limit: MaxPageBytes = None,
) -> ProvenPiece:
    """Verify those filters of these row groups that can be queried; the row is `skipped` where the file changed since the plan."""
    return row_of(ProvenPiece, path, partial(_proven, path, print_of_plan, tuple(row_groups), columns, keys, limit))


def _proven(
    path: str, print_of_plan: str | None, row_groups: tuple[int, ...], columns: tuple[str, ...], keys: KeysGiven, limit: MaxPageBytes
) -> dict[str, object]:
    with ParquetFile.open(path, keys, limit) as file:
        if file.fingerprint != print_of_plan:
            return {"status": SKIPPED, "reason": "the file changed after it was planned"}
        facts = gather(file, file.columns_named(columns), Reads.DATA, prove, row_groups)
        proofs = [ProvenFilter(one.column.index, chunk.proof) for one in facts for chunk in one.filters if chunk.proof is not None]
        return {"fingerprint": print_of_plan, "proofs": tuple(proofs)}


def report_proofs(
    path: str, pieces: Iterable[ProvenPiece], columns: tuple[str, ...] = (), keys: KeysGiven = None, limit: MaxPageBytes = None
) -> VerifyRow:
    """Make the row of `verify` from the results of the pieces; filters without a result are verified here."""
    return row_of(VerifyRow, path, partial(_reported, path, pieces, columns, keys, limit))


def _reported(
    path: str, pieces: Iterable[ProvenPiece], columns: tuple[str, ...], keys: KeysGiven, limit: MaxPageBytes
) -> dict[str, object]:
    known: dict[ChunkKey, FilterProof] = {}
    print_of_plan = None
    for piece in pieces:
        if piece.status == OK:
            print_of_plan = piece.fingerprint
            known.update({(one.proof.row_group, one.column): one.proof for one in piece.proofs})
        elif piece.status != SKIPPED:
            return {"status": piece.status, "reason": piece.reason, "exit_code": piece.exit_code}
    with ParquetFile.open(path, keys, limit) as file:
        if file.fingerprint != print_of_plan:
            known.clear()

        def look_up(file: ParquetFile, stored: StoredFilter, bloom: BloomFilter) -> FilterProof:
            return known.get((stored.row_group, stored.column)) or prove(file, stored, bloom)

        return {"report": report_of(file, file.columns_named(columns), look_up)}
