"""A verb is a value: it says what is wanted of a file, and nothing about which files, keys or
workers.

    Probe("user_id", [42])("events.parquet")     the report of one file
    run(Probe("user_id", [42]), "lake/**")       a row for each of many files, see running.run

A verb is equal to another with the same fields, prints as the call that makes it, and is sent to
other processes by its fields.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypedDict, TypeVar

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import ChangedError, SbbfError
from sbbf_tool.file.context import Context
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.reports.rows import OK, Row
from sbbf_tool.storage.inputs import FileIn, FileSystemLike, Readable, ensure_path, find_input
from sbbf_tool.storage.names import is_url
from sbbf_tool.storage.places import open_spool

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.editing.open_edit import OpenEdit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.parallel import Progress
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.reports.change import ChangeReport
    from sbbf_tool.rules.filter_spec import FilterSpec

Report = TypeVar("Report", covariant=True)
Changed = TypeVar("Changed", bound="ChangeReport", covariant=True)
Whole = TypeVar("Whole", covariant=True)

COMPARE_SCANS = "SBBF_COMPARE_SCANS"
"""Environment variable with which each local file is scanned too, so that tests compare both."""
_FIRST_PAUSE = 0.05


class ReadOptions(TypedDict, total=False):
    """The options of functions that read one file; see `ReadingVerb`."""

    filesystem: FileSystemLike | None
    keys: KeysLike
    max_page_bytes: MaxPageBytes
    strict: bool
    jobs: int | None


class EditOptions(TypedDict, total=False):
    """The options of functions that change one file; see `Edit`."""

    output: str | os.PathLike[str] | None
    in_place: bool
    dry_run: bool
    allow_table_files: bool
    keys: KeysLike
    max_page_bytes: MaxPageBytes
    jobs: int | None
    force: bool


def as_name(name: str) -> str:
    """Return the name of one column. Raises UsageError for anything else."""
    return as_names((name,))[0]


Scanner = Callable[[Sequence[str]], Sequence[Report | None]]
"""A function that returns the reports of many files at once; None for one that must be opened."""


class Needs(Frozen):
    """What a run must know of a verb to plan it."""

    data: bool = False
    """The data of files, not only footers and filters."""
    data_in_dry_run: bool = True
    threads: bool = False
    """The verb processes several column chunks of a file concurrently."""
    columns: tuple[str, ...] = ()
    """The columns that a table must have; a file of the table need not have them."""
    filters: tuple[str, ...] = ()
    """The columns that must have filters, and so values in the files of a table."""
    values: Any = None
    """The values that are looked for in the first of these columns, or in any; None for a verb that
    answers nothing about values."""
    any_values: bool = False
    """The verb looks for rows, whatever values they have in a column."""
    excludes: bool = False
    """Whether files need no report that certainly have none of the values in the first of these
    columns."""


class AllFiles(Frozen):
    """The files of a run, for a verb that answers about all of them together."""

    names: tuple[str, ...]
    """The files, folders, globs and URLs, or the table, as they were named."""
    context: Context
    open_by: Callable[[str], Any]
    """Returns what opens the file with the path of a row."""
    table: Any = None
    """The table that the only name means."""
    is_whole: bool = True
    """Whether no predicate leaves out files."""


class PropertiesOfTable(Protocol):
    """What a verb knows of a table whose properties a commit may set."""

    name: str
    properties: Mapping[str, str]
    takes_properties: ClassVar[bool]

    def name_for_property(self, column: str) -> str:
        """Return the name of a column as the names of properties contain it."""


class Verb(Frozen, Generic[Report]):
    """What is wanted of a file: a verb that reads, or one that changes files."""

    name: ClassVar[str]
    """The name of the command."""
    report: ClassVar[type]
    """The class of the reports, which Spark and Parquet need before the first row."""
    has_state: ClassVar[bool] = False
    """Whether the state of runs holds outcomes of the verb; see `request`."""
    changes: ClassVar[bool] = False
    """Whether the verb changes files."""
    combines: ClassVar[bool] = False
    """Whether the verb answers about all files together: see `CombiningVerb`."""
    answer: ClassVar[type]
    """The class of the answer, if the verb combines reports."""
    operation: ClassVar[str] = ""
    """The first word of what a commit of a table records, such as `ADD`, for a verb that changes
    files."""

    def __reduce__(self) -> tuple[type[Verb[Report]], tuple[object, ...]]:
        values = [getattr(self, name) for name in self._fields]
        return type(self), tuple(values)

    def __repr__(self) -> str:
        arguments = []
        for name, field in self._fields.items():
            value = getattr(self, name)
            if value != field.default:
                arguments.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def needs(self) -> Needs:
        """Return what a run must know of the verb, computed from the fields."""
        return Needs()

    def scanner(
        self, context: Context, in_table: TableFile | None = None, edit: Edit | None = None
    ) -> Scanner[Report] | None:
        """Return what answers for local files before they are opened one by one; None if nothing
        does. Threads share it. `in_table` is what files of a table have in common; `edit` is that
        of a verb that changes files."""
        return None

    def of_file(self, path: FileName) -> Verb[Report]:
        """Return the verb with what it wants of this file alone. Raises UsageError."""
        return self

    def skips(self) -> str | None:
        """Return why the verb, which is that of one file, does not look at it at all; None if it
        does."""
        return None

    def of_files(self) -> Verb[Report]:
        """Return the verb for files that are no table. Raises UsageError if it is for tables
        alone."""
        return self

    def declared(self) -> Sequence[FilterSpec] | None:
        """Return the specs that choose the files of a run, and which a table gets in a part of the
        run; None for a verb for all files."""
        return None

    def with_declared(self, specs: Sequence[FilterSpec]) -> Verb[Report]:
        """Return the verb for the files that these of its specs declare."""
        raise NotImplementedError

    def requires_columns(self) -> bool:
        """Return whether a table must have the columns that the verb changes."""
        return True

    def named_columns(self) -> tuple[str, ...]:
        """Return the names of the columns of which some file of a run must have each."""
        return self.needs().columns or self.changed_columns()

    def changed_columns(self) -> tuple[str, ...]:
        """Return the names of the columns that a commit of a table records, and that the table must
        have; empty for all."""
        return tuple(getattr(self, "columns", ()))

    def table_specs(self) -> Iterable[FilterSpec]:
        """Return the specs by which tables are named whose old files the verb leaves out."""
        return ()

    def table_properties(self, table: PropertiesOfTable) -> Mapping[str, str | None]:
        """Return the properties that a commit of the table sets, or removes where None."""
        return {}

    def new_filters(self) -> tuple[FilterSpec, Rebuild | None] | None:
        """Return which filters the verb builds, and which existing ones again; None if that depends
        on more."""
        return None

    def request(self, path: FileName) -> tuple[object, ...]:
        """Return all that determines the outcome for a file besides the file, as values that `repr`
        describes completely."""
        raise NotImplementedError

    def carry(self, path: FileName, context: Context, edit: Edit | None = None) -> Report:
        """Return the report of one file of a run; `edit` is for verbs that change files."""
        raise NotImplementedError

    def combine(self, rows: Iterable[Row[Report]], files: AllFiles) -> Any:
        """Return the answer about all files, from their rows, if the verb `combines` them."""
        raise NotImplementedError

    def outcome(self, path: FileName, report: Any) -> tuple[str, str | None]:
        """Return the status of a file with this report, and the reason if the status is not
        `ok`."""
        return OK, None

    def failed(self, path: FileName, error: SbbfError) -> Report | None:
        """Return the report of a file that could not be processed, if the verb has one."""
        return None

    def recognise(
        self, file: ParquetFile, report: Any, listed_bytes: int, edit: Edit
    ) -> Report | None:
        """Return what an attempt reported that was lost, from the file that it changed and the
        report of a later one, if that has any; None if unknown.

        `listed_bytes` is the length of the file before the first attempt.
        """
        return None


class ReadingVerb(Verb[Report]):
    """A verb that reads."""

    def on(self, file: ParquetFile) -> Report:
        """Return the report of an open file."""
        raise NotImplementedError

    def __call__(
        self,
        path: Readable,
        *,
        filesystem: FileSystemLike | None = None,
        keys: KeysLike = None,
        max_page_bytes: MaxPageBytes = None,
        strict: bool = True,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Return the report of one file.

        `path` is a path or URL, an open binary file or, with `filesystem` (of pyarrow or fsspec), a
        path in it. `keys` are those of encrypted columns. A page whose header states more than
        `max_page_bytes` uncompressed bytes is not read (see `PageLimit`). `jobs` column chunks are
        processed concurrently, one per core if None. A column that the file lacks is an error;
        unless `strict`, as for one of many files, the verb works on the columns that the file has,
        and raises NotApplicableError if it has none of them.
        """
        context = Context(keys, PageLimit.of(max_page_bytes), strict, jobs, progress)
        return self.carry(find_input(path, filesystem), context)

    def carry(self, path: Readable | FileIn, context: Context, edit: Edit | None = None) -> Report:
        with ParquetFile.open(path, context) as file:
            report = self.on(file)
        if os.environ.get(COMPARE_SCANS):
            self._ensure_same_scan(path, context, report)
        return report

    def _ensure_same_scan(self, path: Readable | FileIn, context: Context, report: Any) -> None:
        """Ensure that a scan declines the file, or answers as this report does."""
        if isinstance(path, TableFile) or not isinstance(path, str | os.PathLike):
            return
        scan = None if is_url(path) else self.scanner(context)
        scanned: Any = None if scan is None else scan([os.fsdecode(path)])[0]
        if scanned is None:
            return
        expected = report
        if hasattr(report, "requests"):
            expected = replace(report, bytes_read=scanned.bytes_read, requests=scanned.requests)
        assert scanned == expected, f"{path}: the scan answers {scanned!r}, not {expected!r}"


class CombiningVerb(ReadingVerb[Report], Generic[Report, Whole]):
    """A verb that answers about all files together. The report of one file is a part of the
    answer."""

    combines = True

    if TYPE_CHECKING:

        def combine(self, rows: Iterable[Row[Any]], files: AllFiles) -> Whole: ...


class ChangingVerb(Verb[Changed]):
    """A verb that changes files. Only the file determines what to do, so that a second run, or a
    task that runs twice, does nothing."""

    changes = True

    def before(self, path: FileName, context: Context, edit: Edit) -> Changed | None:
        """Return the report of a file that need not be opened. Raises RefusedError for one that
        must not be."""
        return None

    def on(self, change: OpenEdit) -> Changed:
        """Change an open file, or judge in a dry run what would change."""
        raise NotImplementedError

    def __call__(
        self, path: FileName, edit: Edit, *, strict: bool = True, progress: Progress | None = None
    ) -> Changed:
        """Change one file as `edit` says, and return the report; the old file stays intact whatever
        is raised.

        `strict` is as in verbs that read. Raises RefusedError if the change would be unsafe (the
        message says how to make it safe), or if another writer changes the file meanwhile,
        UnreadableError, UsageError, WriteError.
        """
        context = edit.complete(Context(strict=strict, jobs=edit.jobs, progress=progress))
        return self.of_file(path).carry(path, context, edit)

    def carry(self, path: FileName, context: Context, edit: Edit | None = None) -> Changed:
        """Change one file of a run. If another writer changes it meanwhile, wait, and begin again;
        filters that were built stay."""
        from sbbf_tool.editing.open_edit import PrebuiltFilters, open_edit

        assert edit is not None, "a verb that changes files needs an edit"
        ensure_path(path)
        report = self.before(path, context, edit)
        if report is not None:
            return report
        deadline = time.monotonic() + context.patience
        pause = _FIRST_PAUSE
        with open_spool(edit.output_of(path) or os.fsdecode(path), keeps=not edit.dry_run) as spool:
            prebuilt = PrebuiltFilters(spool)
            while True:
                try:
                    with open_edit(path, context, edit, prebuilt) as change:
                        return self.on(change)
                except ChangedError:
                    if time.monotonic() > deadline:
                        raise
                time.sleep(pause)
                pause = min(2 * pause, 1.0)

    def outcome(self, path: FileName, report: Any) -> tuple[str, str | None]:
        changed: ChangeReport = report
        return changed.outcome(in_table=isinstance(path, TableFile))
