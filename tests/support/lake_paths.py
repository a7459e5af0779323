"""A folder of small files that one command changes, and that are published together."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from support.write_paths import EVENTS, WritePath, contents, plain

FILES = ("a.parquet", "b.parquet", "c.parquet")
ADD_TO_FOLDER = "add to a folder"
LAKE_PATHS = {ADD_TO_FOLDER: WritePath(plain, ("add-filter", ".", "-c", "user_id", "-c", "session", "--jobs", "1", "--in-place"))}


@dataclass(frozen=True)
class BeforeLake:
    """The content of each file before and after the command."""

    old: bytes
    new: bytes

    def lay_out(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in FILES:
            (folder / name).write_bytes(self.old)
        return folder

    def is_whole(self, folder: Path) -> bool:
        """Return whether each file is the old or the new one; temporary files may be beside them."""
        files = {name: data for name, data in contents(folder).items() if name in FILES}
        return sorted(files) == sorted(FILES) and all(data in (self.old, self.new) for data in files.values())

    def is_done(self, folder: Path) -> bool:
        """Return whether each file is the new one, and nothing else is there."""
        return contents(folder) == dict.fromkeys(FILES, self.new)


def prepare_lake(folder: Path) -> BeforeLake:
    """Change one file by itself: published together with others, it becomes the same."""
    folder.mkdir()
    shutil.copyfile(EVENTS, folder / FILES[0])
    assert LAKE_PATHS[ADD_TO_FOLDER].act(folder) == 0
    return BeforeLake(EVENTS.read_bytes(), (folder / FILES[0]).read_bytes())
