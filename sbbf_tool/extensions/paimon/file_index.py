"""The file index that Paimon uses for a data file (io/FileIndexEvaluator.java).

Paimon uses the container embedded in the manifest; if there is none, it uses the `.index` file among the entry's extra files. Two
`.index` files are an error in Paimon. Before Paimon 2.1, a rewrite could leave an outdated container in the other place.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.paimon.files import LARGEST_METADATA, FileIO, join, read_file
from sbbf_tool.extensions.paimon.index_container import Container, parse_container
from sbbf_tool.extensions.paimon.table import IndexedFile

EMBEDDED = "embedded"
FILE = "file"
NONE = "none"


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Index of a data file, as Paimon finds it."""

    place: str
    """EMBEDDED in the manifest, in a FILE beside the data file, or NONE."""
    path: str | None
    """Path of the `.index` file, if the index is in a file."""
    container: Container | None
    """None when there is no index, or it cannot be used."""
    problem: str | None = None
    """Why an existing index cannot be used. Paimon's reader fails on such a file."""
    is_damaged: bool = False
    """Whether the problem is in the index itself, which is missing, contradicts the format or occurs twice, not in reading it."""


def find_index(files: FileIO, live: IndexedFile) -> FileIndex:
    """Find the index of a data file; a defect of the index is returned as `problem`, not raised."""
    file = live.file
    if file.embedded_index is not None:
        return _parse_index(EMBEDDED, None, file.embedded_index)
    if not file.index_files:
        return FileIndex(NONE, None, None)
    if len(file.index_files) > 1:
        return FileIndex(
            FILE,
            None,
            None,
            f"the data file has {len(file.index_files)} index files, but Paimon supports one: {', '.join(file.index_files)}",
            is_damaged=True,
        )
    path = join(live.directory, file.index_files[0])
    if live.outside is not None:
        return FileIndex(FILE, path, None, live.outside)
    try:
        return _parse_index(FILE, path, read_file(files, path, LARGEST_METADATA))
    except UnreadableError as error:
        # An error of the storage is the cause of one that it raised; a missing file has no cause.
        return FileIndex(FILE, path, None, error.message, is_damaged=error.__cause__ is None)


def _parse_index(place: str, path: str | None, data: bytes) -> FileIndex:
    try:
        return FileIndex(place, path, parse_container(data))
    except UnreadableError as error:
        problem = error.with_place
        return FileIndex(place, path, None, problem, is_damaged=True)
