"""Options of the data source without a Spark: what they mean, and which are refused."""

from __future__ import annotations

import pytest

from sbbf_tool import UsageError
from sbbf_tool.spark.views import Chunks, Findings, parse_options
from support.tables import each


def test_several_paths_come_as_json():
    assert parse_options({"paths": '["/a,b", "/c"]'}).names == ("/a,b", "/c")


@each("name", ["filesPerTask", "filespertask", "files_per_task", "FILESPERTASK"])
def test_names_in_any_case_with_underscores_or_without(name):
    assert parse_options({"path": "/lake", name: "7"}).files_per_task == 7


@each(
    "text, columns",
    [("a,b", ("a", "b")), (" a , b,", ("a", "b")), ('["a", "b,c"]', ("a", "b,c")), ("", ())],
)
def test_lists(text, columns):
    assert parse_options({"path": "/lake", "columns": text}).view == Chunks(columns)


def test_rules_with_their_limits():
    rules = {
        "rules": "true",
        "select": "correctness",
        "quick": "false",
        "maxFpp": "0.5",
        "require": "a,b",
    }
    view = parse_options({"path": "/lake", **rules}).view
    assert isinstance(view, Findings)
    assert view.policy.select == ("correctness",)
    assert (view.policy.limits.max_fpp, view.policy.required) == (0.5, ("a", "b"))
    assert view.reads_data


@each(
    "options, message",
    [
        ({}, "no path was given"),
        ({"path": "/lake", "colunms": "a"}, "did you mean columns"),
        ({"path": "/lake", "recursiveFileLookup": "true"}, "the options are path"),
        ({"path": "/lake", "all": "yes"}, "must be true or false"),
        ({"path": "/lake", "errors": "ignore"}, "must be 'row' or 'fail'"),
        ({"path": "/lake", "filesPerTask": "0"}, "must be a number above 0"),
        ({"path": "/lake", "filesPerTask": "many"}, "must be a number above 0"),
        ({"path": "/lake", "columns": '["a'}, "must be a JSON list of strings"),
        ({"path": "/lake", "columns": "[1]"}, "must be a JSON list of strings"),
        ({"path": "/lake", "select": "correctness"}, "only with option 'rules'"),
        ({"path": "/lake", "maxFpp": "0.1"}, "only with option 'rules'"),
        ({"path": "/lake", "rules": "true", "columns": "a"}, "'columns' does not apply to rules"),
        (
            {"path": "/lake", "paimon": "true", "where": "dt = '1'"},
            "'where' does not apply to Paimon indexes",
        ),
        ({"path": "/lake", "rules": "true", "maxFpp": "-1"}, "must be a number above 0"),
        ({"path": "/lake", "rules": "true", "select": "no-such"}, "unknown rule 'no-such'"),
    ],
)
def test_refused_requests(options, message):
    with pytest.raises(UsageError, match=message):
        parse_options(options)
