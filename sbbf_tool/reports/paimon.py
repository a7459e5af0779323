"""What the Paimon operations answer with: `inspect_paimon`, `probe_paimon`, `build_paimon_index`, `verify_paimon`, `add_paimon_index`.

`place` says where a data file's index is: `embedded` in the manifest, in a `file`, or `none`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.findings import ERROR, Finding


@dataclass(frozen=True)
class BloomFigures:
    """What there is to know of a filter without its values."""

    num_bits: int
    k: int
    paimon_probes: int
    """How many bits Paimon's own reader looks at; other than k from 128 on."""
    fill: float
    error_rate: float
    """Estimated chance of a "maybe" for an absent value, as Paimon's reader asks."""
    distinct: float | None
    """Estimated number of distinct values put in; None when the filter is full."""


@dataclass(frozen=True)
class IndexFigures:
    """One index of one column."""

    column: str
    """As the container names it: in the data file's own schema."""
    column_today: str | None
    """As the table names it now; None when it is gone, or when only a container was looked at."""
    type: str | None
    kind: str
    size: int
    """Bytes."""
    empty: bool
    """An EMPTY entry: Paimon skips the file for every value."""
    bloom: BloomFigures | None
    """None for other kinds, EMPTY entries, and bodies that cannot be read."""


@dataclass(frozen=True)
class InspectedFile:
    """A data file and its index. For a container alone, `data_file` is the container's name and `rows` is unknown."""

    data_file: str
    partition: str
    bucket: int | None
    rows: int | None
    place: str
    """"embedded", "file" or "none"."""
    index_path: str | None
    size: int
    """Bytes of the container, 0 for none."""
    indexes: tuple[IndexFigures, ...]


@dataclass(frozen=True)
class ColumnTotal:
    """A column's filters over all data files."""

    column: str
    """As the table names it now, where it has it still."""
    files_with_filter: int
    files: int
    filter_bytes: int
    mean_error_rate: float
    """Mean over the files with a filter: of files without the value, the share still read."""


@dataclass(frozen=True)
class InspectReport:
    target: str
    snapshot: int | None
    files: tuple[InspectedFile, ...]
    columns: tuple[ColumnTotal, ...]
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings that some index contradicts the format, or is not there."""
        return tuple(finding for finding in self.findings if finding.severity == ERROR)

    @property
    def is_table(self) -> bool:
        """Not one index file."""
        return self.snapshot is not None or not any(file.rows is None for file in self.files)


@dataclass(frozen=True)
class ValueAnswer:
    """What one file's index says of one value."""

    value: str | None
    """As it was asked; None is null."""
    hash64: str | None
    """Its hash, 16 hexadecimal digits; None where nothing was hashed."""
    remain: bool
    reason: str


@dataclass(frozen=True)
class ProbedFile:
    data_file: str
    path: str
    partition: str
    bucket: int
    rows: int
    place: str
    """"embedded", "file" or "none"."""
    column: str | None
    """The column's name in the data file; None when it was not there yet."""
    answers: tuple[ValueAnswer, ...]

    @property
    def remain(self) -> bool:
        """The file may hold one of the values."""
        return any(answer.remain for answer in self.answers)


@dataclass(frozen=True)
class ProbeReport:
    table: str
    snapshot: int | None
    column: str
    type: str
    unused: str | None
    """Why Paimon's planner does not ask this table's indexes; None when it does. The answers are the indexes' all the same."""
    files: tuple[ProbedFile, ...]

    @property
    def num_values(self) -> int:
        return len(self.files[0].answers) if self.files else 0

    @property
    def remaining(self) -> tuple[ProbedFile, ...]:
        return tuple(file for file in self.files if file.remain)

    @property
    def skipped(self) -> tuple[ProbedFile, ...]:
        return tuple(file for file in self.files if not file.remain)


@dataclass(frozen=True)
class BuiltColumn:
    """A filter that was built."""

    column: str
    type: str
    rows: int
    nulls: int
    distinct: int
    """Distinct hashes, as many as distinct values but for collisions."""
    items: int
    fpp: float
    num_bits: int
    k: int
    fill: float
    error_rate: float
    """Estimated chance of a "maybe" for an absent value."""


@dataclass(frozen=True)
class BuildReport:
    data_file: str
    output: str
    """Where the container is, or, of a dry run, would be."""
    dry_run: bool
    size: int
    """Bytes of the container."""
    columns: tuple[BuiltColumn, ...]
    table: str | None
    """The table the data file belongs to; it knows nothing of the new index."""


@dataclass(frozen=True)
class VerifiedColumn:
    """One filter asked for all values of its column."""

    column: str
    rows: int
    nulls: int
    lost: int
    """Values (of repeated ones perhaps only one) that a reader would not find."""
    examples: tuple[str, ...]
    """Some of the lost values."""
    problem: str | None = None
    """Why the filter could not be asked; None when it was."""


@dataclass(frozen=True)
class VerifiedFile:
    data_file: str
    place: str
    """"embedded", "file" or "none"."""
    columns: tuple[VerifiedColumn, ...]
    problem: str | None = None
    """Why nothing of the file could be checked; None when something was, or it has no index."""


@dataclass(frozen=True)
class VerifyReport:
    target: str
    files: tuple[VerifiedFile, ...]

    @property
    def loses(self) -> bool:
        """Some value that is there would be skipped."""
        return any(column.lost for file in self.files for column in file.columns)

    @property
    def problems(self) -> tuple[tuple[str, str | None, str], ...]:
        """The indexes that could not be checked: data file, column or None for all of them, and why."""
        return tuple(
            (file.data_file, column, problem)
            for file in self.files
            for column, problem in ((None, file.problem), *((each.column, each.problem) for each in file.columns))
            if problem is not None
        )


@dataclass(frozen=True)
class AddedIndex:
    """A data file's new index."""

    data_file: str
    place: str
    """"embedded" in the manifest or in a "file"."""
    path: str | None
    size: int
    """Bytes of the container."""
    columns: tuple[BuiltColumn, ...]


@dataclass(frozen=True)
class LeftAlone:
    """A data file, or a column of it, that got no index, and why."""

    data_file: str
    reason: str
    unread: bool = False
    """It could not be read; the others are not to be indexed, or already are."""


@dataclass(frozen=True)
class AddIndexReport:
    table: str
    dry_run: bool
    snapshot_before: int | None
    snapshot_after: int | None
    """None when nothing was committed: nothing to do, or only planned."""
    added: tuple[AddedIndex, ...]
    left_alone: tuple[LeftAlone, ...]
    notes: tuple[str, ...]

    @property
    def unread(self) -> tuple[LeftAlone, ...]:
        return tuple(left for left in self.left_alone if left.unread)
