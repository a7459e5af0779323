"""`--engines`, and `engines` in a configuration file: advice, warnings and rules of efficiency are
about these engines alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a file whose chunks are all dictionary-encoded, and with a column of FLOAT16."""
    monkeypatch.chdir(tmp_path)
    ids = np.repeat(np.arange(4000) * 7919 % 100_003, 3)
    table = pa.table({"id": ids, "half": np.arange(len(ids)).astype(np.float16)})
    pq.write_table(table, "a.parquet", row_group_size=4000)


def output_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(list(arguments))
    out, err = capfd.readouterr()
    return f"{code}\n{out}{err}"


def test_one_key_is_for_all_commands(capfd):
    asked = (
        ["advise", "a.parquet"],
        ["explain", "a.parquet", "id", "5"],
        ["check", "a.parquet"],
        ["inspect", "a.parquet"],
    )
    assert run(["add-filter", "a.parquet", "-c", "id", "-c", "half", "--in-place", "--quiet"]) == 0
    before = {arguments[0]: output_of(capfd, *arguments) for arguments in asked}
    named = {
        arguments[0]: output_of(capfd, *arguments, "--engines", "spark, trino")
        for arguments in asked
    }
    Path("sbbf.toml").write_text('engines = ["spark", "trino"]\n[inspect]\n')
    assert {arguments[0]: output_of(capfd, *arguments) for arguments in asked} == named
    assert "DuckDB" in before["explain"]
    assert "DuckDB" not in named["explain"]
    assert "DuckDB loses rows" in before["inspect"]
    assert "DuckDB" not in named["inspect"]
    assert "harmful-to-engine" in before["check"]
    assert "harmful-to-engine" not in named["check"]
    assert "column id, row groups 0-2: all its pages are dictionary" in named["check"]
    assert "column id, row groups 0-2: all" not in before["check"]
    assert "use the dictionary instead of a filter" in named["advise"]
    # Rules of correctness do not depend on it.
    Path("sbbf.toml").write_text("")
    Path("half.toml").write_text('engines = ["spark"]\n[check]\nselect = ["correctness"]\n')
    assert "0 failed" in output_of(capfd, "check", "a.parquet", "--config", "half.toml")


def test_the_advice_of_add_filter_is_for_them_too(capfd):
    assert "no column deserves a filter" in output_of(
        capfd, "add-filter", "a.parquet", "--advise", "--engines", "spark", "--dry-run"
    )
    assert "Would add at most 3 filters" in output_of(
        capfd, "add-filter", "a.parquet", "--advise", "--engines", "duckdb", "--dry-run"
    )


def test_a_dry_run_says_what_only_the_values_show(capfd):
    note = "note: filters of this size may be refused"
    for words, is_limited in (((), False), (("--max-bytes", "64"), True), (("--ndv", "5"), True)):
        assert (
            note in output_of(capfd, "add-filter", "a.parquet", "-c", "id", "--dry-run", *words)
        ) == is_limited


def test_a_filter_that_harms_a_named_engine_is_refused(capfd):
    before = Path("a.parquet").read_bytes()
    Path("sbbf.toml").write_text(
        'engines = ["duckdb"]\n[[filters]]\npaths = "**"\ncolumns = ["half"]\n'
    )
    reason = "a.parquet: column half: DuckDB loses rows"
    for words in (
        ["add-filter", "-c", "half", "--dry-run"],
        ["add-filter", "-c", "half", "--in-place"],
        ["apply", "--in-place"],
    ):
        text = output_of(capfd, words[0], "a.parquet", *words[1:])
        assert text.startswith("4\n")
        assert f"{reason}: " in text
        assert "; leave the column out, or name only engines" in text
    assert "half" not in output_of(capfd, "add-filter", "a.parquet", "--advise", "--dry-run")
    assert Path("a.parquet").read_bytes() == before
    assert output_of(
        capfd, "add-filter", "a.parquet", "-c", "half", "--in-place", "--engines", "all"
    ).startswith("0\n")
    assert "a.parquet: error: harmful-to-engine" in (
        text := output_of(capfd, "check", "a.parquet", "--ignore", "policy")
    )
    assert text.startswith("1\n")


def test_a_quiet_change_still_warns_of_lost_rows(capfd):
    text = "column half: DuckDB loses rows"
    assert text in output_of(capfd, "add-filter", "a.parquet", "-c", "half", "--dry-run", "--quiet")
    assert text not in output_of(
        capfd, "add-filter", "a.parquet", "-c", "half", "--dry-run", "--quiet", "--engines", "spark"
    )


def test_all_is_every_engine_and_overrides_the_file(capfd):
    rest = ["explain", "a.parquet", "id", "5"]
    everything = output_of(capfd, *rest)
    Path("sbbf.toml").write_text('engines = ["duckdb"]\n')
    assert output_of(capfd, *rest) != everything
    assert output_of(capfd, *rest, "--engines", "all") == everything
    Path("sbbf.toml").write_text('engines = ["all"]\n')
    assert output_of(capfd, *rest) == everything
    Path("sbbf.toml").write_text("engines = []\n")
    assert (
        "engines must be a list of strings with at least one name, such as all, not []"
        in output_of(capfd, *rest)
    )
