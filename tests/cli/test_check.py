"""`sbbf check` as a user and a CI system meet it. What it says of each defect, in each format, is in tests/golden."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, resize_filters
from sbbf_tool.cli import run
from sbbf_tool.rules.catalog import RULES
from sbbf_tool.rules.facts import Reads
from support.tables import each

PROJECT = Path(__file__).parent.parent.parent


@pytest.fixture
def lying(fixtures: Path) -> str:
    return str(fixtures / "spark-boolean.parquet")


def findings(out: str) -> list[str]:
    return [finding["rule"] for line in out.splitlines() for finding in json.loads(line)["findings"]]


FILES = ("spark-boolean", "duckdb-defaults", "datafusion-one-column", "events")


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

    def test_the_worst_of_many_files(self, fixtures, tmp_path, capfd):
        (tmp_path / "bad.parquet").write_text("no Parquet file, but long enough")
        assert run(["check", str(fixtures / "*.parquet")]) == 1
        assert capfd.readouterr().out.splitlines()[-1].startswith("28 files: 28 done; 5 errors, ")
        assert run(["check", str(tmp_path), str(fixtures / "spark-boolean.parquet")]) == 3

    @each(
        "options, message",
        [
            (["--select", "missing-lenght"], "did you mean missing-length"),
            (["--ignore", "corectness"], "did you mean correctness"),
            (["--fail-on", "fatal"], "choose from error, warning, info"),
            (["--require", "flagg"], "did you mean flag?"),
            (["--select", "false-negatives", "--quick"], "a quick check does not read the data"),
            (["--max-fpp", "0"], "max fpp must be above 0, not 0.0"),
            (["--max-fpp", "much"], "'much' is not a valid float"),
            (["--min-chunk-bytes", "few"], "write 65536, 64KiB or 1MB"),
            (["--format", "yaml"], "'yaml' is not one of"),
            (["--selct", "correctness"], "--select"),
        ],
    )
    def test_missing_files_never_count_as_sound(self, options, message, lying, capfd):
        assert run(["check", lying, *options]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("sbbf: ")
        assert err.count("\n") == 1
        assert message in err

    def test_without_a_file_there_is_nothing_to_check(self, capfd):
        assert run(["check"]) == 2
        assert "no file was given" in capfd.readouterr().err


class TestOptions:
    def test_limits(self, fixtures, capfd):
        path = str(fixtures / "pyarrow-filters.parquet")
        limits = ["--require", "id", "--max-fpp", "0.0001", "--max-bytes-share", "0.3", "--min-ndv", "50", "--min-chunk-bytes", "400"]
        assert run(["check", path, *limits, "--format", "json", "--ignore", "efficiency", "--ignore", "format"]) == 1
        assert set(findings(capfd.readouterr().out)) == {"fpp-above-limit", "bytes-share-above-limit", "too-few-values", "chunk-too-small"}

    def test_require_in_a_folder_where_only_some_files_have_the_column(self, fixtures, capfd):
        assert run(["check", str(fixtures / "*.parquet"), "--require", "user_id", "--select", "missing-filter", "--format", "json"]) == 1
        *reports, summary = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        assert (summary["schema"], summary["totals"]) == (
            "sbbf.summary",
            {"findings": {"error": 1, "warning": 0, "info": 0}, "files_not_checked": len(reports) - 1},
        )
        facts = {Path(report["file"]).stem: [finding["evidence"][0]["fact"] for finding in report["findings"]] for report in reports}
        (fact,) = facts.pop("events")
        assert fact.startswith("it has no filter")
        assert set(map(len, facts.values())) == {0}
        assert summary["columns"] == [{"name": "user_id", "types": {"INT64": 1}, "missing": len(reports) - 1}]

    def test_list_rules(self, capfd):
        assert run(["check", "--list-rules"]) == 0
        lines = capfd.readouterr().out.splitlines()
        assert lines[0].split() == ["name", "group", "severity", "reads", "message"]
        assert [line.split()[0] for line in lines[1:]] == [rule.name for rule in RULES]
        assert run(["check", "--list-rules", "--format", "json"]) == 0
        (document,) = map(json.loads, capfd.readouterr().out.splitlines())
        assert {rule["name"]: rule["severity"] for rule in document["rules"]} == {rule.name: rule.severity for rule in RULES}
        assert all(rule["why"] for rule in document["rules"])


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

    def test_of_a_pyproject(self, tmp_path, lying):
        config = self.config(tmp_path, '[project]\nname = "x"\n[tool.sbbf.check]\nignore = ["correctness"]\n', "pyproject.toml")
        assert run(["check", lying]) == 1
        assert run(["check", lying, "--config", config]) == 0

    def test_options_go_before_settings(self, tmp_path, lying):
        config = self.config(tmp_path, '[check]\nignore = ["correctness"]\nfail-on = "info"\n')
        assert run(["check", lying, "--config", config]) == 1
        assert run(["check", lying, "--config", config, "--fail-on", "error"]) == 0
        assert run(["check", lying, "--config", config, "--fail-on", "error", "--ignore", "efficiency"]) == 1

    @each(
        "text, message",
        [
            ("[check]\nnope = []", "unknown setting 'nope'; choose from "),
            ("[check]\nreport = 'x.json'", "[check]: --report has no key; give it on the command line"),
            ("[check]\nignroe = []", "unknown setting 'ignroe'; did you mean ignore?"),
            ("[check]\nmax_fpp = 0.1", "unknown setting 'max_fpp'; did you mean max-fpp?"),
            ("[check]\nmax-fpp = '1 %'", "max-fpp must be a number, not '1 %'"),
            ("[check]\nmax-fpp = true", "max-fpp must be a number, not true"),
            ("[check]\nmin-ndv = 1.5", "min-ndv must be an integer, not 1.5"),
            ("[check]\nselect = 'correctness'", "select must be a list of strings, not 'correctness'"),
            ("[check]\nselect = [1]", "select must be a list of strings, not [1]"),
            ("[check]\nquick = 1", "quick must be true or false, not 1"),
            ("[check]\nfail-on = 'never'", "unknown severity 'never'"),
            ("[check]\nignore = ['W3']", "unknown rule 'W3'"),
            ("[chekc]\nquick = true", "no table [check]"),
            ("check = 3", "no table [check]"),
            ("[check", "not TOML"),
        ],
    )
    def test_unknown_settings_are_an_error(self, text, message, tmp_path, lying, capfd):
        assert run(["check", lying, "--config", self.config(tmp_path, text)]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err

    @each(
        "text, message",
        [
            ("[tool.sbbf.chekc]\nquick = true", "[tool.sbbf]: unknown setting 'chekc'; did you mean check?"),
            ("[tool.ruff]\nline-length = 3", "no table [tool.sbbf.check]"),
            ("", "no table [tool.sbbf.check]"),
        ],
    )
    def test_a_pyproject_without_the_table(self, text, message, tmp_path, lying, capfd):
        assert run(["check", lying, "--config", self.config(tmp_path, text, "pyproject.toml")]) == 2
        assert message in capfd.readouterr().err

    def test_a_file_that_is_not_there(self, tmp_path, lying, capfd):
        assert run(["check", lying, "--config", str(tmp_path / "nothere.toml")]) == 2
        assert "no such file" in capfd.readouterr().err


class TestFormats:
    """That other programs can read them."""

    def report_output(self, form: str, fixtures: Path, capfd: pytest.CaptureFixture[str], *more: str) -> str:
        assert run(["check", *(str(fixtures / f"{name}.parquet") for name in FILES), *more, "--format", form]) in (1, 3)
        return capfd.readouterr().out

    def test_sarif_has_what_its_schema_requires(self, fixtures, tmp_path, capfd):
        document = json.loads(self.report_output("sarif", fixtures, capfd, str(tmp_path / "not there")))
        assert document["version"] == "2.1.0"
        (run_,) = document["runs"]
        driver = run_["tool"]["driver"]
        assert driver["name"] == "sbbf"
        ids = [rule["id"] for rule in driver["rules"]]
        assert ids == [rule.name for rule in RULES]
        assert all(rule["shortDescription"]["text"] and rule["fullDescription"]["text"] for rule in driver["rules"])
        assert {result["level"] for result in run_["results"]} == {"error", "warning", "note"}
        for result in run_["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            assert result["message"]["text"]
            (location,) = result["locations"]
            assert location["physicalLocation"]["artifactLocation"]["uri"].endswith(".parquet")
            assert location["physicalLocation"]["region"]["startLine"] == 1
            assert location["logicalLocations"]
        (invocation,) = run_["invocations"]
        assert invocation["executionSuccessful"] is False
        (notification,) = invocation["toolExecutionNotifications"]
        (location,) = notification["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("not%20there")

    def test_sarif_keeps_the_worst_results_and_counts_the_others(self, fixtures, tmp_path, monkeypatch, capfd):
        for number in range(5):
            shutil.copy(fixtures / "spark-boolean.parquet", tmp_path / f"{number}.parquet")

        def levels() -> tuple[list[str], list[str]]:
            assert run(["check", str(tmp_path), "--format", "sarif"]) == 1
            (sarif,) = json.loads(capfd.readouterr().out)["runs"]
            notes = [each["message"]["text"] for each in sarif["invocations"][0]["toolExecutionNotifications"]]
            return [result["level"] for result in sarif["results"]], notes

        all_levels, notes = levels()
        assert ([all_levels.count(level) for level in ("error", "warning", "note")], notes) == ([5, 5, 5], [])
        monkeypatch.setattr("sbbf_tool.cli.formats.sarif.MOST_RESULTS", 4)
        assert levels() == (["error"] * 4, ["11 results and notifications that are no worse are left out: code scanning takes 4"])

    @each("form", ["sarif", "json", "junit"])
    def test_a_document_begins_with_the_first_report(self, form, tmp_path, capfd):
        assert run(["check", "s3://user:word@bucket/a.parquet", "--format", form]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        report = tmp_path / "report"
        assert run(["check", "s3://user:word@bucket/a.parquet", "--format", form, "--report", str(report)]) == 2
        assert not report.exists()

    def test_junit_counts_what_it_lists(self, fixtures, tmp_path, capfd):
        document = ElementTree.fromstring(self.report_output("junit", fixtures, capfd, str(tmp_path / "nothere")))
        suites = document.findall("testsuite")
        assert len(suites) == 5
        for suite in suites:
            for name, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("errors", "testcase/error")):
                assert int(suite.get(name, "")) == len(suite.findall(tag))
            assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
        assert [int(suite.get("failures", "")) for suite in suites] == [1, 0, 0, 0, 0]
        assert [int(suite.get("errors", "")) for suite in suites] == [0, 0, 0, 0, 1]

    def test_github_is_a_command_a_line(self, fixtures, capfd):
        lines = self.report_output("github", fixtures, capfd).splitlines()
        assert {line.split(" ")[0] for line in lines} == {"::error", "::warning", "::notice"}
        assert all(line.count("::") == 2 for line in lines)

    def test_github_shows_no_more_than_ten_of_a_kind(self, fixtures, tmp_path, capfd):
        names = [shutil.copy(fixtures / f"{name}.parquet", tmp_path / f"{at}-{name}.parquet") for at in range(12) for name in FILES]
        assert run(["check", *map(str, names), *(str(tmp_path / f"missing{at}") for at in range(3)), "--format", "github"]) in (1, 3)
        *lines, last = capfd.readouterr().out.splitlines()
        kinds = [line.split(" ")[0] for line in lines]
        assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"] * 9
        assert re.fullmatch(
            r"::notice title=sbbf check::Not shown here: \d+ errors, \d+ warnings, \d+ infos. sbbf check --format markdown .*", last
        )

    def test_markdown_is_a_table_by_rule(self, fixtures, capfd):
        heading, _, header, _, *rows = self.report_output("markdown", fixtures, capfd).splitlines()
        assert re.fullmatch(r"## sbbf check: \d+ errors?, \d+ warnings?, \d+ infos?", heading)
        assert header == "| severity | rule | findings | files | example | fix |"
        severities = [row.split(" | ")[0] for row in rows if row.startswith("| ")]
        assert severities == sorted(severities, key=["| error", "| warning", "| info"].index)

    @each("fail_on, outcome", [("error", "noted"), ("warning", "noted"), ("info", "failed")])
    def test_a_mild_finding_fails_only_if_it_counts(self, fixtures, capfd, fail_on, outcome):
        path = str(fixtures / "duckdb-defaults.parquet")
        code = run(["check", path, "--select", "dictionary-encoded", "--fail-on", fail_on, "--format", "json"])
        report = json.loads(capfd.readouterr().out)
        assert {finding["severity"] for finding in report["findings"]} == {"info"}
        (entry,) = (entry for entry in report["rules"] if entry["rule"] == "dictionary-encoded")
        assert (entry["outcome"], code, report["failed"]) == (outcome, int(outcome == "failed"), outcome == "failed")
        run(["check", path, "--select", "dictionary-encoded", "--fail-on", fail_on])
        counts = "0 noted, 1 failed" if outcome == "failed" else "1 noted, 0 failed"
        assert f"rules: 0 passed, {counts}, " in capfd.readouterr().out

    def test_json_is_a_document_a_line(self, fixtures, capfd):
        *reports, summary = [json.loads(line) for line in self.report_output("json", fixtures, capfd).splitlines()]
        assert [report["failed"] for report in reports] == [True, False, False, False]
        assert (summary["schema"], summary["files"], summary["exit_code"]) == ("sbbf.summary", 4, 1)
        assert set(reports[0]) == {
            *("schema", "version", "file", "failed", "fail_on", "rules", "findings", "unreadable", "named_columns", "locked_columns")
        }
        assert set(reports[0]["rules"][0]) == {"rule", "severity", "outcome", "reason"}

    @each("form", ["table", "markdown", "csv", "json", "junit", "sarif", "github"])
    def test_names_that_are_hard_to_write(self, form, lying, tmp_path, capfd):
        """Control characters, what XML and URIs reserve, and bytes that are no UTF-8."""
        name = "a\x01\nb<&>'\"%,:ü".encode() + b"\xff.parquet"
        shutil.copyfile(lying, bytes(tmp_path) + b"/" + name)
        assert run(["check", str(tmp_path), "--format", form]) == 1
        out, err = capfd.readouterr()
        assert err == ""
        if form == "junit":
            ElementTree.fromstring(out)
        elif form == "sarif":
            (uri,) = {
                result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in json.loads(out)["runs"][0]["results"]
            }
            assert uri.isascii()
            assert uri.endswith("%FF.parquet")
        elif form == "github":
            assert out
            assert all(line.startswith("::") for line in out.splitlines())


def test_pre_commit_runs_a_command_that_is_there(lying, monkeypatch):
    lines = dict(line.removeprefix("- ").strip().split(": ", 1) for line in (PROJECT / ".pre-commit-hooks.yaml").read_text().splitlines())
    assert lines["language"] == "python"
    program, *arguments = lines["entry"].split()
    assert program in tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]
    assert run([*arguments, lying]) == 1


@each("arguments", [["check", "--config", "/dev/zero"], ["probe", "id", "--values-file", "/dev/zero"]])
def test_a_side_file_without_end_is_an_error(fixtures, arguments, capfd):
    command, *rest = arguments
    assert run([command, str(fixtures / "pyarrow-filters.parquet"), *rest]) == 2
    assert "bytes" in capfd.readouterr().err


def test_files_on_which_no_rule_ran_are_named(fixtures, capfd):
    plain, filtered = (str(fixtures / name) for name in ("pyarrow-plain.parquet", "pyarrow-filters.parquet"))
    run(["check", plain, filtered, "--no-config"])
    assert f"no rule ran on 1 file ({plain}): the file has no filter" in capfd.readouterr().out.splitlines()


def test_a_fix_shrinks_filters_or_is_not_offered(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"exact": pa.array(range(1000), pa.int32()), "large": pa.array(range(1000), pa.int64())})
    pq.write_table(table, "file.parquet", use_dictionary=False, compression="none")
    add_filters("file.parquet", ["exact"], fpp=0.01, in_place=True)
    add_filters("file.parquet", ["large"], fpp=0.0001, in_place=True)
    assert run(["check", "file.parquet", "--select", "large-for-chunk", "--no-config"]) == 0
    *_, fix, rest, _ = capfd.readouterr().out.splitlines()
    assert fix == "    fix: sbbf resize file.parquet -c large --fpp 0.01 --in-place"
    assert rest == "    no fix for column exact"
    assert [row.column for row in resize_filters("file.parquet", fpp=0.01, dry_run=True).filters] == ["large"]
