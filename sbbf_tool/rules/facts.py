"""The input of rules: the facts about a file's column chunks and their filters, read once and only
as far as the rules need them.

Footer, filters, data: each costs far more than the one before it. Bitsets are measured and released
one after the other, and values are streamed past their filter, so only a few numbers per chunk stay
in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, partial

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.errors import AuthenticationError, OversizedPageError, UnreadableError
from sbbf_tool.file.doubts import doubt_of_filter
from sbbf_tool.file.parallel import Meter, Progress, in_parallel
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.pages import ChunkMeta
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.findings import FilterVerification
from sbbf_tool.rules.overlaps import Overlap, find_overlaps
from sbbf_tool.rules.satisfaction import (
    BROKEN,
    LARGE_SHARE,
    MISSING,
    NOT_MEASURED,
    Judgment,
    judge_filter,
    may_be_saturated,
)

_LENGTH_WORD = 4
_NONCE_AND_TAG = 12 + 16
_WORTH_THREADS = 1 << 20
"""Bytes of data whose verification takes longer than starting threads."""


class Reads(IntEnum):
    """What a rule reads; each member includes all members before it."""

    FOOTER = 1
    FILTERS = 2
    DATA = 3


@dataclass(frozen=True, slots=True)
class Bits:
    """The figures that depend only on the bitset."""

    fpp: float
    ndv: float | None
    """None if every bit is set."""
    empty: bool
    identical_blocks: bool
    folds: tuple[tuple[int, float], ...]
    """Bytes and FPP of the filter, and, if it is large or facts are gathered with them, of each
    size to which it can be folded."""


@dataclass(frozen=True, slots=True)
class StatisticsFacts:
    """The statistics of a chunk, compared with its values."""

    wrong: tuple[str, ...] = ()
    """Descriptions of what the values contradict."""
    problem: str | None = None
    """Why the values cannot be read."""


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """One column chunk and its filter. A fact is None if it was not read or does not exist."""

    row_group: int
    meta: ChunkMeta
    place: FilterPlace | None = None
    encryption: str | None = None
    """The missing key without which the filter cannot be read."""
    module_defect: str | None = None
    """The defect of an encrypted column's filter, as far as the given keys show it: `PLAINTEXT`, or
    how the filter is damaged."""
    stored: StoredFilter | None = None
    unreadable: str | None = None
    """Why the bytes at the filter's place are not a filter."""
    overlaps: tuple[Overlap, ...] = ()
    """The other ranges that share bytes with the filter."""
    bits: Bits | None = None
    verification: FilterVerification | None = None
    oversized_page: str | None = None
    """The page that states more bytes than may be decompressed; `verification` is then None."""
    judgment: Judgment | None = None
    """How the filter compares with `target`, if there is one."""
    target: Sizing | None = None
    """The size that is requested for the filter."""
    statistics: StatisticsFacts | None = None
    """Of a chunk whose filter was not verified, or that has none: see `bare_chunks`."""

    @property
    def wrong_statistics(self) -> tuple[str, ...]:
        """What the values of the chunk contradict, if they were read."""
        if self.verification is not None:
            return self.verification.wrong_statistics
        if self.statistics is not None:
            return self.statistics.wrong
        return ()

    @property
    def is_unverified(self) -> bool:
        """Whether the chunk's values should have been read but could not be."""
        if self.oversized_page is not None:
            return True
        return self.verification is not None and self.verification.problem is not None

    @property
    def is_uninterpreted(self) -> bool:
        """Whether the bits of the filter mean nothing, because its header is not that of the format
        or of a draft that the values fit."""
        is_unknown = self.stored is not None and self.stored.header.unsupported_reason is not None
        return is_unknown and (self.verification is None or self.verification.dialect is None)

    @property
    def chunk_bytes(self) -> int:
        """Compressed bytes of the chunk's pages."""
        return self.meta.bytes

    @property
    def values(self) -> int | None:
        """Number of non-null values, counted or as the footer states it; None if neither is
        known."""
        if self.verification is not None and self.verification.problem is None:
            return self.verification.verified_values
        return self.meta.non_null_values


PLAINTEXT = "plaintext"


class ColumnFacts(Frozen):
    """A column over all row groups of a file."""

    file: str
    footer: Footer
    column: Column
    chunks: tuple[ChunkFacts, ...]
    keys_path: str | None = None
    """The file from which the given keys came."""
    can_reopen: bool = True
    """Whether `file` is a path or URL, so that a fix can name it."""
    table: str | None = None
    """The table that has the file, as the user named it; None for other files."""
    judge: str = "existence"
    """What is demanded of existing filters."""
    is_required: bool = False
    """Whether every chunk must have a filter."""

    @property
    def changeable_name(self) -> str:
        """The name by which a command changes the file: its own, or that of its table."""
        return self.table or self.file

    @property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def filters(self) -> tuple[ChunkFacts, ...]:
        """The chunks that have a filter."""
        return tuple(chunk for chunk in self.chunks if chunk.place is not None)

    @property
    def targets(self) -> set[Sizing]:
        """The sizes that are requested for filters of the column."""
        return {chunk.target for chunk in self.chunks if chunk.target is not None}

    @property
    def is_bare(self) -> bool:
        """Whether no rule has anything to examine: no filter, stated place or compared statistics,
        and no filter that the policy declares."""
        if self.filters or self.is_required:
            return False
        for chunk in self.chunks:
            is_examined = chunk.target is not None or chunk.statistics is not None
            if is_examined or chunk.meta.stated_filter[0] is not None:
                return False
        return True

    @property
    def is_locked(self) -> bool:
        """Whether a key is missing without which a filter of the column, or its place, cannot be
        read."""
        for chunk in self.chunks:
            may_have_filter = chunk.place is not None or chunk.meta.is_locked
            if may_have_filter and chunk.encryption is not None:
                return True
        return False

    @property
    def can_be_changed(self) -> bool:
        """Whether a command may write this column's filters; changing a signed footer needs the
        file's key."""
        return self.footer.is_writable and self.can_reopen


def locked_columns(facts: Iterable[ColumnFacts]) -> tuple[str, ...]:
    """Return the names of the columns whose filters cannot be read without a key."""
    return tuple(column.name for column in facts if column.is_locked)


def unreadable_chunks(facts: Iterable[ColumnFacts]) -> tuple[str, ...]:
    """Return place and reason for each chunk whose filter should have been verified but whose pages
    cannot be decoded."""
    unreadable = []
    for column in facts:
        for chunk in column.filters:
            verification = chunk.verification
            if verification is not None and verification.problem:
                place = f"column {column.name}, row group {chunk.row_group}"
                unreadable.append(f"{place}: {verification.problem}")
    return tuple(unreadable)


def gather(
    file: ParquetFile,
    columns: Sequence[Column],
    reads: Reads,
    row_groups: Sequence[int] | None = None,
    *,
    keeps_oversized: bool = False,
    with_folds: bool = False,
    sizes: Mapping[ChunkKey, Sizing] | None = None,
) -> tuple[ColumnFacts, ...]:
    """Gather the facts about these columns as far as `reads` goes; if that is DATA, each filter is
    queried for its chunk's values, several concurrently unless the file has little data.

    With `row_groups`, only chunks in those row groups are gathered, without the facts that need all
    chunks. A page with more bytes than may be decompressed raises OversizedPageError, unless
    `keeps_oversized` is set, which records the page as a fact. Filters are folded if they are
    large for their data, or `with_folds`, and those of the chunks in `sizes` are judged by these
    sizes.
    """
    footer = file.footer
    numbers = range(footer.num_row_groups) if row_groups is None else row_groups
    if reads >= Reads.FILTERS:
        file.expect_filters(columns, whole=True, row_groups=numbers)
    chunks = {}
    for number in numbers:
        for column in columns:
            # What another file holds is judged there.
            if footer.elsewhere(number, column.index) is None:
                chunks[number, column.index] = _chunk(file, number, column, reads)
    sizes = sizes or {}
    if reads >= Reads.FILTERS:
        measure = partial(
            _with_bits,
            file,
            reads=reads,
            keeps_oversized=keeps_oversized,
            with_folds=with_folds,
        )
        jobs: int | None = 1
        progress = None
        if reads is Reads.DATA:
            jobs = file.context.jobs
            progress = file.context.progress
        chunks |= _measure(file, chunks, sizes, measure, jobs, progress)
    for key, target in sizes.items():
        chunk = chunks.get(key)
        if chunk is not None:
            judgment = chunk.judgment or _judge_unmeasured(chunk, target)
            chunks[key] = replace(chunk, judgment=judgment, target=target)
    facts = []
    for column in columns:
        keys = ((number, column.index) for number in numbers)
        facts.append(
            ColumnFacts(
                file.name,
                file.footer,
                column,
                tuple(chunks[key] for key in keys if key in chunks),
                None if file.ring is None else file.ring.keys.path,
                file.source.can_reopen,
                file.table,
            )
        )
    return tuple(facts)


def _measure(
    file: ParquetFile,
    chunks: Mapping[ChunkKey, ChunkFacts],
    sizes: Mapping[ChunkKey, Sizing],
    measure: Callable[[ChunkFacts, Sizing | None], ChunkFacts],
    jobs: int | None,
    progress: Progress | None,
) -> dict[ChunkKey, ChunkFacts]:
    """Return the facts about chunks that have a filter, with those that need its bits."""
    stored = {key: chunk.stored for key, chunk in chunks.items() if chunk.stored is not None}
    overlaps = find_overlaps(file, list(stored.values()))
    data_bytes = sum(chunks[key].chunk_bytes for key in stored)
    meter = Meter(progress, data_bytes)
    columns = file.footer.columns
    for _, index in list(stored)[:1]:
        meter.advance(f"verifying {columns[index].name}", 0)

    def look(key: ChunkKey) -> ChunkFacts:
        chunk = chunks[key]
        if key in overlaps:
            chunk = replace(chunk, overlaps=overlaps[key])
        facts = measure(chunk, sizes.get(key))
        meter.advance(f"verifying {columns[key[1]].name}", facts.chunk_bytes)
        return facts

    return in_parallel(look, stored, 1 if data_bytes < _WORTH_THREADS else jobs)


def _chunk(file: ParquetFile, row_group: int, column: Column, reads: Reads) -> ChunkFacts:
    place = file.footer.filter_place(row_group, column.index)
    encryption = file.encryption_of(row_group, column)
    meta = file.footer.chunk_meta(row_group, column.index)
    chunk = partial(ChunkFacts, row_group, meta, place, encryption)
    if place is None or reads < Reads.FILTERS:
        return chunk()
    if file.is_encrypted(row_group, column) and _is_in_the_clear(file, row_group, column):
        return chunk(module_defect=PLAINTEXT)
    if encryption:
        return chunk(module_defect=_damage_of_modules(file, place))
    try:
        return chunk(stored=file.stored_filter(row_group, column))
    except AuthenticationError as error:
        return chunk(module_defect=error.message)
    except UnreadableError as error:
        return chunk(unreadable=error.message)


def _is_in_the_clear(file: ParquetFile, row_group: int, column: Column) -> bool:
    try:
        return file.stored_filter(row_group, column, with_keys=False) is not None
    except UnreadableError:
        return False


def _damage_of_modules(file: ParquetFile, place: FilterPlace) -> str | None:
    """Return why the bytes at this place cannot be two encrypted modules, header and bitset
    (Encryption.md 5.1); None if they may be.

    A module is a length word, followed by that many bytes of nonce, ciphertext and tag.
    """
    position = place.offset
    for module in ("header", "bitset"):
        if position + _LENGTH_WORD > file.footer.start:
            return f"the {module}'s module begins in the footer"
        length = int.from_bytes(file.source.read(position, _LENGTH_WORD), "little")
        if length <= _NONCE_AND_TAG:
            return (
                f"the {module}'s module has {length} bytes, but nonce and tag take {_NONCE_AND_TAG}"
            )
        position += _LENGTH_WORD + length
        if position > file.footer.start:
            return f"the {module}'s module of {length:,} bytes runs into the footer"
    if place.length is not None and position - place.offset != place.length:
        return (
            f"its two modules take {position - place.offset:,} bytes, but "
            f"bloom_filter_length is {place.length:,}"
        )
    return None


def _judge_unmeasured(chunk: ChunkFacts, target: Sizing) -> Judgment:
    """Judge a chunk without a filter, or whose filter was not measured."""
    if chunk.place is None and not chunk.meta.is_locked:
        return Judgment(MISSING, is_limited=may_be_saturated(target, chunk.meta.most_values))
    defect = chunk.module_defect or chunk.unreadable
    if defect is None:
        return Judgment(NOT_MEASURED, chunk.encryption or "")
    return Judgment(BROKEN, defect)


def _judge(
    file: ParquetFile, chunk: ChunkFacts, stored: StoredFilter, bloom: BloomFilter, target: Sizing
) -> Judgment:
    """Judge a filter by its size, or by the defect for which readers cannot use it."""
    from sbbf_tool.parquet import equals

    size = stored.header.num_bytes
    if chunk.overlaps:
        return Judgment(BROKEN, f"it shares bytes with {chunk.overlaps[0].words}")
    doubt = doubt_of_filter(file, stored)
    if doubt:
        return Judgment(BROKEN, doubt)
    if size % BLOCK_BYTES or size < sizing.MIN_BYTES:
        return Judgment(BROKEN, f"some readers fail on a bitset of {size:,} bytes")
    forms = equals.forms_per_value(file.footer, file.footer.columns[stored.column])
    return judge_filter(bloom, target, chunk.meta.non_null_values, forms)


def _with_bits(
    file: ParquetFile,
    chunk: ChunkFacts,
    target: Sizing | None,
    *,
    reads: Reads,
    keeps_oversized: bool,
    with_folds: bool,
) -> ChunkFacts:
    stored = chunk.stored
    assert stored is not None, "there is no filter"
    try:
        bloom = BloomFilter(file.read_bitset(stored))
    except AuthenticationError as error:
        return replace(chunk, stored=None, module_defect=error.message)
    judgment = None if target is None else _judge(file, chunk, stored, bloom, target)
    with_folds |= stored.length > LARGE_SHARE * chunk.chunk_bytes
    measured = replace(chunk, bits=_bits_of(bloom, with_folds), judgment=judgment)
    if reads < Reads.DATA:
        return measured
    from sbbf_tool.file.membership import verify_filter  # loads numpy

    try:
        return replace(measured, verification=verify_filter(file, stored, bloom))
    except OversizedPageError as error:
        if not keeps_oversized:
            raise
        # The evidence already names the column and row group.
        _, _, place = (error.place or "").rpartition(", ")
        return replace(measured, oversized_page=f"{place}: {error.message}")


def _bits_of(bloom: BloomFilter, with_folds: bool) -> Bits:
    ndv = bloom.estimated_ndv
    sizes = bloom.folds() if with_folds else (bloom,)
    return Bits(
        bloom.fpp,
        None if math.isinf(ndv) else ndv,
        not bloom.bits_set,
        bloom.has_identical_blocks,
        tuple((fold.num_bytes, fold.fpp) for fold in sizes),
    )
