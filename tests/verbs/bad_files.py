"""What tests of bad files share: that an operation is refused, all operations on one file, one line
on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import (
    RefusedError,
    SbbfError,
    UnreadableError,
    UsageError,
    add_filters,
    inspect,
    probe,
    remove_filters,
)
from sbbf_tool.cli import run
from sbbf_tool.file.own_tail import find_own_tail
from sbbf_tool.file.parquet_file import ParquetFile
from support.samples import listing

CODES = {RefusedError: 4, UsageError: 2, UnreadableError: 3}


def assert_refused(
    work: Callable[[], object],
    folder: Path,
    *,
    message: str,
    hint: str,
    place: str | None = None,
    error: type[SbbfError] = RefusedError,
) -> None:
    """Assert that `work` raises this error and leaves every file of the folder unchanged."""
    before = listing(folder)
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    assert caught.value.exit_code == next(
        code for kind, code in CODES.items() if issubclass(error, kind)
    )
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert place is None or caught.value.place == place
    assert caught.value.file
    assert listing(folder) == before


Outcome = object | SbbfError


def outcome(work: Callable[[], object]) -> Outcome:
    """Return the answer, or the error if it is one of the package's own. Any other error fails the
    test."""
    try:
        return work()
    except SbbfError as error:
        exception = error
    assert exception.message
    assert exception.file, f"an error that names no file: {exception}"
    assert "\n" not in exception.message
    return exception


def ask_everything(
    path: Path, column: str, value: object, columns: Iterable[str] = ()
) -> dict[str, Outcome]:
    """Return the answers of inspect, probe, add and remove. Their output is checked as far as
    possible, and then deleted."""
    answers = {
        "inspect": outcome(lambda: inspect(path, all_chunks=True)),
        "probe": outcome(lambda: probe(path, column, [value, None])),
    }
    changes: dict[str, Callable[[Path], object]] = {
        "add": lambda out: add_filters(path, [column, *columns], output=out, rebuild="all", jobs=1),
        "remove": lambda out: remove_filters(path, output=out),
        "remove one, compact": lambda out: remove_filters(path, [column], output=out, compact=True),
    }
    before = path.read_bytes()
    for name, change in changes.items():
        out = path.with_name("out.parquet")
        answers[name] = outcome(lambda change=change, out=out: change(out))
        if not isinstance(answers[name], SbbfError):
            _check_output(name, path, out)
            os.unlink(out)
        assert sorted(os.listdir(path.parent)) == [path.name]
    assert path.read_bytes() == before
    return answers


def _check_output(name: str, path: Path, out: Path) -> None:
    if name == "add":
        with ParquetFile.open(path) as file:
            start = find_own_tail(file).start
        assert out.read_bytes()[:start] == path.read_bytes()[:start]
    if name == "remove":
        assert inspect(out).filters == ()
    try:
        rows = repr(pq.read_table(path).to_pylist())
    except Exception:
        # pyarrow could not read the file before; whether it can afterwards shows nothing.
        return
    assert repr(pq.read_table(out).to_pylist()) == rows


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "inspect": lambda path: ["inspect", path],
    "probe": lambda path: ["probe", path, "id", "7"],
    "add-filter": lambda path: [
        "add-filter",
        path,
        "-c",
        "id",
        "--rebuild",
        "all",
        "-o",
        f"{path}.out",
    ],
    "remove-filter": lambda path: ["remove-filter", path, "-o", f"{path}.out"],
}


def assert_one_line_and_this_code(capsys, arguments: list[str], exit_code: int) -> str:
    assert run(arguments) == exit_code
    printed, complaint = capsys.readouterr()
    assert complaint.startswith("sbbf: ")
    assert complaint.count("\n") == 1
    assert complaint.endswith("\n")
    assert "Traceback" not in complaint + printed
    assert "internal error" not in complaint
    return complaint
