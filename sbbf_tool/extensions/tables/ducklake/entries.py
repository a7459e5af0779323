"""Tables, their columns and data files as a DuckLake catalog has them, and the paths of files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.frozen import Frozen
from sbbf_tool.storage.places import is_url

Path = tuple[str, ...]


class TableEntry(Frozen):
    """A table of the catalog."""

    id: int
    schema_id: int
    schema: str
    name: str
    folder: str
    """Absolute path or URL in which relative paths of its files begin; it ends with a slash."""

    @property
    def full_name(self) -> str:
        return f"{_quote(self.schema)}.{_quote(self.name)}"


def _quote(part: str) -> str:
    return f'"{part}"' if set(part) & set('."#') else part


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of `ducklake_data_file`."""

    id: int
    table_id: int
    stored_path: str
    is_relative: bool
    format: str
    bytes: int | None
    partition_id: int | None
    mapping_id: int | None
    is_encrypted: bool
    is_live: bool
    """Whether it is in the newest snapshot."""

    def path(self, folder: str) -> str:
        """Return the absolute path or URL, for the folder of the file's table."""
        return join(folder, self.stored_path, is_relative=self.is_relative)


class TableColumns(NamedTuple):
    """The columns of a table."""

    paths: dict[int, Path]
    """By id, without the scaffolding of lists."""
    types: dict[int, str]
    """By id."""
    with_default: frozenset[Path]
    """Paths of the columns that have a value in files which do not have them."""

    @property
    def types_by_path(self) -> dict[Path, str]:
        """Types of the leaves; the elements of a list have its path."""
        types = {}
        for id, path in self.paths.items():
            if path not in types or self.types[id] != "list":
                types[path] = self.types[id]
        return types


def join(folder: str, path: str, *, is_relative: bool) -> str:
    """Return a path of a catalog, which may be relative to a folder, as an absolute path or
    URL."""
    return folder + path if is_relative else absolute(path)


def absolute(path: str) -> str:
    """Return a path of a catalog as an absolute path or URL. DuckDB resolves relative paths in the
    folder in which it runs."""
    if is_url(path):
        return path
    path = path.removeprefix("file://")
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
