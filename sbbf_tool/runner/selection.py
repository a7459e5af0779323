"""Which files a run works on: names of files, folders, globs and URLs, and which partitions of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_iterable
from sbbf_tool.reports.rows import FoundFile

if TYPE_CHECKING:
    from sbbf_tool.runner.partitions import Predicate


@dataclass(frozen=True, slots=True)
class Selection:
    """Files by name, folder, glob or URL."""

    names: Iterable[str]
    """One name, or several; an iterator of names is read as files are needed, once."""
    where: Predicate | None = None
    """Which partitions, by the folders of a path."""

    def __post_init__(self) -> None:
        names = as_iterable(self.names)
        object.__setattr__(self, "names", names if isinstance(names, Iterator) else tuple(os.fsdecode(name) for name in names))

    def files(self, *, links: bool = False) -> Iterator[FoundFile]:
        """List the files, as this machine sees them; see `discover`."""
        from sbbf_tool.runner.discover import discover

        return discover(self.names, self.where, links=links)

    def name_list(self) -> tuple[str, ...]:
        """Return all names, for a report that states them."""
        return tuple(os.fsdecode(name) for name in self.names)
