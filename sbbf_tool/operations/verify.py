"""`verify`: prove a file's filters against its data. Every stored value must be `maybe`, and every filter what readers expect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.reports.verify import FilterProof, VerifyReport
from sbbf_tool.rules import secrecy, structure, truth
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Prove, Reads, gather
from sbbf_tool.rules.rule import Limits, find_all

if TYPE_CHECKING:
    from sbbf_tool.editing.build import Progress
    from sbbf_tool.file.keys import KeysGiven

RULES = (*truth.RULES, *structure.RULES, *secrecy.RULES)


def verify(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    keys: KeysGiven = None,
    max_page_bytes: MaxPageBytes = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Ask each filter of `columns` (of all columns where empty) for every value of its column chunk.

    Values are streamed. A filter that cannot be read, or whose bytes nobody without a key understands, is reported as unproven; so is
    one whose chunk cannot be decoded, which `unread` lists as well. Raises UnreadableError (not a Parquet file), UsageError (no such
    column), RefusedError (encrypted footer, and no key; a page that states more than `max_page_bytes` uncompressed bytes).
    """
    with ParquetFile.open(path, keys, max_page_bytes) as file:
        chosen = columns_of(file, columns)
        return report_of(file, chosen, _telling(progress, gather(file, chosen, Reads.FOOTER)))


def columns_of(file: ParquetFile, names: Iterable[str]) -> list[Column]:
    """The columns of these names, all where empty. Raises UsageError."""
    with file.named():
        return [find_column(file.footer.columns, name) for name in as_names(names)] or list(file.footer.columns)


def report_of(file: ParquetFile, columns: Sequence[Column], prove: Prove) -> VerifyReport:
    """The report on an open file, in which `prove` answers with the proof of each filter that can be asked."""
    facts = gather(file, columns, Reads.DATA, prove)
    proofs = sorted(
        (chunk.proof or _unproven(column, chunk) for column in facts for chunk in column.filters), key=lambda proof: proof.row_group
    )
    return VerifyReport(
        file=file.name,
        created_by=file.footer.metadata.created_by,
        filters=tuple(proofs),
        findings=find_all(RULES, facts, Limits()),
        unread=unread_chunks(facts),
    )


def _telling(progress: Progress | None, facts: Iterable[ColumnFacts]) -> Prove:
    """`prove`, which then tells how much of the data of all filters is done."""
    from sbbf_tool.file.membership import prove

    sizes = {(chunk.row_group, column.column.index): chunk.chunk_bytes for column in facts for chunk in column.filters}
    total, done = sum(sizes.values()), 0

    def prove_and_tell(file: ParquetFile, stored: StoredFilter, bloom: BloomFilter) -> FilterProof:
        nonlocal done
        proof = prove(file, stored, bloom)
        done += sizes[stored.row_group, stored.column]
        if progress is not None:
            progress(f"proving {proof.column}", done, total)
        return proof

    return prove_and_tell


def unread_chunks(facts: Iterable[ColumnFacts]) -> tuple[str, ...]:
    """Of each chunk whose filter was to be proven and whose pages cannot be decoded: its place, and why."""
    return tuple(
        f"column {column.name}, row group {chunk.row_group}: {chunk.proof.unproven}"
        for column in facts
        for chunk in column.filters
        if chunk.proof is not None and chunk.proof.unproven
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
