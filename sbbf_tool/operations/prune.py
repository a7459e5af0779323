"""`prune`: select the files and row groups that may hold a value, as a pyarrow dataset that is ready to read.

pyarrow never queries a Bloom filter, nor do polars and pandas, which build on it. `prune` removes from the dataset what min and max or a
filter exclude, before they read; files and row groups without an answer stay in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.file.answers import ask_row_group, expect_answers
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import by_statistics, row_group_bytes
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet import int96
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.dataset_schema import is_cast, why_read_differently, with_columns_of_all_files
from sbbf_tool.parquet.literals import ABSENT, parse_object
from sbbf_tool.reports.prune import PrunedFile, PruneReport
from sbbf_tool.storage import places

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    _OpenFile = Callable[[ds.ParquetFileFragment, Reuse], ParquetFile]


def prune(data: ds.Dataset | str | os.PathLike[str] | Iterable[str | os.PathLike[str]], column: str, values: object) -> PruneReport:
    """Find the files and row groups of `data` that may hold one of `values` in `column`; the report's `dataset()` reads only those.

    `data` is a pyarrow dataset of Parquet files, or paths: files, folders (`key=value` folders become partition columns), globs, URLs. The
    dataset of paths has the columns of all files; a column's type is that of the first file that has it. Values are as in `probe`; None
    queries null, and keeps every row group that may hold one. A file that cannot be queried stays in, with a warning; so does one where
    the dataset reads other values of the column than the file stores (`dataset_schema`). The rows are not filtered: filter when you read.
    Raises UsageError (no file has the column, or the dataset's schema lacks it; a value that it cannot hold; not Parquet), UnreadableError
    (no file, or one that pyarrow cannot read).
    """
    asked = tuple(as_iterable(values))
    if not asked:
        raise UsageError("no value to ask for")
    import pyarrow.dataset as ds

    open_file: _OpenFile = _open_fragment
    if isinstance(data, ds.Dataset):
        dataset = data
    else:
        dataset, open_file = _dataset_of(list(as_iterable(data)))
    found: list[_Asked] = []
    reuse = Reuse()
    pruned = _pruned(dataset, lambda fragment, schema: _asked(fragment, schema, open_file, column, asked, reuse), found)
    unknown = [one.unknown for one in found if one.unknown is not None]
    if unknown and len(unknown) == len(found):
        raise unknown[0]
    left = [one for one in found if one.row_groups]
    return PruneReport(
        column=column,
        values=tuple("null" if value is None else str(value) for value in asked),
        files=tuple(PrunedFile(one.file, one.row_groups, one.in_all) for one in left),
        total_files=len(found),
        total_row_groups=sum(one.in_all for one in found),
        skipped_by_statistics=sum(one.skipped_by_statistics for one in found),
        skipped_by_filter=sum(one.skipped_by_filter for one in found),
        total_bytes=sum(one.total_bytes for one in found),
        bytes_to_read=sum(one.bytes_to_read for one in found),
        bytes_read=sum(one.bytes_read for one in found),
        requests=sum(one.requests for one in found),
        warnings=tuple(f"{one.file}: left in: {one.warning}" for one in found if one.warning),
        _dataset=pruned,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Row groups of one file that remain, and what was skipped."""

    file: str
    row_groups: tuple[int, ...]
    in_all: int
    skipped_by_statistics: int = 0
    skipped_by_filter: int = 0
    total_bytes: int = 0
    bytes_to_read: int = 0
    bytes_read: int = 0
    requests: int = 0
    warning: str = ""
    unknown: UsageError | None = None
    """Set where the file has no such column."""


def _pruned(dataset: ds.Dataset, ask: Callable[[ds.ParquetFileFragment, pa.Schema], _Asked], found: list[_Asked]) -> ds.Dataset:
    """Return the dataset of what `ask` leaves, with the same schema and partitions; append every answer to `found`."""
    import pyarrow.dataset as ds

    if isinstance(dataset, ds.UnionDataset):
        return ds.UnionDataset(dataset.schema, [_pruned(child, ask, found) for child in dataset.children])
    left = []
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        # pyarrow does not expose the filter.
        raise UsageError("a dataset that is filtered already cannot be pruned", hint="prune first, then filter") from None
    for fragment in fragments:
        if not isinstance(fragment, ds.ParquetFileFragment):
            raise UsageError(f"a dataset of {type(fragment).__name__}s, not of Parquet files")
        answer = ask(fragment, dataset.schema)
        found.append(answer)
        if answer.row_groups:
            left.append(fragment.subset(row_group_ids=answer.row_groups))
    return ds.FileSystemDataset(left, dataset.schema, dataset.format, dataset.filesystem)


def _asked(
    fragment: ds.ParquetFileFragment, schema: pa.Schema, open_file: _OpenFile, column: str, values: tuple[object, ...], reuse: Reuse
) -> _Asked:
    numbers = _row_groups(fragment)
    whole = _Asked(fragment.path, numbers, len(numbers))
    try:
        with open_file(fragment, reuse) as file:
            whole = replace(whole, file=file.name, total_bytes=sum(row_group_bytes(file, number) for number in numbers))
            whole = replace(whole, bytes_to_read=whole.total_bytes)
            try:
                with file.named():
                    found = reuse.find_column(file.footer.columns, column)
            except UsageError as error:
                # pyarrow reads null in its rows.
                return replace(whole, warning=error.message, unknown=error)
            if difference := why_read_differently(fragment, schema, found):
                return replace(whole, warning=difference)
            try:
                with file.named():
                    question = reuse.question_of(found, _as_pyarrow_compares(found, values))
            except UsageError as error:
                if not is_cast(fragment, schema, found):
                    raise
                # The dataset's type may hold a value that the file's cannot.
                return replace(whole, warning=error.message)
            return _ask(file, whole, question)
    except (UnreadableError, RefusedError) as error:
        return replace(whole, warning=error.message)


def _row_groups(fragment: ds.ParquetFileFragment) -> tuple[int, ...]:
    """Return the row groups of a fragment, which may be a subset of its file."""
    import pyarrow as pa

    try:
        return tuple(info.id for info in fragment.row_groups)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(fragment.path, error) from error


def _as_pyarrow_compares(column: Column, values: tuple[object, ...]) -> tuple[object, ...]:
    """Add the values that pyarrow treats as equal: a time of pandas without its nanoseconds; for a column of bytes the bytes of a text,
    since `0x61` and `null` have another meaning in this tool; for INT96 the instants beyond 64 bits of nanoseconds that pyarrow reads as
    the value.
    """
    added: list[object] = [value.floor("us") for value in values if getattr(value, "nanosecond", 0) and hasattr(value, "floor")]
    if column.logical is None and column.physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        texts = (value.encode("utf-8", "surrogateescape") for value in values if isinstance(value, str))
        added += [text for text in texts if column.width in (None, len(text))]
    if column.physical == "INT96":
        instants = [int96.instant_of(form) for value in values for form in parse_object(column, value).forms[:1]]
        added += [int96.forms_of(other)[0] for instant in instants for other in int96.instants_read_as(instant)]
    return (*values, *added) if added else values


def _unreadable(path: str, error: Exception) -> UnreadableError:
    return UnreadableError(f"pyarrow makes no dataset of this ({' '.join(str(error).split())[:200]})", file=path)


def _ask(file: ParquetFile, whole: _Asked, question: Question) -> _Asked:
    expect_answers(file, question)
    left, skipped_by_statistics, skipped_by_filter = [], 0, 0
    for number in whole.row_groups:
        ruled_out = [answer.answer == ABSENT for answer in by_statistics(file, number, question)]
        if all(ruled_out):
            skipped_by_statistics += 1
            continue
        # Statistics may exclude one value, and the filter another.
        absent = [answer.is_absent for answer in ask_row_group(file, number, question)]
        if all(one or other for one, other in zip(ruled_out, absent, strict=True)):
            skipped_by_filter += 1
        else:
            left.append(number)
    return replace(
        whole,
        row_groups=tuple(left),
        skipped_by_statistics=skipped_by_statistics,
        skipped_by_filter=skipped_by_filter,
        bytes_to_read=sum(row_group_bytes(file, number) for number in left),
        bytes_read=file.source.bytes_read,
        requests=file.source.requests,
    )


def _open_fragment(fragment: ds.ParquetFileFragment, reuse: Reuse) -> ParquetFile:
    """Open the file of a fragment through the dataset's own file system, which has the credentials."""
    return ParquetFile.of(places.open_through(fragment.filesystem, fragment.path), reuse=reuse)


def _dataset_of(names: list[str | os.PathLike[str]]) -> tuple[ds.Dataset, _OpenFile]:
    """Return a dataset of the files that the names mean, and a function that opens one of them."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [file for name in names for file in places.parquet_files(os.fsdecode(name))]
    if not files:
        raise UsageError("no file was named")
    filesystem, paths = places.arrow_files(files)
    by_path = dict(zip(paths, files, strict=True))
    try:
        dataset = ds.dataset(paths, filesystem=filesystem, format="parquet", partitioning="hive")
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(files[0], error) from error
    return with_columns_of_all_files(dataset), lambda fragment, reuse: ParquetFile.open(by_path[fragment.path], reuse=reuse)
