"""The report of `verify`, built from the facts about a file and the membership checks of its
filters."""

from __future__ import annotations

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.reports.findings import FilterVerification, VerifyReport
from sbbf_tool.rules.catalog import ABOUT_FILTERS, RULES
from sbbf_tool.rules.facts import (
    ChunkFacts,
    ColumnFacts,
    Reads,
    gather,
    locked_columns,
    unreadable_chunks,
)
from sbbf_tool.rules.rule import Limits, find_all

_RULES = tuple(rule for rule in RULES if rule.group in ABOUT_FILTERS)


def report_of(file: ParquetFile, names: tuple[str, ...] = ()) -> VerifyReport:
    """Build the report on the columns with these names, or all.

    Raises the errors of `ParquetFile.find_columns`.
    """
    columns = file.find_columns(names)
    facts = gather(file, columns, Reads.DATA)
    verifications = []
    for column in facts:
        for chunk in column.filters:
            if chunk.verification is None or chunk.is_uninterpreted:
                verifications.append(_unverified(column, chunk))
            else:
                verifications.append(chunk.verification)
    return VerifyReport(
        file=file.name,
        created_by=file.footer.metadata.created_by,
        filters=tuple(sorted(verifications, key=lambda verification: verification.row_group)),
        findings=find_all(_RULES, facts, Limits()),
        named_columns=file.name_columns(names),
        unreadable=unreadable_chunks(facts),
        locked_columns=locked_columns(facts),
    )


def _unverified(column: ColumnFacts, chunk: ChunkFacts) -> FilterVerification:
    assert chunk.place is not None
    stored = chunk.stored
    tried = chunk.verification
    problem = chunk.unreadable or chunk.encryption or chunk.module_defect
    if tried is not None and tried.problem:
        problem = tried.problem
    if problem is None and stored is not None and stored.header.unsupported_reason is not None:
        problem = f"its bits cannot be interpreted: {stored.header.unsupported_reason}"
    return FilterVerification(
        row_group=chunk.row_group,
        column=column.name,
        type=column.column.type_name,
        offset=chunk.place.offset,
        header_bytes=stored and stored.header_bytes,
        bitset_bytes=stored and stored.header.num_bytes,
        stated_length=chunk.place.length,
        cause=None if tried is None else tried.cause,
        explanation=None if tried is None else tried.explanation,
        problem=problem,
    )
