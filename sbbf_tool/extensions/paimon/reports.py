"""Results of the Paimon operations: `inspect_paimon`, `probe_paimon`, `build_paimon_index`,
`verify_paimon`, `add_paimon_index`, `remove_paimon_index`, `check_paimon`.

`place` is where the index of a data file is stored: `embedded` in the manifest, in a `file`, or
`none`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.tabular import JoinedRow, Tabular


class BloomFigures(Frozen):
    """Figures of a filter that follow from its bits alone."""

    num_bits: int
    k: int
    paimon_probes: int
    """Number of bits that Paimon's own reader checks; it is not k if k is 128 or more."""
    fill_ratio: float
    estimated_fpp: float
    """Estimated false-positive rate with Paimon's reader."""
    estimated_ndv: float | None
    """Estimated number of distinct values; None when the filter is full."""
    diagnosis: str | None = None
    """What the fill ratio says of the size, in a sentence; None if the size fits the values, or k
    is 0."""


class IndexFigures(Frozen):
    """One index of one column."""

    column: str
    """Name in the container, from the schema of the data file."""
    current_column: str | None
    """Current name in the table; None when the column no longer exists, or the target is a
    container."""
    type: str | None
    kind: str
    size: int
    """Bytes."""
    empty: bool
    """Whether this is an EMPTY entry: Paimon skips the file for every value."""
    bloom: BloomFigures | None
    """None for other kinds, EMPTY entries, and bodies that cannot be read."""


class InspectedFile(Frozen):
    """Data file and its index. For a container alone, `data_file` is the name of the container and
    `rows` is unknown."""

    data_file: str
    partition: str
    bucket: int | None
    rows: int | None
    place: str
    """"embedded", "file" or "none"."""
    index_path: str | None
    size: int
    """Bytes of the container, 0 without one."""
    indexes: tuple[IndexFigures, ...]


class IndexColumnTotal(Frozen):
    """Filters of a column over all data files."""

    column: str
    """Current name in the table, if the column still exists."""
    files_with_filter: int
    files: int
    filter_bytes: int
    mean_fpp: float
    """Mean over the files with a filter: the share of files without the value that are read
    anyway."""


INDEX_ROW = JoinedRow(InspectedFile, IndexFigures, BloomFigures, but=("indexes", "bloom"))


class PaimonInspectReport(Tabular):
    _row = INDEX_ROW.type
    _first = ("target", "snapshot")

    target: str
    snapshot: int | None
    files: tuple[InspectedFile, ...]
    columns: tuple[IndexColumnTotal, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings about indexes that contradict the format or are missing."""
        return tuple(finding for finding in self.findings if finding.severity == ERROR)

    @property
    def is_table(self) -> bool:
        """Whether the target is a table, not an index file."""
        if self.snapshot is not None:
            return True
        return all(file.rows is not None for file in self.files)

    def _rows(self) -> Iterable[object]:
        for file in self.files:
            for index in file.indexes:
                yield INDEX_ROW.of(file, index, index.bloom)

    def _summary(self) -> str:
        indexes = sum(len(file.indexes) for file in self.files)
        return (
            f"{self.target}: {format_count(len(self.files), 'data file')}, "
            f"{format_count(indexes, 'index', 'indexes')}"
        )


class IndexAnswer(Frozen):
    """Answer of the index of one file for one value."""

    value: str | None
    """The value as given; None means null."""
    hash64: str | None
    """Hash of the value, 16 hexadecimal digits; None if it was not hashed."""
    may_hold: bool
    reason: str


class ProbedFile(Frozen):
    data_file: str
    path: str
    partition: str
    bucket: int
    rows: int
    place: str
    """"embedded", "file" or "none"."""
    column: str | None
    """Name of the column in the data file; None for a column that was added later."""
    answers: tuple[IndexAnswer, ...]

    @property
    def may_hold(self) -> bool:
        """Whether the file may hold one of the values."""
        return any(answer.may_hold for answer in self.answers)


ANSWER_ROW = JoinedRow(ProbedFile, IndexAnswer, but=("column", "answers"))


class PaimonProbeReport(Tabular):
    _row = ANSWER_ROW.type
    _first = ("table", "snapshot", "column")

    table: str
    snapshot: int | None
    column: str
    type: str
    unused_reason: str | None
    """Why Paimon's planner does not use the indexes of this table; None if it does. The answers
    come from the indexes in both cases."""
    files: tuple[ProbedFile, ...]

    @property
    def num_values(self) -> int:
        return len(self.files[0].answers) if self.files else 0

    @property
    def remaining(self) -> tuple[ProbedFile, ...]:
        return tuple(file for file in self.files if file.may_hold)

    @property
    def skipped(self) -> tuple[ProbedFile, ...]:
        return tuple(file for file in self.files if not file.may_hold)

    def _rows(self) -> Iterable[object]:
        for file in self.files:
            for answer in file.answers:
                yield ANSWER_ROW.of(file, answer)

    def _summary(self) -> str:
        files = format_count(len(self.files), "data file")
        return f"{self.table}: {len(self.remaining):,} of {files}"


class BuiltColumn(Frozen):
    """A filter that was built."""

    column: str
    type: str
    rows: int
    nulls: int
    ndv: int
    """Number of distinct hashes; apart from collisions, this is the number of distinct values."""
    items: int
    fpp: float
    num_bits: int
    k: int
    fill_ratio: float
    estimated_fpp: float
    """Estimated false-positive rate."""


class BuildReport(Tabular):
    _row = BuiltColumn
    _first = ("data_file", "output")

    data_file: str
    output: str
    """Path of the container that was written or, in a dry run, would be written."""
    dry_run: bool
    size: int
    """Bytes of the container."""
    columns: tuple[BuiltColumn, ...]
    table: str | None
    """Table of the data file; the table does not refer to the new index."""

    def _summary(self) -> str:
        return f"{self.output}: {format_count(len(self.columns), 'filter')}"


class VerifiedColumn(Frozen):
    """Membership check of one filter with all values of its column."""

    column: str
    rows: int
    nulls: int
    false_negatives: int
    """Number of false negatives; a repeated value may count only once."""
    examples: tuple[str, ...]
    """Some of the false negatives."""
    problem: str | None = None
    """Why the filter could not be checked; None when it was."""
    cause: str | None = None
    """How the filter holds the values that it excludes, if it holds them in another form; None if
    it does not, or that is unknown."""


class VerifiedFile(Frozen):
    data_file: str
    place: str
    """"embedded", "file" or "none"."""
    columns: tuple[VerifiedColumn, ...]
    problem: str | None = None
    """Why no filter of the file could be checked; None when one was, or the file has no index."""


_VERIFIED_ROW = JoinedRow(VerifiedFile, VerifiedColumn, but=("columns",))


class PaimonVerifyReport(Tabular):
    _row = _VERIFIED_ROW.type
    _first = ("target",)

    target: str
    files: tuple[VerifiedFile, ...]

    @property
    def has_false_negatives(self) -> bool:
        """Whether there are false negatives."""
        return any(column.false_negatives for column in self._columns())

    def _columns(self) -> Iterator[VerifiedColumn]:
        for file in self.files:
            yield from file.columns

    @property
    def problems(self) -> tuple[tuple[str, str | None, str], ...]:
        """Indexes that could not be checked: data file, column (None for all columns), and
        reason."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[tuple[str, str | None, str]]:
        for file in self.files:
            if file.problem is not None:
                yield file.data_file, None, file.problem
            for column in file.columns:
                if column.problem is not None:
                    yield file.data_file, column.column, column.problem

    def _rows(self) -> Iterable[object]:
        for file in self.files:
            for column in file.columns:
                yield _VERIFIED_ROW.of(file, column)
            if not file.columns and file.problem is not None:
                yield _VERIFIED_ROW.of(file, None)

    def _summary(self) -> str:
        columns = list(self._columns())
        false_negatives = sum(column.false_negatives for column in columns)
        return (
            f"{self.target}: {format_count(len(columns), 'filter')}, "
            f"{format_count(false_negatives, 'false negative')}"
        )


class NewIndex(Frozen):
    """New index of a data file."""

    data_file: str
    place: str
    """"embedded" in the manifest or in a "file"."""
    path: str | None
    size: int
    """Bytes of the container."""
    columns: tuple[BuiltColumn, ...]


class SkippedFile(Frozen):
    """Data file, or a column of it, that got no index, and the reason."""

    data_file: str
    reason: str
    is_unreadable: bool = False
    """Whether the file could not be read; other skipped files must not be indexed, or already
    are."""
    is_refused: bool = False
    """Whether a filter was left out because it would exclude hardly any value."""


_NEW_INDEX_ROW = JoinedRow(NewIndex, BuiltColumn, but=("size", "columns"))


class _ChangeReport(Tabular, kw_only=True):
    """What a commit that adds or removes indexes changed."""

    table: str
    dry_run: bool
    snapshot_before: int | None
    snapshot_after: int | None
    """None without a commit: there was nothing to do, or it was a dry run."""
    skipped: tuple[SkippedFile, ...]
    notes: tuple[str, ...]

    @property
    def unreadable(self) -> tuple[SkippedFile, ...]:
        return tuple(file for file in self.skipped if file.is_unreadable)


class AddIndexReport(_ChangeReport, kw_only=True):
    _row = _NEW_INDEX_ROW.type
    _first = ("table",)

    new_indexes: tuple[NewIndex, ...]

    @property
    def refused(self) -> tuple[SkippedFile, ...]:
        return tuple(file for file in self.skipped if file.is_refused)

    def _rows(self) -> Iterable[object]:
        for index in self.new_indexes:
            for column in index.columns:
                yield _NEW_INDEX_ROW.of(index, column)

    def _summary(self) -> str:
        return f"{self.table}: {format_count(len(self.new_indexes), 'new index', 'new indexes')}"


class RemovedIndex(Frozen):
    """What a data file lost, and what remains."""

    data_file: str
    columns: tuple[str, ...]
    """Columns, by their names in the data file, whose Bloom filters were removed; empty for an
    index that could not be read."""
    place: str
    """Where the remaining indexes are: "embedded" in the manifest, in a "file", or "none"."""
    path: str | None
    size: int
    """Bytes of the container with the remaining indexes, 0 without one."""


class RemoveIndexReport(_ChangeReport, kw_only=True):
    _row = RemovedIndex
    _first = ("table",)

    removed_indexes: tuple[RemovedIndex, ...]

    def _summary(self) -> str:
        return (
            f"{self.table}: indexes removed from "
            f"{format_count(len(self.removed_indexes), 'data file')}"
        )
