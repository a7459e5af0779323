"""`probe`: may these values be in the file? Reads the footer, and of each filter the header and the blocks that the values select."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, block_index, check_block
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.literals import Literal
from sbbf_tool.reports.probe import ProbeReport, RowGroupAnswer, ValueAnswer

NO_FILTER = "no filter"

# One read of a whole bitset costs about as much as this many reads of a block.
_BLOCKS_PER_BITSET_READ = 64
_MANY_HASHES = 1024
"""They select more blocks than that, and to find out which would cost more than the answer."""


def probe(path: str | os.PathLike[str], column: str, values: Iterable[object]) -> ProbeReport:
    """What the filters of `column` say of each value, row group by row group.

    Values are text as a person writes it, or Python objects (`parse_object`); None asks for null. `absent` is certain, everything
    else is not. Raises UsageError (no such column, a value it cannot hold) and UnreadableError (a filter that contradicts the format).
    """
    listed = tuple(values)
    with ParquetFile.open(path) as file:
        with file.named():
            found = find_column(file.footer.columns, column)
            question = question_of(found, listed)
        by_row_group = [ask_row_group(file, number, question) for number in range(file.footer.num_row_groups)]
        return ProbeReport(
            file=file.name,
            column=found.name,
            type=found.type_name,
            values=tuple(
                ValueAnswer(literal.text, tuple(answers[at] for answers in by_row_group), literal.note)
                for at, literal in enumerate(question.literals)
            ),
            bytes_read=file.source.bytes_read,
        )


class Question(NamedTuple):
    """Values as a column would hold them, and the hashes of each one's forms."""

    column: Column
    values: tuple[object, ...]
    literals: list[Literal]
    hashes: list[list[int]]


# Over a lake the same values are asked of column after column that is the same.
_last: Question | None = None


def question_of(column: Column, values: tuple[object, ...]) -> Question:
    """What to ask of a column for these values: see `probe`."""
    global _last
    # 1, 1.0 and True are equal and are not the same question, so their types count too.
    if _last is None or _last.column != column or _last.values != values or [*map(type, _last.values)] != [*map(type, values)]:
        asked = [literals.parse_object(column, value) for value in values]
        _last = Question(column, values, asked, [[hash_value(form) for form in literal.forms] for literal in asked])
    return _last


def ask_row_group(file: ParquetFile, row_group: int, question: Question) -> list[RowGroupAnswer]:
    """What one row group's filter says of each value."""
    reason = file.encryption_of(row_group, question.column)
    stored = None if reason else file.stored_filter(row_group, question.column)
    if stored is not None:
        reason = stored.header.beyond_us
    flags = iter(() if stored is None or reason else may_hold(file, stored, [h for forms in question.hashes for h in forms]))
    answers = []
    for literal, forms in zip(question.literals, question.hashes, strict=True):
        found = [*islice(flags, len(forms))]
        if literal.verdict is not None:
            answers.append(RowGroupAnswer(row_group, literal.verdict, literal.note))
        elif reason:
            answers.append(RowGroupAnswer(row_group, literals.CANNOT_SAY, reason))
        elif stored is None:
            answers.append(RowGroupAnswer(row_group, NO_FILTER))
        else:
            answers.append(RowGroupAnswer(row_group, literals.MAYBE if any(found) else literals.ABSENT))
    return answers


def may_hold(file: ParquetFile, stored: StoredFilter, hashes: Sequence[int]) -> Sequence[int]:
    """For each hash 1 where the filter may hold it, else 0; reads each block once, or the bitset where that is cheaper."""
    if len(hashes) <= _MANY_HASHES:
        by_block: dict[int, list[int]] = {}
        for at, h in enumerate(hashes):
            by_block.setdefault(block_index(h, stored.num_blocks), []).append(at)
        if len(by_block) <= min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4):
            answers = [0] * len(hashes)
            for index, members in by_block.items():
                block = file.source.read(stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES)
                for at in members:
                    answers[at] = int(check_block(block, hashes[at]))
            return answers
    bloom = BloomFilter(file.source.read(stored.bitset_offset, stored.header.num_bytes))
    if len(hashes) <= _BLOCKS_PER_BITSET_READ:
        return [int(bloom.check_hash(h)) for h in hashes]
    return bloom.check_hashes(array("Q", hashes))
