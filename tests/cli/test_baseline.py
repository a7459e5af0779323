"""`check --baseline`: known findings do not fail, whatever the form of the report that lists them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.tables import each


@pytest.fixture
def lake(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lake").mkdir()
    for name in ("a", "b"):
        shutil.copy(fixtures / "spark-boolean.parquet", tmp_path / "lake" / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(lake: Path, form: str, capfd: pytest.CaptureFixture[str], *paths: str) -> str:
    """Check, and save the report; return its name."""
    name = f"report.{form}"
    assert run(["check", *(paths or ["lake"]), "--report", name]) in (0, 1)
    capfd.readouterr()
    return name


@pytest.mark.parametrize("form", ["json", "parquet"])
class TestForms:
    def test_all_findings(self, form, lake, capfd):
        baseline = save(lake, form, capfd)
        for paths in (["lake"], ["./lake"], [str(lake / "lake")], ["lake/a.parquet"]):
            assert run(["check", *paths, "--baseline", baseline, "--fail-on", "info"]) == 0
            out, err = capfd.readouterr()
            assert "empty-boolean-filter" not in out
            assert err == f"sbbf: {baseline} covers {3 if 'a.parquet' in paths[0] else 6} findings\n"


@each("key", ["rule", "column", "file"])
def test_another_rule_column_or_file_still_fails(key, lake, capfd):
    path = lake / save(lake, "json", capfd, "lake/a.parquet")
    document = json.loads(path.read_text())
    for finding in document["findings"]:
        finding[key] = "other"
    path.write_text(json.dumps(document))
    assert run(["check", "lake/a.parquet", "--baseline", path.name]) == 1
    assert "covers 0 findings" in capfd.readouterr().err


@each("text", ["", "{}", "[]x", "[1]", "null", '{"schema": "sbbf.check"}', "PAR1", "PAR1" * 9, '{"a": ' * 5000, "\udcff"])
def test_no_report(text, lake, capfd):
    (lake / "other").write_bytes(os.fsencode(text))
    assert run(["check", "lake", "--baseline", "other"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("sbbf: other: the baseline is not a report of sbbf check")


@each("form", ["json", "parquet"])
def test_a_report_of_another_command(form, lake, capfd):
    assert run(["verify", "lake", "--report", f"saved.{form}"]) == 1
    capfd.readouterr()
    assert run(["check", "lake", "--baseline", f"saved.{form}"]) == 2
    assert capfd.readouterr().err.startswith(f"sbbf: saved.{form}: the baseline is not a report of sbbf check")


def test_an_unreadable_file_still_fails(lake, capfd):
    (lake / "lake" / "c.parquet").write_text("not a Parquet file at all")
    baseline = save(lake, "json", capfd, "lake/a.parquet", "lake/b.parquet")
    assert run(["check", "lake", "--baseline", baseline]) == 3


def test_a_baseline_that_others_can_change(lake, capfd):
    baseline = save(lake, "json", capfd)
    Path(baseline).chmod(0o666)
    run(["check", "lake", "--baseline", baseline])
    warning = f"{baseline}: the baseline can be changed by every user, who can thus choose the findings that are ignored"
    assert warning in capfd.readouterr().err
