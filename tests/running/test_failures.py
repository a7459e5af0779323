"""Errors become rows of their files, but an interrupt ends the run, also one that Python wraps
while it imports a module."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from running.calls import Call
from sbbf_tool.errors import INTERNAL_ERROR, UnreadableError
from sbbf_tool.file.context import Context
from sbbf_tool.reports.rows import FAILED
from sbbf_tool.running.work import Work
from support.tables import each


def chain(error: BaseException, *wrappers: Exception) -> Callable[[str], object]:
    """Return work that raises `error` as the cause of the first wrapper, which is the cause of the
    next."""

    def work(path: str) -> object:
        cause = error
        for wrapper in wrappers:
            wrapper.__cause__ = cause
            cause = wrapper
        raise cause

    return work


@each("interrupt", [KeyboardInterrupt(), SystemExit(143)])
@each(
    "wrappers",
    [(), (RuntimeError,), (RuntimeError, ImportError), (ValueError, RuntimeError, ImportError)],
)
def test_an_interrupt_that_errors_wrap_is_an_interrupt(
    interrupt: BaseException, wrappers: tuple[type[Exception], ...]
):
    with pytest.raises(type(interrupt)) as info:
        Work(Call(chain(interrupt, *(wrapper("wrapped") for wrapper in wrappers))), Context())(
            "a.parquet"
        )
    assert info.value is interrupt


@each(
    "error, code",
    [
        (ValueError("odd"), INTERNAL_ERROR),
        (UnreadableError("torn"), UnreadableError.exit_code),
        (MemoryError(), UnreadableError.exit_code),
        (OSError(errno.ENOMEM, "no memory"), UnreadableError.exit_code),
        (ImportError(f"lib.so: {os.strerror(errno.ENOMEM)}"), UnreadableError.exit_code),
        (ImportError("lib.so: no such file"), INTERNAL_ERROR),
    ],
)
def test_an_error_with_causes_is_a_row(error: Exception, code: int):
    row = Work(Call(chain(OSError("cause"), error)), Context())("a.parquet")
    assert (row.path, row.status, row.exit_code, row.error) == ("a.parquet", FAILED, code, error)


def test_a_circle_of_causes_ends():
    first, second = ValueError("first"), ValueError("second")
    second.__cause__ = first
    row = Work(Call(chain(second, first)), Context())("a.parquet")
    assert (row.status, row.error) == (FAILED, first)
