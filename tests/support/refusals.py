"""The assertion that an operation is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.errors import NothingToDoError
from support.samples import listing


def assert_refused(
    work: Callable[[], object], folder: Path, *, message: str, hint: str, place: str | None = None, error: type[SbbfError] = RefusedError
) -> None:
    """Assert that `work` raises this error and leaves every file of the folder unchanged."""
    before = listing(folder)
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    assert caught.value.exit_code == {RefusedError: 4, NothingToDoError: 4, UsageError: 2, UnreadableError: 3}[error]
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert place is None or caught.value.place == place
    assert caught.value.file
    assert listing(folder) == before
