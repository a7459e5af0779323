"""JSON documents, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import OutputTarget
from sbbf_tool.cli.output import encodable_json
from sbbf_tool.cli.render import LongList

_PARTS_AT_ONCE = 1000


def _parts(document: dict[str, Any], encoding: str) -> Iterator[str]:
    """Yield a document as JSON in parts. The items of a long list are made and written one after the other."""
    if not any(isinstance(value, LongList) for value in document.values()):
        yield encodable_json(document, encoding)
        return
    start = "{"
    for name, value in document.items():
        if isinstance(value, LongList):
            yield f"{start}{encodable_json(name, encoding)}: "
            start = "["
            for item in value:
                yield f"{start}{encodable_json(item, encoding)}"
                start = ", "
            yield "[]" if start == "[" else "]"
        else:
            yield f"{start}{encodable_json(name, encoding)}: {encodable_json(value, encoding)}"
        start = ", "
    yield "}"


class Lines:
    """One document per line."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._target = target

    def add(self, item: Item) -> None:
        self._write(item.document())

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        if summary is not None:
            self._write(summary)

    def _write(self, document: dict[str, Any]) -> None:
        parts = chain(_parts(document, self._target.encoding), "\n")
        while block := "".join(islice(parts, _PARTS_AT_ONCE)):
            self._target.write(block)
