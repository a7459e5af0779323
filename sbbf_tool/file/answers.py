"""The answers of the filters of row groups for the values of a question."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, block_index, check_block
from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.file.bitmaps import build_bitmap, count_bits, is_set, iterate, unite
from sbbf_tool.file.doubts import doubt_of_chunk, doubt_of_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.parquet import equals, literals
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports.probe import MANY_VALUES, NO_FILTER, Hit, LongSequence, RowGroupAnswer

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect

# Reading a whole bitset costs about as much as this many reads of one block.
_BLOCKS_PER_BITSET_READ = 64
_MANY_HASHES = 1024
"""For more hashes than this the whole bitset is read: counting the selected blocks would cost more than it saves."""
EMPTY_FILTER = "the filter is empty, but the column chunk has values"
"""Why there is no answer for a row group that query engines skip all the same."""
_EMPTY_BLOCK = bytes(BLOCK_BYTES)
_WINDOW = 1 << 16


class FilterAnswers(NamedTuple):
    """Answers of the filter of one row group for all values."""

    row_group: int
    values: bytes
    """The values that the filter may hold, as a bitmap."""
    answer: str
    """Answer for the other values."""
    reason: str | None


def query_filter(file: ParquetFile, row_group: int, question: Question, dialect: Dialect | None = None) -> FilterAnswers:
    """Query one row group's filter for all values; in `dialect` if the filter follows that dialect."""
    reason = doubt_of_chunk(file, row_group, question.column, question.values)
    stored = None if reason else file.stored_filter(row_group, question.column)
    row = question.row
    if stored is not None:
        if dialect is not None:
            from sbbf_tool.file.drafts import in_dialect

            stored, hasher, reason = in_dialect(file, stored, dialect)
            if hasher is not None:
                row = question.rehash(hasher).row
        reason = reason or stored.header.refusal or doubt_of_filter(file, stored)
    if reason:
        return FilterAnswers(row_group, b"", CANNOT_SAY, reason)
    non_null_values = file.footer.chunk_meta(row_group, question.column.index).non_null_values
    if literals.is_null_typed(question.column) and not non_null_values:
        return FilterAnswers(row_group, b"", ABSENT, None)
    if stored is None:
        return FilterAnswers(row_group, b"", NO_FILTER, None)
    answers, is_empty = may_hold(file, stored, row.hashes)
    if is_empty and non_null_values != 0:
        return FilterAnswers(row_group, b"", CANNOT_SAY, EMPTY_FILTER)
    values = build_bitmap(answers, row.owners)
    uncertain = equals.uncertainty(file.footer, question.column)
    return FilterAnswers(row_group, values, CANNOT_SAY if uncertain else ABSENT, uncertain)


def list_answers(question: Question, answers: FilterAnswers) -> list[RowGroupAnswer]:
    """Return the answer of one row group for each value."""
    others, maybe = RowGroupAnswer(answers.row_group, answers.answer, answers.reason), RowGroupAnswer(answers.row_group, MAYBE)
    by_value = [maybe if is_set(answers.values, at) else others for at in range(len(question))]
    for at, literal in question.row.special.items():
        if literal.verdict is not None:
            by_value[at] = RowGroupAnswer(answers.row_group, literal.verdict, literal.note)
    return by_value


def find_hits(question: Question, filters: Sequence[FilterAnswers], num_row_groups: int) -> Sequence[Hit]:
    """Return the values that row groups may hold, by the answers of their filters. Those that no filter can judge may be in all."""
    every = tuple(range(num_row_groups))
    bitmaps = [*(each.values for each in filters), question.row.unknowable if every else b""]

    def make() -> Iterator[Hit]:
        for at, row_groups in iterate(bitmaps):
            literal = question.row.special.get(at)
            if literal is not None and literal.verdict is not None:
                yield Hit(literal.text, every, literal.verdict, literal.note, at)
            else:
                yield Hit(question.text(at), row_groups, position=at)

    return tuple(make()) if len(question) <= MANY_VALUES else LongSequence(make, count_bits(unite(bitmaps)))


def query_damaged_filter(
    file: ParquetFile, row_group: int, question: Question, unreadable: list[str], dialect: Dialect | None = None
) -> FilterAnswers:
    """Query as `query_filter` does; if the filter is unreadable, append its place and the reason, and answer `cannot say`.

    Raises AuthenticationError: bytes that another than the writer changed are no accident, so no part of the file is relied on.
    """
    try:
        return query_filter(file, row_group, question, dialect)
    except AuthenticationError:
        raise
    except UnreadableError as error:
        unreadable.append(describe_unreadable(error))
        return FilterAnswers(row_group, b"", CANNOT_SAY, f"the filter is unreadable: {error.message}")


def describe_unreadable(error: UnreadableError) -> str:
    """Return the place and the reason of an error in one part of a file."""
    return f"{error.place}: {error.message}" if error.place else error.message


def expect_answers(file: ParquetFile, question: Question) -> None:
    """Announce that the filter of every row group will be queried for this question: see `Source.prefetch`."""
    file.expect_filters([question.column], also=_likely_blocks(file, question))
    file.source.prefetch(_blocks(file, question))


def _likely_blocks(file: ParquetFile, question: Question) -> Iterator[tuple[int, int]]:
    """Predict the blocks to read from the recorded lengths of the filters, so that most probes need one round trip."""
    hashes = question.row.hashes
    for row_group in range(file.footer.num_row_groups if len(hashes) <= _MANY_HASHES else 0):
        place = file.footer.filter_place(row_group, question.column.index)
        num_bytes = 1 << max(0, (place.length or 0).bit_length() - 1) if place else 0
        if place and place.length and num_bytes >= BLOCK_BYTES and place.length - num_bytes <= HEADER_GUESS:
            start = place.offset + place.length - num_bytes
            yield from ((start + block_index(h, num_bytes // BLOCK_BYTES) * BLOCK_BYTES, BLOCK_BYTES) for h in hashes)


def _blocks(file: ParquetFile, question: Question) -> Iterator[tuple[int, int]]:
    """Yield the ranges of every row group that `may_hold` will read."""
    hashes = question.row.hashes
    for row_group in range(file.footer.num_row_groups):
        if file.encryption_of(row_group, question.column) is None:
            try:
                stored = file.stored_filter(row_group, question.column)
            except UnreadableError:
                continue  # reported when it is queried
            if stored is not None and not stored.header.unsupported_reason:
                indices = {block_index(h, stored.num_blocks) for h in hashes} if len(hashes) <= _MANY_HASHES else ()
                if len(hashes) > _MANY_HASHES or _is_read_whole(stored, indices):
                    yield stored.bitset_offset, stored.bitset_bytes
                else:
                    yield from ((stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES) for index in indices)


def _is_read_whole(stored: StoredFilter, blocks: Collection[int]) -> bool:
    # An encrypted bitset can only be authenticated as a whole.
    return stored.is_encrypted or len(blocks) > min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4)


def may_hold(file: ParquetFile, stored: StoredFilter, hashes: array[int]) -> tuple[Sequence[int], bool]:
    """Return 1 for each hash that the filter may hold, otherwise 0; and whether the filter is empty, which excludes every value.

    Read each block once, or the whole bitset if that is cheaper, and beyond that only if all blocks so far are zeros.
    """
    if len(hashes) <= _MANY_HASHES:
        by_block: dict[int, list[int]] = {}
        for at, h in enumerate(hashes):
            by_block.setdefault(block_index(h, stored.num_blocks), []).append(at)
        if not _is_read_whole(stored, by_block):
            answers, is_empty = [0] * len(hashes), bool(hashes)
            for index, members in by_block.items():
                block = file.source.read(stored.bitset_offset + index * BLOCK_BYTES, BLOCK_BYTES)
                is_empty = is_empty and block == _EMPTY_BLOCK
                for at in members:
                    answers[at] = int(check_block(block, hashes[at]))
            return answers, is_empty and _has_no_bits(file, stored)
    bitset = file.read_bitset(stored)
    bloom, is_empty = BloomFilter(bitset), not bitset[:_WINDOW].strip(b"\0") and not bitset.strip(b"\0")
    if len(hashes) <= _BLOCKS_PER_BITSET_READ:
        return [int(bloom.check_hash(h)) for h in hashes], is_empty
    return bloom.check_hashes(hashes), is_empty


def _has_no_bits(file: ParquetFile, stored: StoredFilter) -> bool:
    """Return whether the bitset is all zeros. Read it up to the first window that is not."""
    windows = range(0, stored.bitset_bytes, _WINDOW)
    return not any(file.source.read(stored.bitset_offset + at, min(_WINDOW, stored.bitset_bytes - at)).strip(b"\0") for at in windows)
