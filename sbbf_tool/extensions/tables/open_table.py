"""`open_table`: the Python API of the verbs for a table, whose changes are commits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import ErrorPlace, SbbfError, UsageError
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.runner import works
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.open_files import Files, StatePath, reports_of
from sbbf_tool.runner.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sbbf_tool.extensions.tables.lake_table import Commit, LakeTable
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.reports.add import AddReport
    from sbbf_tool.reports.apply import ApplyReport
    from sbbf_tool.reports.findings import CheckReport
    from sbbf_tool.reports.remove import RemoveReport
    from sbbf_tool.reports.repair import RepairReport
    from sbbf_tool.reports.resize import ResizeReport
    from sbbf_tool.rules.check_policy import Policy


def open_table(name: str | os.PathLike[str], where: str | None = None, jobs: int | None = None) -> TableFiles:
    """Open a table of Delta, Iceberg or DuckLake, in its newest version.

    `name` is the table's folder or URL, `CATALOG:namespace.table` or `ducklake:...`. `where` is a predicate on the table's partitions, such
    as `dt >= '2026-01-01'`; `jobs` is the maximum number of workers (if None, one per core). Raises UsageError if the name is no table or
    a package for its format is missing, UnreadableError and RefusedError.
    """
    from sbbf_tool.extensions.tables.locate import find_table
    from sbbf_tool.file.partitions import parse_predicate

    text = os.fsdecode(name)
    table = find_table(text)
    if table is None:
        raise UsageError("this is no table of Delta, Iceberg or DuckLake", file=text, hint="for files, use open_files")
    return TableFiles(table, Selection(text, None if where is None else parse_predicate(where), table=table), jobs)


class TableFiles(Files):
    """The live files of a table. Each verb takes the options of its namesake function, and yields a report or an SbbfError per file.

    A verb that changes files makes copies, `in_place` of the files, and commits them after the last report; if the caller stops before,
    the table is unchanged. With `files_per_commit`, there is a commit each time that so many files have copies. `commit`, if
    "conditional-put", confirms that every other writer of a Delta table on S3 also creates versions by conditional requests.
    """

    def __init__(self, table: LakeTable, selection: Selection, jobs: int | None = None) -> None:
        super().__init__(selection, jobs)
        self.table = table
        self.commits: list[Commit] = []
        """The commits of the last change, once its last report has been taken."""
        self.vanished: list[str] = []
        """Paths of the files that other commits replaced or removed before the last change could."""

    def advise(self, **options: Any) -> Any:
        """Advise on the columns of all files together, with the options of `sbbf_tool.advise`."""
        return super().advise(table_files=self.selection.table_files(), **options)

    def check(
        self,
        policy: Policy | None = None,
        *,
        declared: bool = False,
        state: StatePath = None,
        keys: KeysLike = None,
        max_page_bytes: MaxPageBytes = None,
        strict: bool = False,
    ) -> Iterator[CheckReport | SbbfError]:
        """Run the rules; see `sbbf_tool.check`.

        With `declared`, the filters that the table's properties promise are required too; without a policy, no other rule runs. Raises
        UsageError if they promise none.
        """
        from sbbf_tool.rules.check_policy import Policy
        from sbbf_tool.rules.policy import GROUP
        from sbbf_tool.rules.rule import Limits
        from sbbf_tool.writers.settings import parse_settings

        if declared:
            with ErrorPlace(self.table.name):
                specs = parse_settings(self.table.properties, self.table.column_of_property)
            chosen = policy or Policy(Limits(filters=specs), select=(GROUP,))
            policy = replace(chosen, limits=replace(chosen.limits, filters=(*specs, *chosen.limits.filters)))
        self.selection.ensure_stored(policy.required if policy is not None else ())
        return super().check(policy, state=state, keys=keys, max_page_bytes=max_page_bytes, strict=strict)

    def add_filters(
        self,
        columns: str | Iterable[str],
        *,
        fpp: float = DEFAULT_FPP,
        ndv: int | None = None,
        max_bytes: int | None = None,
        rebuild: Rebuild | None = None,
        state: StatePath = None,
        files_per_commit: int | None = None,
        commit: str | None = None,
        also_new_files: bool = False,
        **options: Any,
    ) -> Iterator[AddReport | SbbfError]:
        """Add filters in one commit; `also_new_files` sets the properties by which writers of an Iceberg table add filters to new files.

        See `sbbf_tool.add_filters`.
        """
        from sbbf_tool.editing.edit import Edit
        from sbbf_tool.file.page_limit import PageLimit
        from sbbf_tool.rules.filter_spec import FilterSpec
        from sbbf_tool.writers.iceberg import build_properties

        spec = FilterSpec(as_names(columns), fpp, ndv, max_bytes)
        limit = PageLimit.of(options.pop("max_page_bytes", None), self.jobs)
        work = works.add(spec, Edit(limit=limit, **options), rebuild=rebuild)
        # The limit in bytes of a table is for all its columns.
        properties = build_properties([replace(spec, max_bytes=None)], self.table.name_for_property) if also_new_files else {}
        run = self._runner(state, writes=not options.get("dry_run"))
        return self._change("ADD", columns, work, options, files_per_commit, commit, properties, run_work=run)

    def apply(
        self,
        policy: Policy,
        *,
        in_place: bool = False,
        dry_run: bool = False,
        state: StatePath = None,
        files_per_commit: int | None = None,
        commit: str | None = None,
        **options: Any,
    ) -> Iterator[ApplyReport | SbbfError]:
        """Compare the table's files with the filters that `policy` declares, or make it so in one commit; see `sbbf_tool.apply`.

        `state` is as in `Files.add_filters`. Raises UsageError if no declaration names the table.
        """
        from sbbf_tool.runner.declared_files import declare_for_table

        declarations = declare_for_table(policy.limits.filters, self.table.name)
        if not declarations:
            raise UsageError("no filters are declared for this table", file=self.table.name)
        work = works.apply_policy(declarations, self.jobs, in_place=in_place, dry_run=dry_run, **options)
        options = {**options, "dry_run": dry_run or not in_place}
        run = self._runner(state, writes=not dry_run)
        return self._change("APPLY", (), work, options, files_per_commit, commit, may_lack_columns=True, run_work=run)

    def remove_filters(
        self, columns: str | Iterable[str] = (), *, files_per_commit: int | None = None, commit: str | None = None, **options: Any
    ) -> Iterator[RemoveReport | SbbfError]:
        """Remove filters in one commit; see `sbbf_tool.remove_filters`."""
        return self._change("REMOVE", columns, works.remove(columns, **options), options, files_per_commit, commit)

    def resize_filters(
        self, columns: str | Iterable[str] = (), *, files_per_commit: int | None = None, commit: str | None = None, **options: Any
    ) -> Iterator[ResizeReport | SbbfError]:
        """Resize filters in one commit; see `sbbf_tool.resize_filters`."""
        return self._change("RESIZE", columns, works.resize(columns, **options), options, files_per_commit, commit)

    def repair(
        self, columns: str | Iterable[str] = (), *, files_per_commit: int | None = None, commit: str | None = None, **options: Any
    ) -> Iterator[RepairReport | SbbfError]:
        """Repair filters in one commit; see `sbbf_tool.repair`."""
        return self._change("REPAIR", columns, works.repair(columns, **options), options, files_per_commit, commit)

    def _change(
        self,
        verb: str,
        columns: str | Iterable[str],
        work: works.Work[FileRow],
        options: Mapping[str, Any],
        files_per_commit: int | None,
        commit: str | None,
        properties: Mapping[str, str] | None = None,
        *,
        may_lack_columns: bool = False,
        run_work: Callable[[Selection, works.Work[FileRow]], Iterator[FileRow]] | None = None,
    ) -> Iterator[Any]:
        from sbbf_tool.extensions.tables.table_run import TableRun
        from sbbf_tool.runner.table import Change

        for name in ("output", "append", "allow_table_files"):
            if options.get(name):
                raise UsageError(f"{name} does not apply to a table, whose commit replaces files by copies", file=self.table.name)
        if commit not in (None, "conditional-put"):
            raise UsageError(f"there is no way to commit {commit!r}; there is 'conditional-put'")
        run = TableRun(
            self.table,
            Change(f"{verb} BLOOM FILTERS", as_names(columns), properties or {}),
            self.selection.where,
            files_per_commit=files_per_commit,
            conditional_put=commit is not None,
            dry_run=options.get("dry_run", False),
            keys=options.get("keys"),
            may_lack_columns=may_lack_columns,
        )
        self.commits, self.vanished = run.commits, run.vanished
        return reports_of(run.rows(run_work or LocalRunner(self.jobs).run, work))
