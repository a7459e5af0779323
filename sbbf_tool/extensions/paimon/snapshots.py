"""The snapshots and schemas of a table, or of one of its branches: JSON files with numbers.

The root of the main branch is the folder of the table, that of another branch is
`<table>/branch/branch-<name>`.
"""

from __future__ import annotations

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.files import FileIO, join, list_names, parse_file
from sbbf_tool.extensions.paimon.table_schema import (
    PaimonSnapshot,
    TableSchema,
    parse_snapshot,
    parse_table_schema,
)
from sbbf_tool.records import file_name

SNAPSHOT_PREFIX = "snapshot-"
SCHEMA_PREFIX = "schema-"
_MAX_DIGITS = 19
_LARGEST_HINT = 100  # bytes: the file holds a number


def branch_root(path: str, branch: str | None) -> str:
    """Return the root of a branch of the table at `path`."""
    if branch is None or branch == "main":
        return path
    return join(path, "branch", f"branch-{file_name(branch)}")


def snapshot_path(root: str, snapshot_id: int) -> str:
    return join(root, "snapshot", f"{SNAPSHOT_PREFIX}{snapshot_id}")


def list_snapshot_ids(files: FileIO, root: str) -> set[int]:
    return _list_numbers(files, join(root, "snapshot"), SNAPSHOT_PREFIX)


def list_schema_ids(files: FileIO, root: str) -> set[int]:
    return _list_numbers(files, join(root, "schema"), SCHEMA_PREFIX)


def _list_numbers(files: FileIO, directory: str, prefix: str) -> set[int]:
    numbers = set[int]()
    for name in list_names(files, directory):
        digits = name.removeprefix(prefix)
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS
        if name.startswith(prefix) and is_number:
            numbers.add(int(digits))
    return numbers


def latest_snapshot_id(files: FileIO, root: str) -> int | None:
    """Return the number of the latest snapshot of a table, or None if the table has none.

    The LATEST file is a hint and may lag behind.
    """
    try:
        text = files.read(join(root, "snapshot", "LATEST"), _LARGEST_HINT)
        hint = int(text.decode("ascii"))
    except (OSError, ValueError):
        hint = 0
    ids = list_snapshot_ids(files, root)
    newest = max(ids, default=None)
    if hint > (newest or 0):
        raise UnreadableError(
            f"LATEST refers to snapshot {hint}, which does not exist",
            file=snapshot_path(root, hint),
        )
    if hint in ids and hint + 1 not in ids:
        return hint
    return newest


def read_snapshot(files: FileIO, root: str, number: int | None) -> PaimonSnapshot | None:
    """Read the snapshot with this number, or the latest; None if there is none."""
    if number is None:
        number = latest_snapshot_id(files, root)
    elif number not in list_snapshot_ids(files, root):
        number = None
    if number is None:
        return None
    return parse_file(files, snapshot_path(root, number), parse_snapshot)


def read_schema(files: FileIO, root: str, schema_id: int) -> TableSchema:
    path = join(root, "schema", f"{SCHEMA_PREFIX}{schema_id}")
    return parse_file(files, path, parse_table_schema)


def is_table(files: FileIO, directory: str) -> bool:
    """Return whether a directory has the schemas of a table.

    An unrelated directory may also be called `schema`.
    """
    try:
        return bool(list_schema_ids(files, directory))
    except UnreadableError:
        return False
