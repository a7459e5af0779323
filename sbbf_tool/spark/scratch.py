"""A folder for the small files that Spark needs as long as this process lives: a script, a configuration, a zip."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


def scratch_folder(name: str) -> Path:
    """An empty folder of this name, gone when the process ends."""
    folder = _root(os.getpid()) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@cache
def _root(process: int) -> Path:
    """A forked process has its own, since its parent takes away what the parent made."""
    folder = tempfile.mkdtemp(prefix="sbbf-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
