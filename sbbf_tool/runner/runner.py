"""What carries out a run over files: processes of this machine, or Spark. Commands and `open_files` know only this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.runner.selection import Selection
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)


class Runner(Protocol):
    """Use as a context manager. One file's failure is its row, and stops no other; what is wrong with the names raises SbbfError."""

    def __enter__(self) -> Runner: ...
    def __exit__(self, *exc_info: object) -> None: ...

    def run(self, selection: Selection, work: Work[Row]) -> Iterator[Row]:
        """Yield the row that the work makes of each file, in the order of the files on this machine."""
