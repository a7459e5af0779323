"""What the recipe for GitHub runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cookbook.ci_runner import Runner
from support.environments import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def runner(wheel: Path, tmp_path: Path) -> Runner:
    return Runner(tmp_path, wheel)
