"""Standalone filters: header and bitset alone in a file, as classes of several libraries write them. Inspect, query and verify them.

There is no footer with offset, length or column. The size of the file distinguishes headers of 12 and 16 bytes, and the caller gives the
type. If a header fits several dialects, `dialect` names one, or values that are known to be in the filter decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom.dialects import CURRENT, TODAYS, Dialect, find_dialect
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.file import drafts
from sbbf_tool.file.drafts import SAMPLE, decide, hasher_for
from sbbf_tool.parquet import int96, literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import HEADER_GUESS, FilterHeader, StoredFilter, parse_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, FilterPlace
from sbbf_tool.parquet.literals import Literal
from sbbf_tool.parquet.type_names import column_of_type
from sbbf_tool.reports.probe import ProbeReport, RowGroupAnswer, ValueAnswer
from sbbf_tool.reports.standalone import StandaloneReport, StandaloneVerification
from sbbf_tool.storage import places
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.storage.inputs import FileSystemLike, Readable

_EXAMPLES = 3


class _StandaloneFile:
    """An open file that is one filter. Use as a context manager; errors name the file."""

    def __init__(self, path: Readable, filesystem: FileSystemLike | None) -> None:
        self.source = places.open_source(find_input(path, filesystem))
        try:
            self.stored = self._find()
        except UnreadableError as error:
            self.source.close()
            raise error.at(file=self.source.name) from error.__cause__

    def __enter__(self) -> _StandaloneFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.source.close()

    def _find(self) -> StoredFilter:
        size = self.source.size
        if self.source.read(0, min(size, len(MAGIC))) in (MAGIC, MAGIC_ENCRYPTED):
            raise UnreadableError("this is a Parquet file, not a standalone filter")
        header = parse_header(self.source.read(0, min(size, HEADER_GUESS))).within(size, size)
        if header.length + header.num_bytes > size:
            raise UnreadableError(f"a bitset of {header.num_bytes:,} bytes runs past the end of the file, which has {size:,} bytes")
        return StoredFilter(0, 0, FilterPlace(0, None), header)

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """Dialects that the header fits; `CURRENT` alone for a header of the released format."""
        if self.stored.header.readings:
            return tuple(reading.dialect for reading in self.stored.header.readings)
        return () if self.stored.header.unsupported_reason else (CURRENT,)

    def read_as(self, dialect: Dialect) -> StoredFilter:
        """Return the filter as read in this dialect. Raises UsageError if the header does not fit the dialect."""
        stored = drafts.read_as(self.stored, dialect)
        if stored is None:
            fits = " or ".join(candidate.name for candidate in self.dialects) or self.stored.header.unsupported_reason
            raise UsageError(f"the header does not fit the dialect {dialect.name}", file=self.source.name, hint=f"it fits {fits}")
        return stored

    def bloom_of(self, stored: StoredFilter) -> BloomFilter:
        return BloomFilter(self.source.read(stored.bitset_offset, stored.header.num_bytes))


def inspect_standalone(path: Readable, *, filesystem: FileSystemLike | None = None) -> StandaloneReport:
    """Inspect the header and the bitset. Raises UnreadableError if the file is not a filter."""
    with _StandaloneFile(path, filesystem) as file:
        header = file.stored.header
        bloom = file.bloom_of(file.stored)
        ndv = bloom.estimated_ndv
        return StandaloneReport(
            file=file.source.name,
            file_bytes=file.source.size,
            header=_form(header),
            header_bytes=header.length,
            bitset_bytes=header.num_bytes,
            blocks=file.stored.num_blocks,
            dialects=tuple(dialect.name for dialect in file.dialects),
            fill_ratio=bloom.fill_ratio,
            estimated_fpp=bloom.fpp,
            estimated_ndv=None if math.isinf(ndv) else ndv,
            warnings=tuple(_warnings(file)),
        )


def probe_standalone(
    path: Readable, type_name: str, values: object, *, dialect: str | None = None, filesystem: FileSystemLike | None = None
) -> ProbeReport:
    """Query the filter for each value of the type `type_name`; in the report, the filter belongs to row group 0.

    The answer is `cannot say` if the header belongs to a draft and no `dialect` is given. Raises UnreadableError, UsageError.
    """
    column = column_of_type(type_name)
    queries = [literals.parse_object(column, value) for value in as_iterable(values)]
    with _StandaloneFile(path, filesystem) as file:
        chosen = CURRENT if dialect is None else find_dialect(dialect)
        if dialect is None and file.stored.header.unsupported_reason:
            answers = [RowGroupAnswer(0, literals.CANNOT_SAY, file.stored.header.refusal) for _ in queries]
        else:
            bloom = file.bloom_of(file.read_as(chosen))
            answers = [_answer(bloom, chosen, column, literal) for literal in queries]
        return ProbeReport(
            file=file.source.name,
            column="",
            type=column.type_name,
            values=tuple(ValueAnswer(literal.text, (answer,), literal.note) for literal, answer in zip(queries, answers, strict=True)),
            bytes_read=file.source.bytes_read,
        )


def _answer(bloom: BloomFilter, dialect: Dialect, column: Column, literal: Literal) -> RowGroupAnswer:
    if literal.verdict is not None:
        return RowGroupAnswer(0, literal.verdict, literal.note)
    hasher = hasher_for(dialect, column, bloom.num_blocks)
    is_held = any(bloom.check_hash(hasher.hash_value(form)) for form in literal.forms)
    uncertain = int96.unknown_writer(None) if column.physical == "INT96" and not is_held else None
    return RowGroupAnswer(0, literals.MAYBE if is_held else literals.CANNOT_SAY if uncertain else literals.ABSENT, uncertain)


def verify_standalone(
    path: Readable, type_name: str, values: object, *, dialect: str | None = None, filesystem: FileSystemLike | None = None
) -> StandaloneVerification:
    """Query the filter for values that are known to be in it; the first values decide the dialect unless `dialect` names it.

    `values` are iterated once and not kept. Raises UnreadableError, UsageError.
    """
    column = column_of_type(type_name)
    stream = _checkable(column, values)
    with _StandaloneFile(path, filesystem) as file:
        first = list(islice(stream, SAMPLE))
        named_dialect = None if dialect is None else find_dialect(dialect)
        chosen = named_dialect or _decide(file, column, first)
        stored = file.read_as(chosen) if chosen is not None else file.stored
        bloom = file.bloom_of(stored)
        hasher = hasher_for(chosen or CURRENT, column, bloom.num_blocks)
        count = false_negatives = 0
        examples: list[str] = []
        for literal in chain(first, stream):
            count += 1
            if chosen is None or not any(bloom.check_hash(hasher.hash_value(form)) for form in literal.forms):
                false_negatives += 1
                examples += [literal.text] if false_negatives <= _EXAMPLES else []
        return StandaloneVerification(
            file=file.source.name,
            type=column.type_name,
            dialects=(named_dialect.name,) if named_dialect else tuple(candidate.name for candidate in file.dialects),
            dialect=chosen.name if chosen else None,
            verified_values=count,
            false_negatives=false_negatives,
            examples=tuple(examples),
            estimated_fpp=bloom.fpp,
        )


def _checkable(column: Column, values: object) -> Iterator[Literal]:
    """Yield the values except null and NaN, which filters cannot answer. A value that the type cannot hold exactly is a false negative."""
    candidates = (literals.parse_object(column, value) for value in as_iterable(values))
    return (literal for literal in candidates if literal.verdict in (None, literals.ABSENT))


def _decide(file: _StandaloneFile, column: Column, sample: list[Literal]) -> Dialect | None:
    if not file.stored.header.readings:
        return None if file.stored.header.unsupported_reason else CURRENT
    # The stored form comes first.
    reading = decide(file.stored, column, [literal.forms[0] for literal in sample if literal.forms], file.source.read)
    return reading.dialect if reading else None


def _form(header: FilterHeader) -> str:
    if header.readings:
        return " or ".join(dict.fromkeys(reading.dialect.header for reading in header.readings))
    return "unknown" if header.unsupported_reason else TODAYS


def _warnings(file: _StandaloneFile) -> Iterator[str]:
    if file.stored.header.unsupported_reason:
        yield f"no reader uses it: {file.stored.header.unsupported_reason}"
    if trailing_bytes := file.source.size - file.stored.end:
        yield f"{trailing_bytes:,} bytes after the filter do not belong to it"
    yield from (warning for warning in file.stored.warnings() if "bloom_filter_length" not in warning)
