"""The report of `verify`, made from the facts of a file and the membership checks of its filters."""

from __future__ import annotations

from collections.abc import Sequence

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.reports.verify import FilterProof, VerifyReport
from sbbf_tool.rules import secrecy, structure, truth
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Prove, Reads, gather, unread_chunks
from sbbf_tool.rules.rule import Limits, find_all

_RULES = (*truth.RULES, *structure.RULES, *secrecy.RULES)


def report_of(file: ParquetFile, columns: Sequence[Column], prove: Prove, jobs: int | None = 1) -> VerifyReport:
    """Build the report on an open file; `prove` checks each filter that can be queried, `jobs` of them concurrently."""
    facts = gather(file, columns, Reads.DATA, prove, jobs=jobs)
    proofs = sorted(
        (chunk.proof or _unproven(column, chunk) for column in facts for chunk in column.filters), key=lambda proof: proof.row_group
    )
    return VerifyReport(
        file=file.name,
        created_by=file.footer.metadata.created_by,
        filters=tuple(proofs),
        findings=find_all(_RULES, facts, Limits()),
        unread=unread_chunks(facts),
    )


def _unproven(column: ColumnFacts, chunk: ChunkFacts) -> FilterProof:
    assert chunk.place is not None
    return FilterProof(
        row_group=chunk.row_group,
        column=column.name,
        type=column.column.type_name,
        offset=chunk.place.offset,
        header_bytes=None,
        bitset_bytes=None,
        stated_length=chunk.place.length,
        values=0,
        missed=0,
        examples=(),
        cause=None,
        explanation=None,
        nans_missed=0,
        equals_missed=(),
        intervals_missed=0,
        instants_missed=0,
        estimated_fpp=None,
        measured_fpp=None,
        absent_keys=0,
        unproven=chunk.unreadable or chunk.encryption or chunk.sealing,
    )
