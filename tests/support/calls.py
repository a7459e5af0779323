"""Commands called in this process, and what they print."""

from __future__ import annotations

import pytest

from sbbf_tool.cli import run


def call(capture: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, and what it alone prints to standard output and
    error."""
    capture.readouterr()
    return run(list(map(str, words))), *capture.readouterr()


def outcome(capture: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Run a command; return its exit code and all that it prints."""
    code, *printed = call(capture, *words)
    return code, "".join(printed)
