"""The settings that `advise` emits for a writer: their text, what they leave out and why, and the
sizes that writers choose by them."""

from __future__ import annotations

import ast
import re
import tomllib

from sbbf_tool.bloom import sizing
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical
from sbbf_tool.writers.settings import WRITERS, build_settings
from sbbf_tool.writers.writer import FilteredColumn, Request, WriterSettings
from support.tables import each

STRING = Logical("STRING")


def column(
    *path: str,
    physical: str = "BYTE_ARRAY",
    logical: Logical | None = STRING,
    repeated: bool = False,
) -> Column:
    return Column(0, path, path, physical, 0, logical, 1, int(repeated))


def settings(
    writer: str, *columns: Column, ndv: float = 100_000, fpp: float = 0.01, row_groups: int = 3
) -> WriterSettings:
    chosen = tuple(FilteredColumn(each, ndv, 500_000) for each in columns or (column("user_id"),))
    return build_settings(writer, Request(chosen, fpp, ("events/**",), row_groups))


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("#", "--"))]


@each("writer", ["spark", "pyarrow", "polars"])
def test_python_can_be_parsed(writer: str) -> None:
    name = 'o\'x "y" \\ é \u202e\n\x7f'
    program = ast.parse(settings(writer, column(name)).text)
    assert any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and name in node.value
        for node in ast.walk(program)
    )


def test_toml_can_be_parsed() -> None:
    name = 'o\'x "y" \\ é \u202e\n\x7f'
    document = tomllib.loads(
        settings("sbbf", column(name), column("place", "code"), column("a.b")).text
    )
    assert document == {
        "filters": [{"paths": "events/**", "columns": [name, "place.code", "`a.b`"], "fpp": 0.01}]
    }


def test_keys_of_properties_are_escaped() -> None:
    text = settings("parquet-java", *map(column, ("user_id", "a b", "c=d:e", "f\\g"))).text
    keys = re.findall(r"enabled#(.*)=true", text)
    assert keys == ["user_id", r"a\ b", r"c\=d\:e", r"f\\g"]


@each("writer", ["iceberg", "paimon", "trino", "datafusion"])
def test_quotes_in_sql_are_doubled(writer: str) -> None:
    assert "o''x" in settings(writer, column("o'x")).text


@each("writer", [name for name, row in WRITERS.items() if row.uses_formula])
@each("ndv", [1, 5, 20, 48, 1000, 108_000, 109_000, 10_000_000])
@each("fpp", [0.1, 0.01, 0.0001])
def test_writers_choose_the_size_of_the_target(writer: str, ndv: int, fpp: float) -> None:
    emitted = settings(writer, ndv=ndv, fpp=fpp)
    (entry,) = emitted.columns
    assert entry.fpp is not None
    assert entry.bitset_bytes == sizing.formula_bytes(ndv, entry.fpp) == sizing.bytes_for(ndv, fpp)
    assert any("makes up for the formula" in note for note in emitted.notes) == (entry.fpp < fpp)


@each(
    "writer, rest, reason",
    [
        ("datafusion", column("a.b"), "`a.b`: a dot separates"),
        ("datafusion", column("Name"), "Name: names of options are lower case"),
        (
            "datafusion",
            column("tags", "list", "element", repeated=True),
            "tags.list.element: the elements of lists",
        ),
        (
            "iceberg",
            column("tags", "list", "element", repeated=True),
            "tags.list.element: columns in lists",
        ),
        ("trino", column("place", "code"), "place.code: only top-level columns"),
        (
            "trino",
            column("at", physical="INT32", logical=Logical("DATE")),
            "at: Trino writes no filters for INT32 DATE",
        ),
        (
            "trino",
            column("n", physical="INT32", logical=Logical("INT", bits=8)),
            "n: Trino writes no filters for INT32 INT(8,signed)",
        ),
        ("paimon", column("place", "code"), "place.code: only top-level columns"),
        ("paimon", column("a,b"), "a,b: an option cannot name"),
        (
            "paimon",
            column("d", physical="INT32", logical=Logical("DECIMAL", precision=9)),
            "d: Paimon hashes no values of type INT32 DECIMAL",
        ),
    ],
)
def test_columns_that_a_writer_cannot_be_given_are_notes(
    writer: str, rest: Column, reason: str
) -> None:
    emitted = settings(writer, column("user_id"), rest)
    assert [entry.column for entry in emitted.columns] == ["user_id"]
    assert any(note.startswith(f"cannot be set for {reason}") for note in emitted.notes)
    alone = settings(writer, rest)
    assert alone.columns == ()
    assert alone.text.splitlines() == comments(alone.text)


def test_a_name_cannot_end_a_comment() -> None:
    emitted = settings("paimon", column("x,\nDROP TABLE t"))
    assert emitted.text.splitlines() == comments(emitted.text)


def test_duckdb_has_one_rate_for_all_columns() -> None:
    request = Request(
        (FilteredColumn(column("a"), 100_000, 500_000), FilteredColumn(column("b"), 1000, 500_000)),
        0.01,
        ("x",),
        1,
    )
    emitted = build_settings("duckdb", request)
    assert [(entry.fpp, entry.bitset_bytes) for entry in emitted.columns] == [
        (0.005, 262_144),
        (0.005, 2048),
    ]
    assert (
        "BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.005,\n    DICTIONARY_SIZE_LIMIT 131072\n"
        in emitted.text
    )
