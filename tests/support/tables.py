"""Tests that walk a table: one case, which reports each row that fails."""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def each(
    names: str, rows: Iterable[Any], *, every: int = 1, heavy: Iterable[Any] = ()
) -> Decorator:
    """Call a test with each row of a table as the arguments `names`, like
    `pytest.mark.parametrize`, but as a single case.

    The rows of `heavy` are another case, which is a heavy test. With `every` the first case has one
    of so many rows, and the heavy one all.

    The rows of a mapping have its keys as names. Each row has its own `monkeypatch`, starts with
    nothing captured, and finds `tmp_path` as the fixtures left it; all rows share the other
    fixtures. A row that is skipped hides no row that fails.
    """
    fields = [name.strip() for name in names.split(",")]
    table = _named(rows)
    tables = {"quick": table[::every], "heavy": table if every > 1 else _named(heavy)}
    assert tables["quick"], "a table without rows tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        assert not hasattr(test, "hypothesis"), "draw the rows with st.sampled_from"
        signature = inspect.signature(test)
        parameters = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if name not in fields
        }
        assert not tables["heavy"] or "rows_of_table" not in parameters, (
            "two tables of a test have heavy rows"
        )

        @functools.wraps(test)
        def walk(*args: Any, request: pytest.FixtureRequest, **fixtures: Any) -> None:
            if "request" in parameters:
                fixtures["request"] = request
            chosen = tables[fixtures.pop("rows_of_table")] if tables["heavy"] else table
            folder = request.node.funcargs.get("tmp_path")
            before = None if folder is None else read_folder(folder)
            errors: list[BaseException] = []
            skips: list[str] = []
            for name, row in chosen:
                values = dict(zip(fields, row if len(fields) > 1 else (row,), strict=True))
                for capture in fixtures.keys() & {"capfd", "capsys", "capfdbinary", "capsysbinary"}:
                    fixtures[capture].readouterr()
                with pytest.MonkeyPatch.context() as patch:
                    own = {"monkeypatch": patch} if "monkeypatch" in fixtures else {}
                    try:
                        test(*args, **{**fixtures, **own}, **values)
                    except pytest.skip.Exception as skip:
                        skips.append(str(skip))
                    except (Exception, pytest.fail.Exception) as error:
                        error.add_note(f"row: {values if name is None else name}")
                        errors.append(error)
                if before is not None:
                    restore_folder(folder, before)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(chosen)} rows", errors)
            if skips:
                pytest.skip(skips[0])

        fixture = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
        rest = [] if "request" in parameters else [fixture]
        if tables["heavy"]:
            rest.append(inspect.Parameter("rows_of_table", inspect.Parameter.KEYWORD_ONLY))
        walk.__signature__ = signature.replace(parameters=[*parameters.values(), *rest])  # type: ignore[attr-defined]
        if not tables["heavy"]:
            return walk
        return pytest.mark.parametrize(
            "rows_of_table", ["quick", pytest.param("heavy", marks=pytest.mark.heavy)]
        )(walk)

    return decorate


def _named(rows: Iterable[Any]) -> list[tuple[object, Any]]:
    return list(rows.items()) if isinstance(rows, Mapping) else [(None, row) for row in rows]


def _entry(path: Path) -> tuple[int, str | bytes | None]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return mode, os.readlink(path)
    return mode, path.read_bytes() if stat.S_ISREG(mode) else None


def read_folder(folder: Path) -> dict[Path, tuple[int, str | bytes | None]]:
    """Return the mode and the content of everything below a folder, folders before what they
    hold."""
    below = [
        Path(parent, name)
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    ]
    return {path: _entry(path) for path in below}


def restore_folder(folder: Path, before: dict[Path, tuple[int, str | bytes | None]]) -> None:
    """Make everything below a folder what `read_folder` returned; folders that are still there stay
    the same."""
    after = read_folder(folder)
    for path in reversed(after):
        kept = before.get(path)
        if kept is None or (
            kept != after[path] and (not stat.S_ISDIR(kept[0]) or not stat.S_ISDIR(after[path][0]))
        ):
            shutil.rmtree(path) if not path.is_symlink() and path.is_dir() else path.unlink()
    for path, (mode, content) in before.items():
        if isinstance(content, str) and not path.is_symlink():
            path.symlink_to(content)
        elif isinstance(content, bytes) and not path.exists():
            path.write_bytes(content)
        elif stat.S_ISDIR(mode):
            path.mkdir(exist_ok=True)
        elif stat.S_ISFIFO(mode) and not path.exists():
            os.mkfifo(path)
        if path.lstat().st_mode != mode:
            path.chmod(stat.S_IMODE(mode))
