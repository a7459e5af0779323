"""`apply`: the comparison of a file with declared filters, the change that makes it so, and that a
second one does nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sbbf_tool import FilterSpec, Limits, Policy, UsageError, add_filters, apply, check, verify
from sbbf_tool.verbs.apply import ApplyReport
from support.samples import places, write_column, write_events
from support.tables import each


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events.parquet")


def policy(*declarations: FilterSpec) -> Policy:
    return Policy(Limits(filters=declarations))


def counts(report: ApplyReport) -> dict[str, dict[str, int]]:
    """Return the counts of each column that are not 0."""
    kinds = ("satisfied", "missing", "weaker", "too_large", "broken", "undeclared", "limited")
    return {
        column.column: {kind: count for kind in kinds if (count := getattr(column, kind))}
        for column in report.columns
    }


def assert_nothing_to_do(path: Path, policy: Policy) -> None:
    before = path.read_bytes()
    report = apply(path, policy, in_place=True)
    assert report.holds
    assert (report.filters, report.removals, report.data_bytes, report.estimated_seconds) == (
        (),
        (),
        0,
        0,
    )
    assert path.read_bytes() == before
    assert not [
        finding for finding in check(path, policy).findings if finding.rule == "deviating-filter"
    ]


def test_every_kind_of_deviation(path: Path):
    add_filters(path, ["id"], fpp=0.3, in_place=True)
    add_filters(path, ["name"], ndv=100_000, in_place=True)
    add_filters(path, ["point.x"], in_place=True)
    before = path.read_bytes()
    declared = policy(FilterSpec(("id", "name", "score", "nowhere")))
    report = apply(path, declared)
    assert not report.holds
    assert counts(report) == {
        "id": {"weaker": 3},
        "name": {"too_large": 3},
        "score": {"missing": 3},
        "point.x": {"undeclared": 3},
    }
    assert [column.name for column in report.named_columns if column.type is None] == ["nowhere"]
    assert report.columns[0].fact is not None
    assert report.columns[0].fact.startswith("fpp ")
    assert report.data_bytes > 0
    assert path.read_bytes() == before
    findings = [
        finding for finding in check(path, declared).findings if finding.rule == "deviating-filter"
    ]
    assert [(finding.column, len(finding.evidence)) for finding in findings] == [
        ("id", 3),
        ("name", 3),
        ("score", 3),
    ]

    dry = apply(path, declared, in_place=True, dry_run=True)
    assert (dry.holds, counts(dry), dry.filters, path.read_bytes()) == (
        False,
        counts(report),
        (),
        before,
    )
    report = apply(path, declared, in_place=True)
    assert (report.holds, len(report.filters), report.removals) == (True, 9, ())
    assert verify(path).is_sound
    assert_nothing_to_do(path, declared)
    assert (0, "point.x") in places(path)


def test_undeclared_filters_are_removed_on_request(path: Path):
    declared = policy(FilterSpec("id"))
    add_filters(path, ["id", "name"], in_place=True)
    assert apply(path, declared).holds
    assert not apply(path, declared, remove_undeclared=True).holds
    report = apply(path, declared, remove_undeclared=True, in_place=True)
    assert (report.holds, report.filters, len(report.removals)) == (True, (), 3)
    assert {name for _, name in places(path)} == {"id"}
    assert apply(path, declared, remove_undeclared=True).holds
    assert verify(path).is_sound
    change = apply(path, policy(FilterSpec("score")), remove_undeclared=True, in_place=True)
    assert (len(change.filters), len(change.removals)) == (3, 3)
    assert {name for _, name in places(path)} == {"score"}
    assert verify(path).is_sound


@each(
    "declaration",
    [
        FilterSpec(("id", "name", "nothing", "tags.list.element"), fpp=1e-5),
        FilterSpec("id", ndv=5),
        FilterSpec(("id", "name"), ndv=100_000),
        FilterSpec(("id", "name"), max_bytes=128),
        FilterSpec(("id", "name"), share_of_data=0.2),
        FilterSpec(("id", "name"), max_bytes=64, share_of_data=0.01, fpp=1e-4),
    ],
)
def test_a_second_run_finds_nothing_to_do(path: Path, declaration: FilterSpec):
    declared = policy(declaration)
    assert apply(path, declared, in_place=True).holds
    assert_nothing_to_do(path, declared)


def test_no_filter_satisfies_where_the_limit_allows_none_that_is_useful(tmp_path: Path):
    """For 5,000 values, 64 bytes exclude nothing; for 5 values in as many rows they do, which only
    the data shows."""
    many = write_column(tmp_path / "many.parquet", pa.array(range(5000)))
    few = write_column(tmp_path / "few.parquet", pa.array([value % 5 for value in range(5000)]))
    declared = policy(FilterSpec("v", max_bytes=64))
    assert counts(apply(many, declared)) == {"v": {"satisfied": 1, "limited": 1}}
    assert_nothing_to_do(many, declared)
    assert counts(apply(few, declared)) == {"v": {"missing": 1}}
    assert len(apply(few, declared, in_place=True).filters) == 1
    assert_nothing_to_do(few, declared)
    # A larger filter is above the limit, and none within it is useful.
    add_filters(many, ["v"], fpp=0.4, in_place=True)
    assert not apply(many, declared).holds
    report = apply(many, declared, in_place=True)
    assert (report.holds, report.filters, len(report.removals)) == (True, (), 1)
    assert_nothing_to_do(many, declared)


def test_a_file_without_a_declaration_is_an_error(path: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="no filters are declared for this file"):
        apply(path, policy(FilterSpec("id", paths="elsewhere/**", folder=str(tmp_path))))
