"""`sbbf check` as a user and a CI system meet it. What it says of each defect, in each format, is
in tests/golden.

`check --baseline`: known findings do not fail, whatever the form of the report that lists them.

`sbbf rule`, and the examples of the rules, which are those of the golden reports.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool.rules
from sbbf_tool.cli import run
from sbbf_tool.display import to_json
from sbbf_tool.rules.catalog import HARMED_READERS, RULES, all_rules
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
            ("spark-filters", "warning", 0),
            ("spark-filters", "info", 1),
            ("datafusion-one-column", "info", 0),
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
        assert (
            run(
                [
                    "check",
                    str(fixtures / "pyarrow-filters.parquet"),
                    "--config",
                    config,
                    "--format",
                    "json",
                ]
            )
            == 1
        )
        report = json.loads(capfd.readouterr().out)
        assert report["fail_on"] == "warning"
        assert {finding["rule"] for finding in report["findings"]} == {
            "under-64-bytes",
            "fpp-above-limit",
        }
        ran = {outcome["rule"] for outcome in report["rules"] if outcome["outcome"] != "not run"}
        expected = {
            rule.name
            for rule in RULES
            if rule.group in ("format", "policy") and rule.reads < Reads.DATA
        }
        assert ran == expected - {"deviating-filter"}  # no filters are declared


@each(
    "files, fix",
    [
        (1, "fix: sbbf repair lake/0.parquet"),
        (8, "fix: sbbf repair lake/0.parquet"),
        (9, "fix of 9 files in LIST: sbbf repair"),
    ],
)
def test_the_fix_is_for_all_files_that_need_it(files, fix, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    for number in range(files):
        DEFECTS["unreadable-filter"].make(tmp_path / "lake" / f"{number}.parquet")
    assert run(["check", "lake", "--select", "unreadable-filter"]) == 1
    (line,) = (
        line.strip() for line in capfd.readouterr().out.splitlines() if line.startswith("    fix")
    )
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
        assert (
            run(
                [
                    "add-filter",
                    f"lake/{number}.parquet",
                    *(word for name in columns for word in ("-c", name)),
                    "--in-place",
                ]
            )
            == 0
        )
    check = ["check", "lake", "--select", "fpp-above-limit", "--max-fpp", "0.0001"]
    capfd.readouterr()
    assert run(check) == 1
    fixes = [
        line
        for line in capfd.readouterr().out.splitlines()
        if line.startswith("    fix of 1 file: ")
    ]
    assert len(fixes) == 3
    assert [run(shlex.split(line.partition(": sbbf ")[2])) for line in fixes] == [0, 0, 0]
    assert run(check) == 0


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
            assert (
                err == f"sbbf: {baseline} covers {3 if 'a.parquet' in paths[0] else 6} findings\n"
            )


@each("key", ["rule", "column", "file"])
def test_another_rule_column_or_file_still_fails(key, lake, capfd):
    path = lake / save(lake, "json", capfd, "lake/a.parquet")
    document = json.loads(path.read_text())
    for finding in document["findings"]:
        finding[key] = "other"
    path.write_text(json.dumps(document))
    assert run(["check", "lake/a.parquet", "--baseline", path.name]) == 1
    assert "covers 0 findings" in capfd.readouterr().err


@each(
    "text",
    [
        "",
        "{}",
        "[]x",
        "[1]",
        "null",
        '{"schema": "sbbf.check"}',
        "PAR1",
        "PAR1" * 9,
        '{"a": ' * 5000,
        "\udcff",
    ],
)
def test_no_report(text, lake, capfd):
    (lake / "other").write_bytes(os.fsencode(text))
    assert run(["check", "lake", "--baseline", "other"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("sbbf: other: the baseline is not a report of a check")


@each("form", ["json", "parquet"])
def test_a_report_of_another_command(form, lake, capfd):
    assert run(["verify", "lake", "--report", f"saved.{form}"]) == 1
    capfd.readouterr()
    assert run(["check", "lake", "--baseline", f"saved.{form}"]) == 2
    assert capfd.readouterr().err.startswith(
        f"sbbf: saved.{form}: the baseline is not a report of a check"
    )


def test_an_unreadable_file_still_fails(lake, capfd):
    (lake / "lake" / "c.parquet").write_text("not a Parquet file at all")
    baseline = save(lake, "json", capfd, "lake/a.parquet", "lake/b.parquet")
    assert run(["check", "lake", "--baseline", baseline]) == 3


def test_a_baseline_that_others_can_change(lake, capfd):
    baseline = save(lake, "json", capfd)
    Path(baseline).chmod(0o666)
    run(["check", "lake", "--baseline", baseline])
    warning = (
        f"{baseline}: the baseline can be changed by every user, who can thus choose "
        "the findings that are ignored"
    )
    assert warning in capfd.readouterr().err


GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLES = Path(sbbf_tool.rules.__file__).with_name("examples.json")
NAMES = [rule.name for rule in RULES]
ALL_RULES = all_rules()


def golden_example(rule: str) -> dict[str, str | None]:
    report = json.loads((GOLDEN / rule / "expected.json").read_text())
    findings = [finding for finding in report["findings"] if finding["rule"] == rule]
    finding = next((finding for finding in findings if finding["fix"]), findings[0])
    evidence = finding["evidence"][0]
    row_group = "" if evidence["row_group"] is None else f", row group {evidence['row_group']}"
    fix = (
        " ".join(finding["fix"]["command"]).replace(report["file"], "FILE")
        if finding["fix"]
        else None
    )
    place = "" if finding["column"] is None else f"column {finding['column']}{row_group}: "
    return {"example": place + evidence["fact"], "fix": fix}


def test_the_examples_are_those_of_the_golden_reports(request):
    text = (
        to_json(
            {name: golden_example(name) for name in NAMES if (GOLDEN / name).is_dir()}, indent=1
        )
        + "\n"
    )
    if request.config.getoption("--bless"):
        EXAMPLES.write_text(text)
    assert EXAMPLES.read_text() == text


@each("rule", ALL_RULES)
def test_each_rule_is_explained(rule, capfd):
    assert run(["rule", rule.name]) == 0
    out, err = capfd.readouterr()
    heading, message, why, *more = out.splitlines()
    assert (
        heading
        == f"{rule.name}: {rule.severity}, group {rule.group}, reads {rule.reads.name.lower()}"
    )
    assert (message, why, err) == (rule.message, rule.why, "")
    labels = [line.split(" ")[0] for line in more]
    assert labels == [*(["readers:"] if rule.name in HARMED_READERS else []), "example:", "fix:"]


def test_harmed_readers_are_named_by_the_rule():
    assert HARMED_READERS.keys() <= set(NAMES)
    for rule in RULES:
        for reader in HARMED_READERS.get(rule.name, ()):
            assert reader.split(" ")[0] in rule.message + rule.why


def test_without_a_name_all_rules_are_listed(capfd):
    assert run(["rule"]) == 0
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()[1:]] == [
        rule.name for rule in all_rules()
    ]


class TestBaselineOfAnotherFolder:
    """A relative name in a baseline is found from its folder, whatever the working folder is."""

    @each("folder", [".", "reports", "reports/old"])
    def test_it_covers_the_same_files_from_any_folder(self, folder, tmp_path, fixtures, capfd):
        lake = tmp_path / folder.replace("/", "-").replace(".", "here") / "proj/lake"
        lake.mkdir(parents=True)
        shutil.copy(fixtures / "spark-boolean.parquet", lake / "a.parquet")
        proj = lake.parent
        (proj / folder).mkdir(parents=True, exist_ok=True)
        with contextlib.chdir(proj):
            assert run(["check", "lake", "--report", f"{folder}/base.json"]) == 1
        for place, path in ((proj.parent, "proj/lake"), (lake, "a.parquet"), (tmp_path, lake)):
            baseline = os.path.relpath(proj / folder / "base.json", place)
            with contextlib.chdir(place):
                assert run(["check", str(path), "--baseline", baseline]) == 0
        assert "covers 3 findings" in capfd.readouterr().err

    def test_it_covers_no_file_of_the_same_name_elsewhere(self, lake, fixtures):
        assert run(["check", "lake", "--report", "base.json"]) == 1
        other = lake / "elsewhere"
        shutil.copytree(lake / "lake", other / "lake")
        with contextlib.chdir(other):
            assert run(["check", "lake", "--baseline", "../base.json"]) == 1

    def test_one_that_was_moved_covers_what_is_in_the_working_folder(self, lake, tmp_path_factory):
        assert run(["check", "lake", "--report", "base.json"]) == 1
        moved = (lake / "base.json").rename(tmp_path_factory.mktemp("moved") / "base.json")
        assert run(["check", "lake", "--baseline", str(moved)]) == 0
