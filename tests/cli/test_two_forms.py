"""The two forms of `probe` and of `explain`: PATH COLUMN VALUE, and PATH... with -c COLUMN --value
VALUE."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.tables import each

FILES = ("a.parquet", "b.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files in the working folder; the second one has none of the values."""
    monkeypatch.chdir(tmp_path)
    columns = {
        "n": [[-5, None, 3], [100]],
        "s": [["-", "x", None], ["other"]],
        "--odd": [[1, 2, 3], [100]],
    }
    for at, name in enumerate(FILES):
        table = pa.table({column: values[at] for column, values in columns.items()})
        pq.write_table(
            table, name, bloom_filter_options={column: {"ndv": 100} for column in columns}
        )
    return tmp_path


@each(
    "column, values, code",
    [
        ("n", ["-5"], 0),
        ("n", ["-6"], 1),
        ("n", ["-6", "-5"], 0),
        ("s", ["x"], 0),
        ("s", ["y", "z"], 1),
        ("n", ["--null"], 0),
        ("n", ["-6", "--null"], 0),
        ("s", ["--null", "y"], 0),
    ],
)
def test_both_forms_of_probe_answer_the_same(column, values, code):
    options = [
        word for value in values for word in ([value] if value == "--null" else ["--value", value])
    ]
    for path in ("a.parquet", ".", "*.parquet"):
        assert run(["probe", path, column, *values]) == code
        assert run(["probe", path, "-c", column, *options]) == code
        assert run(["probe", *options, "--column", column, path]) == code
    assert run(["probe", "-c", column, *options, *FILES]) == code
    assert run(["probe", "-c", column, *options, "b.parquet"]) == 1


@each(
    "arguments",
    [
        ["a.parquet", "s", "-"],
        ["*.parquet", "s", "-"],
        ["a.parquet", "b.parquet", "-c", "s", "--values-file", "-"],
    ],
)
@each("stdin, code", [(b"y\nx\n", 0), (b"y\nz\n", 1), (b"-\n", 0), (b"\n", 2)])
def test_a_dash_reads_values_in_both_forms(arguments, stdin, code, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    assert run(["probe", *arguments]) == code


def test_a_file_with_the_name_of_a_column_changes_nothing(capfd):
    codes = [run(["probe", "a.parquet", "n", value]) for value in ("1", "n = 1")]
    shutil.copy("a.parquet", "n")
    assert [run(["probe", "a.parquet", "n", value]) for value in ("1", "n = 1")] == codes
