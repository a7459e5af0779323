"""A command that changes a table: what it costs, before it starts; at the end, the commits and how
to undo them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom.sizing import MAX_BYTES, MIN_BYTES, bytes_for
from sbbf_tool.cli import render
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.display import redact
from sbbf_tool.editing.choice import choose_chunks
from sbbf_tool.errors import NoColumnError, RefusedError, SbbfError
from sbbf_tool.extensions.tables.table_run import TableRun
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Fix, Rebuild
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.table_file import TableFile
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.table import Commit, LiveFile

_SAMPLE_FILES = 8
"""Number of files from whose footers the bytes of new filters are estimated, as if every value were
distinct."""
_MOST_NAMES = 3
"""Number of vanished files whose names are printed."""


def _until(table_format: str) -> str:
    return {
        "Delta": "until VACUUM deletes them",
        "Iceberg": "until their snapshots expire",
        "DuckLake": "until ducklake_cleanup_old_files deletes them",
    }.get(table_format, "until the table's clean-up deletes them")


class TableCommand(TableRun):
    """A change of a table by a command, which prints what it costs and what it did."""

    def show_cost(
        self, selection: Selection, spec: FilterSpec | None = None, rebuild: Rebuild | None = None
    ) -> None:
        """Print what the change costs, before it starts, to standard error; `spec` and `rebuild`
        are those of new filters."""
        table = self.table
        files = [live for live in selection.live_files() if not live.unchangeable]
        total = sum(live.bytes or 0 for live in files)
        sample = files[:: max(1, len(files) // _SAMPLE_FILES)][:_SAMPLE_FILES]
        filter_bytes = None
        if spec is not None:
            filter_bytes = self._estimate(selection, sample, total, spec, rebuild)
        parts = [f"{format_count(len(files), 'file')}, {format_size(total)}"]
        if filter_bytes:
            parts.append(f"filters of up to about {format_size(filter_bytes)}")
        if filter_bytes != 0:
            if files and places.shares_blocks(files[0].path):
                parts.append("copies share the blocks of the old files")
            else:
                parts.append(
                    f"copies take at most as much again, and at most {format_size(total)} of old "
                    f"files stay {_until(table.format)}"
                )
        elif len(sample) == len(files):
            parts.append("nothing to do")
        else:
            parts.append(f"nothing to do in the first {len(sample)} of them that were read")
        render.note(
            f"sbbf: {redact(table.name)}: {table.format}, {table.version}: {'; '.join(parts)}"
        )

    def _estimate(
        self,
        selection: Selection,
        sample: Sequence[LiveFile],
        total: int,
        spec: FilterSpec,
        rebuild: Rebuild | None,
    ) -> int | None:
        """Return the bytes of the new filters of files with `total` bytes, of which these are a
        sample; None if they are known for none of the sample."""
        table_files = selection.table_files()
        data_bytes = 0
        filter_bytes = 0
        for live in sample:
            path = table_files.file(live.path)
            estimate = _filter_bytes(path, spec, self.edit.keys, rebuild)
            if estimate is not None and live.bytes:
                data_bytes += live.bytes
                filter_bytes += estimate
        return int(total * filter_bytes / data_bytes) if data_bytes else None

    def outcome(self, others: Sequence[TableRun] = (), *, has_undo: bool = False) -> CommitLines:
        """Return the last lines of a command that makes this change, and others; `has_undo` is
        whether `remove-filter` undoes it."""
        return CommitLines([self, *others], has_undo=has_undo)


def _filter_bytes(
    path: TableFile, spec: FilterSpec, keys: KeysLike, rebuild: Rebuild | None
) -> int | None:
    """Return the bytes of a file's new filters if all values are distinct; None if the file cannot
    have them."""
    try:
        with ParquetFile.open(path, keys) as file:
            total = 0
            for key, size in choose_chunks(file, spec, rebuild).sizes.items():
                values = size.ndv or file.footer.chunk_meta(*key).most_values or 0
                wanted = bytes_for(max(values, 1), size.fpp)
                total += max(MIN_BYTES, min(wanted, size.largest, MAX_BYTES))
            return total
    except NoColumnError:
        return 0
    except SbbfError:
        return None


class CommitLines:
    """The last lines of a command that changed tables, in place of `Undo` of a command that changed
    files."""

    def __init__(self, runs: Sequence[TableRun], *, has_undo: bool) -> None:
        self._runs = runs
        self._has_undo = has_undo
        """Whether `sbbf remove-filter` undoes the change."""
        self._sums_by_path: dict[str, Mapping[str, int]] = {}

    def add(self, path: str, sums: Mapping[str, int]) -> None:
        """Take what a file adds to the sums of the command."""
        self._sums_by_path[path] = sums

    @property
    def vanished(self) -> int:
        """Number of files that other commits replaced or removed before this run could."""
        return sum(len(run.vanished) for run in self._runs)

    def withdraw(self, total: Counter[str]) -> None:
        """Subtract from the sums what copies added that no commit contains."""
        for run in self._runs:
            for path in run.vanished:
                total.subtract(self._sums_by_path.get(path, {}))

    @property
    def exit_code(self) -> int:
        """The exit code that the commits call for: that of a refusal if copies were lost, or other
        commits came first for every file."""
        for run in self._runs:
            if run.files_without_copy or (run.vanished and not run.commits):
                return RefusedError.exit_code
        return 0

    @property
    def may_leave_copies(self) -> bool:
        """Whether workers may write copies after the run was interrupted."""
        return any(run.on_cluster for run in self._runs)

    def show(self, page: Page) -> None:
        """Print the commits and how to undo them."""
        for run in self._runs:
            self._show_run(page, run)

    def _show_run(self, page: Page, run: TableRun) -> None:
        name = f"{redact(run.table.name)}: " if len(self._runs) > 1 else ""
        if not run.commits:
            what = "no file" if run.sets_properties_alone else "nothing"
            page.say(f"{name}{what} was committed")
        for key, text in run.changed_properties.items():
            if text is None:
                page.say(f"removed property {key} of the table")
            else:
                page.say(f"set property {key} = {text} of the table")
        for line in _lines_of(run):
            page.say(f"{name}{line}")
        if not run.old_bytes:
            return
        page.say(f"{name}{page.bytes(run.old_bytes)} of old files stay {_until(run.table.format)}")
        undo = run.commits[0].undo
        if undo is not None:
            page.say(f"undo: {undo}")
        elif self._has_undo:
            fix = Fix("remove_filters", (run.table.name,), run.change.columns)
            page.command(command_of(fix), "undo: ")

    def lines(self) -> Iterator[str]:
        """Yield a line per commit, and one about the files that vanished."""
        for run in self._runs:
            yield from _lines_of(run)

    def document(self) -> dict[str, Any]:
        """Return commits and vanished files for the summary document."""
        commits: list[dict[str, Any]] = []
        vanished: list[str] = []
        for run in self._runs:
            commits += map(_describe, run.commits)
            vanished += map(redact, run.vanished)
        return {"commits": commits, "vanished": vanished}


def _describe(commit: Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "files": commit.num_files,
        "rebuilds": commit.rebuilds,
        "undo": commit.undo,
    }


def _lines_of(run: TableRun) -> Iterator[str]:
    for commit in run.commits:
        files = format_count(commit.num_files, "file")
        place = "as" if commit.is_new_version else "in"
        again = ""
        if commit.rebuilds:
            times = format_count(commit.rebuilds, "time")
            again = f", built again {times} for commits that came first"
        yield f"committed {files} {place} {commit.version}{again}; no row changed"
    without_copy = set(run.files_without_copy)
    replaced = [path for path in run.vanished if path not in without_copy]
    if replaced:
        files = format_count(len(replaced), "file")
        yield f"another commit replaced or removed {files} meanwhile; {_call_for_run(replaced)}"
    if without_copy:
        files = format_count(len(run.files_without_copy), "file")
        again = _call_for_run(run.files_without_copy)
        yield f"the copies of {files} were deleted meanwhile; {again}"


def _call_for_run(paths: Sequence[str]) -> str:
    names = [redact(path) for path in paths[:_MOST_NAMES]]
    if len(paths) > _MOST_NAMES:
        names.append("...")
    return f"run the command again: {', '.join(names)}"
