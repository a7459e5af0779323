"""The checks of the target that verbs which change files, such as add and remove, make before they
start."""

from __future__ import annotations

import os
from collections.abc import Iterable

from sbbf_tool.display import redact
from sbbf_tool.errors import LockedError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import Deletes, TableFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.storage import permissions, places
from sbbf_tool.storage.globs import matches_any


def ensure_in_no_table(target: str, tables: places.TableFinder) -> None:
    """Raise RefusedError if a file belongs to a table, which a change of the file alone would
    damage."""
    table = tables.managing_table(target)
    if table is not None:
        kind, folder = table
        article = "an" if kind[0] in "AEIOU" else "a"
        way = _WAYS.get(kind, _OTHER_WAY).format(folder)
        raise RefusedError(
            f"the file belongs to {article} {kind} table ({folder}), which records the size of "
            "each file",
            file=target,
            hint=f"{way}, or allow changes to files of tables",
        )


def choose_copy(file: TableFile) -> str:
    """Return the path of a new copy of a table's file. Raises RefusedError if it cannot be
    written."""
    target = file.new_copy_path()
    if redact(target) != target:
        raise RefusedError(
            "the URL of the file contains a password or a signature, which the table would record",
            file=target,
        )
    permissions.ensure_writable(target, in_place=False)
    return target


def ensure_copy_readable(file: ParquetFile, deletes: Iterable[Deletes]) -> None:
    """Raise LockedError if readers could not find the keys of a copy that has another name, and
    UnreadableError if deletes of the file could not be carried over to it."""
    if file.has_key_material():
        reason = (
            "readers look for its keys in a file that is named after it, which a copy "
            "with another name does not have"
        )
        raise LockedError(
            reason, file=file.name, hint="store the keys in the file itself (internal key material)"
        )
    for delete in deletes:
        try:
            delete.ensure_carried()
        except UnreadableError as error:
            message = f"the deleted rows are unreadable: {error}"
            raise UnreadableError(message, file=file.name) from error


def ensure_one_way(
    output: str | os.PathLike[str] | None,
    in_place: bool,
    dry_run: bool,
    names: Iterable[str] = (),
    *,
    file: str | None = None,
) -> None:
    """Raise UsageError unless either `output`, outside the folders that `names` mean, or `in_place`
    is given; a dry run needs neither."""
    if output is not None and in_place:
        raise UsageError(
            "two targets are given for the result",
            file=file,
            hint="either name another file, or change the file in place",
        )
    if output is None and not in_place and not dry_run:
        raise UsageError(
            "no target is given for the result",
            file=file,
            hint="choose to only try it, name another file, or change the file in place",
        )
    if output is None:
        return
    target = os.fsdecode(output)
    for name in names:
        if target.rstrip("/") == name.rstrip("/"):
            continue
        start = places.absolute(name).partition("**")[0]
        folders = (start, os.path.realpath(start))
        if matches_any(folders, "/", places.absolute(target)):
            reason = (
                f"the result would be among the files of {name}, whose readers would "
                "read each row twice"
            )
            raise UsageError(reason, file=target, hint="name a folder outside it")


_WAY = "name the table itself, {}, to change its files in one commit"
_OTHER_WAY = "write elsewhere and commit the new file to the table"
_WAYS = {
    "Delta": _WAY,
    "Iceberg": "name the table by its catalog, CATALOG:NAMESPACE.TABLE, or by {} if it is in "
    "no catalog, to change its files in one commit",
    "DuckLake": "name the table itself, ducklake:CATALOG#TABLE, to change its files in one commit",
    "Hudi": "only Hudi can replace a file, since its timeline and metadata table name each; "
    "new files get filters if Hadoop's setting "
    "parquet.bloom.filter.enabled#COLUMN is true",
}
"""How to change a file of a table, by format."""

_COMMITS = {
    "Delta": "commit a remove and an add action of the file with its new size",
    "Iceberg": "commit a manifest entry of the file with its new file_size_in_bytes",
    "DuckLake": "update file_size_bytes and footer_size in the row of ducklake_data_file",
}


def table_warnings(
    target: str, *, is_new: bool, growth: int, is_cut: bool, tables: places.TableFinder
) -> list[str]:
    """Return warnings for readers of the table that `target` belongs to, after its size changed by
    `growth` bytes.

    `is_new` is whether the file did not exist before, and `is_cut` whether its old footer is gone.
    There are no warnings if the file belongs to no table.
    """
    try:
        table = tables.managing_table(target)
    except SbbfError:
        # The store denies listing, but the caller has allowed changes to files of tables.
        return []
    if table is None or not (is_new or growth):
        return []
    kind, folder = table
    commit = _COMMITS.get(kind, "let the writer of the table record its new size")
    if is_new:
        return [
            f"the {kind} table {folder} does not list the new file, so its readers do not read "
            f"it; {commit}, in place of the old file"
        ]
    effect = "see the old footer, without this change"
    if growth < 0:
        effect = "fail, because the file is shorter now"
    elif is_cut:
        effect = "fail, because the file has no footer there any more"
    return [
        f"the {kind} table {folder} records the size of each file: readers that use the recorded "
        f"size {effect}; {commit}"
    ]


def sink_warnings(target: str, growth: int, tables: places.TableFinder) -> list[str]:
    """Return the warning for readers of the folder of a file sink of Spark, after the size of a
    file of it changed by `growth` bytes."""
    sink = tables.spark_sink(target) if growth else None
    if sink is None:
        return []
    effect = "fails if the file is shorter now" if growth < 0 else "does not see the new footer"
    return [
        f"{sink}/_spark_metadata, the log of Spark's file sink, records the size of each file: "
        f"until it is compacted or dropped, Spark opens files at the recorded size, and {effect}"
    ]


def check_changeable(file: ParquetFile) -> None:
    """Raise RefusedError if the footer must not be rewritten without its keys."""
    if not file.footer.is_writable:
        hint = "a changed footer must be signed again: give the file's key"
        raise LockedError("the footer of the file is signed", file=file.name, hint=hint)


def choose_columns(file: ParquetFile, names: Iterable[str]) -> list[Column]:
    """Return the columns with these names, or all, in the schema's order. Raises the errors of
    `ParquetFile.find_columns`."""
    return sorted(file.find_columns(names), key=lambda column: column.index)
