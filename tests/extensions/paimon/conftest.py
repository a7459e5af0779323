"""What the tests of this room share: files of the local file system, tables to make, and real ones
with known answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from extensions.paimon.paimon_tables import TableMaker
from sbbf_tool.storage.folders import LocalFolders


@pytest.fixture
def files() -> LocalFolders:
    return LocalFolders()


@pytest.fixture
def new_table(tmp_path: Path) -> Callable[..., TableMaker]:
    """Makes an empty table: fields as (name, type), then keys and options."""

    def make(
        fields: Sequence[tuple[str, str]] = (("id", "BIGINT"), ("s", "STRING")),
        name: str = "table",
        **rest: Any,
    ) -> TableMaker:
        return TableMaker(tmp_path / name, fields, **rest)

    return make


@pytest.fixture(scope="session")
def real(conformance: Path) -> Path:
    """The folder with Paimon's own tables and answers."""
    folder = conformance / "paimon"
    if not folder.is_dir():
        pytest.skip("the conformance folder has no Paimon tables")
    return folder


@pytest.fixture(scope="session")
def answers(real: Path) -> dict[str, Any]:
    """What Paimon's Java says of those tables."""
    document: dict[str, Any] = json.loads((real / "answers.json").read_text())
    return document
