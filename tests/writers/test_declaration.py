"""Settings of tables and writers that promise filters, in files of properties, JSON and TOML."""

from __future__ import annotations

import json

import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.writers.declaration import Declaration, parse_declaration, parse_settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"write.parquet.bloom-filter-enabled.column.user.id": "true"}, Declaration(("user.id",))),
        ({"write.parquet.bloom-filter-enabled.column.a": "False"}, Declaration()),
        ({"write.parquet.bloom-filter-fpp.column.a": "0.01", "format-version": "2"}, Declaration()),
        ({"parquet.bloom.filter.enabled#a": "TRUE", "parquet.bloom.filter.enabled#b": "false"}, Declaration(("a",))),
        ({"spark.hadoop.parquet.bloom.filter.enabled#a.b": "true"}, Declaration(("a.b",))),
        ({"parquet.bloom.filter.enabled": "true", "parquet.bloom.filter.enabled#a": "true"}, Declaration(("a",), is_for_all=True)),
        ({"parquet_bloom_filter_columns": "ARRAY['a', 'b']"}, Declaration(("a", "b"))),
        ({"parquet_bloom_filter_columns": '["a"]'}, Declaration(("a",))),
        ({"parquet_bloom_filter_columns": " a,b, "}, Declaration(("a", "b"))),
        ({"file-index.bloom-filter.columns": "a,b"}, Declaration(paimon_columns=("a", "b"))),
    ],
)
def test_settings(settings, expected):
    assert parse_declaration(settings) == expected


@pytest.mark.parametrize("key", ["write.parquet.bloom-filter-enabled.column.a", "parquet.bloom.filter.enabled"])
def test_values_without_a_meaning(key):
    with pytest.raises(UsageError, match="must be true or false, not 'yes'"):
        parse_declaration({key: "yes"})


SETTINGS = {"parquet.bloom.filter.enabled#user_id": "true", "x.y": "1"}


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("# comment\nparquet.bloom.filter.enabled#user_id=true\n! comment\n\nx.y : 1", ".properties"),
        ("parquet.bloom.filter.enabled#user_id   true\nx.y \\\n1", ".conf"),
        (json.dumps(SETTINGS), ".json"),
        ('{"parquet.bloom.filter.enabled#user_id": true, "x": {"y": 1}}', ".json"),
        ('{"format-version": 2, "properties": {"parquet.bloom.filter.enabled#user_id": "true", "x.y": "1"}}', ".json"),
        ('"parquet.bloom.filter.enabled#user_id" = true\nx.y = 1', ".toml"),
        ('[parquet.bloom.filter]\n"enabled#user_id" = true\n[x]\ny = 1', ".toml"),
    ],
)
def test_files(text, suffix):
    assert parse_settings(text, suffix) == SETTINGS


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("{", ".json", "the file is not JSON"),
        ("[" * 100_000, ".json", "the file is not JSON"),
        ("[]", ".json", "must be an object"),
        ('{"a":' * 50 + "1" + "}" * 50, ".json", "nested more than 20 deep"),
        ("a = ", ".toml", "the file is not TOML"),
    ],
)
def test_files_that_are_no_settings(text, suffix, message):
    with pytest.raises(UsageError, match=message):
        parse_settings(text, suffix)


def test_a_list_in_toml():
    assert parse_declaration(parse_settings("parquet_bloom_filter_columns = ['a', 'b']", ".toml")).columns == ("a", "b")
