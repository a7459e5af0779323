"""What `explain` says that an engine reads is what the engine reads."""

from __future__ import annotations

import re
import uuid
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.query_engines import Question
from sbbf_tool import add_filters, explain
from support.newer_pyarrow import arrow_type
from support.tables import each

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten row groups: overlapping ids, sorted ones, and text; some values are there, some are
    not."""
    folder, random = tmp_path_factory.mktemp("explained"), Random(3)
    ids = random.sample(range(0, 10**6, 2), 10_000)
    names = [f"{number * 2654435761 % 2**32:08x}" for number in ids]
    rows = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "in_order": pa.array(sorted(ids), pa.int32()),
            "name": names,
        }
    )
    pq.write_table(rows, folder / "plain.parquet", row_group_size=1000, use_dictionary=False)
    add_filters(folder / "plain.parquet", ["id", "name"], output=folder / "mixed.parquet")
    return folder / "mixed.parquet"


@each("name", ["duckdb", "datafusion"])
def test_engines_read_as_many_row_groups_as_explained(name: str, mixed: Path, engines: Any) -> None:
    rows = pq.read_table(mixed)
    questions = [
        ("id", 500_001),
        ("id", 77),
        ("id", -1),
        ("id", rows["id"][4500].as_py()),
        ("in_order", rows["in_order"][4500].as_py()),
    ]
    questions += [
        ("in_order", 500_001),
        ("name", "0badcafe"),
        ("name", rows["name"][9999].as_py()),
        ("name", "zzz"),
    ]
    explained = [
        explain(mixed, column, value, engine_names=name).engines[0].row_groups_read
        for column, value in questions
    ]
    # Where min and max rule out the whole file, neither so much as counts its row groups.
    scans = [
        engines(name).scan(mixed, Question((column,), (str(value),))) for column, value in questions
    ]
    assert [scan.read for scan in scans] == explained


UUIDS = [uuid.UUID(int=Random(number).getrandbits(128)) for number in range(1000)]
AMOUNTS = [Decimal(number * 7_919_777 % 9_999_991) / 100 for number in range(1, 1001)]
ARROW_TYPES = {
    "arrow.uuid": arrow_type("uuid"),
    "fixed_size_binary": pa.binary(16),
    "decimal32": arrow_type("decimal32", 9, 2),
    "decimal64": arrow_type("decimal64", 16, 2),
    "decimal128": pa.decimal128(9, 2),
    "decimal128 of 30 digits": pa.decimal128(30, 2),
    "decimal256": pa.decimal256(30, 2),
}
UNUSED = {"arrow.uuid", "decimal32", "decimal64", "decimal256"}


@each("as_integers", [False, True])
@each("store_schema", [True, False])
@each("name", list(ARROW_TYPES))
def test_datafusion_takes_columns_for_what_arrow_schema_says(
    tmp_path: Path, name: str, store_schema: bool, as_integers: bool
) -> None:
    from datafusion import SessionConfig, SessionContext

    kind = ARROW_TYPES[name]
    is_binary = name in ("arrow.uuid", "fixed_size_binary")
    values = (
        pa.array([value.bytes for value in UUIDS], pa.binary(16))
        if is_binary
        else pa.array(AMOUNTS, kind)
    )
    column = pa.ExtensionArray.from_storage(kind, values) if name == "arrow.uuid" else values
    path = tmp_path / "a.parquet"
    options = {
        "store_schema": store_schema,
        "store_decimal_as_integer": as_integers,
        "use_dictionary": False,
    }
    pq.write_table(pa.table({"c": column}), path, row_group_size=100, **options)
    add_filters(path, ["c"], fpp=1e-6, in_place=True)

    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_parquet("t", path)
    for at in (3, 512):
        value = UUIDS[at] if is_binary else AMOUNTS[at]
        # DataFusion reads the decimals as this type without ARROW:schema. With a wider literal it
        # would not query the filter.
        cast = "Decimal256" if name == "decimal256" and store_schema else "Decimal128"
        literal = (
            f"X'{UUIDS[at].hex}'"
            if is_binary
            else f"arrow_cast('{value}', '{cast}({getattr(kind, 'precision', 0)}, 2)')"
        )
        plan = str(
            context.sql(f"EXPLAIN ANALYZE SELECT * FROM t WHERE c = {literal}")
            .to_pandas()
            .iloc[0, 1]
        )
        (remaining,) = re.findall(r"row_groups_pruned_bloom_filter=\d+ total → (\d+) matched", plan)
        (explanation,) = explain(
            path, "c", f"0x{UUIDS[at].hex}" if is_binary else value, engine_names="datafusion"
        ).engines
        assert int(remaining) == explanation.row_groups_read, plan
        assert (explanation.skipped_by_filter == 0) == (store_schema and name in UNUSED)
        assert ("ARROW:schema" in explanation.explanation) == (store_schema and name in UNUSED)
