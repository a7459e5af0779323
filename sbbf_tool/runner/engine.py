"""What carries out the stages: processes of this machine, or a cluster. Commands know only this."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from sbbf_tool.arguments import as_iterable
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.lake import PlannedFile
from sbbf_tool.reports.rows import FileRow, FoundFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner.discover import discover
from sbbf_tool.runner.partitions import Predicate

if TYPE_CHECKING:
    from sbbf_tool.file.keys import Keys

Row = TypeVar("Row", bound=FileRow)


@dataclass(frozen=True, slots=True)
class Lake:
    """The files that are meant: names of files, folders and globs, and which partitions of them."""

    names: tuple[str, ...]
    where: Predicate | None = None
    keys: Keys | None = field(default=None, repr=False)
    """Of the files that are encrypted."""
    limit: PageLimit = field(default_factory=PageLimit)
    """What a page may state that it decompresses to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(os.fsdecode(name) for name in as_iterable(self.names)))

    def files(self, *, links: bool = False) -> Iterator[FoundFile]:
        """As this machine lists them; see `discover`."""
        return discover(self.names, self.where, links=links)


class Engine(Protocol):
    """Use as a context manager. One file's failure is its row, and stops no other; what is wrong with the names raises SbbfError."""

    def __enter__(self) -> Engine: ...
    def __exit__(self, *exc_info: object) -> None: ...

    def read(self, lake: Lake, work: Callable[[str], Row], row: type[Row], *, reads_data: bool = False) -> Iterator[Row]:
        """The row, of type `row`, that `work` makes of each file; `reads_data` where it takes the whole file to read."""

    def verify(self, lake: Lake, columns: tuple[str, ...] = ()) -> Iterator[VerifyRow]:
        """The filters of these columns (of all, where empty) of each file proven; a large file by all workers together."""

    def plan(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[PlannedFile]:
        """What each file is to get. Writes nothing."""

    def add_filters(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[AddRow]:
        """Give each file the filters that it lacks."""
