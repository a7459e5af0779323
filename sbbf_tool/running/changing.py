"""The change of files by a run: its target, and for a table the change that commits. All refusals
that concern the run as a whole are here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.editing.targets import ensure_one_way
from sbbf_tool.errors import UsageError
from sbbf_tool.extension import load
from sbbf_tool.running.discover import folders_of
from sbbf_tool.running.table import Change, TableChange

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.work import Work


def ensure_target(
    edit: Edit, selection: Selection, paths: Sequence[str], *, on_cluster: bool
) -> None:
    """Raise UsageError unless there is exactly one way to a target that can take the files; `paths`
    are those that the run names."""
    if selection.table is not None:
        _ensure_commit(edit)
        return
    ensure_one_way(edit.output, edit.in_place, edit.dry_run, paths)
    if edit.output is None:
        return
    output = os.fsdecode(edit.output)
    if edit.is_in_folder and on_cluster:
        raise UsageError(
            "new files are written by this machine", hint="on Spark, change the files in place"
        )
    if edit.is_in_folder:
        return
    if os.path.isdir(output):
        raise UsageError(f"{output} is a folder: write {output}/")
    if selection.file is None:
        raise UsageError(
            "an output names one file",
            hint=f"give a folder for many, {output}/, or change them in place",
        )


def _ensure_commit(edit: Edit) -> None:
    """Raise UsageError if an edit is none that a commit of a table can make."""
    if edit.output is not None or not (edit.in_place or edit.dry_run):
        raise UsageError("a table changes in one commit", hint="change it in place")
    if edit.append:
        raise UsageError(
            "nothing is appended to files of a table: its commit replaces them by copies"
        )


def with_roots(edit: Edit, paths: Sequence[str] | None) -> Edit:
    """Return the edit with the folders below which new files keep their names; `paths` is None for
    the names in a list."""
    if not edit.is_in_folder:
        return edit
    # Files of a list keep the names that they have below the working folder.
    return replace(edit, roots=folders_of((".",) if paths is None else paths))


def begin_change(work: Work[Any], selection: Selection, *, on_cluster: bool) -> TableChange | None:
    """Return the change of the table that is selected; None for files. Raises UsageError, and
    RefusedError if the table cannot be changed."""
    table = selection.table
    edit = work.edit
    verb = work.verb
    if table is None or edit is None:
        return None
    if edit.allow_table_files:
        raise UsageError(
            "a table changes in one commit",
            file=table.name,
            hint="do not allow changes to files of tables, or take the files below it as files, to "
            "change those of all versions without a commit",
        )
    change = Change(
        f"{verb.operation} BLOOM FILTERS", verb.changed_columns(), verb.table_properties(table)
    )
    begun: TableChange = load(table.changed_by)(
        table,
        change,
        selection.where,
        edit,
        may_lack_columns=not verb.requires_columns(),
        on_cluster=on_cluster,
    )
    # A comparison with what is declared does not ask whether the table can be changed.
    if not edit.dry_run or verb.declared() is None:
        table.ensure_changeable(conditional_put=edit.conditional_put)
    begun.ensure_columns(selection, work.context)
    return begun
