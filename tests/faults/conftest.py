"""The files that write paths begin with and end with, made once; a process that is killed again and
again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.failing_system import Killer
from faults.write_paths import WRITE_PATHS, Before, prepare


@pytest.fixture(scope="session")
def befores(tmp_path_factory) -> dict[str, Before]:
    folder = tmp_path_factory.mktemp("before")
    return {name: prepare(path, folder / name) for name, path in WRITE_PATHS.items()}


OTHERS = {
    "add, copied by a thread",
    "remove, with a new footer",
    "repair",
    "repair, rebuilding",
    "resize",
}
"""Write paths that publish by the same calls as `add`."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.heavy] if name in OTHERS else [])
        for name in WRITE_PATHS
    ]
)
def before(request, befores) -> Before:
    """A write path, each in turn."""
    return befores[request.param]


@pytest.fixture(scope="session")
def killer() -> Iterator[Killer]:
    with Killer() as process:
        yield process
