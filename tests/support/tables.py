"""Tests that walk a table: one case, which reports each row that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest


def each(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each row of a table as the arguments `names`, like `pytest.mark.parametrize`, but as a single case.

    The rows of a mapping have its keys as names. Each row has its own `tmp_path` and `monkeypatch`, and starts with nothing captured;
    all rows share the other fixtures. A row that is skipped hides no row that fails.
    """
    fields = [name.strip() for name in names.split(",")]
    table = list(rows.items()) if isinstance(rows, Mapping) else [(None, row) for row in rows]
    assert table, "a table without rows tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        assert not hasattr(test, "hypothesis"), "draw the rows with st.sampled_from"

        @functools.wraps(test)
        def walk(*args: Any, **fixtures: Any) -> None:
            errors: list[BaseException] = []
            skips: list[str] = []
            for number, (name, row) in enumerate(table):
                values = dict(zip(fields, row if len(fields) > 1 else (row,), strict=True))
                with pytest.MonkeyPatch.context() as patch:
                    try:
                        test(*args, **_of_row(fixtures, number, patch), **values)
                    except pytest.skip.Exception as skip:
                        skips.append(str(skip))
                    except (Exception, pytest.fail.Exception) as error:
                        error.add_note(f"row: {values if name is None else name}")
                        errors.append(error)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(table)} rows", errors)
            if skips:
                pytest.skip(skips[0])

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in fields]
        walk.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return walk

    return decorate


def _of_row(fixtures: dict[str, Any], number: int, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the fixtures of a test with those of this row."""
    own = dict(fixtures)
    if "monkeypatch" in own:
        own["monkeypatch"] = patch
    if "tmp_path" in own:
        own["tmp_path"] = own["tmp_path"] / f"row{number}"
        own["tmp_path"].mkdir()
    for name in own.keys() & {"capfd", "capsys", "capfdbinary", "capsysbinary"}:
        own[name].readouterr()
    return own
