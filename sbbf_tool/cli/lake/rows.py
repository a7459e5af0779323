"""The rows of a lake as they come: errors to standard error, a count of what became of the files, and the highest exit code."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from sbbf_tool.cli.files import counter
from sbbf_tool.cli.output import say, stop_if_unread
from sbbf_tool.display import redact
from sbbf_tool.reports.rows import FAILED, LINK, OK, REFUSED, SKIPPED, FileRow

Row = TypeVar("Row", bound=FileRow)


class Files:
    """What became of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.exit_code = 0

    def __str__(self) -> str:
        """`1,000 files: 990 done, 10 failed`."""
        words = {OK: "done", SKIPPED: "had every filter", REFUSED: "refused", FAILED: "failed"}
        words |= {LINK: "skipped, being links"}
        told = [f"{self.counts[status]:,} {word}" for status, word in words.items() if self.counts[status]]
        return f"{self.total}: {', '.join(told) or 'nothing to do'}"

    @property
    def total(self) -> str:
        count = self.counts.total()
        return f"{count:,} file{'' if count == 1 else 's'}"


def each_row(rows: Iterable[Row], show: Callable[[Row], int], *, writes: bool = False) -> Files:
    """`show` gets every row and answers with an exit code, such as 1 for findings. Where nobody reads the output any more, what only
    reads stops.
    """
    files = Files()
    with counter() as count:
        for row in rows:
            row = dataclasses.replace(row, path=redact(row.path))
            files.counts[LINK if row.reason == LINK else row.status] += 1
            if row.status in (REFUSED, FAILED):
                say(f"sbbf: {row.path}: {row.reason}", err=True)
            files.exit_code = max(files.exit_code, row.exit_code, show(row))
            count()
            if not writes:
                stop_if_unread(at_end=False)
    return files
