"""The files of a run: names of files and folders, globs and URLs, and a predicate on their partitions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_iterable
from sbbf_tool.reports.rows import ListedFile

if TYPE_CHECKING:
    from sbbf_tool.runner.partitions import Predicate


class Selection:
    """Files by name, folder, glob or URL."""

    __slots__ = ("file", "names", "where")

    def __init__(
        self, names: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], where: Predicate | None = None, file: str | None = None
    ) -> None:
        """Take one or more names; an iterator of names is read once, as files are needed. `where` selects partitions.

        `file` is the only file that the names mean, if known: then nothing is listed.
        """
        self.file = file
        items = as_iterable(names)
        self.names: Iterable[str] = map(os.fsdecode, items) if isinstance(items, Iterator) else tuple(map(os.fsdecode, items))
        self.where = where

    def files(self, *, links: bool = False) -> Iterator[ListedFile]:
        """List the files on this machine; see `discover`."""
        from sbbf_tool.runner.discover import discover, list_file

        if self.file is not None:
            return iter((list_file(self.file),))
        return discover(self.names, self.where, links=links)

    def name_list(self) -> tuple[str, ...]:
        """Return all names, for a report that lists them."""
        return tuple(os.fsdecode(name) for name in self.names)
