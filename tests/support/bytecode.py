"""Bytecode in spite of PYTHONDONTWRITEBYTECODE: hundreds of processes would compile the package
again, and each worker all tests."""

from __future__ import annotations

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import sbbf_tool


def pytest_configure(config: pytest.Config) -> None:
    if not sys.dont_write_bytecode:
        return
    sys.dont_write_bytecode = False  # tests, whose assertions pytest rewrites
    if hasattr(config, "workerinput"):
        return
    for folder in sbbf_tool.__path__:
        for path in Path(folder).rglob("*.py"):
            cached = Path(cache_from_source(str(path)))
            if not cached.exists() or cached.stat().st_mtime < path.stat().st_mtime:
                # Python compares the hash of the source with that in the bytecode, so that an
                # edited module is never run as it was.
                py_compile.compile(
                    str(path),
                    quiet=2,
                    invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
                )
