"""Files whose schema states types that the format forbids, stored values are never absent, and no
run over many files stops."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, probe
from sbbf_tool.cli import run
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    DecimalType,
    FileMetaData,
    IntType,
    LogicalType,
    TimestampType,
    TimeUnit,
)
from support.corpus_edits import edit_footer
from support.tables import each

pytestmark = pytest.mark.timeout(900)


def decimal(precision: int | None, scale: int | None) -> dict[str, Any]:
    return {"logicalType": LogicalType(DECIMAL=DecimalType(precision=precision, scale=scale))}


def older_decimal(precision: int | None, scale: int | None) -> dict[str, Any]:
    return {"converted_type": ConvertedType.DECIMAL, "precision": precision, "scale": scale}


def integer(bits: int | None) -> dict[str, Any]:
    return {"logicalType": LogicalType(INTEGER=IntType(bitWidth=bits, isSigned=True))}


SENSELESS = {
    "precision -1": decimal(-1, 0),
    "precision of a million": decimal(10**6, 0),
    "largest precision": decimal(2**31 - 1, 2**31 - 1),
    "scale -2^31": decimal(9, -(2**31)),
    "largest scale": older_decimal(9, 2**31 - 1),
    "width -1": integer(-1),
    "width 127": integer(127),
    "no unit": {
        "logicalType": LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=TimeUnit()))
    },
    "length 0": {"type_length": 0},
    "length -2^31": {"type_length": -(2**31)},
    "largest length": {"type_length": 2**31 - 1},
}


COLUMNS = {"i": pa.int32(), "l": pa.int64(), "f": pa.binary(4), "b": pa.binary()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """Columns of the four physical types that take parameters, and one that nothing is wrong with;
    filters on half of the row groups."""
    path = tmp_path_factory.mktemp("plain") / "plain.parquet"
    numbers = list(range(1, 201))
    fixed = [number.to_bytes(4, "big") for number in numbers]
    values = {"i": numbers, "l": numbers, "f": fixed, "b": fixed}
    table = pa.table(
        {name: pa.array(values[name], kind) for name, kind in COLUMNS.items()}
        | {"sound": pa.array(numbers, pa.int64())}
    )
    pq.write_table(table, path, row_group_size=100)
    return path


def with_types(
    plain: Path, path: Path, fields: dict[str, Any], names: tuple[str, ...] = tuple(COLUMNS)
) -> Path:
    def change(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name in names:
                element.logicalType = element.converted_type = None
                for name, value in fields.items():
                    setattr(element, name, value)

    shutil.copy(plain, path)
    return edit_footer(path, change)


@pytest.mark.slow
@each("name", list(COLUMNS))
@each("fields", SENSELESS)
def test_stored_values_are_never_absent(plain, tmp_path, name, fields):
    path = with_types(plain, tmp_path / "it.parquet", fields)
    if name != "f" or fields.get("type_length", 4) == 4:
        add_filters(path, [name], in_place=True)
    report = inspect(path)
    is_unknown = any(
        note.startswith(f"column {name}: the meaning of its values is unknown: ")
        for note in report.notes
    )
    assert (
        is_unknown == (name == "f" or "type_length" not in fields)
        or fields == SENSELESS["largest length"]
    )
    if not is_unknown:
        return
    for value in ("5", 5, b"\0\0\0\5"):
        answers = {
            answer
            for answers_of_value in probe(path, name, [value]).values
            for answer in answers_of_value.row_groups
        }
        assert {answer.answer for answer in answers} == {"cannot say"}
        assert all(
            "must be" in answer.reason or "digits" in answer.reason or "unit" in answer.reason
            for answer in answers
        )
    assert run(["explain", str(path), name, "5"]) == 0  # 1 would say that it is absent
    assert probe(path, "sound", [5]).column == "sound"


def test_such_a_file_does_not_stop_a_run_over_many_files(plain, tmp_path, capfd):
    for at, fields in enumerate(SENSELESS.values()):
        with_types(plain, tmp_path / f"{at:02}.parquet", fields)
    shutil.copy(plain, tmp_path / "zz.parquet")
    for command in ("inspect", "verify", "check"):
        assert run([command, str(tmp_path), "--format", "json"]) in (0, 1, 3)
        out, err = capfd.readouterr()
        assert "internal error" not in err
        assert "zz.parquet" in out, command
    code = run(["add-filter", str(tmp_path), "-c", "i", "-c", "f", "--in-place"])
    _, err = capfd.readouterr()
    assert code in (3, 4)
    assert "internal error" not in err
    assert {row.column for row in inspect(tmp_path / "zz.parquet").filters} == {"i", "f"}
