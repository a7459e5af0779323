"""Which file index Paimon uses of a data file (io/FileIndexEvaluator.java).

The container embedded in the manifest comes first; the `.index` file named among the entry's extra files counts only where there is
none. Two `.index` files are an error to Paimon. Before Paimon 2.1 a rewrite could leave an outdated container in the other place.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.errors import UnreadableError
from sbbf_tool.paimon.files import LARGEST_METADATA, Files, join, read_file
from sbbf_tool.paimon.index_container import Container, parse_container
from sbbf_tool.paimon.table import LiveFile

EMBEDDED = "embedded"
FILE = "file"
NONE = "none"


@dataclass(frozen=True, slots=True)
class FileIndex:
    """A data file's index as Paimon finds it."""

    place: str
    """EMBEDDED in the manifest, in a FILE beside the data file, or NONE."""
    path: str | None
    """The `.index` file's path, where the index is one."""
    container: Container | None
    """None when there is no index, and when it cannot be used."""
    problem: str | None = None
    """Why an index that is there cannot be used. Paimon's reader fails on such a file."""


def find_index(files: Files, live: LiveFile) -> FileIndex:
    """The index of a data file; what is wrong with it is part of the answer."""
    file = live.file
    if file.embedded_index is not None:
        return _parsed(EMBEDDED, None, file.embedded_index)
    if not file.index_files:
        return FileIndex(NONE, None, None)
    if len(file.index_files) > 1:
        return FileIndex(FILE, None, None, f"{len(file.index_files)} index files for one data file: {', '.join(file.index_files)}")
    path = join(live.directory, file.index_files[0])
    if live.outside is not None:
        return FileIndex(FILE, path, None, live.outside)
    try:
        return _parsed(FILE, path, read_file(files, path, LARGEST_METADATA))
    except UnreadableError as error:
        return FileIndex(FILE, path, None, error.message)


def _parsed(place: str, path: str | None, data: bytes) -> FileIndex:
    try:
        return FileIndex(place, path, parse_container(data))
    except UnreadableError as error:
        return FileIndex(place, path, None, f"{error.place}: {error.message}" if error.place else error.message)
