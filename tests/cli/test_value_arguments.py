"""Values on the command line and in files: one that may mean something else causes a warning.

A lake whose files have different types for one column: a value that one of them cannot hold is
still looked for in the others.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool import add_filters, inspect
from sbbf_tool.cli import run
from support.tables import each

STORED = ["", "-", "null", "plain", "ends\r", "one\rtwo", "café"]
LATIN = "café".encode("latin-1")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Texts, and bytes that are not UTF-8, each in a row group of its own."""
    target = tmp_path / "texts.parquet"
    bytes_ = [text.encode("latin-1") for text in STORED]
    table = pa.table({"s": STORED, "b": bytes_, "n": [None] * 3 + [1, 2, 3, 4], "any": STORED})
    pq.write_table(
        table,
        target,
        row_group_size=1,
        write_statistics=table.column_names[:3],
        use_dictionary=table.column_names[:3],
    )
    add_filters(target, ["s", "b", "n", "any"], in_place=True)
    with target.open("r+b") as stream:
        for chunk in inspect(target, ["any"]).filters:
            stream.seek((chunk.offset or 0) + (chunk.header_bytes or 0))
            stream.write(b"\xff" * (chunk.bitset_bytes or 0))
    return str(target)


@pytest.fixture
def probe(path: str, capfd, monkeypatch) -> Callable[..., tuple[list[str], str]]:
    """The values that may be stored, and what standard error says; the filters of `any` exclude
    none."""

    def call(*arguments: str, stdin: bytes = b"") -> tuple[list[str], str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        assert run(["probe", "--format", "json", path, *arguments]) in (0, 1)
        out, err = capfd.readouterr()
        return [hit["value"] for hit in json.loads(out)["hits"]], err

    return call


FILES = {
    "lines of Unix": (b"plain\nabsent\n", ["plain", "absent"], ()),
    "a byte-order mark": (b"\xef\xbb\xbfplain\n", ["plain"], ()),
    "lines of Windows": (b"plain\r\nends\r\n", ["plain", "ends"], ("line 1 ends with \\r\\n",)),
    "empty lines of Windows": (b"\r\n\r\nplain\r\n", ["plain"], ("line 1 ends with \\r\\n",)),
    "Latin-1": (b"plain\n" + LATIN + b"\n", ["plain", "caf\udce9"], ("line 2 is not UTF-8",)),
    "Latin-1 of Windows": (
        LATIN + b"\r\n" + LATIN + b"2\r\n",
        ["caf\udce9", "caf\udce92"],
        ("line 1 ends with \\r\\n", "line 1 is not UTF-8"),
    ),
    "a blank at the end": (
        b"plain\nends \nplain\t\n",
        ["plain", "ends ", "plain\t"],
        ("line 2 begins or ends with a blank",),
    ),
    "a blank at the start": (
        b"plain\n plain\n",
        ["plain", " plain"],
        ("line 2 begins or ends with a blank",),
    ),
    "a blank and a line of Windows": (
        b"plain \r\n",
        ["plain "],
        ("line 1 ends with \\r\\n", "line 1 begins or ends with a blank"),
    ),
}
"""Bytes of a file, the values in them, and what is reported of it."""


@each("piped", {"file": False, "pipe": True})
@each("name", list(FILES))
def test_hidden_characters_of_a_values_file_are_reported(probe, tmp_path, name, piped):
    content, values, hints = FILES[name]
    values_file = tmp_path / "listed"
    values_file.write_bytes(content)
    where = "standard input" if piped else f"values file {values_file}"
    answers, err = probe("any", "--values-file", "-" if piped else str(values_file), stdin=content)
    assert answers == values
    assert len(err.splitlines()) == len(hints)
    for line, hint in zip(err.splitlines(), hints, strict=True):
        assert line.startswith(f"sbbf: warning: {where}: {hint}")


KEYS = [hashlib.md5(bytes([number]), usedforsecurity=False).digest() for number in range(20)]
KEY = KEYS[3].hex()


@each(
    "arguments, stdin, warns",
    [
        (["probe", "a.parquet", "h", KEY], "", True),
        (["probe", "a.parquet", "a.parquet", "-c", "h", "--value", KEY], "", True),
        (
            ["probe", "a.parquet", "-c", "h", "--values-file", "-"],
            "".join(f"{key.hex()}\n" for key in KEYS),
            True,
        ),
        (
            ["probe", "a.parquet", "-c", "h", "--values-file", "-"],
            "".join(f"{number:08x}\n" for number in range(1500)),
            True,
        ),
        (["explain", "a.parquet", "h", KEY], "", True),
        (["explain", "a.parquet", "a.parquet", "-c", "h", "--value", KEY], "", True),
        (["probe", "a.parquet", "h", "a text"], "", False),
        (
            [
                "probe",
                "a.parquet",
                "t",
                f"{KEY[:8]}-{KEY[8:12]}-{KEY[12:16]}-{KEY[16:20]}-{KEY[20:]}",
            ],
            "",
            True,
        ),
        (["probe", "a.parquet", "t", KEY[::-1]], "", False),
        (["probe", "a.parquet", "h", KEY, f"0x{KEY}"], "", False),
    ],
)
def test_an_absence_of_bytes_in_another_notation_has_a_warning(
    tmp_path, monkeypatch, capfd, arguments, stdin, warns
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    pq.write_table(pa.table({"h": KEYS, "t": [key.hex() for key in KEYS]}), "a.parquet")
    add_filters("a.parquet", ["h", "t"], in_place=True)
    assert run(arguments) == int(f"0x{KEY}" not in arguments)
    err = capfd.readouterr().err
    assert err.count("sbbf: warning: ") == warns
    assert ("were queried: " in err) == warns


INT32, INT64, DOUBLE, TEXT = (
    pa.array([5, 7], pa.int32()),
    pa.array([5, 2**40]),
    pa.array([5.0, 0.25]),
    pa.array(["5", "abc"]),
)
OTHER, NULLS = pa.array([3, 4], pa.int32()), pa.nulls(2)
SMALL, LARGE = (
    pa.array([Decimal(text)], pa.decimal128(*kind))
    for text, kind in (("1.10", (8, 2)), ("99999999.30", (15, 2)))
)
CASES = [
    # Arrays of the files, value, exit code, files that may hold it.
    ((INT32, INT64), str(2**40), 0, [1]),
    ((INT32, INT64), "4000000000", 1, []),
    ((INT32, OTHER), "4000000000", 2, None),
    ((INT32,), "5.0", 0, [0]),  # what a file answers does not depend on the others
    ((INT32, OTHER), "0.25", 2, None),
    *(
        ((INT32,), text, 2, None) for text in ("0_5", "0_5.0", "\u0665", "\uff15", "5_")
    ),  # Python's int and Decimal read most of them as 5
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
    (
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us"))),
        "1970-01-01T00:00:01",
        0,
        [0],
    ),
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
    lookups = [
        json.loads(line) for line in capfd.readouterr().out.splitlines() if "sbbf.probe" in line
    ]
    if files is not None:
        held = [
            int(Path(lookup["file"]).stem)
            for lookup in lookups
            if lookup["hits"] or lookup["inconclusive"]
        ]
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
    assert (
        capfd.readouterr().out.count(
            "abc: row group 0 (cannot say: 'abc' is not a value of INT32; readers may convert it)\n"
        )
        == 2
    )


def test_a_value_that_may_be_meant_as_a_condition(fixtures, capfd):
    events = str(fixtures / "events.parquet")
    for value, is_noted in (("country = 'DE'", True), ("country IN ('DE')", True), ("a=b", True)):
        run(["probe", events, "session", value])
        assert ("is taken as a value" in capfd.readouterr().err) == is_noted
    for value in ("DE", "is not", "x y z", "="):
        run(["probe", events, "session", value])
        assert "is taken as a value" not in capfd.readouterr().err


LACKING = {
    "text": ('country = "XX"', "in double quotes is a column, in single quotes text"),
    "date": ("ts > 2026-01-09", "write a date in single quotes"),
    "both": ("ts > '2026-01-09' + \"x\"", "in double quotes is a column"),
}


@each("name", list(LACKING))
def test_a_condition_that_lacks_quotes_is_explained(fixtures, capfd, name):
    condition, hint = LACKING[name]
    events = str(fixtures / "events.parquet")
    assert run(["probe", events, condition]) == 0
    assert hint in capfd.readouterr().out
    assert run(["probe", events, condition, "--rows"]) == 2
    assert hint in capfd.readouterr().err
    assert run(["probe", events, "user_id", "5", "--where", condition]) == 2
    assert hint in capfd.readouterr().err


@each("condition", ["country LIKE '2026-01-09'", "country LIKE '\"%'"])
def test_a_condition_in_the_right_quotes_has_no_hint_of_them(fixtures, capfd, condition):
    assert run(["probe", str(fixtures / "events.parquet"), condition]) == 0
    assert "single quotes" not in capfd.readouterr().out
