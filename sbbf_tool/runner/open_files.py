"""`open_files`: the Python API of the verbs for many files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.rows import LINK, FileRow
from sbbf_tool.runner import works
from sbbf_tool.runner.failures import error_of
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection

if TYPE_CHECKING:
    import os

    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.operations.check import Policy
    from sbbf_tool.reports.add import AddReport
    from sbbf_tool.reports.advise import AdviceReport
    from sbbf_tool.reports.explain import ExplainReport
    from sbbf_tool.reports.findings import CheckReport
    from sbbf_tool.reports.inspect import InspectReport
    from sbbf_tool.reports.probe import ProbeReport
    from sbbf_tool.reports.remove import RemoveReport
    from sbbf_tool.reports.repair import RepairReport
    from sbbf_tool.reports.resize import ResizeReport
    from sbbf_tool.reports.verify import VerifyReport


def open_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], where: str | None = None, jobs: int | None = None
) -> Files:
    """Choose the files of a run: each of `paths` is a file, a folder, a glob or a URL.

    `where` is a predicate on partition folders, such as `dt >= '2026-01-01'`; `jobs` is the maximum number of workers (if None, one per
    core). Nothing is listed before a verb is called. Raises UsageError for a predicate that cannot be parsed.
    """
    from sbbf_tool.runner.partitions import parse_predicate

    return Files(Selection(paths, None if where is None else parse_predicate(where)), jobs)


class Files:
    """The files of a run. Each verb takes the options of its namesake function, and yields a report or an SbbfError per file, in order."""

    def __init__(self, selection: Selection, jobs: int | None = None) -> None:
        self.selection = selection
        self.jobs = jobs

    def inspect(
        self, columns: str | Iterable[str] = (), *, all_chunks: bool = False, keys: KeysLike = None
    ) -> Iterator[InspectReport | SbbfError]:
        """Inspect the filters of each file; see `sbbf_tool.inspect`."""
        return self._run(works.inspect(columns, all_chunks=all_chunks, keys=keys))

    def probe(self, column: str, values: object, *, dialect: str | None = None, keys: KeysLike = None) -> Iterator[ProbeReport | SbbfError]:
        """Query the filters of one column; see `sbbf_tool.probe`."""
        return self._run(works.probe(column, values, dialect=dialect, keys=keys))

    def explain(
        self, column: str, value: object, *, engine_name: str | None = None, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None
    ) -> Iterator[ExplainReport | SbbfError]:
        """Explain what a query for one value reads; see `sbbf_tool.explain`."""
        return self._run(works.explain(column, value, engine_name=engine_name, keys=keys, max_page_bytes=max_page_bytes))

    def verify(
        self, columns: str | Iterable[str] = (), *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None
    ) -> Iterator[VerifyReport | SbbfError]:
        """Verify filters against the data; see `sbbf_tool.verify`."""
        return self._run(works.verify(columns, keys=keys, max_page_bytes=max_page_bytes))

    def check(
        self, policy: Policy | None = None, *, keys: KeysLike = None, max_page_bytes: MaxPageBytes = None
    ) -> Iterator[CheckReport | SbbfError]:
        """Run the rules; see `sbbf_tool.check`."""
        from sbbf_tool.operations.check import Policy

        return self._run(works.check(policy or Policy(), keys=keys, max_page_bytes=max_page_bytes))

    def advise(self, **options: Any) -> AdviceReport:
        """Advise on the columns of all files together, with the options of `sbbf_tool.advise`."""
        from sbbf_tool.runner.advise import advise_files

        names = self.selection.name_list()
        return advise_files(partial(LocalRunner(self.jobs).run, Selection(names, self.selection.where)), names, **options)

    def add_filters(
        self,
        columns: str | Iterable[str],
        *,
        fpp: float = DEFAULT_FPP,
        ndv: int | None = None,
        max_bytes: int | None = None,
        replace: bool = False,
        **options: Any,
    ) -> Iterator[AddReport | SbbfError]:
        """Add filters, `in_place`; see `sbbf_tool.add_filters`."""
        from sbbf_tool.editing.edit import Edit
        from sbbf_tool.editing.filter_spec import FilterSpec
        from sbbf_tool.file.page_limit import PageLimit

        limit = PageLimit.of(options.pop("max_page_bytes", None), self.jobs)
        return self._run(works.add(FilterSpec(columns, fpp, ndv, max_bytes, replace), Edit(limit=limit, **options)))  # type: ignore[arg-type]

    def remove_filters(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[RemoveReport | SbbfError]:
        """Remove filters, `in_place`; see `sbbf_tool.remove_filters`."""
        return self._run(works.remove(columns, **options))

    def resize_filters(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[ResizeReport | SbbfError]:
        """Resize filters, `in_place`; see `sbbf_tool.resize_filters`."""
        return self._run(works.resize(columns, **options))

    def repair(self, columns: str | Iterable[str] = (), **options: Any) -> Iterator[RepairReport | SbbfError]:
        """Repair filters, `in_place`; see `sbbf_tool.repair`."""
        return self._run(works.repair(columns, **options))

    def _run(self, work: works.Work[FileRow]) -> Iterator[Any]:
        for row in LocalRunner(self.jobs).run(self.selection, work):
            report = getattr(row, "report", None)
            if row.reason == LINK:
                # Links in a listing are not files of the run, and their targets are not changed.
                continue
            if report is not None and row.exit_code == 0:
                yield report
            else:
                yield row.error if isinstance(row.error, SbbfError) else error_of(row)
