"""Intervals in DuckDB's files: 24 hours are a day and 30 days a month to DuckDB, and so they must
be to a lookup in its files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sbbf_tool import add_filters, explain, probe, prune, remove_filters
from sbbf_tool.errors import RefusedError
from support.tables import each

SPANS = {
    "P1M": "INTERVAL '1 month'",
    "P30D": "INTERVAL '30 days'",
    "P29DT24H": "INTERVAL '29 days 24 hours'",
    "P1D": "INTERVAL '1 day'",
    "PT24H": "INTERVAL '24 hours'",
    "P3Y400DT50H": "INTERVAL '3 years 400 days 50 hours'",
    "P4Y1M12DT2H": "INTERVAL '4 years 1 month 12 days 2 hours'",
    "P0D": "INTERVAL '0 days'",
    "PT1.5S": "INTERVAL '1.5 seconds'",
}
ELSE = {"P77D": "INTERVAL '77 days'", "PT25H": "INTERVAL '25 hours'", "P2M": "INTERVAL '2 months'"}


def write(path: Path, stored: str, *, filters: bool = True, dictionary: bool = True) -> Path:
    """A file of one value, repeated."""
    options = (
        f"FORMAT parquet, WRITE_BLOOM_FILTER {str(filters).lower()}, "
        f"DICTIONARY_SIZE_LIMIT {1000 if dictionary else 0}"
    )
    duckdb.sql(f"COPY (SELECT {SPANS[stored]} AS span FROM range(50)) TO '{path}' ({options})")
    return path


def finds(path: Path, sql: str) -> bool:
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE span = {sql}").fetchall()
    return bool(count)


@pytest.mark.slow
@each("stored", list(SPANS))
def test_in_a_marked_file_probe_finds_what_duckdb_finds(tmp_path: Path, stored: str) -> None:
    path = write(tmp_path / "marked.parquet", stored)
    for writer in ("by DuckDB", "by us"):
        for text, sql in {**SPANS, **ELSE}.items():
            expected = "maybe" if finds(path, sql) else "absent"
            assert (
                probe(path, "span", [text], filters_only=True).values[0].row_groups[0].answer
                == expected
            ), (writer, text)
            assert explain(path, "span", text).row_groups[0].dictionary == expected
            assert bool(prune(path, "span", [text]).files) == (expected == "maybe")
        add_filters(path, ["span"], in_place=True, rebuild="all")


@pytest.mark.slow
@each("dictionary", [True, False])
@each("stored", list(SPANS))
def test_in_an_unmarked_file_of_duckdbs_only_the_dictionary_excludes(
    tmp_path: Path, stored: str, dictionary: bool
) -> None:
    """Its filters hold stored forms alone, and an equal value may be stored in any of many."""
    path = write(tmp_path / "unmarked.parquet", stored, filters=False, dictionary=dictionary)
    add_filters(path, ["span"], in_place=True)
    for text, sql in {**SPANS, **ELSE}.items():
        report = probe(path, "span", [text], filters_only=True)
        (answer,) = report.values[0].row_groups
        assert answer.answer in ("maybe", "cannot say")
        assert answer.answer == "maybe" or "DuckDB compares intervals" in (answer.reason or "")
        assert len(report.inconclusive) == 1
        in_dictionary = explain(path, "span", text).row_groups[0].dictionary
        assert in_dictionary == (
            ("maybe" if finds(path, sql) else "absent") if dictionary else None
        )
        assert (
            probe(path, "span", [text]).is_absent
            == (not prune(path, "span", [text]).files)
            == (in_dictionary == "absent")
        )


def test_the_mark_outlives_its_filters(tmp_path: Path) -> None:
    path = write(tmp_path / "marked.parquet", "P1D")
    remove_filters(path, ["span"], in_place=True)
    add_filters(path, ["span"], in_place=True)
    assert (
        probe(path, "span", ["PT24H"], filters_only=True).values[0].row_groups[0].answer == "maybe"
    )


def test_a_file_marked_with_an_unknown_form_gets_no_filter(tmp_path: Path) -> None:
    """DuckDB would query a new filter for a form that sbbf does not insert."""
    path = write(tmp_path / "marked.parquet", "P1D")
    path.write_bytes(path.read_bytes().replace(b"normalized-v1", b"normalized-v2"))
    content = path.read_bytes()
    with pytest.raises(
        RefusedError, match=r"marks its INTERVAL filters as 'normalized-v2'.*leave the column out"
    ):
        add_filters(path, ["span"], in_place=True, rebuild="all")
    assert path.read_bytes() == content
