"""A lake whose files have different types for one column: a value that one of them cannot hold is still looked for in the others."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from support.tables import each

INT32, INT64, DOUBLE, TEXT = pa.array([5, 7], pa.int32()), pa.array([5, 2**40]), pa.array([5.0, 0.25]), pa.array(["5", "abc"])
OTHER, NULLS = pa.array([3, 4], pa.int32()), pa.nulls(2)
SMALL, LARGE = (pa.array([Decimal(text)], pa.decimal128(*kind)) for text, kind in (("1.10", (8, 2)), ("99999999.30", (15, 2))))
CASES = [
    # Arrays of the files, value, exit code, files that may hold it.
    ((INT32, INT64), str(2**40), 0, [1]),
    ((INT32, INT64), "4000000000", 1, []),
    ((INT32, OTHER), "4000000000", 2, None),
    ((INT32,), "5.0", 0, [0]),  # what a file answers does not depend on the others
    ((INT32, OTHER), "0.25", 2, None),
    *(((INT32,), text, 2, None) for text in ("0_5", "0_5.0", "\u0665", "\uff15", "5_")),  # Python's int and Decimal read most of them as 5
    ((INT32, DOUBLE), "5.0", 0, [0, 1]),
    ((OTHER, DOUBLE), "5.0", 0, [1]),
    ((INT32, DOUBLE), "0.25", 0, [1]),
    ((INT32, DOUBLE), "0.5", 1, []),
    ((pa.array([1.5], pa.float32()), DOUBLE), "1e300", 1, []),
    ((pa.array([0.1], pa.float32()), DOUBLE), "0.1", 0, [0]),
    ((pa.array([float(pa.scalar(0.1, pa.float32()).as_py())]), DOUBLE), "0.1", 0, [0]),
    ((SMALL, LARGE), "99999999.30", 0, [1]),
    ((SMALL, LARGE), "77777777.70", 1, []),
    ((INT32, TEXT), "abc", 0, [0, 1]),  # readers convert text and numbers in ways of their own
    ((pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us"))), "1970-01-01T00:00:01", 0, [0]),
    ((NULLS, INT32), "7", 0, [1]),
    ((NULLS, TEXT), "abc", 0, [0, 1]),
    ((NULLS, INT32), "8", 1, []),
]


def write(folder: Path, arrays: tuple[pa.Array, ...]) -> Path:
    folder.mkdir()
    for number, array in enumerate(arrays):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"c": array}), path, use_dictionary=False)
        sbbf_tool.add_filters(path, ["c"], in_place=True)
    return folder


@pytest.mark.slow
@each("arrays, value, code, files", list(CASES))
def test_each_file_answers_for_what_its_type_can_hold(arrays, value, code, files, tmp_path, capfd):
    lake = write(tmp_path / "lake", arrays)
    assert run(["probe", str(lake), "c", value, "--format", "json"]) == code
    lookups = [json.loads(line) for line in capfd.readouterr().out.splitlines() if "sbbf.probe" in line]
    if files is not None:
        held = [int(Path(lookup["file"]).stem) for lookup in lookups if lookup["hits"] or lookup["inconclusive"]]
        assert held == files
    assert run(["explain", str(lake), "c", value]) == code


def test_one_bad_key_is_reported_with_its_line_and_no_half_answer_looks_whole(tmp_path, capfd):
    lake = write(tmp_path / "lake", (INT32, OTHER))
    (tmp_path / "keys").write_text("7\n\n4000000000\n3\n8\n")
    for target in (lake, lake / "0.parquet"):
        assert run(["probe", str(target), "-c", "c", "--values-file", str(tmp_path / "keys")]) == 2
        out, err = capfd.readouterr()
        assert (out == "") == (target != lake)
        assert target != lake or "; 1 value without an answer: not of the column's type" in out
        assert "line 3: '4000000000' is not a value of INT32" in err
    assert run(["probe", str(lake), "-c", "c", "--value", "4000000000"]) == 2
    assert run(["probe", str(lake), "-c", "c", "--value", "abc"]) == 2
    assert capfd.readouterr().out.count("abc: row group 0 (cannot say: 'abc' is not a value of INT32; readers may convert it)\n") == 2
