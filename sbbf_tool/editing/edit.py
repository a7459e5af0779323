"""Where changed files are written, and how."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from sbbf_tool.arguments import check_jobs
from sbbf_tool.editing.targets import (
    choose_copy,
    ensure_in_no_table,
    ensure_one_way,
)
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.frozen import replace
from sbbf_tool.storage import permissions, places

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.storage.places import TableFinder


_FLAGS = ("in_place", "append", "dry_run", "allow_table_files", "force", "conditional_put")


@dataclass(frozen=True, slots=True)
class Edit:
    """The target of changed files and how to change them. One object serves a run; it can be sent
    to other processes and machines.

    `keys`, `max_page_bytes` and `jobs` hold unless the run has its own; see `complete`.
    """

    output: str | os.PathLike[str] | None = None
    """The name of the new file, if a single file is changed, or a folder for the new files, which
    ends with a slash."""
    in_place: bool = False
    append: bool = False
    """With `in_place`: append to the file itself instead of a copy."""
    dry_run: bool = False
    """Judge what would be done; build and write nothing."""
    allow_table_files: bool = False
    keys: KeysLike = field(default=None, repr=False, compare=False)
    """Keys of encrypted files, whose encrypted columns get encrypted filters."""
    max_page_bytes: MaxPageBytes = None
    """The limit on the decompressed size of a page, as its header states it."""
    jobs: int | None = None
    """Number of column chunks of a file to process concurrently; one per core if None."""
    cross_checks: CrossChecks = field(
        default_factory=CrossChecks, init=False, repr=False, compare=False
    )
    """The kinds of column chunks that pyarrow has decoded in this run."""
    force: bool = False
    """Also write filters that exclude hardly any value."""
    files_per_commit: int | None = None
    """Of a table: how many files a commit replaces; all in one commit if None."""
    roots: Sequence[str] = ()
    """The folders, each with a slash, below which files keep their names in the folder for new
    files; others keep the last part."""
    conditional_put: bool = False
    """Every other writer of the table also creates its versions by conditional requests."""

    def __post_init__(self) -> None:
        check_jobs(self.jobs)
        for name in _FLAGS:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise UsageError(f"{name} must be True or False, not {value!r}")

    def complete(self, context: Context) -> Context:
        """Return the context with the keys and the page limit of this edit where it has none."""
        limit = context.limit
        if limit.max_page_bytes is None:
            limit = PageLimit.of(self.max_page_bytes, context.jobs)
        keys = context.keys
        if keys is None:
            keys = self.keys
        return replace(context, keys=keys, limit=limit)

    def target_of(self, path: str | os.PathLike[str], tables: TableFinder) -> str:
        """Return the path to write; `tables` finds the tables that have it. Raises UsageError
        unless exactly one target is chosen, and RefusedError if it must not be written.

        For a file of a table that is changed in place, the path is that of a new copy, or the
        file's own path in a dry run. A dry run needs no target; if one is given, it is checked too.
        """
        if is_copied(path):
            if not (self.in_place or self.dry_run):
                raise UsageError(
                    "a table changes in one commit", file=path.table, hint="change it in place"
                )
            return path.path if self.dry_run else choose_copy(path)
        if self.append and not self.in_place:
            raise UsageError(
                "an append changes the file itself",
                file=os.fsdecode(path),
                hint="change it in place",
            )
        source = os.fsdecode(path)
        output = self.output_of(path)
        if output is not None and self.is_in_folder and not places.is_url(output):
            folder = os.path.dirname(output)
            if self.dry_run and not os.path.isdir(folder):
                return output
            _make_folder(folder)
        ensure_one_way(output, self.in_place, self.dry_run, file=source)
        if output is None and not self.in_place:
            return source
        target = source if output is None else output
        permissions.ensure_writable(target, in_place=self.in_place, append=self.append)
        if not self.allow_table_files:
            ensure_in_no_table(target, tables)
        return target

    @property
    def is_in_folder(self) -> bool:
        """Whether the new files are written to a folder."""
        return self.output is not None and os.fsdecode(self.output).endswith(("/", os.sep))

    def output_of(self, path: str | os.PathLike[str]) -> str | None:
        """Return the name of the new file; None if the file itself is changed."""
        if self.output is None:
            return None
        output = os.fsdecode(self.output)
        if not self.is_in_folder:
            return output
        name = places.absolute(os.fsdecode(path))
        roots = [root for root in self.roots if name.startswith(root)]
        root = max(roots, key=len, default=f"{os.path.dirname(name)}/")
        return output + name[len(root) :]


def is_copied(path: str | os.PathLike[str]) -> TypeGuard[TableFile]:
    """Return whether a file belongs to a table that a commit will change: then the result is a
    copy."""
    return isinstance(path, TableFile) and path.run is not None


def _make_folder(folder: str) -> None:
    """Make the folder of a new file. Raises RefusedError."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "it cannot be made").lower()
        raise RefusedError(reason, file=folder) from error
