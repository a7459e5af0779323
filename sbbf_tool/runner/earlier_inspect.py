"""The reports of an earlier `inspect`, from the file in which it saved them: what a page compares with."""

from __future__ import annotations

import os
from typing import Any

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.html_report.comparison import EarlierRun
from sbbf_tool.runner.past_run import read_documents

_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON or JSON lines, one file at a time. Raises UsageError if the file is none."""
    name = os.fsdecode(path)
    earlier = EarlierRun(redact(name))
    try:
        for document in read_documents(name):
            _add(document, earlier)
        if not earlier.files:
            raise UnreadableError("it has no report of a file")
    except (UnreadableError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, SbbfError) else getattr(error, "strerror", None) or "it has other fields"
        hint = "save the report of inspect in a file whose name ends with .json or .ndjson"
        raise UsageError(f"the file is not a report of inspect ({reason.lower()})", file=name, hint=hint) from None
    return earlier


def _add(document: Any, earlier: EarlierRun) -> None:
    if document["schema"] in _NOT_OF_FILES:
        return
    if document["schema"] != "sbbf.inspect":
        raise UnreadableError(f"it has documents of {document['schema']}")
    earlier.add(document)
