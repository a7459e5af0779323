"""The changes of an earlier run, from the report that it saved: what `undo` needs to know of each file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sbbf_tool.editing.past_change import PastChange
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.table_file import run_of_copy
from sbbf_tool.records import required

MOST_BYTES = 1 << 30
_FIELDS = ("file", "output", "dry_run", "old_bytes", "new_bytes", "old_end_hash", "new_end_hash")
_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_HINT = "save the report of a command that changes files in a file whose name ends with .json, .ndjson or .parquet"
_BYTE = re.compile(r"\\udc([89a-f][0-9a-f])")


def read_changes(path: str | os.PathLike[str]) -> dict[str, PastChange]:
    """Return the files that a run changed in place, by name. `path` is a report as JSON, JSON lines or Parquet.

    Raises UsageError if the file is no such report, and RefusedError if the run changed a table or wrote other files.
    """
    name = os.fsdecode(path)
    changes: dict[str, PastChange] = {}
    try:
        for fields in _reports(name):
            file, output = required(fields, "file", str), required(fields, "output", str)
            if fields["dry_run"]:
                continue
            if file != output:
                _refuse_other_file(name, output)
            change = PastChange.of_report(fields)
            if (change.old_bytes, change.old_end_hash) != (change.new_bytes, change.new_end_hash):
                changes[file] = change
    except (UnreadableError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, SbbfError) else "it has other fields"
        raise UsageError(f"the file is not the report of a change ({reason})", file=name, hint=_HINT) from None
    return changes


def _refuse_other_file(name: str, output: str) -> None:
    if run_of_copy(output.rpartition("/")[2]) is not None:
        reason = "the run changed a table, whose format undoes a commit itself"
        hint = "restore the version before it: RESTORE of Delta, rollback_to_snapshot of Iceberg; the run printed the statement"
        raise RefusedError(reason, file=name, hint=hint)
    raise RefusedError("the run wrote its result to another file and left the old one as it was", file=name, hint=f"remove {output}")


def _reports(name: str) -> Iterator[Mapping[str, Any]]:
    try:
        with open(name, "rb") as stream:
            start = stream.read(4)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{getattr(error, 'strerror', None) or 'invalid name'}".lower()) from None
    return _parquet_reports(name) if start == b"PAR1" else _json_reports(name)


def _parquet_reports(name: str) -> Iterator[Mapping[str, Any]]:
    from sbbf_tool.file.row_file import RowFile

    with RowFile(name) as rows:
        if "report" not in rows.schema.names:
            raise UnreadableError("it has other columns")
        for number in range(rows.num_row_groups):
            columns = rows.read(number, [f"report.{field}" for field in _FIELDS])
            for values in zip(*columns.values(), strict=True):
                # A file that failed has no report.
                if any(value is not None for value in values):
                    fields = dict(zip(_FIELDS, values, strict=True))
                    yield {**fields, "file": _restore(fields["file"]), "output": _restore(fields["output"])}


def _restore(name: str) -> str:
    """Restore the bytes of a file name that are not UTF-8, which Arrow's strings cannot hold, unless the name is that of a file."""
    return name if os.path.lexists(name) else _BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), name)


def _json_reports(name: str) -> Iterator[Mapping[str, Any]]:
    for document in read_documents(name):
        if document["schema"] not in _NOT_OF_FILES:
            yield {field: document[field] for field in _FIELDS}


def read_documents(name: str) -> Iterator[Any]:
    """Yield the documents of a report as JSON lines, or as one array. Raises OSError, ValueError, RecursionError, UnreadableError."""
    with open(name, "rb") as stream:
        first = stream.read(1)
        stream.seek(0)
        if first == b"[":
            text = stream.read(MOST_BYTES + 1)
            _ensure_length(text)
            yield from _as_list(json.loads(text))
            return
        is_empty = True
        while line := stream.readline(MOST_BYTES + 1):
            _ensure_length(line)
            if line.strip():
                is_empty = False
                yield json.loads(line)
        if is_empty:
            raise UnreadableError("it is empty")


def _as_list(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise UnreadableError("it is not a list of documents")
    return value


def _ensure_length(text: bytes) -> None:
    if len(text) > MOST_BYTES:
        raise UnreadableError(f"it has more than {MOST_BYTES:,} bytes")
