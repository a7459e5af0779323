"""The means of pruning a row group for a value: min and max, the dictionary, the filter; in the order in which readers use them.

An answer is `absent`, which is certain, or `maybe`, or `cannot say` with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.literals import format_plain
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE, Literal
from sbbf_tool.parquet.statistics import bounds, may_hold, stated_bounds

_MAX_CHARACTERS = 40
_BOOLEANS = {"true": b"\1", "false": b"\0"}


class Answer(NamedTuple):
    answer: str
    reason: str | None = None


def by_statistics(file: ParquetFile, row_group: int, question: Question) -> list[Answer]:
    """Return for each value whether it is between the min and max of the chunk; for null, whether the null count allows it."""
    column = question.column
    if reason := doubt_of_chunk(file, row_group, column, question.values):
        return [Answer(CANNOT_SAY, reason)] * len(question.literals)
    is_empty = file.footer.chunk_meta(row_group, column.index).has_only_nulls
    statistics = bounds(file.footer, row_group, column)
    answers = []
    for literal in question.literals:
        forms = _forms(column, literal)
        if literal.is_null:
            answers.append(_of_null(file, row_group, column))
        elif is_empty:
            answers.append(Answer(ABSENT, "all its values are null"))
        elif not forms:
            answers.append(Answer(CANNOT_SAY, literal.note))
        elif statistics is None:
            answers.append(Answer(CANNOT_SAY, "it has no reliable min and max"))
        else:
            answers.append(Answer(MAYBE if any(may_hold(statistics, column, plain) for plain in forms) else ABSENT))
    return answers


def _of_null(file: ParquetFile, row_group: int, column: Column) -> Answer:
    """Return whether a row of the chunk may be null. The null count of a list is not used: in some files it includes empty lists."""
    if column.max_repetition:
        return Answer(CANNOT_SAY, "a count of nulls does not identify the rows of a list that are null")
    if column.max_definition == 0:
        return Answer(ABSENT, "its column is required")
    if file.footer.num_rows(row_group) == 0:
        return Answer(ABSENT, "it has no rows")
    nulls = file.footer.chunk_meta(row_group, column.index).nulls
    if nulls is None:
        return Answer(CANNOT_SAY, "the footer does not count its nulls")
    return Answer(MAYBE if nulls else ABSENT)


def by_dictionary(file: ParquetFile, row_group: int, question: Question) -> list[Answer] | None:
    """Return for each value whether the chunk's dictionary holds it; None if the dictionary does not hold all values of the chunk.

    Reads the dictionary page and hashes it; `absent` is certain, as with a filter.
    """
    from sbbf_tool.parquet import equals
    from sbbf_tool.parquet.plain_pages import PlainChunk

    column = question.column
    if doubt_of_chunk(file, row_group, column, question.values):
        return None
    if not file.footer.chunk_meta(row_group, column.index).is_dictionary_encoded:
        return None
    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        pages = file.pages(row_group, column)
        normalised = equals.compares_normalised(file.footer, column)
        page = PlainChunk(pages.read, column, pages.meta, pages.ensure_size, normalised_intervals=normalised).dictionary()
        if page is None:
            return [Answer(CANNOT_SAY, "its dictionary page is very large, or has an unsupported codec")] * len(question.literals)
        entries = {*page.hashes, *page.hashes_of_equals}
    return [
        Answer(CANNOT_SAY, literal.note) if literal.verdict is not None else Answer(ABSENT if entries.isdisjoint(hashes) else MAYBE)
        for literal, hashes in zip(question.literals, question.hashes, strict=True)
    ]


def format_bounds(file: ParquetFile, row_group: int, column: Column) -> tuple[str, str] | None:
    """Return min and max in the form in which `probe` accepts values, shortened to fit a table."""
    pair = stated_bounds(file.footer, row_group, column) if bounds(file.footer, row_group, column) is not None else None
    return None if pair is None else (_format(column, pair[0]), _format(column, pair[1]))


def _format(column: Column, plain: bytes) -> str:
    text = next((name for name, form in _BOOLEANS.items() if form == plain), "") if column.physical == "BOOLEAN" else ""
    text = text or format_plain(column, plain)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."


def _forms(column: Column, literal: Literal) -> Sequence[bytes]:
    """Return the plain bytes to compare with. BOOLEAN literals have no forms, because filters are never queried for BOOLEAN."""
    if column.physical == "BOOLEAN":
        plain = _BOOLEANS.get(literal.text.lower())
        return () if plain is None else (plain,)
    return literal.forms if literal.verdict is None else ()


def row_group_bytes(file: ParquetFile, row_group: int) -> int:
    """Return the compressed bytes of the pages of all chunks, except chunks encrypted with their own keys, whose sizes are unknown."""
    return sum(meta.bytes for meta in file.footer.chunk_metas(row_group))
