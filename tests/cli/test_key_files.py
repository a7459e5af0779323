"""Keys in a column of a file: typed keys are values, and a null among them matches nothing."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.tables import each

STORED = {
    "n": pa.array([1, 2, None, 4], pa.int64()),
    "s": pa.array(["a", "b", None, "4"]),
    "t": pa.array([datetime(2026, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us")),
    "d": pa.array([Decimal("1.10"), None, Decimal("2.20"), Decimal("3.30")], pa.decimal128(9, 2)),
    "b": pa.array([b"\0\xff", b"x", b"y", b"z"]),
    "f": pa.array([0.5, 1.5, None, 2.5]),
}
KEYS = pa.table(
    {
        "n": pa.array([2, None, 9], pa.int64()),
        "s": pa.array(["b", None, "z"]).dictionary_encode(),
        "t": pa.array([datetime(2026, 1, 2), None, datetime(2027, 1, 1)], pa.timestamp("ns")),
        "d": pa.array([Decimal("2.2"), None, Decimal("9.9")], pa.decimal128(3, 1)),
        "b": pa.array([b"\0\xff", None, b"q"], pa.large_binary()),
        "f": pa.array([1.5, None, 7.5], pa.float32()),
    }
)
FOUND = {
    "n": ["2"],
    "s": ["b"],
    "t": ["2026-01-02 00:00:00.000000000"],
    "d": ["2.2"],
    "b": ["0x00ff"],
    "f": ["1.5"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(STORED), "a.parquet", use_dictionary=False, write_statistics=False)
    add_filters("a.parquet", [*STORED], in_place=True)
    return tmp_path


@pytest.fixture
def probe(folder, capfd, monkeypatch) -> Callable[..., tuple[int, list[str], str]]:
    """The exit code, the values that may be stored, and what standard error says."""

    def call(column: str, *arguments: str, stdin: bytes = b"") -> tuple[int, list[str], str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = run(["probe", "a.parquet", "-c", column, "--format", "json", *arguments])
        out, err = capfd.readouterr()
        hits = json.loads(out)["hits"] if out else []
        return code, [hit["value"] for hit in hits], err

    return call


def write_keys(kind: str) -> str:
    if kind == "parquet":
        pq.write_table(KEYS, "keys.parquet")
    elif kind == "arrow":
        pf.write_feather(KEYS, "keys.arrow")
    else:
        # Under a name that says nothing, the first bytes tell.
        pq.write_table(KEYS, "keys")
        return "keys"
    return f"keys.{kind}"


@each("column", list(FOUND))
@each("kind", ["parquet", "arrow", "bytes"])
def test_typed_keys(probe, kind, column):
    name = write_keys(kind)
    note = f"values file {name}: column {column}: 2 values; 1 null matches nothing\n"
    for values_file in (name, f"{name}:{column}"):
        assert probe(column, "--values-file", values_file) == (0, FOUND[column], note)


TEXTS = {
    "CSV": ("keys.csv:n", b"n,s\n2,b\n,\n9,z\n", "n: 2 values; 1 null matches nothing"),
    "the queried column": ("keys.csv", b"s,n\nb,2\n", "n: 1 value"),
    "semicolons": ("keys.csv:n", b'\n"n";"s"\r\n2;"x;y"\r\n', "n: 1 value"),
    "tabs": ("keys.tsv:n", b"n\ts\n2\tb,c\n", "n: 1 value"),
    "a mark": ("keys.csv:n", b"\xef\xbb\xbfn,s\n2,b\n", "n: 1 value"),
    "lines in quotes": ("keys.csv:n", b'x,n\n"a\nb",2\n', "n: 1 value"),
    "one column": ("keys.csv:n", b"n\n2\n\n9\n", "n: 2 values"),
    "a name twice": ("keys.csv:n", b"x,x,n\n1,1,2\n", "n: 1 value"),
    "JSON": ("keys.jsonl:n", b'{"n": 2}\n\n{"s": 1}\n{"n": null}\n', "n: 1 value; 2 nulls"),
    "a late name": ("keys.jsonl:n", b'{"x": 1}\n' * 2000 + b'{"n": 2}\n', "n: 1 value; 2,000"),
}


@each("name", list(TEXTS))
def test_keys_in_files_of_text(probe, name):
    values_file, content, note = TEXTS[name]
    path = values_file.partition(":")[0]
    Path(path).write_bytes(content)
    code, found, err = probe("n", "--values-file", values_file)
    assert (code, found) == (0, ["2"])
    assert err.startswith(f"values file {path}: column {note}")
    assert err.count("\n") == 1


def test_text_of_json_is_no_time_and_numbers_are_exact(probe):
    Path("keys.jsonl").write_text('{"s": "2026-01-01", "d": 2.20}\n{"s": "4", "d": 2.21}\n')
    assert probe("s", "--values-file", "keys.jsonl")[:2] == (0, ["4"])
    assert probe("d", "--values-file", "keys.jsonl")[:2] == (0, ["2.20"])


def test_a_typed_key_is_no_text(probe):
    pq.write_table(pa.table({"k": [4, 5]}), "keys.parquet")
    code, _, err = probe("s", "--values-file", "keys.parquet")
    assert code == 2
    assert "4 (int) is not a value of BYTE_ARRAY STRING" in err
    Path("keys.csv").write_text("k,x\n4,\n")
    assert probe("s", "--values-file", "keys.csv:k")[:2] == (0, ["4"])


@each("column, answers", {"n": ("n", 2), "s": ("s", 0), "f": ("f", 0)})
def test_many_integers_answer_as_few(probe, column, answers):
    numbers = [2, 4, *range(10_000, 12_000)]
    pq.write_table(pa.table({"k": numbers}), "many.parquet")
    pq.write_table(pa.table({"k": numbers[:9]}), "few.parquet")
    many = probe(column, "--values-file", "many.parquet")
    few = probe(column, "--values-file", "few.parquet")
    assert many[:2] == few[:2]
    assert len(many[1]) == answers


def test_nulls_among_keys_never_match(probe):
    pq.write_table(pa.table({"n": pa.array([None, None], pa.int64())}), "keys.parquet")
    code, found, err = probe("n", "--values-file", "keys.parquet", "--rows")
    assert (code, found) == (1, [])
    assert "2 nulls match nothing" in err
    assert "there are no values" in err
    assert probe("n", "--values-file", "keys.parquet", "--null")[0] == 0


def test_a_path_that_exists_wins(probe):
    Path("keys.csv").write_text("n,s\n9,z\n")
    Path("keys.csv:n").write_text("2\n")
    assert probe("n", "--values-file", "keys.csv:n")[:2] == (0, ["2"])


def test_a_csv_file_with_one_field_in_each_line_is_a_list(probe):
    Path("keys.csv").write_text("2\n9\n")
    assert probe("n", "--values-file", "keys.csv") == (0, ["2"], "")
    Path("keys.csv").write_text('"b"\n"x, y"\n')
    code, found, err = probe("s", "--values-file", "keys.csv")
    assert (code, found) == (1, [])
    assert "the values are in quotes" in err


def test_an_argument_that_is_given_twice_is_queried_once(probe):
    assert probe("n", "--value", "2", "--value", "2")[:2] == (0, ["2"])


REPEATED = {
    "lines": ("keys.txt", b"b\n9\nb\nb\n"),
    "csv": ("keys.csv:s", b"n,s\n1,b\n2,9\n3,b\n4,b\n"),
    "json": ("keys.jsonl:s", b'{"s":"b"}\n{"s":"9"}\n{"s":"b"}\n{"s":"b"}\n'),
}


@each("kind", list(REPEATED))
def test_a_value_that_a_file_repeats_is_queried_once(probe, capfd, kind):
    name, content = REPEATED[kind]
    Path(name.partition(":")[0]).write_bytes(content)
    code, found, err = probe("s", "--values-file", name)
    assert (code, found) == (0, ["b"])
    assert "2 of 4 values repeat others: each is queried once" in err
    rows = ["probe", "a.parquet", "-c", "s", "--values-file", name, "--rows", "--format", "csv"]
    assert run(rows) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["a.parquet,0,1,b,s"]


def test_columns_that_hold_no_keys_are_refused(probe):
    table = pa.table({"l": [[1]], "n": [2]})
    pq.write_table(table, "keys.parquet")
    code, _, err = probe("n", "--values-file", "keys.parquet:l")
    assert code == 2
    assert "list" in err
    code, _, err = probe("n", "--values-file", "keys.parquet:m")
    assert code == 2
    assert "no column 'm'; its columns are l, n" in err
    Path("keys.jsonl").write_text('{"n": 1}\n{"n": [2]}\n')
    assert probe("n", "--values-file", "keys.jsonl")[0] == 2
    Path("keys.jsonl").write_text('{"n": 1}\n5\n')
    assert "line 2" in probe("n", "--values-file", "keys.jsonl")[2]
    Path("keys.csv").write_text("n,s\n1,2,3\n")
    assert probe("n", "--values-file", "keys.csv:n")[0] == 2
    Path("keys.csv").write_text("n,n\n1,2\n")
    assert "2 columns" in probe("n", "--values-file", "keys.csv:n")[2]


WARNINGS = {
    "header": (b"s\nb\n", "the first value is s, the name of the column"),
    "header in quotes": (b'"S"\nb\n', "the first value is S, the name of the column"),
    "quotes": (b'"a"\r\n"b"\r\n', "the values are in quotes"),
    "single quotes": (b"'a'\n", "the values are in quotes"),
    "header and quotes": (b's\n"a"\n"b"\n', "the values are in quotes"),
    "another header and quotes": (b'customer\n"b"\n', "the values are in quotes"),
}


@each("name", list(WARNINGS))
@each("piped", {"file": False, "pipe": True})
def test_headers_and_quotes_are_warned_of(probe, name, piped):
    content, warning = WARNINGS[name]
    Path("keys").write_bytes(content)
    err = probe("s", "--values-file", "-" if piped else "keys", stdin=content)[2]
    assert warning in err


def test_values_some_of_which_are_in_quotes_have_no_warning(probe):
    Path("keys").write_text('"a"\nb\n')
    assert probe("s", "--values-file", "keys")[2] == ""


@each("content", {"empty": b"", "blank lines": b"\n\r\n"})
def test_an_empty_file_is_an_answer_and_an_empty_pipe_an_error(probe, content):
    Path("keys").write_bytes(content)
    code, found, err = probe("n", "--values-file", "keys")
    assert (code, found) == (1, [])
    assert "values file keys: there are no values" in err
    code, _, err = probe("n", "--values-file", "-", stdin=content)
    assert code == 2
    assert "standard input: there are no values" in err
    Path("keys.csv").write_text("n,s\n")
    assert probe("n", "--values-file", "keys.csv:n")[0] == 1


@each("stored, queried", {"composed": ("NFC", "NFD"), "decomposed": ("NFD", "NFC")})
def test_another_normal_form_has_a_hint(tmp_path, monkeypatch, capfd, stored, queried):
    monkeypatch.chdir(tmp_path)
    text = unicodedata.normalize(stored, "café")
    name = unicodedata.normalize(stored, "né")
    pq.write_table(pa.table({name: [text, "plain"]}), "a.parquet", use_dictionary=False)
    add_filters("a.parquet", [name], in_place=True)
    other = unicodedata.normalize(queried, "café")
    assert run(["probe", "a.parquet", name, other]) == 1
    warning = f"in Unicode normal form {queried}: they may be stored in {stored}"
    assert warning in capfd.readouterr().err
    # A stored value in the same form, or text that has but one form.
    for absent in (text.replace("c", "d", 1), "ascii", "ß"):
        assert run(["probe", "a.parquet", name, absent]) == 1
    assert "normal form" not in capfd.readouterr().err
    assert run(["probe", "a.parquet", unicodedata.normalize(queried, "né"), text]) == 2
    assert f"did you mean {name}, in Unicode normal form {stored}?" in capfd.readouterr().err


def test_many_values_that_filters_cannot_exclude(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    sizes = {"id": {"ndv": 2_000, "fpp": 0.01}}
    for number in range(3):
        ids = [f"id-{number}-{at}" for at in range(2_000)]
        path = f"lake/{number}.parquet"
        pq.write_table(pa.table({"id": ids}), path, bloom_filter_options=sizes)
    query = ["probe", "lake", "-c", "id", "--values-file", "keys.txt"]
    note = "lets about 50 of 5,000 absent values through"
    for count, options, is_noted in ((20, [], False), (5_000, [], True), (5_000, ["--confirm"], 0)):
        Path("keys.txt").write_text("".join(f"id-{at % 3}-{at}x\n" for at in range(count)))
        assert run([*query, *options]) in (0, 1)
        assert (note in capfd.readouterr().out) == is_noted
