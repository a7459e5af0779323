"""`open_files`: each verb yields what the function of that name returns or raises, per file and in order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import sbbf_tool
from sbbf_tool import RefusedError, SbbfError, UnreadableError, UsageError, open_files
from sbbf_tool.errors import MissingError
from sbbf_tool.runner import local
from support.lakes import MIXED, digests, mixed, partitioned, small_files
from support.tables import each

VERBS: dict[str, tuple[tuple[object, ...], dict[str, Any]]] = {
    "inspect": ((), {}),
    "probe": (("id", [7, None]), {}),
    "explain": (("id", 7), {}),
    "verify": ((), {}),
    "check": ((), {}),
    "add_filters": ((["id", "name"],), {"in_place": True}),
    "resize_filters": ((), {"num_bytes": 64, "in_place": True, "force": True}),
    "repair": ((), {"in_place": True}),
    "remove_filters": ((), {"in_place": True}),
}


@pytest.fixture(params=["here", "processes"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Good, broken and refused files, which this process works on, or others."""
    if request.param == "processes":
        monkeypatch.setattr(local, "_FILES_WITHOUT_PROCESSES", 1)
    return mixed(tmp_path / "lake")


def outcome_of(function: Callable[..., object], path: str, arguments: tuple[object, ...], options: dict[str, Any]) -> object:
    try:
        return function(path, *arguments, **options)
    except SbbfError as error:
        return error


def comparable(outcome: object) -> object:
    """An error as its exit code and text; a report as it is. Rows of processes do not have the exact type of an error."""
    return (outcome.exit_code, str(outcome)) if isinstance(outcome, SbbfError) else outcome


@each("verb", list(VERBS))
def test_each_file_yields_its_report_or_its_error(lake, verb):
    arguments, options = VERBS[verb]
    original = shutil.copytree(lake, lake.parent / "original")
    paths = [str(lake / f"{name}.parquet") for name in sorted(MIXED)]
    expected = [comparable(outcome_of(getattr(sbbf_tool, verb), path, arguments, options)) for path in paths]
    new_digests = digests(lake)
    shutil.rmtree(lake)
    shutil.copytree(original, lake)

    rows = list(getattr(open_files(lake, jobs=2), verb)(*arguments, **options, strict=True))
    assert [comparable(row) for row in rows] == expected
    assert digests(lake) == new_digests
    reports = [row for row in rows if not isinstance(row, SbbfError)]
    assert {row.file for row in reports} >= {str(lake / "half-filtered.parquet")}
    errors = {Path(row.file or "").stem: row for row in rows if isinstance(row, SbbfError)}
    assert isinstance(errors["broken"], UnreadableError)
    assert isinstance(errors["encrypted"], RefusedError)


def test_files_that_are_not_there_are_errors_of_theirs(tmp_path):
    good, vanished = small_files(tmp_path / "lake", 1) / "part-00000.parquet", tmp_path / "gone.parquet"
    rows = list(open_files([vanished, good, str(vanished)]).inspect())
    assert [type(row).__name__ for row in rows] == ["MissingError", "InspectReport", "MissingError"]
    assert str(rows[0]) == f"{vanished}: no such file or directory"


def test_partitions_are_chosen(tmp_path):
    lake = partitioned(tmp_path / "lake")
    rows = open_files(str(lake), "dt >= '2026-01-02' and region = 'eu'").inspect()
    assert [row.file for row in rows] == [f"{lake}/dt=2026-01-0{day}/region=eu/part-00000.parquet" for day in (2, 3)]
    with pytest.raises(UsageError, match="no partition column 'regoin'"):
        list(open_files(lake, where="regoin = 'eu'").inspect())
    with pytest.raises(UsageError, match="cannot parse"):
        open_files(lake, where="dt >")


def test_files_are_processed_as_they_are_consumed(tmp_path):
    """Nothing is done before, and little ahead; each verb has all files, also of an iterator."""
    path = small_files(tmp_path / "lake", 1) / "part-00000.parquet"
    files = open_files((path for _ in range(10_000)), jobs=1)
    for _ in range(2):
        reports = files.inspect()
        assert next(reports) == sbbf_tool.inspect(path)
        content = path.read_bytes()
        path.unlink()
        assert isinstance(list(islice(reports, 100))[-1], MissingError)
        reports.close()  # type: ignore[attr-defined]
        path.write_bytes(content)
