"""A question to a column's filters: values as the column would hold them, their hashes, and what one row group's filter says of each."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, block_index, check_block
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import equals, literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter
from sbbf_tool.parquet.literals import Literal
from sbbf_tool.reports.probe import RowGroupAnswer

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect, Hasher

NO_FILTER = "no filter"

# One read of a whole bitset costs about as much as this many reads of a block.
_BLOCKS_PER_BITSET_READ = 64
_MANY_HASHES = 1024
"""They select more blocks than that, and to find out which would cost more than the answer."""


class HashRow(NamedTuple):
    """A question's hashes in one row, each with the position of its value; and the values that no filter is needed, or able, to judge."""

    hashes: array[int]
    owners: array[int]
    unknowable: list[int]


@dataclass(frozen=True, eq=False)
class Question:
    """Values as a column would hold them, and the hashes of each one's forms."""

    column: Column
    values: tuple[object, ...]
    literals: list[Literal]
    hashes: list[list[int]]

    def hashed_by(self, hasher: Hasher) -> Question:
        """Return the same question as filters of another hash function are asked."""
        return replace(self, hashes=[[hasher.hash_value(form) for form in literal.forms] for literal in self.literals])

    @cached_property
    def row(self) -> HashRow:
        """The hashes as many values are asked; it belongs to this question alone, so that threads with others cannot mix them up."""
        hashes, owners, unknowable = array("Q"), array("Q"), []
        for at, (literal, forms) in enumerate(zip(self.literals, self.hashes, strict=True)):
            if literal.verdict is None:
                hashes.extend(forms)
                owners.extend([at] * len(forms))
            elif literal.verdict != literals.ABSENT:
                unknowable.append(at)
        return HashRow(hashes, owners, unknowable)


# Over a lake the same values are asked of column after column that is the same.
_last: Question | None = None


def question_of(column: Column, values: tuple[object, ...]) -> Question:
    """What to ask of a column for these values: see `probe`."""
    global _last
    # Threads share it: what was found is looked at once.
    last = _last
    if last is None or not _is_same(last, column, values):
        asked = [literals.parse_object(column, value) for value in values]
        last = Question(column, values, asked, [[hash_value(form) for form in literal.forms] for literal in asked])
        # A buffer may hold another value by the next time.
        if not any(isinstance(value, bytearray | memoryview) for value in values):
            _last = last
    return last


_WRITTEN_IN_ONE_WAY = {str, bytes, int, type(None)}


def _is_same(question: Question, column: Column, values: tuple[object, ...]) -> bool:
    if question.column is not column and question.column != column:
        return False
    # Equal values are not always the same question: 1 and 1.0, or the two times that a clock shows the same when it is set back.
    return question.values is values or (
        question.values == values
        and [*map(type, question.values)] == [*map(type, values)]
        and _WRITTEN_IN_ONE_WAY.issuperset(map(type, values))
    )


def ask_row_group(file: ParquetFile, row_group: int, question: Question, dialect: Dialect | None = None) -> list[RowGroupAnswer]:
    """What one row group's filter says of each value, in `dialect` where it is a filter of that."""
    reason = file.encryption_of(row_group, question.column)
    stored = None if reason else file.stored_filter(row_group, question.column)
    hashes = question.hashes
    if stored is not None:
        reason = stored.header.refusal
        if dialect is not None:
            from sbbf_tool.file.drafts import in_dialect

            stored, hasher, reason = in_dialect(file, stored, dialect)
            if hasher is not None:
                hashes = question.hashed_by(hasher).hashes
    uncertain = equals.uncertainty(file.footer, question.column)
    flags = iter(() if stored is None or reason else may_hold(file, stored, [h for forms in hashes for h in forms]))
    answers = []
    for literal, forms in zip(question.literals, hashes, strict=True):
        found = [*islice(flags, len(forms))]
        if literal.verdict is not None:
            answers.append(RowGroupAnswer(row_group, literal.verdict, literal.note))
        elif reason:
            answers.append(RowGroupAnswer(row_group, literals.CANNOT_SAY, reason))
        elif stored is None:
            answers.append(RowGroupAnswer(row_group, NO_FILTER))
        elif any(found):
            answers.append(RowGroupAnswer(row_group, literals.MAYBE))
        else:
            answers.append(RowGroupAnswer(row_group, literals.CANNOT_SAY if uncertain else literals.ABSENT, uncertain))
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
    """The ranges that `may_hold` will read, of every row group."""
    hashes = [h for forms in question.hashes for h in forms]
    for row_group in range(file.footer.num_row_groups):
        if file.encryption_of(row_group, question.column) is None:
            stored = file.stored_filter(row_group, question.column)
            if stored is not None and not stored.header.beyond_us:
                indices = {block_index(h, stored.num_blocks) for h in hashes}
                if _is_read_whole(stored, indices):
                    yield stored.bitset_offset, stored.bitset_bytes
                else:
                    yield from ((stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES) for index in indices)


def _is_read_whole(stored: StoredFilter, blocks: Collection[int]) -> bool:
    # An encrypted bitset can only be told from a forged one as a whole.
    return stored.is_sealed or len(blocks) > min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4)


def may_hold(file: ParquetFile, stored: StoredFilter, hashes: Sequence[int]) -> Sequence[int]:
    """For each hash 1 where the filter may hold it, else 0; reads each block once, or the bitset where that is cheaper."""
    if len(hashes) <= _MANY_HASHES:
        by_block: dict[int, list[int]] = {}
        for at, h in enumerate(hashes):
            by_block.setdefault(block_index(h, stored.num_blocks), []).append(at)
        if not _is_read_whole(stored, by_block):
            answers = [0] * len(hashes)
            for index, members in by_block.items():
                block = file.source.read(stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES)
                for at in members:
                    answers[at] = int(check_block(block, hashes[at]))
            return answers
    bloom = BloomFilter(file.read_bitset(stored))
    if len(hashes) <= _BLOCKS_PER_BITSET_READ:
        return [int(bloom.check_hash(h)) for h in hashes]
    return bloom.check_hashes(array("Q", hashes))
