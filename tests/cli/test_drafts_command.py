"""The drafts on the command line: `--dialect`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.draft_files import write_draft


@pytest.fixture
def drafted(fixtures: Path, tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    write_draft(fixtures / "events.parquet", ["user_id"], path, "draft2-page")
    return path


def run_sbbf(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    return code, *capfd.readouterr()


def test_a_parquet_file(drafted, capfd):
    code, out, _ = run_sbbf(capfd, "inspect", str(drafted))
    assert code == 0
    assert out.count("the values of the column match draft2-page") == 1
    assert "row groups 0-2: " in out
    code, out, _ = run_sbbf(capfd, "probe", str(drafted), "user_id", "42")
    assert (code, out.count("cannot say")) == (0, 3)
    code, out, _ = run_sbbf(capfd, "probe", str(drafted), "user_id", "42", "--dialect", "draft2-page")
    assert (code, out.count("absent")) == (1, 3)
    code, out, err = run_sbbf(capfd, "probe", str(drafted), "user_id", "42", "--dialect", "draft3")
    assert (code, out) == (2, "")
    assert err.startswith("sbbf: there is no dialect 'draft3'; the dialects are current, ")
    code, out, _ = run_sbbf(capfd, "verify", str(drafted))
    assert code == 1
    assert out.count("verified, as draft2-page") == 3
    assert "fix: sbbf repair" in out
    assert run_sbbf(capfd, "repair", str(drafted), "--in-place")[0] == 0
    assert run_sbbf(capfd, "verify", str(drafted))[0] == 0
