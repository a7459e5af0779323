"""The interface of a runner: processes of this machine, or Spark. Commands and `open_files` use only this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.runner.selection import Selection
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)


class Runner(Protocol):
    """Runner over files. Use as a context manager. A file's failure is its row and does not end the run; wrong names raise SbbfError."""

    def __enter__(self) -> Runner: ...
    def __exit__(self, *exc_info: object) -> None: ...

    def run(self, selection: Selection, work: Work[Row]) -> Iterator[Row]:
        """Yield the row of each file, in the order of the files on this machine."""
