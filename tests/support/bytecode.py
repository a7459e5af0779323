"""Bytecode for the hundreds of processes that tests start: with PYTHONDONTWRITEBYTECODE each would compile the package again."""

from __future__ import annotations

import compileall
import sys
from py_compile import PycInvalidationMode

import pytest

import sbbf_tool


def pytest_configure(config: pytest.Config) -> None:
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        # Python compares the hash of the source with that in the bytecode, so that an edited module is never run as it was.
        for folder in sbbf_tool.__path__:
            compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
