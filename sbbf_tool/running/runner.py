"""The interface of a runner: processes on this machine, or Spark. Commands and `run` use only this interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sbbf_tool.reports.rows import ListedFile, Row

if TYPE_CHECKING:
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")


class Runner(Protocol):
    """Runner over files. Use as a context manager. A failure in a file becomes its row; names that match no file raise SbbfError."""

    def __enter__(self) -> Runner: ...
    def __exit__(self, *exc_info: object) -> None: ...

    most_files: int | None
    """Number of listed files above which a caller should divide a run, to limit memory; None for no limit."""

    rest: list[Any]
    """If a run ended early, the row that was yielded last, and those of files that were done, but not yielded."""

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        """List the files of a run where it works; see `Selection.files`."""

    def run(self, selection: Selection, work: Work[Report]) -> Iterator[Row[Report]]:
        """Yield the row of each file; the local runner yields them in the order of the files."""
