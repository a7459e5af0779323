"""Replace a file by itself with bytes behind it, as commands do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sbbf_tool.storage.local import replace_local
from sbbf_tool.storage.source import LocalSource

OLD = bytes(range(256)) * 1600
NEW = OLD + b"new bytes"


def accept(draft: LocalSource) -> None:
    """Verify nothing."""


def append(
    path: Path,
    target: Path | None = None,
    pieces: Iterable[bytes] = (b"new ", b"bytes"),
    verify: Callable[[LocalSource], object] = accept,
) -> list[str]:
    """Replace `path` by itself with these pieces behind it."""
    with LocalSource(path) as source:
        return replace_local(source, os.fspath(target or path), source.size, pieces, verify)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def failing(code: int) -> Callable[..., None]:
    """Return a function that raises this error of the system."""

    def fail(*arguments: object, **more: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def set_attribute(path: Path, name: str, value: bytes) -> None:
    """Set an extended attribute; skip the test where the system has none."""
    try:
        os.setxattr(path, name, value)
    except (OSError, AttributeError) as error:
        pytest.skip(f"attribute {name} cannot be set here: {error}")
