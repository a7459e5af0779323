"""A folder for small files that Spark needs while this process runs: a script, a configuration, a zip."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


def scratch_folder(name: str) -> Path:
    """Create an empty folder with this name, which is removed when the process ends."""
    folder = _root(os.getpid()) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@cache
def _root(process: int) -> Path:
    """Create the root folder of a process. A forked process gets its own, because the parent removes the parent's folder."""
    folder = tempfile.mkdtemp(prefix="sbbf-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
