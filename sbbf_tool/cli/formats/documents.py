"""JSON documents: one per line (ndjson), or as one array (json)."""

from __future__ import annotations

from typing import Any

from sbbf_tool.cli.formats import Item, Run
from sbbf_tool.cli.formats.target import Target
from sbbf_tool.cli.output import encodable_json


def open_output(name: str, run: Run, target: Target) -> Lines | Array:
    """Open the output of this format."""
    return Lines(target) if name == "ndjson" else Array(target)


class Lines:
    """One document per line."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def add(self, item: Item) -> None:
        self._write(item.document)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        if summary is not None:
            self._write(summary)

    def _write(self, document: dict[str, Any]) -> None:
        self._target.write(f"{encodable_json(document, self._target.encoding)}\n")


class Array:
    """One array of all documents, with each on a line of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._start = "["

    def add(self, item: Item) -> None:
        self._write(item.document)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        if summary is not None:
            self._write(summary)
        self._target.write("[]\n" if self._start == "[" else "]\n")

    def _write(self, document: dict[str, Any]) -> None:
        self._target.write(f"{self._start}{encodable_json(document, self._target.encoding)}\n")
        self._start = ","
