"""The checks of the target that verbs which change files, such as add and remove, make before they start."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import RefusedError, SbbfError, UsageError
from sbbf_tool.file import interrupted
from sbbf_tool.file.parquet_file import ParquetFile, ring_of
from sbbf_tool.hints import Fix, Hint, join
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike


def choose_target(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    in_place: bool,
    allow_table_files: bool,
    dry_run: bool = False,
    append: bool = False,
    tables: places.TableFinder | None = None,
) -> str:
    """Return the path to write. Raises UsageError unless exactly one target is chosen, and RefusedError if it must not be written.

    A dry run needs no target; if a target is given, it is checked too. `tables` caches which prefixes are tables for the files of one run.
    """
    source = os.fsdecode(path)
    ensure_one_way(output, in_place, dry_run, source)
    if output is None and not in_place:
        return source
    target = source if output is None else os.fsdecode(output)
    places.ensure_writable(target, in_place=in_place, append=append)
    table = None if allow_table_files else (tables or places.TableFinder()).managing_table(target)
    if table is not None:
        kind, folder = table
        raise RefusedError(
            f"the file belongs to {'an' if kind[0] in 'AEIOU' else 'a'} {kind} table ({folder}), which records the size of each file",
            file=target,
            hint=Hint("write elsewhere and commit the new file to the table, or allow it with {allow_table_files}", allow_table_files=True),
        )
    return target


def ensure_one_way(output: str | os.PathLike[str] | None, in_place: bool, dry_run: bool, file: str | None = None) -> None:
    """Raise UsageError unless either `output` or `in_place` is given; a dry run needs neither."""
    if (output is not None) == in_place and (in_place or not dry_run):
        hint = Hint("give either {output} or {in_place}", output=..., in_place=True)
        raise UsageError("one target is required for the result", file=file, hint=hint)


_COMMITS = {
    "Delta": "commit a remove and an add action of the file with its new size",
    "Iceberg": "commit a manifest entry of the file with its new file_size_in_bytes",
}


def table_warnings(target: str, *, is_new: bool, growth: int, tables: places.TableFinder | None = None) -> list[str]:
    """Return warnings for readers of the table that `target` belongs to, after its size changed by `growth` bytes.

    `is_new` is whether the file did not exist before. There are no warnings if the file belongs to no table.
    """
    try:
        table = (tables or places.TableFinder()).managing_table(target)
    except SbbfError:
        # The store denies listing, but the caller has allowed changes to files of tables.
        return []
    if table is None or not (is_new or growth):
        return []
    kind, folder = table
    commit = _COMMITS.get(kind, "let the writer of the table record its new size")
    if is_new:
        return [f"the {kind} table {folder} does not list the new file, so its readers do not read it; {commit}, in place of the old file"]
    effect = "see the old footer, without this change" if growth > 0 else "fail, because the file is shorter now"
    return [f"the {kind} table {folder} records the size of each file: readers that use the recorded size {effect}; {commit}"]


def undo_append(path: str | os.PathLike[str], target: str, keys: KeysLike = None, dry_run: bool = False) -> tuple[list[str], int | None]:
    """Undo an interrupted append to this file, and remove temporary files of killed commands beside it.

    Returns warnings as text, and the length that the file was truncated to, or None. A dry run changes nothing and only warns. Raises
    WriteError, and RefusedError if the file would have to change although the result is written to another `target`.
    """
    name = os.fsdecode(path)
    if dry_run:
        return [] if (warning := interrupted.warning_of(name)) is None else [join(f"{name}: ", warning)], None
    outcome = interrupted.finish(name, ring_of(name, keys), changes=target == name)
    if target != name and outcome.truncated_to is not None:
        hint = Hint("run {fix} first", fix=Fix("repair", (name,)))
        raise RefusedError("an append to the file was interrupted, and undoing it would change the file", file=name, hint=hint)
    places.sweep(name)
    message = (
        f"{name}: an append to the file had been interrupted; the file was truncated to {outcome.truncated_to:,} bytes"
        if outcome.truncated_to
        else None
    )
    return [*filter(None, [message]), *outcome.warnings], outcome.truncated_to


def check_changeable(file: ParquetFile) -> None:
    """Raise RefusedError if the footer must not be rewritten without its keys."""
    if not file.footer.is_writable:
        hint = Hint("a changed footer must be signed again with the file's key: give it with {keys}", keys=...)
        raise RefusedError("the footer of the file is signed", file=file.name, hint=hint)


def choose_columns(file: ParquetFile, names: Iterable[str]) -> list[Column]:
    """Return the columns with these names, in the schema's order. Raises UsageError, with similar names."""
    with file.locate_errors():
        chosen = {column.index: column for column in (find_column(file.footer.columns, name) for name in as_names(names))}
    return [chosen[index] for index in sorted(chosen)]
