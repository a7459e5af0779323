"""`probe`: may these values be in the file? Reads the footer, and of each filter the header and the blocks that the values select."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, block_index, check_block
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter
from sbbf_tool.parquet.literals import Literal
from sbbf_tool.reports.probe import ProbeReport, RowGroupAnswer, ValueAnswer

NO_FILTER = "no filter"

# One read of a whole bitset costs about as much as this many reads of a block.
_BLOCKS_PER_BITSET_READ = 64


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
        expect_answers(file, question)
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
            requests=file.source.requests,
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
    # Threads share it: what was found is looked at once.
    last = _last
    # 1, 1.0 and True are equal and are not the same question, so their types count too.
    if last is None or last.column != column or last.values != values or [*map(type, last.values)] != [*map(type, values)]:
        asked = [literals.parse_object(column, value) for value in values]
        _last = last = Question(column, values, asked, [[hash_value(form) for form in literal.forms] for literal in asked])
    return last


def ask_row_group(file: ParquetFile, row_group: int, question: Question) -> list[RowGroupAnswer]:
    """What one row group's filter says of each value."""
    reason = file.encryption_of(row_group, question.column)
    stored = None if reason else file.stored_filter(row_group, question.column)
    if stored is not None:
        reason = stored.header.beyond_us
    may_hold = {} if stored is None or reason else _check(file, stored, [h for forms in question.hashes for h in forms])
    answers = []
    for literal, forms in zip(question.literals, question.hashes, strict=True):
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


def expect_answers(file: ParquetFile, question: Question) -> None:
    """Say that every row group's filter will be asked this: see `Source.prefetch`."""
    file.expect_filters([question.column], also=_likely_blocks(file, question))
    file.source.prefetch(_blocks(file, question))


def _likely_blocks(file: ParquetFile, question: Question) -> Iterator[tuple[int, int]]:
    """The blocks that will be read if the filters have the size that their stated length suggests: so most probes wait only once."""
    hashes = [h for forms in question.hashes for h in forms]
    for row_group in range(file.footer.num_row_groups):
        place = file.footer.filter_place(row_group, question.column.index)
        num_bytes = 1 << max(0, (place.length or 0).bit_length() - 1) if place else 0
        if place and place.length and num_bytes >= BLOCK_BYTES and place.length - num_bytes <= HEADER_GUESS:
            start = place.offset + place.length - num_bytes
            yield from ((start + block_index(h, num_bytes // BLOCK_BYTES) * BLOCK_BYTES, BLOCK_BYTES) for h in hashes)


def _blocks(file: ParquetFile, question: Question) -> Iterator[tuple[int, int]]:
    """The ranges that `_check` will read, of every row group."""
    hashes = [h for forms in question.hashes for h in forms]
    for row_group in range(file.footer.num_row_groups):
        if file.encryption_of(row_group, question.column) is None:
            stored = file.stored_filter(row_group, question.column)
            if stored is not None and not stored.header.beyond_us:
                indices = {block_index(h, stored.num_blocks) for h in hashes}
                if _is_read_whole(stored, indices):
                    yield stored.bitset_offset, stored.header.num_bytes
                else:
                    yield from ((stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES) for index in indices)


def _is_read_whole(stored: StoredFilter, blocks: Collection[int]) -> bool:
    return len(blocks) > min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4)


def _check(file: ParquetFile, stored: StoredFilter, hashes: Sequence[int]) -> dict[int, bool]:
    """Whether the filter may hold each hash, by reading each block once, or the bitset where that is cheaper."""
    by_block: dict[int, list[int]] = {}
    for h in hashes:
        by_block.setdefault(block_index(h, stored.num_blocks), []).append(h)
    if _is_read_whole(stored, by_block):
        bloom = BloomFilter(file.source.read(stored.bitset_offset, stored.header.num_bytes))
        return {h: bloom.check_hash(h) for h in hashes}
    answers = {}
    for index, members in by_block.items():
        block = file.source.read(stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES)
        for h in members:
            answers[h] = check_block(block, h)
    return answers
