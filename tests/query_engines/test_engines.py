"""The table of engines is valid, complete and consistent, and gives no warning for the common
types."""

from __future__ import annotations

import copy
import itertools
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column
from sbbf_tool.parquet.logical import Logical
from sbbf_tool.query_engines import table as module
from sbbf_tool.query_engines import uses
from sbbf_tool.query_engines.runs import read_runs
from sbbf_tool.query_engines.table import parse_table
from sbbf_tool.query_engines.uses import list_warnings
from sbbf_tool.query_engines.verdicts import find_family, list_verdicts
from sbbf_tool.verbs.engines import engines
from support.tables import each

TABLE = Path(module.__file__).with_name("engines.toml")

WIDTHS = (1, 2, 4, 8, 9, 12, 16, 17, 21, 32)
UNITS = ("", "MILLIS", "MICROS", "NANOS")
PLAIN_KINDS = (
    "STRING",
    "ENUM",
    "DATE",
    "UNKNOWN",
    "JSON",
    "BSON",
    "UUID",
    "FLOAT16",
    "INTERVAL",
    "GEOMETRY",
    "GEOGRAPHY",
)
LOGICAL = [
    None,
    *(Logical(kind) for kind in PLAIN_KINDS),
    *(
        Logical("INT", bits=bits, signed=signed)
        for bits in (0, 8, 16, 32, 64)
        for signed in (True, False)
    ),
    *(
        Logical(kind, unit=unit, utc=utc)
        for kind in ("TIME", "TIMESTAMP")
        for unit in UNITS
        for utc in (True, False)
    ),
    *(
        Logical("DECIMAL", precision=digits, scale=0)
        for digits in (0, 1, 9, 10, 18, 19, 36, 37, 38, 39, 76, 1000)
    ),
]


def column(
    physical: str,
    logical: Logical | None = None,
    *,
    length: int = 0,
    path: tuple[str, ...] = ("c",),
    repeated: int = 0,
) -> Column:
    return Column(
        0, path, path, physical, length, logical, max_definition=1, max_repetition=repeated
    )


STRING = column("BYTE_ARRAY", Logical("STRING"))


def all_columns():
    """Yield columns of every physical type with every logical type, valid or not, at every place in
    a schema."""
    places = (
        (("c",), 0),
        (("s", "c"), 0),
        (("m", "key_value", "value"), 1),
        (("l", "list", "element"), 1),
        (("l", "list", "element", "x"), 2),
    )
    for physical, logical, (path, repeated) in itertools.product(PHYSICAL_TYPES, LOGICAL, places):
        for length in WIDTHS if physical == "FIXED_LEN_BYTE_ARRAY" else (0,):
            yield column(physical, logical, length=length, path=path, repeated=repeated)


def verdict_of(name: str, of: Column, **facts):
    (verdict,) = [verdict for verdict in list_verdicts(of, **facts) if verdict.engine == name]
    return verdict


class TestData:
    """Rules that every row of the table obeys."""

    def test_a_table_that_breaks_a_rule_is_rejected(self):
        def broken(change):
            data = tomllib.loads(TABLE.read_text())
            change(data["engine"])
            return data

        rows = [
            {"on": ["flaot"]}, {"verdict": "maybe"}, {"verdict": "harm"},
            {"verdict": "harm", "effect": "loses rows"},
            {"verdict": "harm", "effect": "explodes", "fix": "run"}, {"fix": "run"},
            {"until": "1.0"}, {"source": "a friend"},
            {"evidence": "hearsay"},
        ]  # fmt: skip
        twice = {"on": ["int32"], "verdict": "unused", "explanation": "No longer."}
        for change, message in [
            *(
                (lambda engines, row=row: engines[0]["row"][0].update(row), r"family|rule")
                for row in rows
            ),
            (lambda engines: engines[0]["row"].append(twice), "two rows on int32"),
            *(
                (lambda engines, fact=fact: engines[0].update(fact), "parquet-java")
                for fact in ({"places": ["attic"]}, {"places": []}, {"evidence": "hearsay"})
            ),
            (lambda engines: engines.append(copy.deepcopy(engines[0])), "duplicate id"),
            (lambda engines: engines[0].update(colour="red"), "colour"),
        ]:
            with pytest.raises((ValueError, TypeError), match=message):
                parse_table(broken(change), read_runs())


class TestCompleteness:
    def test_every_column_gets_one_verdict_from_every_engine(self):
        engine_ids = [item.id for item in engines().engines]
        for item in all_columns():
            verdicts = list_verdicts(item)
            assert [verdict.engine for verdict in verdicts] == engine_ids
            assert {verdict.family for verdict in verdicts} == {find_family(item).id}
        assert {find_family(column).id for column in all_columns()} == {
            family.id for family in engines().families
        }


class TestVerdicts:
    @each(
        "name, bitset_bytes, verdict, effect",
        [
            ("impala", 32, "harm", "loses rows"),
            ("impala", 64, "used", None),
            ("impala", 96, "harm", "loses rows"),
            ("clickhouse", 1000, "harm", "fails"),
            ("clickhouse", 96, "used", None),
            ("trino", 256 << 20, "harm", "fails"),
            ("spark", 256 << 20, "unused", None),
            ("hyparquet", 1000, "unused", None),
            ("duckdb", 32, "used", None),
        ],
    )
    def test_the_size_of_a_bitset_decides_the_verdict(self, name, bitset_bytes, verdict, effect):
        engine_verdict = verdict_of(name, STRING, bitset_bytes=bitset_bytes)
        assert (engine_verdict.verdict, engine_verdict.effect) == (verdict, effect)
        assert (f"{bitset_bytes:,}" in engine_verdict.explanation) == (verdict != "used")


class TestWarnings:
    def test_the_shortcut_for_plain_types_hides_no_warning(self, monkeypatch):
        """The shortcut for plain types agrees with the table."""
        plain = [
            leaf
            for leaf in all_columns()
            if leaf.type_name in uses._PLAIN_TYPES and not leaf.max_repetition
        ]
        assert len({leaf.type_name for leaf in plain}) == len(uses._PLAIN_TYPES)
        monkeypatch.setattr(uses, "_PLAIN_TYPES", frozenset())
        assert [warning for leaf in plain for warning in list_warnings(leaf)] == []
        assert list_warnings(STRING) == list_warnings(column("INT32", Logical("DATE"))) == []

    def test_harm_is_said_once_and_before_no_use(self):
        (warning,) = list_warnings(
            column("FIXED_LEN_BYTE_ARRAY", Logical("FLOAT16"), length=2), ("duckdb-1.5.2",)
        )
        assert warning.startswith("DuckDB loses rows")


@each("stored", ["", "AAAA", "not base64!", "/////w==", "Grüße"])
def test_a_damaged_arrow_schema_gives_no_type(tmp_path, stored):
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.arrow_schema import arrow_type
    from sbbf_tool.parquet.idl.ttypes import KeyValue

    pq.write_table(pa.table({"key": pa.array([bytes(16)], pa.binary(16))}), tmp_path / "a.parquet")
    with ParquetFile.open(tmp_path / "a.parquet") as file:
        assert arrow_type(file.footer, file.footer.columns[0]) == "fixed_size_binary[16]"
        file.footer.metadata.key_value_metadata = [KeyValue("ARROW:schema", stored)]
        assert arrow_type(file.footer, file.footer.columns[0]) is None
