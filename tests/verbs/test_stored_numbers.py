"""Numbers that are stored outside the range of their annotation: what readers show for them is found, and so is what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import add_filters, explain, probe, prune, verify
from sbbf_tool.parquet.idl.ttypes import ConvertedType, DateType, IntType, LogicalType, MicroSeconds, MilliSeconds, TimeType, TimeUnit
from support.corpus_edits import annotate, decimal
from support.tables import each

HOUR = 3_600_000


def _int(bits: int, *, signed: bool, converted: int) -> dict[str, Any]:
    return {"logicalType": LogicalType(INTEGER=IntType(bitWidth=bits, isSigned=signed)), "converted_type": converted}


def _time(unit: TimeUnit, converted: int) -> dict[str, Any]:
    return {"logicalType": LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=unit)), "converted_type": converted}


DATE = {"logicalType": LogicalType(DATE=DateType()), "converted_type": ConvertedType.DATE}
CASES = {
    # Type, annotation, stored numbers, what DuckDB finds them as, what each of them is queried as, what is absent.
    "uint8": (pa.int32(), _int(8, signed=False, converted=11), [-1, 5, -128], ["255", "5", "128"], ["255", "-1", "128"], "77"),
    "uint16": (pa.int32(), _int(16, signed=False, converted=12), [-1, 5, 70_000], ["65535", "5", "4464"], ["-1", "65535"], "77"),
    "int8": (pa.int32(), _int(8, signed=True, converted=15), [255, 5, 300], ["-1", "5", "44"], ["-1", "255", "44"], "77"),
    "int16": (pa.int32(), _int(16, signed=True, converted=16), [65_535, 5], ["-1", "5"], ["-1", "65535"], "77"),
    "time-millis": (
        *(pa.int32(), _time(TimeUnit(MILLIS=MilliSeconds()), 7), [-13_899_000, 5 * HOUR, 25 * HOUR, 49 * HOUR]),
        *(["20:08:21+00", "05:00:00+00", "01:00:00+00"], ["20:08:21", "-03:51:39", "25:00:00", "49:00:00", "0x08eb2bff"], "11:11:11"),
    ),
    "time-micros": (
        *(pa.int64(), _time(TimeUnit(MICROS=MicroSeconds()), 8), [-13_899_000_000, 25 * HOUR * 1000]),
        *(["20:08:21+00", "01:00:00+00"], ["20:08:21", "-03:51:39", "01:00:00", "25:00:00"], "11:11:11"),
    ),
    "decimal": (pa.int32(), decimal(5, 2), [1_234_567, 999], ["12345.67", "9.99"], ["12345.67", "9.99"], "1.23"),
    "date": (
        *(pa.int32(), DATE, [10_000_000, -735_160, 2**31 - 1], ["29349-01-26", "0044-03-15 (BC)", "infinity"]),
        *(["29349-01-26", "+29349-01-26", "-0043-03-15", "0044-03-15 (BC)", "infinity"], "2020-01-01"),
    ),
}  # fmt: skip


def _write(path: Path, kind: pa.DataType, annotation: dict[str, Any], stored: list[int], **options: Any) -> Path:
    pq.write_table(pa.table({"t": pa.array(stored, kind)}), path, store_schema=False, **options)
    return annotate(path, {"t": annotation})


@each("options", {"plain": {"use_dictionary": False, "write_statistics": False}, "dictionary": {"use_dictionary": True}})
@each("case", list(CASES))
def test_what_readers_show_is_found_with_filters_of_ours(tmp_path: Path, case: str, options: dict[str, Any]) -> None:
    kind, annotation, stored, found, queried, absent = CASES[case]
    path = _write(tmp_path / "a.parquet", kind, annotation, stored, **options)

    def rows_of_duckdb() -> list[int]:
        ((type_name,),) = duckdb.sql(f"SELECT any_value(typeof(t)) FROM '{path}'").fetchall()
        values = [text if "DECIMAL" in type_name else f"'{text}'::{type_name}" for text in found]
        return [duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE t = {value}").fetchall()[0][0] for value in values]

    without_filters = rows_of_duckdb()
    assert all(without_filters)
    add_filters(path, ["t"], in_place=True)
    assert rows_of_duckdb() == without_filters
    texts = [text.removesuffix("+00") for text in (*found, *queried)]
    assert [value.value for value in probe(path, "t", texts).values if value.is_absent] == []
    for text in texts:
        assert not explain(path, "t", text).absent, text
        assert prune(path, "t", text).files, text
    assert probe(path, "t", absent).is_absent or "write_statistics" not in options
    assert all(result.is_verified for result in verify(path).filters)
