"""The files of a query that engines run: what their footers and filters say about it, and their
copies without filters."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from sbbf_tool.errors import NoColumnError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.engine_runs.copies import copy_file, ensure_room, page_ranges
from sbbf_tool.file.filter_answers import EMPTY_FILTER
from sbbf_tool.file.missing_column import find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import query_row_group, query_statistics, without_statistics
from sbbf_tool.file.question import Question, question_of
from sbbf_tool.parquet.columns import Column, find_column, leaf_columns
from sbbf_tool.parquet.literals import CONVERTED, converts_text
from sbbf_tool.storage.inputs import FileIn
from sbbf_tool.storage.places import is_url
from sbbf_tool.storage.source import LocalSource

_ORIGINALS = "originals"
_COPIES = "copies"


@dataclass
class QueryFiles:
    """The files of the query, and their copies."""

    column: Column | None = None
    value: str = ""
    stored_paths: set[tuple[str, ...]] = field(default_factory=set)
    """The paths of the column in the files; a table may have another name for it."""
    names: list[str] = field(default_factory=list)
    """Absolute paths or URLs of the files."""
    without_column: list[str] = field(default_factory=list)
    """Those of the files that lack the column."""
    paths: list[str] = field(default_factory=list)
    """The files with filters: links to those of the user or, for files that are not on this
    machine, copies."""
    copies: list[str] = field(default_factory=list)
    """Copies without filters."""
    sizes: list[list[int]] = field(default_factory=list)
    excluded: list[list[int]] = field(default_factory=list)
    """The row groups of each file that only filters exclude."""
    ranges: list[list[tuple[int, int]]] = field(default_factory=list)
    """The pages of these row groups."""
    bytes: int = 0
    filters: int = 0
    excluded_otherwise: int = 0
    """Row groups that min and max or a dictionary exclude."""


def prepare_files(inputs: Iterable[Any], name: str, value: object, folder: Path) -> QueryFiles:
    """Read the footers and filters of all files, and make the copies. Files that lack the column
    are left out: they hold no value."""
    files = QueryFiles()
    missing: SbbfError | None = None
    for kind in (_ORIGINALS, _COPIES):
        (folder / kind).mkdir()
    for item in inputs:
        with ParquetFile.open(item) as file, file.locate_errors():
            _ensure_readable(file)
            try:
                column = find_column(file.footer.columns, name)
            except NoColumnError as error:
                reason = _explain_missing(file, name, error)
                missing = missing or reason
                files.without_column.append(os.path.abspath(file.name))
                continue
            question = _make_question(column, value)
            files.column = files.column or column
            files.value = question.literals[0].text
            _add(files, file, question, item, folder)
    if files.column is None:
        raise missing or UnreadableError(
            "there is no file", hint="name a Parquet file, or a folder that has some"
        )
    return files


def _ensure_readable(file: ParquetFile) -> None:
    """Raise RefusedError for a file that needs keys."""
    if file.footer.cipher is not None or file.footer.has_encrypted_chunks:
        raise RefusedError(
            "the file is encrypted or signed, and query engines are run without keys"
        )


def _explain_missing(file: ParquetFile, name: str, error: NoColumnError) -> SbbfError:
    """Return the error of a file that lacks the column, which may be a partition column."""
    statement = find_missing(file, name, strict=False)
    if statement is not None and statement.is_partition:
        return UsageError(
            f"{statement.reason}: it is a partition column, and no filter is needed",
            file=file.name,
        )
    return error.at(file=file.name)


def _make_question(column: Column, value: object) -> Question:
    """Make the question of a value. Raises UsageError for a column or a value that engines cannot
    be asked about."""
    if column.max_repetition:
        raise UsageError(
            "values inside lists and maps cannot be queried in query engines",
            place=f"column {column.name}",
        )
    if converts_text(column, value):
        raise UsageError(CONVERTED, place=f"column {column.name}")
    question = question_of(column, (value,))
    if question.literals[0].is_null:
        raise UsageError("null cannot be queried in query engines: filters hold no nulls")
    return question


def _add(
    files: QueryFiles, file: ParquetFile, question: Question, item: object, folder: Path
) -> None:
    """Add a file, with its copy without filters."""
    footer = file.footer
    index = question.column.index
    numbers = range(footer.num_row_groups)
    file.expect_filters([question.column], whole=True)
    excluded = []
    for number in numbers:
        files.filters += footer.filter_place(number, index) is not None
        known = without_statistics(file, number, question)
        answers = query_row_group(file, known, every_means=True)
        (filter_answer,) = answers.by_filter()
        statistics = query_statistics(file, number, question)
        others = [*statistics.by_statistics(), *(answers.by_dictionary() or ())]
        # An engine may skip the row group without its filter.
        if any(answer.is_absent for answer in others):
            files.excluded_otherwise += 1
        elif filter_answer.is_absent or filter_answer.reason == EMPTY_FILTER:
            excluded.append(number)
    original, copy = _make_copies(file, item, folder, f"{len(files.paths):06}.parquet")
    files.stored_paths.add(leaf_columns(footer.metadata.schema)[index].short_path)
    files.names.append(file.name if is_url(file.name) else os.path.abspath(file.name))
    files.paths.append(str(original))
    files.copies.append(str(copy))
    files.sizes.append([footer.num_rows(number) or 0 for number in numbers])
    files.excluded.append(excluded)
    files.ranges.append(list(chain.from_iterable(page_ranges(file, number) for number in excluded)))
    files.bytes += file.source.size


def _make_copies(file: ParquetFile, item: object, folder: Path, name: str) -> tuple[Path, Path]:
    """Return the paths of a link to the file, or of a copy if it is not on this machine, and of a
    copy without filters."""
    is_here = (
        isinstance(file.source, LocalSource)
        and not isinstance(item, FileIn)
        and not is_url(file.name)
    )
    ensure_room(str(folder), file.source.size * (1 if is_here else 2))
    copy = folder / _COPIES / name
    original = folder / _ORIGINALS / name
    copy_file(file, copy, filters=False)
    if is_here:
        # Engines read glob characters, percent signs or `key=value` in a path in their own ways.
        original.symlink_to(os.path.abspath(file.name))
    else:
        copy_file(file, original, filters=True)
    return original, copy
