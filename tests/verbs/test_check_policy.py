"""`check`: which rules run, the outcome of each, and what makes a file fail."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import (
    FilterSpec,
    Limits,
    Policy,
    add_filters,
    advise,
    check,
    explain,
    inspect,
)
from sbbf_tool.cli.options import with_options
from sbbf_tool.cli.policy import POLICY_OPTIONS
from sbbf_tool.errors import UsageError
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.rules.catalog import POLICY_NAMES, RULES
from sbbf_tool.rules.facts import Reads
from sbbf_tool.verbs.check import ensure_columns
from support.tables import each


def required(*columns: str) -> Limits:
    return Limits(filters=FilterSpec(columns, judge="existence"))


def outcomes(report: CheckReport) -> dict[str, str]:
    return {outcome.rule: outcome.outcome for outcome in report.rules}


def reason(report: CheckReport, rule: str) -> str | None:
    return next(outcome.reason for outcome in report.rules if outcome.rule == rule)


@pytest.fixture
def lying(fixtures: Path) -> Path:
    return fixtures / "spark-boolean.parquet"


class TestNamesOfOptions:
    """The settings of the command by their names are those of a policy."""

    @each(
        "settings, policy",
        [
            ({"require": ["user_id"]}, Policy(required("user_id"))),
            ({"require": "user_id", "quick": True}, Policy(required("user_id"), quick=True)),
            ({"max_fpp": 0.01}, Policy(Limits(max_fpp=0.01))),
            ({"engines": "duckdb"}, Policy(Limits(engines=("duckdb",)))),
            ({"ignore": "efficiency"}, Policy(ignore=("efficiency",))),
            (
                {"select": ["saturated"], "fail_on": "info", "min_ndv": 5, "strict": False},
                Policy(Limits(min_ndv=5), select=("saturated",), fail_on="info"),
            ),
            (
                {"require": ["country"], "filters": FilterSpec(["user_id"], 0.001)},
                Policy(
                    Limits(
                        filters=(
                            FilterSpec(["country"], judge="existence"),
                            FilterSpec(["user_id"], 0.001),
                        )
                    )
                ),
            ),
        ],
    )
    def test_they_make_the_policy(self, fixtures: Path, settings, policy):
        path = fixtures / "events.parquet"
        assert check(path, **settings) == check(path, policy)

    def test_a_required_column_without_filters_fails(self, fixtures: Path):
        assert check(fixtures / "events.parquet", require=["user_id"]).failed
        assert check(fixtures / "events.parquet", require=["no_such_column"]).failed

    def test_mistakes(self, fixtures: Path):
        path = fixtures / "events.parquet"
        with pytest.raises(UsageError, match="not both: max_fpp"):
            check(path, Policy(), max_fpp=0.5)
        with pytest.raises(UsageError, match="max fpp must be above 0"):
            check(path, max_fpp=2)
        with pytest.raises(TypeError, match="max_fp"):
            check(path, max_fp=0.5)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="rules"):
            check(path, rules=[])  # type: ignore[call-arg]

    def test_every_option_has_its_name(self):
        command = with_options(*POLICY_OPTIONS)(click.command()(lambda **options: None))
        names = {option.name for option in command.params}
        assert names - {"baseline"} <= POLICY_NAMES

    def test_engines_are_named_as_by_the_commands(self, fixtures: Path):
        path = fixtures / "events.parquet"
        for function in (explain, inspect, advise):
            arguments = ("user_id", 5) if function is explain else ()
            by_option = function(path, *arguments, engines=["duckdb"])
            assert by_option == function(path, *arguments, engine_names=["duckdb"])


class TestThreeStates:
    def test_a_file_without_filters_passes_nothing(self, fixtures: Path):
        report = check(fixtures / "events.parquet")
        assert set(outcomes(report).values()) == {"not run"}
        assert reason(report, "false-negatives") == "the file has no filter"
        assert not report.failed

    def test_quick_skips_rules_that_read_data(self, lying: Path):
        report = check(lying, Policy(quick=True))
        slow = {rule.name for rule in RULES if rule.reads is Reads.DATA}
        assert {rule for rule in slow if outcomes(report)[rule] == "not run"} == slow
        assert outcomes(report)["empty-boolean-filter"] == "failed"

    def test_what_cannot_be_read_does_not_pass(self, tmp_path: Path):
        path = tmp_path / "gone.parquet"
        pq.write_table(pa.table({"c": range(100), "d": range(100)}), path)
        add_filters(path, ["c", "d"], in_place=True)
        filters = [row.offset for row in inspect(path).filters]
        data = bytearray(path.read_bytes())
        data[filters[0]] = 0
        path.write_bytes(data)
        report = check(path)
        assert outcomes(report)["unreadable-filter"] == "failed"
        assert (outcomes(report)["saturated"], reason(report, "saturated")) == (
            "passed",
            "1 of 2 filters could not be checked",
        )
        data[filters[1]] = 0
        path.write_bytes(data)
        assert outcomes(check(path))["saturated"] == "not run"


class TestRequired:
    def test_filters_of_every_row_group_are_queried(self, fixtures: Path):
        policy = Policy(required("mixed"), select=("missing-filter",))
        (finding,) = check(fixtures / "duckdb-some-row-groups.parquet", policy).findings
        assert [evidence.row_group for evidence in finding.evidence] == [2, 3]

    def test_a_column_that_no_file_has_is_an_error(self, fixtures: Path):
        policy = Policy(required("user_idd"))
        names = [
            str(fixtures / "spark-boolean.parquet"),
            str(fixtures / "events.parquet"),
            str(fixtures / "nothere.parquet"),
        ]
        with pytest.raises(UsageError, match=r"spark-boolean.*no column 'user_idd'"):
            ensure_columns(names, policy)
        with pytest.raises(UsageError, match="did you mean user_id"):
            ensure_columns([str(fixtures / "events.parquet")], policy)


def test_a_required_filter_of_a_boolean_column_has_no_fix(fixtures):
    policy = Policy(select=("missing-filter",), limits=required("flag"))
    (finding,) = check(fixtures / "pyarrow-filters.parquet", policy).findings
    assert (finding.rule, finding.fix) == ("missing-filter", None)
