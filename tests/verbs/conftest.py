"""What tests of several verbs share: a file without filters, and where another may be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.samples import write_events


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events.parquet")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.parquet"
