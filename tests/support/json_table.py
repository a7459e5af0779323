"""A table for tests: a folder with versions `_versions/<n>.json`, each a list of its files. The
commit is like that of a real format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.tables.lake_table import LakeTable, Replacement
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.running.table import Change, Commit, LiveFile


class JsonTable(LakeTable):
    format = "Json"
    takes_properties = True

    def __init__(
        self,
        location: Path,
        columns: ColumnNames | None = None,
        before_commit: Callable[[], None] | None = None,
    ) -> None:
        self.name = self.location = str(location)
        self.columns = columns or ColumnNames()
        self.properties: Mapping[str, str] = {}
        self.before_commit = before_commit
        self.changes: list[Change] = []
        self._number = self.versions()[-1]
        self.version = f"version {self._number}"

    def versions(self) -> list[int]:
        return sorted(int(path.stem) for path in Path(self.location, "_versions").iterdir())

    def entries(self, number: int | None = None) -> list[dict[str, Any]]:
        path = Path(
            self.location, "_versions", f"{self.versions()[-1] if number is None else number}.json"
        )
        return json.loads(path.read_text())

    def write(self, entries: list[dict[str, Any]]) -> int:
        number = self.versions()[-1] + 1
        Path(self.location, "_versions", f"{number}.json").write_text(json.dumps(entries))
        return number

    def live_files(self) -> Iterable[LiveFile]:
        for entry in self.entries(self._number):
            path = os.path.join(self.location, entry["path"])
            yield LiveFile(
                path, entry.get("bytes"), entry.get("partition", {}), entry.get("unchangeable")
            )

    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        if os.path.exists(os.path.join(self.location, "_frozen")):
            raise RefusedError("the table is frozen", file=self.name)

    def copy_path(self, file: LiveFile, name: str) -> str:
        return os.path.join(os.path.dirname(file.path), name)

    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        self.changes.append(change)
        if self.before_commit is not None:
            self.before_commit()
        self.ensure_changeable()
        new = {os.path.relpath(each.old_path, self.location): each for each in replacements}
        entries = self.entries()
        missing = [
            each.old_path
            for path, each in new.items()
            if path not in {entry["path"] for entry in entries}
        ]
        for entry in entries:
            if entry["path"] in new:
                replacement = new[entry["path"]]
                entry.update(
                    path=os.path.relpath(replacement.new_path, self.location),
                    bytes=replacement.new_bytes,
                )
        number = self.write(entries)
        return Commit(
            f"version {number}", len(new) - len(missing), tuple(missing), 0, f"restore {number - 1}"
        )

    def paths_of_versions(self) -> Iterator[str]:
        for number in self.versions():
            for entry in self.entries(number):
                yield entry["path"]


def make_table(folder: Path, num_files: int = 3, rows: int = 500, **options: Any) -> JsonTable:
    """Write a table with partitions `day=0`, `day=1`, ..., each with one file of columns `id` and
    `name`."""
    entries = []
    for day in range(num_files):
        path = folder / f"day={day}" / f"part-{day}.parquet"
        path.parent.mkdir(parents=True)
        ids = range(day * rows, (day + 1) * rows)
        pq.write_table(pa.table({"id": ids, "name": [f"n{number}" for number in ids]}), path)
        partition = {"day": str(day)}
        entries.append(
            {
                "path": os.path.relpath(path, folder),
                "bytes": path.stat().st_size,
                "partition": partition,
            }
        )
    (folder / "_versions").mkdir(parents=True)
    (folder / "_versions" / "0.json").write_text(json.dumps(entries))
    return JsonTable(folder, **options)


def rows_of(table: JsonTable) -> list[dict[str, Any]]:
    """Read all rows of the newest version."""
    return [
        row
        for entry in table.entries()
        for row in pq.read_table(Path(table.location, entry["path"]), partitioning=None).to_pylist()
    ]


def copies_in(table: JsonTable) -> list[str]:
    return sorted(path.name for path in Path(table.location).rglob("sbbf-*"))
