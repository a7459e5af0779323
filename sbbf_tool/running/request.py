"""What a run is asked for besides its verb, and the plan that follows from both.

    request = RunRequest("lake/**", where="dt >= '2026-01-01'", state="night.state")
    plan = request.plan(Verify())          raises what refuses the run as a whole
    with plan.rows() as rows:              yields the row of each file, and commits tables
        for row in rows: ...
    rows.outcome                           what the run did

The command line and `sbbf_tool.run` take the same three steps, so a run is refused in one place, by
one text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import check_jobs
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extension import is_index
from sbbf_tool.file.context import Context
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.plan import Plan, PlanPart
from sbbf_tool.running.selection import (
    Index,
    Selection,
    as_paths,
    find_index,
    find_table,
    full_name_of,
    is_table,
)
from sbbf_tool.running.work import Runner, Work
from sbbf_tool.storage.places import find_single_file
from sbbf_tool.verbs.verb import Verb

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.partitions import PathPredicate
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.plan import Watch
    from sbbf_tool.running.state import State
    from sbbf_tool.running.table import Table


class RunRequest(Frozen):
    """What a run is asked for besides its verb. Nothing is opened before `select` and `plan`."""

    paths: Any = field(convert=as_paths)
    """Names of files and folders, globs, URLs; or one table or index."""
    where: str | PathPredicate | None = None
    """Predicate on partitions."""
    keys: KeysLike = field(default=None, repr=False)
    max_page_bytes: MaxPageBytes = None
    strict: bool = False
    """Whether a file that lacks a column fails; the only file of a run is always treated so."""
    jobs: int | None = None
    """Number of workers on this machine; one per core if None."""
    on: Runner | None = None
    """The runner; this machine if None."""
    state: str | os.PathLike[str] | None = None
    """The file with the outcomes of earlier runs."""
    keeps_outcomes: bool = True
    """Whether the outcomes of this run are added to the state."""
    all_versions: bool = False
    """Whether a table means the files of all its versions."""
    as_files: bool = False
    """Whether the root of a table means the files below it."""
    index: str | None = None
    """An index of the only path, which leaves out files of it."""
    table_format: str | None = None
    """Format of the table that is meant, in lower case, where a folder has two."""
    quick: bool = False
    """Whether an index answers without a listing of its lake."""
    edit: Edit | None = None
    """How files are changed."""
    watch: Watch | None = None
    """Shows the progress of each part of the run."""

    def select(self) -> Selection:
        """Return the files that are named, of which nothing is listed yet.

        Raises UsageError if a table or an index is one of several paths, and the errors of
        `find_index` and `find_table`.
        """
        where = self._predicate()
        if not isinstance(self.paths, tuple):
            return Selection(self.paths, where, all_versions=self.all_versions)
        index = self._find_index()
        names = self.paths
        if index is not None and self.index is None:
            names = index.paths
        table = None
        if self.as_files and self.table_format is not None:
            raise UsageError("the files below a folder are of no table: give no format of one")
        if not self.as_files:
            table = _find_only_table(names, self.table_format)
        file = None
        if index is None and table is None and where is None and len(names) == 1:
            file = find_single_file(names[0])
        return Selection(names, where, file, table, all_versions=self.all_versions, index=index)

    def plan(self, verb: Verb[Any], selection: Selection | None = None) -> Plan:
        """Return what the run does. `selection` is what `select` returned, or a part of it.

        Raises what refuses the run as a whole: UsageError, RefusedError (a table that cannot be
        changed), and the errors of `select`.
        """
        self._ensure_fits(verb)
        declared = verb.declared()
        unmatched: Sequence[tuple[str, str]] = ()
        if declared is not None:
            parts, unmatched = self._plan_declared(verb, declared)
        else:
            parts = [self._plan_files(verb, selection or self.select())]
        runner = self.on or LocalRunner(self.jobs)
        state = self._open_state(verb)
        return Plan(tuple(parts), runner, state, self.watch, unmatched)

    def select_to_change(self) -> Selection:
        """Return the files that are named, as `select` does. Raises UsageError unless there is
        exactly one way to a target that can take them."""
        selection = self.select()
        self._ensure_target(selection)
        return selection

    def work(self, verb: Verb[Any], *, strict: bool = False) -> Work[Any]:
        """Return the work of a verb on each file."""
        limit = PageLimit.of(self.max_page_bytes, self.jobs)
        context = Context(self.keys, limit, self.strict or strict, self.jobs)
        edit = self.edit
        if edit is None:
            return Work(verb, context)
        from sbbf_tool.running.changing import with_roots

        paths = self.paths if isinstance(self.paths, tuple) else None
        return Work(verb, edit.complete(context), with_roots(edit, paths))

    @property
    def _on_cluster(self) -> bool:
        return self.on is not None and self.on.on_cluster

    def _predicate(self) -> PathPredicate | None:
        if not isinstance(self.where, str):
            return self.where
        from sbbf_tool.file.partitions import Predicate

        return Predicate(self.where)

    def _ensure_fits(self, verb: Verb[Any]) -> None:
        """Raise UsageError if these options and the verb do not go together."""
        if verb.changes and self.edit is None:
            raise UsageError(f"{verb.name} changes files: give edit")
        if self.edit is not None and not verb.changes:
            raise UsageError(f"{verb.name} changes no file: leave out edit")
        if self.all_versions and verb.changes:
            raise UsageError("all versions are searched by verbs that change no file")
        self._ensure_types()
        check_jobs(self.jobs)
        if self.state is not None:
            self._ensure_state(self.state, verb)

    def _ensure_types(self) -> None:
        """Raise UsageError for a field that is no value of its kind."""
        is_predicate = isinstance(self.where, str) or hasattr(self.where, "accepts")
        if self.where is not None and not is_predicate:
            raise UsageError(f"where must be a predicate as text, not {self.where!r}")
        if self.on is not None and not hasattr(self.on, "run"):
            raise UsageError(
                f"on must be a runner, not {self.on!r}",
                hint="such as sbbf_tool.spark.runner.Spark()",
            )
        if self.edit is not None and not hasattr(self.edit, "in_place"):
            raise UsageError(f"edit must be an Edit, not {self.edit!r}")
        for name in ("state", "index"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | os.PathLike):
                raise UsageError(f"{name} must be the name of a file, not {value!r}")

    def _ensure_state(self, state: str | os.PathLike[str], verb: Verb[Any]) -> None:
        """Raise UsageError if no state can be kept, or not in this file."""
        from sbbf_tool.storage.listing import ensure_unlisted

        if not verb.has_state:
            raise UsageError(f"a state holds no outcomes of {verb.name}")
        if self.edit is not None and self.edit.output is not None:
            # A state says of the old file that its work is done, not that the new one exists.
            raise UsageError(
                "a state is for files that are changed in place",
                hint="leave the state out, or change the files in place",
            )
        if isinstance(self.paths, tuple):
            ensure_unlisted(os.fsdecode(state), self.paths, "state")

    def _find_index(self) -> Index | None:
        """Return the index that the only path means."""
        if len(self.paths) != 1:
            _ensure_only(self.paths, is_index, "an index")
            return None
        index = find_index(self.index or self.paths[0])
        if index is None:
            if self.index is not None:
                raise UsageError("the name of an index is needed", file=self.index)
            return None
        if self.index is not None:
            _ensure_covers(index, self.paths[0])
        if self.edit is not None:
            raise RefusedError(
                "an index is only read",
                file=index.name,
                hint="change the files themselves, and then update the index",
            )
        if self.as_files:
            raise UsageError(
                "an index stands for the files or the table that it names",
                file=index.name,
                hint="do not take them as files",
            )
        index.lists = not self.quick
        return index

    def _open_state(self, verb: Verb[Any]) -> State | None:
        if self.state is None:
            return None
        from sbbf_tool.running.state import State

        is_dry_run = self.edit is not None and self.edit.dry_run
        # To compare files with what is declared is work whose outcome is kept.
        is_work = not is_dry_run or verb.declared() is not None
        return State(self.state, writes=is_work and self.keeps_outcomes)

    def _plan_files(self, verb: Verb[Any], selection: Selection) -> PlanPart:
        """Plan the work on files, or on one table."""
        table = selection.table
        if table is None:
            verb = verb.of_files()
        specs = verb.table_specs()
        if specs and selection.file is None and not self.as_files:
            from sbbf_tool.running.declared_files import leave_out_old_files

            selection = leave_out_old_files(selection, specs)
        if self.quick:
            _ensure_index_suffices(verb, selection, is_strict=self.strict)
        return self._plan_part(verb, selection)

    def _plan_declared(
        self, verb: Verb[Any], declared: Sequence[FilterSpec]
    ) -> tuple[list[PlanPart], Sequence[tuple[str, str]]]:
        """Plan the work on the declared files, and on each declared table, or on those of them that
        the paths mean; return the parts, and the declared paths that should each match a file."""
        from sbbf_tool.running.declared_files import paths_of_files, select_declared_files

        if isinstance(self.paths, tuple) and self.paths:
            self._find_index()
        where = self._predicate()
        files = select_declared_files(
            declared, self.paths, where, self.table_format, as_files=self.as_files
        )
        parts = []
        for part in files:
            own = verb.with_declared(part.declarations)
            try:
                parts.append(self._plan_part(own, part.selection))
            except RefusedError as error:
                if len(files) > 1:
                    hints = (error.hint, "no other declared file was changed")
                    error.hint = "; ".join(filter(None, hints))
                raise
        if self.paths == () and where is None:
            return parts, tuple(paths_of_files(files))
        return parts, ()

    def _plan_part(self, verb: Verb[Any], selection: Selection) -> PlanPart:
        if self.edit is None:
            is_only_file = selection.file is not None
            return PlanPart(selection, self.work(verb, strict=is_only_file))
        from sbbf_tool.running.changing import begin_change

        self._ensure_target(selection)
        work = self.work(verb, strict=selection.file is not None)
        change = begin_change(work, selection, on_cluster=self._on_cluster)
        return PlanPart(selection, work, change)

    def _ensure_target(self, selection: Selection) -> None:
        from sbbf_tool.running.changing import ensure_target

        if self.edit is not None:
            paths = self.paths if isinstance(self.paths, tuple) else ()
            ensure_target(self.edit, selection, paths, on_cluster=self._on_cluster)


def _find_only_table(names: Sequence[str], table_format: str | None) -> Table | None:
    """Return the table that the only name means."""
    if len(names) == 1:
        return find_table(names[0], table_format)
    if table_format is not None:
        raise UsageError("the format of a table is for a table, which is the only path")
    _ensure_only(names, is_table, "a table")
    return None


def _ensure_only(names: Sequence[str], is_kind: Callable[[str], bool], what: str) -> None:
    """Raise UsageError if one of several names means something that is the only path of a run."""
    name = next(filter(is_kind, names), None)
    if name is None:
        return
    hint = None if what == "an index" else "or take the files below it as files"
    raise UsageError(f"{name} is {what}: give it as the only path", hint=hint)


def _ensure_covers(index: Index, path: str) -> None:
    """Raise UsageError if an index is not one of exactly the files that a path means."""
    lake = [full_name_of(name).rstrip("/") for name in index.paths]
    if lake != [full_name_of(path).rstrip("/")]:
        raise UsageError(
            f"the index is of {', '.join(index.paths)}, not of {path}",
            file=index.name,
            hint=f"build one with sbbf index {path}",
        )


def _ensure_index_suffices(verb: Verb[Any], selection: Selection, *, is_strict: bool) -> None:
    """Raise UsageError if a quick answer is wanted that takes more than an index."""
    has_index = selection.index is not None and verb.needs().excludes
    if has_index and selection.where is None and not is_strict:
        return
    raise UsageError(
        "only an index on the column answers without a listing, about files of all partitions",
        hint="list the lake",
    )
