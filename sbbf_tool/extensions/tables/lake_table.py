"""The interface of a table of any format: the commit, and the run that leads to it.

A module per format implements it. `commit` reads the newest version itself; `editing` makes the
copies, and `table_run` connects both.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sbbf_tool.running.table import Change, Commit, LiveFile, Table
from sbbf_tool.storage import places


class FolderOfTable:
    """The folder of a table, in which a link may lead out of it: nothing is written through such a
    link."""

    def __init__(self, location: str) -> None:
        self._is_local = not places.is_url(location)
        self._root = os.path.realpath(location) if self._is_local else location
        self._targets: dict[str, str | None] = {}

    def find_link_out(self, path: str) -> str | None:
        """Return the folder outside of the table in which a file whose path is below the table
        really is; None for a file inside, and for URLs. A file that is a link is inside."""
        if not self._is_local:
            return None
        folder = os.path.dirname(path)
        if folder not in self._targets:
            target = os.path.realpath(folder)
            is_inside = os.path.commonpath((target, self._root)) == self._root
            self._targets[folder] = None if is_inside else target
        return self._targets[folder]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A live file and its copy, which has the same rows in the same row groups."""

    old_path: str
    new_path: str
    new_bytes: int
    modified_ms: int
    """Milliseconds since 1970 at which the copy was written."""


class LakeTable(Table):
    """One version of a table of Delta, Iceberg or DuckLake."""

    changed_by = "sbbf_tool.extensions.tables.table_run:TableRun"

    marker_text: str = ""
    """Content of the markers of runs in the table's folder. Unless it is empty, copies are this
    table's only if the marker of their run has it, since the folder may also have files of a table
    in another catalog."""

    @property
    def marker_folder(self) -> str:
        """Folder or URL of the markers of runs."""
        return self.location

    def copy_path(self, file: LiveFile, name: str) -> str:
        return f"{file.path.rpartition('/')[0]}/{name}"

    @abstractmethod
    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        """Replace files in one commit in which no row changes, based on the newest version of the
        table.

        Without replacements, it sets the properties of the change alone, in a format whose
        `takes_properties` is true. If another commit comes first, the commit is built again from
        the new version; files that it removed are left out. Raises RefusedError if the newest
        version cannot be changed or other commits come first in all attempts, WriteError if writing
        fails (nothing is changed in both cases), and UncertainWriteError if it is unknown whether
        the commit succeeded: then the copies must stay.
        """

    def referenced(self, paths: AbstractSet[str]) -> AbstractSet[str]:
        """Return those of these copies that a version refers to. Their names are unique, and a
        table may spell a folder in several ways."""
        missing = {path.rpartition("/")[2] for path in paths}
        for path in self.paths_of_versions() if missing else ():
            missing.discard(path.rpartition("/")[2])
            if not missing:
                break
        return {path for path in paths if path.rpartition("/")[2] not in missing}

    @abstractmethod
    def paths_of_versions(self) -> Iterator[str]:
        """Yield the paths of all files to which a retained version of the table refers, as its
        metadata has them, or without their folders."""
