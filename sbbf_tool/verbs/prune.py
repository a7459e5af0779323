"""`prune`: select the files and row groups that may hold a value, as a pyarrow dataset that is
ready to read.

pyarrow never queries a Bloom filter, nor do polars and pandas when they read through pyarrow.
Before they read a dataset, `prune` removes the row groups that min and max or a filter exclude;
files and row groups without an answer remain.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from sbbf_tool.arguments import as_iterable, as_values
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import FILTER, STATISTICS, narrow, row_group_bytes
from sbbf_tool.file.question import Question
from sbbf_tool.file.texts import text_of
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet import int96
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.dataset_schema import (
    is_cast,
    why_read_differently,
    with_columns_of_all_files,
)
from sbbf_tool.parquet.literals import parse_object
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage import places
from sbbf_tool.storage.inputs import FileIn, FileSystemLike, Readable, locate

if TYPE_CHECKING:
    from sbbf_tool.file.scan import ScannedFile
    from sbbf_tool.file.scan_kinds import KindJudgment

_FILES_PER_SCAN = 256


class PrunedFile(Frozen):
    """A file with row groups that remain."""

    file: str
    row_groups: tuple[int, ...]
    total_row_groups: int


class PruneReport(Tabular):
    """Files and row groups that may hold one of the values, and a pyarrow dataset of only those."""

    _row = PrunedFile

    column: str
    values: tuple[str, ...]
    files: tuple[PrunedFile, ...]
    total_files: int
    total_row_groups: int
    skipped_by_statistics: int
    """Row groups that min and max, or the null count, exclude."""
    skipped_by_dictionary: int
    """Row groups without a filter that their dictionary excludes."""
    skipped_by_filter: int
    """Row groups that only the filter excludes."""
    total_bytes: int
    """Compressed bytes of the pages of all row groups."""
    bytes_to_read: int
    bytes_read: int
    """Bytes that pruning read: footers, filter headers and blocks."""
    requests: int
    warnings: tuple[str, ...]
    """Files that cannot be pruned, each with the reason; all their row groups remain."""
    _dataset: ds.Dataset = field(repr=False, compare=False)

    @property
    def row_groups(self) -> int:
        """Number of row groups that remain."""
        return sum(len(file.row_groups) for file in self.files)

    def dataset(self) -> ds.Dataset:
        """Return the row groups that remain, with the schema and the partition columns of the whole
        dataset.

        The rows still need filtering: a remaining row group also has other rows, and may have none
        with the value.
        """
        return self._dataset

    def _summary(self) -> str:
        total = format_count(self.total_row_groups, "row group")
        return f"{self.column}: {self.row_groups:,} of {total}"


_COUNTS = (
    "total_files",
    "total_row_groups",
    "skipped_by_statistics",
    "skipped_by_dictionary",
    "skipped_by_filter",
    "total_bytes",
    "bytes_to_read",
    "bytes_read",
    "requests",
)


def prune(
    data: ds.Dataset | str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    column: str,
    values: object,
    *,
    filesystem: FileSystemLike | None = None,
) -> PruneReport:
    """Find the files and row groups of `data` that may hold one of `values` in `column`; the
    report's `dataset()` reads only those.

    `data` is a pyarrow dataset of Parquet files, or paths: files, folders (`key=value` folders
    become partition columns), globs, URLs; with `filesystem` (of pyarrow or fsspec), paths in it. A
    dataset made from paths has the columns of all files; the first file that has a column
    determines its type. Values are as in `probe`; None queries null, and keeps every row group that
    may hold nulls. A file that cannot be queried remains, with a warning. So does a file if the
    dataset reads its column as values other than the stored ones (`dataset_schema`). The rows are
    not filtered: filter them when you read the dataset. Raises UsageError (no file has the column,
    or the dataset's schema lacks it; a value that the column cannot hold; not Parquet),
    UnreadableError (no file, or a file that pyarrow cannot read).
    """
    value_list = tuple(as_values(values))
    if not value_list:
        raise UsageError("no value to query")
    named: Mapping[str, Readable | FileIn] = {}
    if not isinstance(data, ds.Dataset):
        dataset, named = _open_dataset(list(as_iterable(data)), filesystem)
    elif filesystem is None:
        dataset = data
    else:
        raise UsageError("a dataset has its own file system: give paths with filesystem")
    pruning = _PrunedDataset(named, column, value_list)
    pruned_dataset = pruning.prune_dataset(dataset)
    if pruning.unknown_columns and len(pruning.unknown_columns) == pruning.counts["total_files"]:
        raise pruning.unknown_columns[0]
    return PruneReport(
        column=column,
        values=tuple(map(text_of, value_list)),
        files=tuple(pruning.files),
        warnings=tuple(pruning.warnings),
        _dataset=pruned_dataset,
        **pruning.counts,
    )


class _PrunedDataset:
    """The files of a dataset with the row groups that remain, and the counts of a `PruneReport`."""

    def __init__(
        self, named: Mapping[str, Readable | FileIn], column: str, values: tuple[object, ...]
    ) -> None:
        """`named` has the files by the paths of their fragments, if they are not those of a
        dataset that was given."""
        self._named = named
        self._column = column
        self._values = values
        self._context = Context()
        self.files: list[PrunedFile] = []
        self.warnings: list[str] = []
        self.unknown_columns: list[UsageError] = []
        """The errors of the files that have no such column."""
        self.counts = Counter(dict.fromkeys(_COUNTS, 0))

    def prune_dataset(self, dataset: ds.Dataset) -> ds.Dataset:
        """Return a dataset of the row groups that remain, with the same schema and partitions."""
        if isinstance(dataset, ds.UnionDataset):
            children = [self.prune_dataset(child) for child in dataset.children]
            return ds.UnionDataset(dataset.schema, children)
        fragments_to_read = []
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:
            # pyarrow does not expose the filter.
            raise UsageError(
                "cannot prune a filtered dataset", hint="prune first, then filter"
            ) from None
        for fragment in fragments:
            if not isinstance(fragment, ds.ParquetFileFragment):
                raise UsageError(
                    f"cannot prune a dataset of {type(fragment).__name__} objects: it must "
                    "consist of Parquet files"
                )
        for fragment, scanned in zip(fragments, self._scan(fragments), strict=True):
            if row_groups := self._prune_fragment(fragment, dataset.schema, scanned):
                fragments_to_read.append(fragment.subset(row_group_ids=row_groups))
        return ds.FileSystemDataset(
            fragments_to_read, dataset.schema, dataset.format, dataset.filesystem
        )

    def _scan(self, fragments: Sequence[ds.ParquetFileFragment]) -> Iterator[ScannedFile | None]:
        """Yield the answer of each local file; None for one that must be opened."""
        from sbbf_tool.file.scan import FileScan, can_scan

        if not can_scan():
            yield from [None] * len(fragments)
            return
        scan = FileScan(self._judge_kind, self._context)
        names = list(map(self._local_name, fragments))
        for start in range(0, len(names), _FILES_PER_SCAN):
            yield from scan(names[start : start + _FILES_PER_SCAN])

    def _local_name(self, fragment: ds.ParquetFileFragment) -> str:
        """Return the name of the file of a fragment; empty if it has none on this machine."""
        name = self._named.get(fragment.path, fragment.path)
        is_local = isinstance(fragment.filesystem, LocalFileSystem)
        return name if is_local and isinstance(name, str) else ""

    def _judge_kind(self, file: ParquetFile, key: bytes) -> KindJudgment:
        """Judge what decides the answers of files of the same kind as this one."""
        from sbbf_tool.file.scan_kinds import judge_kind

        question = self._question_of(self._find_column(file))
        return judge_kind(file, key, question, None, with_details=True)

    def _find_column(self, file: ParquetFile) -> Column:
        with file.locate_errors():
            leaf = self._context.reuse.find_column(file.footer.columns, self._column)
        # pyarrow reads INT96 with its nanoseconds, other engines may not.
        return replace(leaf, reading=leaf.reading._replace(has_nanos=False))

    def _question_of(self, column: Column, *, is_strict: bool = True) -> Question:
        values = _add_equal_values(column, self._values)
        return self._context.reuse.question_of(column, values, is_strict=is_strict)

    def _prune_fragment(
        self, fragment: ds.ParquetFileFragment, schema: pa.Schema, scanned: ScannedFile | None
    ) -> tuple[int, ...]:
        """Return the row groups that remain, and count them."""
        numbers = _list_row_groups(fragment)
        pruned = None
        if scanned is not None:
            pruned = self._prune_scanned(fragment, schema, numbers, scanned)
        if pruned is None:
            pruned = self._prune_opened(fragment, schema, numbers)
        remaining = tuple([number for number in numbers if number not in pruned.excluded])
        if pruned.warning:
            self.warnings.append(f"{pruned.name}: not pruned: {pruned.warning}")
        if remaining:
            self.files.append(PrunedFile(pruned.name, remaining, len(numbers)))
        self.counts["total_files"] += 1
        self.counts["total_row_groups"] += len(numbers)
        self.counts["total_bytes"] += sum(pruned.sizes.values())
        self.counts["bytes_to_read"] += sum(map(pruned.sizes.__getitem__, remaining))
        self.counts["bytes_read"] += pruned.bytes_read
        self.counts["requests"] += pruned.requests
        for means in pruned.excluded.values():
            self.counts[f"skipped_by_{means}"] += 1
        return remaining

    def _prune_scanned(
        self,
        fragment: ds.ParquetFileFragment,
        schema: pa.Schema,
        numbers: tuple[int, ...],
        scanned: ScannedFile,
    ) -> _Pruned | None:
        """Return what the scan of a file excludes; None if the file must be opened."""
        column = scanned.judgment.column
        assert column is not None
        if why_read_differently(fragment, schema, column):
            return None
        sizes = {}
        excluded = {}
        may_hold = scanned.row_groups_with_hits()
        requests = 1
        for each in scanned.details:
            requests += each.is_queried
            if each.row_group not in numbers:
                continue
            sizes[each.row_group] = each.num_bytes
            if each.row_group not in may_hold:
                excluded[each.row_group] = FILTER if each.is_queried else STATISTICS
        if len(sizes) != len(numbers):
            return None
        name = self._local_name(fragment)
        return _Pruned(name, sizes, excluded, "", scanned.bytes_read, requests)

    def _prune_opened(
        self, fragment: ds.ParquetFileFragment, schema: pa.Schema, numbers: tuple[int, ...]
    ) -> _Pruned:
        name = fragment.path
        sizes = dict.fromkeys(numbers, 0)
        try:
            with self._open(fragment) as file:
                name = file.name
                sizes = {number: row_group_bytes(file, number) for number in numbers}
                question, warning = self._ask(fragment, schema, file)
                if question is None:
                    return _Pruned(name, sizes, {}, warning)
                excluded = _exclude_row_groups(file, numbers, question)
                source = file.source
                return _Pruned(name, sizes, excluded, "", source.bytes_read, source.requests)
        except (UnreadableError, RefusedError) as error:
            return _Pruned(name, sizes, {}, error.message)

    def _open(self, fragment: ds.ParquetFileFragment) -> ParquetFile:
        if fragment.path in self._named:
            return ParquetFile.open(self._named[fragment.path], self._context)
        # The dataset's own file system has the credentials.
        source = places.open_through(fragment.filesystem, fragment.path)
        return ParquetFile.of(source, self._context)

    def _ask(
        self, fragment: ds.ParquetFileFragment, schema: pa.Schema, file: ParquetFile
    ) -> tuple[Question | None, str]:
        """Return the question for a file; None, and the reason, if its row groups cannot be
        pruned."""
        try:
            leaf = self._find_column(file)
        except UsageError as error:
            # pyarrow reads the column as null in the rows of this file.
            self.unknown_columns.append(error)
            return None, error.message
        if difference := why_read_differently(fragment, schema, leaf):
            return None, difference
        try:
            with file.locate_errors():
                return self._question_of(leaf), ""
        except UsageError as error:
            if not is_cast(fragment, schema, leaf):
                raise
            # The column's type in the dataset may hold a value that its type in the file cannot.
            if leaf.physical == "INT96":
                return None, error.message
            return self._question_of(leaf, is_strict=False), ""


class _Pruned(NamedTuple):
    """What is known of a file of which some row groups may remain."""

    name: str
    sizes: Mapping[int, int]
    """Bytes of the row groups."""
    excluded: Mapping[int, str]
    """The row groups that are left out, and the means that excludes each."""
    warning: str
    """Why none is; empty if the file was queried."""
    bytes_read: int = 0
    requests: int = 0


def _exclude_row_groups(
    file: ParquetFile, numbers: tuple[int, ...], question: Question
) -> dict[int, str]:
    """Return the row groups without the values, and the means that excludes each."""
    excluded = {}
    for narrowed in narrow(file, question, numbers):
        if narrowed.unreadable:
            raise UnreadableError(narrowed.unreadable[0])
        if narrowed.is_absent:
            excluded[narrowed.row_group] = narrowed.decided_by
    return excluded


def _list_row_groups(fragment: ds.ParquetFileFragment) -> tuple[int, ...]:
    """Return the row groups of a fragment, which may be a subset of its file."""
    try:
        return tuple(info.id for info in fragment.row_groups)
    except (OSError, pa.ArrowException) as error:
        raise _build_error(fragment.path, error) from error


def _add_equal_values(column: Column, values: tuple[object, ...]) -> tuple[object, ...]:
    """Add the values that pyarrow treats as equal to the given ones.

    They are a pandas timestamp without its nanoseconds; for a binary column, the bytes of a string,
    since `0x61` and `null` have other meanings in this tool; for INT96, the instants beyond 64 bits
    of nanoseconds that pyarrow reads as the value.
    """
    extra_values: list[object] = []
    is_binary = column.physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and column.logical is None
    for value in values:
        if getattr(value, "nanosecond", 0) and hasattr(value, "floor"):
            extra_values.append(value.floor("us"))
        if is_binary and isinstance(value, str):
            text = value.encode("utf-8", "surrogateescape")
            if column.width in (None, len(text)):
                extra_values.append(text)
        if column.physical == "INT96":
            for form in parse_object(column, value).forms[:1]:
                for instant in int96.instants_read_as(int96.instant_of(form)):
                    first_form, *_ = int96.forms_of(instant)
                    extra_values.append(first_form)
    return (*values, *extra_values)


def _build_error(path: str, error: Exception) -> UnreadableError:
    reason = " ".join(str(error).split())[:200]
    return UnreadableError(f"pyarrow cannot read it as a dataset ({reason})", file=path)


def _ensure_no_table(name: str) -> None:
    """Raise RefusedError for the root of a table: the files below it are those of all versions, so
    that rows would appear repeatedly."""
    table_format = places.find_table_format(name)
    if table_format in ("Delta", "Iceberg"):
        reason = (
            f"the folder is the root of a table of {table_format}, and also has files of its "
            "earlier versions"
        )
        hint = (
            "give a dataset of one version, such as DeltaTable(...).to_pyarrow_dataset(), "
            "or the paths of its files"
        )
        raise RefusedError(reason, file=redact(name), hint=hint)


def _path_in_filesystem(file: Readable | FileIn) -> str:
    return file.path if isinstance(file, FileIn) else str(file)


def _open_dataset(
    names: list[str | os.PathLike[str]], files_in: FileSystemLike | None
) -> tuple[ds.Dataset, dict[str, Readable | FileIn]]:
    """Return a dataset of the files with these names, and the files by the paths of its
    fragments."""
    for name in names:
        if not isinstance(name, str | bytes | os.PathLike):
            raise UsageError(f"prune takes paths or a pyarrow dataset, not {type(name).__name__}")
        if files_in is None:
            _ensure_no_table(os.fsdecode(name))
    inputs: list[Readable | FileIn] = []
    for name in names:
        inputs.extend(places.parquet_inputs(name, files_in))
    if not inputs:
        raise UsageError("no file was named")
    if files_in is not None:
        filesystem, _ = locate(files_in, "")
        files = list(map(_path_in_filesystem, inputs))
        paths = files
    else:
        files = list(map(str, inputs))
        filesystem, paths = places.arrow_files(files)
    by_path = dict(zip(paths, inputs, strict=True))
    try:
        dataset = ds.dataset(paths, filesystem=filesystem, format="parquet", partitioning="hive")
    except (OSError, pa.ArrowException) as error:
        raise _build_error(files[0], error) from error

    return with_columns_of_all_files(dataset), by_path
