"""`sbbf check` as a user and a CI system meet it. What it says of each defect, in each format, is in tests/golden."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool.cli import run
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.facts import Reads
from support.defects import DEFECTS
from support.tables import each


class TestExitCodes:
    @each(
        "name, fail_on, code",
        [
            ("spark-boolean", "error", 1),
            ("duckdb-defaults", None, 0),
            ("duckdb-defaults", "error", 0),
            ("duckdb-defaults", "warning", 1),
            ("datafusion-one-column", "warning", 0),
            ("datafusion-one-column", "info", 1),
            ("events", "info", 0),
        ],
    )
    def test_findings_as_bad_as_that(self, name, fail_on, code, fixtures):
        options = ["--fail-on", fail_on] if fail_on else []
        assert run(["check", str(fixtures / f"{name}.parquet"), *options]) == code


class TestConfig:
    def config(self, tmp_path: Path, text: str, name: str = "sbbf.toml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    def test_every_setting(self, tmp_path, fixtures, capfd):
        config = self.config(
            tmp_path,
            """
            [check]
            require = ["id"]
            max-fpp = 0.0001
            max-bytes-share = 1
            min-ndv = 2
            min-chunk-bytes = 1
            select = ["format", "efficiency"]
            ignore = ["efficiency"]
            quick = true
            fail-on = "warning"
            """,
        )
        assert run(["check", str(fixtures / "pyarrow-filters.parquet"), "--config", config, "--format", "json"]) == 1
        report = json.loads(capfd.readouterr().out)
        assert report["fail_on"] == "warning"
        assert {finding["rule"] for finding in report["findings"]} == {"under-64-bytes", "fpp-above-limit"}
        ran = {outcome["rule"] for outcome in report["rules"] if outcome["outcome"] != "not run"}
        expected = {rule.name for rule in RULES if rule.group in ("format", "policy") and rule.reads < Reads.DATA}
        assert ran == expected - {"deviating-filter"}  # no filters are declared


@each(
    "files, fix",
    [(1, "fix: sbbf repair lake/0.parquet"), (8, "fix: sbbf repair lake/0.parquet"), (9, "fix of 9 files in LIST: sbbf repair")],
)
def test_the_fix_is_for_all_files_that_need_it(files, fix, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    for number in range(files):
        DEFECTS["unreadable-filter"].make(tmp_path / "lake" / f"{number}.parquet")
    assert run(["check", "lake", "--select", "unreadable-filter"]) == 1
    (line,) = (line.strip() for line in capfd.readouterr().out.splitlines() if line.startswith("    fix"))
    assert line.startswith(fix)
    words = shlex.split(line.partition(": sbbf ")[2])
    (tmp_path / "LIST").write_text("".join(f"lake/{number}.parquet\n" for number in range(files)))
    assert run(words) == 0
    assert run(["check", "lake", "--select", "unreadable-filter"]) == 0


def test_every_file_with_a_fix_is_in_a_printed_fix(fixtures, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    names = ["a", "b", "c"]
    for number, columns in enumerate((names, names[:1], names[1:2])):
        pq.write_table(pa.table(dict.fromkeys(names, range(1000))), f"lake/{number}.parquet")
        assert run(["add-filter", f"lake/{number}.parquet", *(word for name in columns for word in ("-c", name)), "--in-place"]) == 0
    check = ["check", "lake", "--select", "fpp-above-limit", "--max-fpp", "0.0001"]
    capfd.readouterr()
    assert run(check) == 1
    fixes = [line for line in capfd.readouterr().out.splitlines() if line.startswith("    fix of 1 file: ")]
    assert len(fixes) == 3
    assert [run(shlex.split(line.partition(": sbbf ")[2])) for line in fixes] == [0, 0, 0]
    assert run(check) == 0
