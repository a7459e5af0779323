"""`probe`: may these values be in the file? Reads the footer, and of each filter the header and the blocks that the values select."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, block_index, check_block
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.literals import Literal
from sbbf_tool.reports.probe import ProbeReport, RowGroupAnswer, ValueAnswer

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect

NO_FILTER = "no filter"

# One read of a whole bitset costs about as much as this many reads of a block.
_BLOCKS_PER_BITSET_READ = 64


def probe(path: str | os.PathLike[str], column: str, values: Iterable[object], *, dialect: str | None = None) -> ProbeReport:
    """What the filters of `column` say of each value, row group by row group.

    Values are text as a person writes it, or Python objects (`parse_object`); None asks for null. `absent` is certain, everything
    else is not. Of a draft's filters nothing is said unless `dialect` names theirs (see `bloom.dialects`) and some of the column's values,
    which are read for it, bear that out; today's are asked as today's all the same. Raises UsageError (no such column, dialect, a value
    it cannot hold) and UnreadableError (a filter that contradicts the format).
    """
    listed = tuple(values)
    spoken = None if dialect is None else _dialect(dialect)
    with ParquetFile.open(path) as file:
        with file.named():
            found = find_column(file.footer.columns, column)
            question = question_of(found, listed)
        by_row_group = [ask_row_group(file, number, question, spoken) for number in range(file.footer.num_row_groups)]
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


def ask_row_group(file: ParquetFile, row_group: int, question: Question, dialect: Dialect | None = None) -> list[RowGroupAnswer]:
    """What one row group's filter says of each value, in `dialect` where it is a filter of that."""
    reason = file.encryption_of(row_group, question.column)
    stored = None if reason else file.stored_filter(row_group, question.column)
    hashes = question.hashes
    if stored is not None:
        reason = stored.header.beyond_us
        if dialect is not None:
            from sbbf_tool.operations.drafts import in_dialect

            stored, hasher, reason = in_dialect(file, stored, dialect)
            if hasher is not None:
                hashes = [[hasher.hash_value(form) for form in literal.forms] for literal in question.literals]
        elif stored.header.readings:
            reason = f"{reason}; --dialect NAME asks it"
    may_hold = {} if stored is None or reason else _check(file, stored, [h for forms in hashes for h in forms])
    answers = []
    for literal, forms in zip(question.literals, hashes, strict=True):
        if literal.verdict is not None:
            answers.append(RowGroupAnswer(row_group, literal.verdict, literal.note))
        elif reason:
            answers.append(RowGroupAnswer(row_group, literals.CANNOT_SAY, reason))
        elif stored is None:
            answers.append(RowGroupAnswer(row_group, NO_FILTER))
        else:
            maybe = any(may_hold[h] for h in forms)
            answers.append(RowGroupAnswer(row_group, literals.MAYBE if maybe else literals.ABSENT))
    return answers


def _dialect(name: str) -> Dialect:
    from sbbf_tool.bloom.dialects import dialect_named

    return dialect_named(name)


def _check(file: ParquetFile, stored: StoredFilter, hashes: Sequence[int]) -> dict[int, bool]:
    """Whether the filter may hold each hash, by reading each block once, or the bitset where that is cheaper."""
    by_block: dict[int, list[int]] = {}
    for h in hashes:
        by_block.setdefault(block_index(h, stored.num_blocks), []).append(h)
    if len(by_block) > min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4):
        bloom = BloomFilter(file.source.read(stored.bitset_offset, stored.header.num_bytes))
        return {h: bloom.check_hash(h) for h in hashes}
    answers = {}
    for index, members in by_block.items():
        block = file.source.read(stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES)
        for h in members:
            answers[h] = check_block(block, h)
    return answers
