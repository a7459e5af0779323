"""Links to folders in a lake: no command follows them, all report them, and no value is absent
because of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.cli import run
from sbbf_tool.reports.rows import LINK
from support.tables import each
from support.three_files import VALUE, WITH, WITHOUT


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with a file that does not hold VALUE, and a link to a folder with a file that holds
    it."""
    for name, content in (("lake/day=1/a.parquet", WITHOUT), ("elsewhere/b.parquet", WITH)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "lake" / "day=2").symlink_to("../elsewhere")
    return tmp_path / "lake"


@each("command", ["probe", "explain"])
def test_a_value_behind_a_link_is_not_absent(
    lake: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(lake), "id", str(VALUE)]) == 0
    assert "1 link" in capfd.readouterr().out
    if command == "probe":
        assert run([command, str(lake), "id", str(VALUE), "--format", "names"]) == 0
        assert capfd.readouterr() == ("", f"sbbf: warning: {lake}/day=2: {LINK}\n")
    (lake / "day=2").unlink()
    assert run([command, str(lake), "id", str(VALUE)]) == 1
    assert run([command, f"{lake.parent}/elsewhere", "id", str(VALUE)]) == 0


def test_a_link_that_is_named_is_followed(lake: Path) -> None:
    assert run(["probe", str(lake / "day=2"), "id", str(VALUE)]) == 0
    assert run(["probe", f"{lake}/day=*", "id", str(VALUE)]) == 0
    assert run(["probe", f"{lake}/day=2/*.parquet", "id", "5"]) == 1


def test_advise_reads_the_other_files(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", str(lake)]) == 0
    assert "1 row group" in capfd.readouterr().out
