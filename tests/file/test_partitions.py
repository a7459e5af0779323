"""Partition predicates, as SQL has them, of paths as Hive lays them out."""

from __future__ import annotations

import pickle

import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.file.partitions import Predicate, doubtful_keys, partition_values
from support.tables import each

PATH = (
    "/lake/events/dt=2026-01-31/hour=07/city=S%C3%A3o%20Paulo/"
    "none=__HIVE_DEFAULT_PARTITION__/a=b.parquet"
)


def test_folders_are_columns_and_the_file_is_none():
    assert partition_values(PATH) == {
        "dt": "2026-01-31",
        "hour": "07",
        "city": "São Paulo",
        "none": None,
    }


@each(
    "predicate, accepted",
    [
        ("dt = '2026-01-31'", True),
        ("dt >= '2026-01-01' and dt < '2026-02-01'", True),
        ("dt > DATE '2026-01-31'", False),
        ("hour = 7", True),
        # Readers take `07` for text or for a number.
        ("hour = '7'", True),
        ("hour <> '7'", True),
        ("hour = '8'", False),
        ("hour = '07'", True),
        ("hour != 7.0", False),
        ("hour NOT IN (5, 6, 7)", False),
        ("hour not between 6 and 8", False),
        ("city = 'São Paulo'", True),
        ("\"city\" = 'São Paulo' and `hour` <= 7", True),
        ("city = 'it''s'", False),
        ("none is null", True),
        # Nothing is true of NULL, nor of its negation.
        ("none = 'x'", False),
        ("not none = 'x'", False),
        ("none not in ('x')", False),
        ("none = 'x' or hour = 7", True),
        ("not (none = 'x' and hour = 8)", True),
        ("hour = 7 or hour = 8 and dt = 'never'", True),
        ("(hour = 7 or hour = 8) and dt = 'never'", False),
    ],
)
def test_a_predicate_of_a_path(predicate, accepted):
    parsed_predicate = Predicate(predicate)
    assert parsed_predicate.accepts(PATH) is accepted
    assert pickle.loads(pickle.dumps(parsed_predicate)).accepts(PATH) is accepted


@each("predicate", ["(" * 1000 + "dt = 'a'", "not " * 1000 + "dt = 'a'"])
def test_nesting_has_an_end(predicate):
    """What else cannot be parsed is in cli/mistakes.txt."""
    with pytest.raises(UsageError, match="nested brackets"):
        Predicate(predicate)


def test_an_unknown_column_is_reported_as_an_error():
    with pytest.raises(UsageError, match="no partition column 'hours'; did you mean hour"):
        Predicate("hours = 7").accepts(PATH)
    with pytest.raises(UsageError, match="no column=value folder"):
        Predicate("hour = 7").accepts("/lake/a.parquet")


def test_a_number_is_not_compared_with_text():
    with pytest.raises(UsageError, match="partition city=São Paulo is not a number; write '7'"):
        Predicate("city > 7").accepts(PATH)


TYPED = [
    # type, stored text, predicate of p, and whether it accepts; None if a literal is no value of
    # the type
    ("long", "10", "p >= '9'", True),
    ("int", "10", "p between '9' and '11'", True),
    ("smallint", "10", "p < 9.5", False),
    ("int", "-5", "p < '-10'", False),
    ("int", "10", "p in ('9', '1e1')", True),
    ("int", "10", "p = 'ten'", None),
    ("int", "10", "p = '1_0'", None),
    ("double", "NaN", "p > '1e300'", True),
    ("double", "0.1", "p = 'nan'", False),
    ("string", "10", "p >= '9'", False),
    ("string", "07", "p = 7", True),
    ("date", "2026-01-31", "p >= DATE '2026-01-31'", True),
    ("date", "2026-01-31", "p = 5", None),
    ("date", "2026-01-31", "p = '31.1.2026'", None),
    ("timestamp", "2026-01-01 00:00:00", "p >= '2026-01-01T00:00:00Z'", True),
    ("timestamp", "2026-01-01T00:00:00.000000Z", "p = '2026-01-01'", True),
    ("timestamp_ntz", "2026-01-01 00:00:00.1", "p < '2026-01-01T00:00:00.100000001'", True),
    ("timestamp", "2026-01-01 00:00:00", "p = 'yesterday'", None),
    ("time", "12:30:00", "p >= '09:00'", True),
    ("boolean", "false", "not p = 'False'", False),
    ("boolean", "true", "p = 1", None),
    ("boolean", "true", "p = 'yes'", None),
    (
        "uuid",
        "123e4567-e89b-12d3-a456-426614174000",
        "p = '123E4567E89B12D3A456426614174000'",
        True,
    ),
    # The text of bytes depends on the writer, a value of another type on what it was before:
    # nothing is excluded.
    ("binary", "AAE=", "p = 'a'", True),
    ("binary", "AAE=", "not p = 'a'", True),
    ("variant", "x", "p = 'y'", True),
    ("int", "ten", "p = 5", True),
    ("int", None, "p = 5", False),
    ("int", None, "p = 'x'", None),
]


@each("type_name, stored, predicate, accepted", TYPED)
def test_partitions_of_tables_compare_as_their_type(type_name, stored, predicate, accepted):
    if accepted is None:
        with pytest.raises(UsageError, match=r"partition column p: .* is not a value of type"):
            Predicate(predicate).accepts_values({"p": stored}, types={"p": type_name})
    else:
        assert (
            Predicate(predicate).accepts_values({"p": stored}, types={"p": type_name}) is accepted
        )


@each(
    "path",
    [
        "/l/k=1/k=2/f.parquet",
        "/l/K=1/k=2/f.parquet",
        "/l/k=1/root/k=2/day=5/f.parquet",
        "/l/k=__HIVE_DEFAULT_PARTITION__/k=2/f",
    ],
)
def test_a_key_twice_in_a_path_excludes_nothing(path):
    for predicate in ("k = '1'", "k = 2", "k = 3", "not k = '1'", "k is null"):
        assert Predicate(predicate).accepts(path)
    assert doubtful_keys("/l/k=1/k=1/f.parquet") == set()
    assert not Predicate("k = 2").accepts("/l/k=1/k=1/f.parquet")
