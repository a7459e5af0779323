"""The assertion that an operation is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool import RefusedError, SbbfError, UnreadableError, UsageError
from support.samples import listing

CODES = {RefusedError: 4, UsageError: 2, UnreadableError: 3}


def assert_refused(
    work: Callable[[], object], folder: Path, *, message: str, hint: str, place: str | None = None, error: type[SbbfError] = RefusedError
) -> None:
    """Assert that `work` raises this error and leaves every file of the folder unchanged."""
    before = listing(folder)
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    assert caught.value.exit_code == next(code for kind, code in CODES.items() if issubclass(error, kind))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert place is None or caught.value.place == place
    assert caught.value.file
    assert listing(folder) == before
