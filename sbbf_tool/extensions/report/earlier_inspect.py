"""The reports of an earlier `inspect`, from the file in which it saved them: what a page compares with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.report.comparison import EarlierRun

_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_MOST_BYTES = 1 << 30


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON, one file at a time. Raises UsageError if the file is none."""
    name = os.fsdecode(path)
    earlier = EarlierRun(redact(name))
    try:
        for document in _read_documents(name):
            _add(document, earlier)
        if not earlier.files:
            raise UnreadableError("it has no report of a file")
    except (UnreadableError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, SbbfError) else getattr(error, "strerror", None) or "it has other fields"
        hint = "save the report of inspect in a file whose name ends with .json"
        raise UsageError(f"the file is not a report of inspect ({reason.lower()})", file=name, hint=hint) from None
    return earlier


def _add(document: Any, earlier: EarlierRun) -> None:
    if document["schema"] in _NOT_OF_FILES:
        return
    if document["schema"] != "sbbf.inspect":
        raise UnreadableError(f"it has documents of {document['schema']}")
    earlier.add(document)


def _read_documents(name: str) -> Iterator[Any]:
    """Yield the documents of a report, one a line. Raises OSError, ValueError, RecursionError, UnreadableError."""
    with open(name, "rb") as stream:
        is_empty = True
        while text := stream.readline(_MOST_BYTES + 1):
            if len(text) > _MOST_BYTES:
                raise UnreadableError(f"it has more than {_MOST_BYTES:,} bytes")
            if text.strip():
                is_empty = False
                yield json.loads(text)
        if is_empty:
            raise UnreadableError("it is empty")
