"""Queries for many values: the answers of queries for each value, without an object for each."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UsageError, probe
from sbbf_tool.cli import run
from sbbf_tool.file import texts
from sbbf_tool.file.texts import Texts, each_once, values_of
from sbbf_tool.reports.probe import MANY_VALUES, ValueAnswer
from sbbf_tool.verbs import Probe
from support.tables import each

ROW_GROUPS = 6
VALUES = [str(number) for number in range(0, 60_000, 20)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Numbers and texts; the filter of row group 2 is missing in `partly`, and `all` has 8 values
    in each row group."""
    target = tmp_path_factory.mktemp("many") / "values.parquet"
    schema = pa.schema(
        {
            "id": pa.int64(),
            "name": pa.string(),
            "raw": pa.binary(),
            "price": pa.decimal128(9, 2),
            "x": pa.float64(),
        }
    )
    options = {name: {"ndv": 1000, "fpp": 0.01} for name in schema.names}
    rng = np.random.default_rng(3)
    with pq.ParquetWriter(target, schema, bloom_filter_options=options) as writer:
        for _ in range(ROW_GROUPS):
            ids = rng.choice(60_000, 1000, replace=False)
            names = [str(each) for each in ids]
            prices = pa.array(ids).cast(pa.decimal128(38, 0)).cast(pa.decimal128(9, 2))
            columns = [ids, names, [name.encode() for name in names], prices, ids * 1.0]
            writer.write_table(pa.table(columns, schema=schema))
    return str(target)


def probe_apart(path: str, column: str, values: list[str | None]) -> list[ValueAnswer]:
    """The answers of queries for few values each."""
    step = 50
    return [
        answer
        for start in range(0, len(values), step)
        for answer in probe(path, column, values[start : start + step]).values
    ]


@pytest.mark.parametrize("column", ["id", "name", "raw", "price", "x"])
def test_many_values_have_the_answers_of_each(path, column):
    values: list[str | None] = [*VALUES[:1500], None, "0020", *VALUES[1500:]]
    report = probe(path, column, values)
    expected = probe_apart(path, column, values)
    hits = [
        (answer.value, tuple(each.row_group for each in answer.row_groups if not each.is_absent))
        for answer in expected
        if not answer.is_absent
    ]
    assert [(hit.value, hit.row_groups) for hit in report.hits] == hits
    assert (len(report.hits), report.hits[-1], report.hits[:2]) == (
        len(hits),
        (*report.hits,)[-1],
        (*report.hits,)[:2],
    )
    assert report.num_values == len(values)
    sent = pickle.loads(pickle.dumps(report))
    assert sent == report
    assert len(sent.hits) == len(hits)
    assert report.values == tuple(expected)
    with pytest.raises(UsageError, match="use hits"):
        _ = sent.values


def test_many_values_in_quotes_are_one_block_and_keep_them(path):
    texts = [f"{number}.004" for number in range(1500)]
    condition = f"price IN ({', '.join(map(repr, texts))})"
    verb = pickle.loads(pickle.dumps(Probe.of(condition)))
    assert isinstance(verb.values, Texts)
    few = Probe.of(f"price IN ({', '.join(map(repr, texts[:50]))})")
    answers = [(hit.value, hit.answer, hit.reason) for hit in verb(path).hits]
    assert answers[:50] == [(hit.value, hit.answer, hit.reason) for hit in few(path).hits]
    assert {answer for _, answer, _ in answers} == {"cannot say"}
    assert len(answers) == len(texts)


def test_very_many_integers_are_read_as_few_are(tmp_path):
    path = str(tmp_path / "integers.parquet")
    stored = [-(2**63), -70_000, -1, 0, 5, 7, 42, 2**63 - 1]
    columns = {"q": pa.array(stored), "Q": pa.array([abs(each) for each in stored], pa.uint64())}
    options = {name: {"ndv": 100, "fpp": 1e-9} for name in columns}
    pq.write_table(pa.table(columns), path, bloom_filter_options=options)
    unusual = ["+5", "007", "-0", "1.5", "0x2a00000000000000", "9223372036854775807", "0"]
    smallest = {"q": ["-9223372036854775808", "-70000", "-1"], "Q": ["9223372036854775808"]}
    most = {"q": "9223372036854775806", "Q": "18446744073709551615"}
    for column in columns:
        usual = [str(each) for each in range(100, 70_000)]
        # Each in a block of its own, and all in one.
        for values in ([*smallest[column], *unusual, most[column]], unusual, ["42"]):
            many = list(usual)
            for number, value in enumerate(values):
                many.insert(number * 17_000 % 60_000, value)
            hits = {hit.value: hit.row_groups for hit in probe(path, column, many).hits}
            few = probe(path, column, values)
            assert hits == {hit.value: hit.row_groups for hit in few.hits}
            assert hits
        unfit = probe(path, column, [*usual, "seven", "18446744073709551616"]).unfit
        assert [each.value for each in unfit] == ["seven", "18446744073709551616"]


def test_formats_for_programs_are_complete(path, tmp_path, capfd):
    values = VALUES[: MANY_VALUES + 200]
    values_file = tmp_path / "values"
    values_file.write_text("".join(f"{value}\n" for value in values))
    hits = {
        value.value: [each.row_group for each in value.row_groups if not each.is_absent]
        for value in probe_apart(path, "id", values)
        if not value.is_absent
    }
    assert run(["probe", path, "id", "--values-file", str(values_file), "--format", "json"]) == 0
    out = capfd.readouterr().out
    document = json.loads(out)
    assert {hit["value"]: hit["row_groups"] for hit in document["hits"]} == hits
    assert out == json.dumps(document) + "\n"
    assert run(["probe", path, "id", "--values-file", str(values_file), "--format", "csv"]) == 0
    rows = [row.split(",") for row in capfd.readouterr().out.splitlines()[1:]]
    assert [row[2:5] for row in rows] == [
        [value, str(number), "maybe"] for value, numbers in hits.items() for number in numbers
    ]
    out = tmp_path / "out.parquet"
    assert (
        run(["probe", path, "id", "--values-file", str(values_file), "--report", str(out), "-q"])
        == 0
    )
    assert pq.read_table(out).num_rows == len(rows)


def test_lines_are_the_same_in_blocks_of_any_size(tmp_path, monkeypatch, capfd):
    from sbbf_tool.cli import values

    content = (
        b"\xef\xbb\xbfone\n\n\ntwo\r\n\r\nthree\xff\r\nfour\r\n"
        + b"\n" * 40
        + b"five six\n" * 30
        + "sieb\xe9n\n".encode()
        + b"end\r"
    )
    path = tmp_path / "values"
    path.write_bytes(content)
    expected = ["one", "two", "three\udcff", "four", *["five six"] * 30, "sieb\xe9n", "end"]
    for size in (1, 2, 3, 7, 16, 64, 1 << 16):
        monkeypatch.setattr(values, "_BLOCK_BYTES", size)
        assert [
            line.decode("utf-8", "surrogateescape")
            for lines in values.blocks_of(str(path))
            for line in lines
        ] == expected
        warnings = capfd.readouterr().err.splitlines()
        assert [line.partition(": line ")[2].split()[0] for line in warnings] == ["4", "6"]
        monkeypatch.setattr(values, "_MOST_LINE_BYTES", 7)
        assert run(["probe", "no.parquet", "id", "--values-file", str(path)]) == 2
        assert "line 48 has more than 7 bytes" in capfd.readouterr().err
        monkeypatch.undo()


@each("worth_hashes", [1000, 100_000])
def test_each_value_is_kept_once_in_its_order(worth_hashes, monkeypatch):
    monkeypatch.setattr(texts, "_WORTH_HASHES", worth_hashes)
    unlike = (None, True, 1, 1.0, "1", b"1", 0.0, -0.0, math.nan)
    assert list(map(repr, each_once(unlike * 3))) == list(map(repr, unlike))
    names = [f"t{number % 5000}" for number in range(12_000)]
    assert list(each_once(values_of([None, *names]))) == [None, *dict.fromkeys(names)]
    numbers = [number % 5000 - 9 for number in range(12_000)]
    assert list(each_once(values_of(numbers))) == list(dict.fromkeys(numbers))
    distinct = Texts.of([[b"a", b"b"]], nulls=1)
    assert each_once(distinct) is distinct
    assert list(each_once(Texts.of([[b"", b"a", b""]], nulls=1))) == [None, "", "a"]
    assert list(each_once(Texts.of([]))) == []
