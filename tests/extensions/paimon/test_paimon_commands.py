"""`sbbf paimon` as a user meets it: over a table of Paimon's Java, over tables made here, and over
damaged ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from extensions.paimon.paimon_answers import Answers, bloom_answers, format_value
from extensions.paimon.paimon_tables import NewFile, TableMaker, contents
from sbbf_tool.cli import run
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.index_container import build_container
from sbbf_tool.extensions.paimon.table_schema import parse_type_text
from support.damage import damage
from support.places import open_folder, without_privileges
from support.tables import each

CUSTOMER = "8fd593c4"
"""Of one order, which is in the last data file."""
Sbbf = Callable[..., tuple[int, str, str]]


@pytest.fixture
def orders(fixtures: Path, tmp_path: Path) -> Path:
    """Paimon's own table: two data files without an index, one with it in the manifest, one in a
    file."""
    return Path(shutil.copytree(fixtures / "paimon" / "orders", tmp_path / "orders"))


@pytest.fixture
def index(orders: Path) -> Path:
    """The index file of the table, beside its data file."""
    (path,) = orders.rglob("*.index")
    return path


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    """A data file in no table."""
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table(
            {"id": range(100), "name": [f"n{at}" for at in range(100)], "flag": [True, None] * 50}
        ),
        path,
    )
    return path


@pytest.fixture
def plain(tmp_path: Path) -> TableMaker:
    """A table of two data files without an index, whose ranges of values overlap."""
    maker = TableMaker(tmp_path / "plain", (("id", "BIGINT"), ("s", "STRING")))
    for first in (0, 1):
        ids = range(first, 200, 2)
        maker.commit(
            NewFile(
                {"id": pa.array(ids), "s": pa.array([f"value {at}" for at in ids])},
                name=f"{first}.parquet",
            )
        )
    return maker


@pytest.fixture
def sbbf(capfd: pytest.CaptureFixture[str]) -> Sbbf:
    """Run a command; return its exit code, output and errors, which are lines of the package."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run(["paimon", *map(str, arguments)])
        out, err = capfd.readouterr()
        assert code in (0, 1, 2, 3, 4), err
        assert all(line.startswith(("sbbf: ", "read ")) for line in err.splitlines()), err
        assert "internal error" not in err
        return code, out, err

    return call


def document(outcome: tuple[int, str, str]) -> Any:
    assert (outcome[1].count("\n"), outcome[2]) == (1, "")
    return json.loads(outcome[1])


def assert_error(outcome: tuple[int, str, str], code: int, message: str) -> None:
    """Assert that a command printed one line alone."""
    assert (outcome[0], outcome[1], outcome[2].count("\n")) == (code, "", 1)
    assert message in outcome[2]


def lie(path: Path, column: str) -> None:
    """Write an index without a bit set."""
    path.write_bytes(
        build_container({column: {KIND: build_bloom64(BloomFilter64.for_items(10, 0.1))}})
    )


def test_inspect(orders, index, sbbf):
    code, out, err = sbbf("inspect", orders)
    first, header, *rows, total, diagnosis = out.splitlines()
    assert (code, first, err) == (0, f"{orders}: snapshot 4, 4 data files, 2 with an index", "")
    assert header.split() == [
        "data",
        "file",
        "rows",
        "place",
        "column",
        "index",
        "bytes",
        "k",
        "bits",
        "fill",
        "fpp",
        "ndv",
    ]
    assert [row.split()[2] for row in rows] == ["none", "none", "embedded", "file"]
    assert rows[3].split()[3:8] == ["customer", "bloom-filter", "604", "3", "4,800"]
    assert total.startswith("customer: 2 of 4 data files have a filter, 758 bytes; mean fpp ")
    assert diagnosis.startswith(
        "customer: 14.6 % full where 50 % is best: items = 1000 is 4 x the 252 values "
        "(data-15622c60"
    )
    assert sbbf("inspect", index)[1].startswith(f"{index}: 664 bytes, indexes: 1\ncolumn    index ")
    report = document(sbbf("inspect", orders, "--format", "json"))
    assert set(report) == {
        "schema",
        "version",
        "target",
        "snapshot",
        "files",
        "columns",
        "findings",
    }
    assert (
        report["files"][2]["indexes"][0]["bloom"]["num_bits"],
        report["columns"][0]["filter_bytes"],
    ) == (1200, 758)
    assert sbbf("inspect", orders, "--snapshot", 2)[1].endswith("no data file has an index\n")
    assert_error(sbbf("inspect", orders, "--snapshot", 7), 2, "no snapshot 7")


def test_a_broken_index_ends_with_3_and_does_not_hide_the_others(orders, index, data_file, sbbf):
    index.write_bytes(b"noise")
    code, out, err = sbbf("inspect", orders)
    assert (code, "1,200" in out, "unreadable-index" in out) == (3, True, True)
    assert err.startswith(f"sbbf: {index.stem}: ")
    assert_error(sbbf("inspect", index), 3, str(index))
    code, out, err = sbbf("verify", orders)
    assert (code, "1 of 1 filter verified" in out, err.startswith(f"sbbf: {index.stem}: ")) == (
        3,
        True,
        True,
    )
    code, out, err = sbbf("remove-index", orders, "-n")
    assert (code, "; removing unreadable indexes removes it" in out, err.count("\n")) == (
        3,
        True,
        1,
    )
    assert "unreadable index" in sbbf("remove-index", orders, "--select", "unreadable-index")[1]
    assert sbbf("inspect", orders)[0] == 0
    lie(index, "nope")
    assert "column nope: there is no column 'nope'" in sbbf("verify", index, data_file)[2]


def test_probe(orders, plain, sbbf):
    code, out, err = sbbf("probe", orders, "customer", CUSTOMER)
    first, _, *rows, last = out.splitlines()
    assert (code, first, err) == (0, f"{orders}: snapshot 4, column customer, STRING", "")
    assert [row.split()[4] for row in rows] == ["remains", "remains", "skipped", "remains"]
    assert rows[0].endswith("no index")
    assert rows[2].endswith("a bit of the value is not set")
    assert last == "remaining: 3 of 4 data files, 750 of 1,000 rows"
    # Of the data nothing is read: one index, manifests and their lists, LATEST, the snapshot and
    # three schemas.
    assert sbbf("probe", orders, "customer", "x", "--verbose")[2].endswith(
        f" bytes from {1 + 4 + 2 + 5} files\n"
    )
    assert sbbf("add-index", plain.root, "-c", "s:fpp=0.000001", "-c", "id:fpp=0.000001")[0] == 0
    for words, code in (
        (["s", "nowhere", "value x"], 1),
        (["s", "nowhere", "value 3"], 0),
        (["id", "-7"], 1),
        (["s", "--null"], 0),
    ):
        assert sbbf("probe", plain.root, *words, "-q") == (code, "", "")


def test_the_partition_answers_where_no_filter_does(tmp_path, sbbf):
    maker = TableMaker(tmp_path / "t", (("id", "BIGINT"), ("day", "DATE")), partition_keys=("day",))
    for day in (19782, 19783, None):
        folder = "__DEFAULT_PARTITION__" if day is None else day
        maker.commit(
            NewFile({"id": pa.array([1])}, partition=(day,)), directory=f"day={folder}/bucket-0"
        )
    for values, expected in (
        (["2024-02-29"], [1, 0, 0]),
        (["2024-02-28"], [0, 0, 0]),
        (["--null"], [0, 0, 1]),
    ):
        outcome = sbbf("probe", maker.root, "day", *values, "--format", "json")
        assert outcome[0] == int(not any(expected))
        assert [file["answers"][0]["may_hold"] for file in document(outcome)["files"]] == expected


def test_build_writes_paimons_bytes(orders, index, data_file, tmp_path, sbbf):
    for options in (["-c", "customer:items=1000"], []):
        (tmp_path / "x").unlink(missing_ok=True)
        code, out, _ = sbbf("build", index.with_suffix(""), *options, "-o", tmp_path / "x")
        assert (code, (tmp_path / "x").read_bytes()) == (0, index.read_bytes())
        assert f"table {orders} does not refer to this file" in out
    out = sbbf("build", data_file, "-c", "id", "-c", "name:fpp=0.01")[1]
    assert out.splitlines()[-1] == f"{data_file}.index: 274 bytes written; all values verified"
    assert sbbf("verify", f"{data_file}.index")[1].endswith("2 of 2 filters verified\n")
    assert_error(sbbf("build", data_file, "-c", "id"), 4, "the output file exists")
    assert Path(f"{data_file}.index").stat().st_size == 274


def test_verify_ends_with_1_on_false_negatives(orders, index, tmp_path, sbbf):
    lie(index, "customer")
    code, out, _ = sbbf("verify", orders)
    stored = pq.read_table(index.with_suffix(""), columns=["customer"])["customer"][0].as_py()
    assert (code, "250  false negatives" in out) == (1, True)
    assert f"{index.stem}: column customer: 250 false negatives, such as {stored}, " in out
    assert f"{orders}: 1 of 2 filters verified" in out
    assert (
        document(sbbf("verify", index, "--format", "json"))["files"][0]["columns"][0][
            "false_negatives"
        ]
        == 250
    )
    index.with_suffix("").unlink()
    assert "no such file" in sbbf("verify", orders)[2]
    lie(tmp_path / "a.parquet-3.index", "id")
    message = "its data file a.parquet does not exist beside it; name the data file"
    assert_error(sbbf("verify", tmp_path / "a.parquet-3.index"), 2, message)


def test_indexes_come_and_go(orders, sbbf):
    before = contents(orders)
    assert sbbf("add-index", orders, "-n")[1].endswith(
        "2 data files would get an index; nothing was written\n"
    )
    assert_error(sbbf("add-index", orders, "-c", "nope"), 2, "no column 'nope'")
    assert sbbf("remove-index", orders, "-n", "-c", "customer")[1].endswith(
        "removed from 2 data files; nothing was written\n"
    )
    assert contents(orders) == before
    code, out, err = sbbf("add-index", orders)
    assert (code, "skipped 2 data files: already indexed" in out, err) == (0, True, "")
    assert (
        out.splitlines()[-1]
        == f"{orders}: added an index to 2 data files, all values verified; committed as snapshot 5"
    )
    assert sbbf("verify", orders)[1].endswith("4 of 4 filters verified\n")
    assert sbbf("add-index", orders)[1].endswith(
        f"{orders}: no data file needs an index; nothing was written\n"
    )
    code, out, err = sbbf("remove-index", orders)
    header, *rows, note, last = out.splitlines()
    assert (code, header.split(), err) == (0, ["data", "file", "removed", "place", "bytes"], "")
    assert [row.split()[1:] for row in rows] == [["customer", "none", "0"]] * 4
    assert note.startswith("note: file-index.bloom-filter.columns names customer: ")
    assert last == f"{orders}: removed indexes from 4 data files; committed as snapshot 6"
    assert sbbf("remove-index", orders)[1].endswith(
        f"{orders}: no data file has such an index; nothing was written\n"
    )


def test_a_snapshot_whose_schema_is_missing(plain, sbbf):
    path = Path(plain.root, "snapshot", "snapshot-2")
    path.write_text(path.read_text().replace('"schemaId": 0', '"schemaId": 7'))
    for words in (
        ["inspect", plain.root],
        ["inspect", plain.root, "--snapshot", "2"],
        ["add-index", plain.root, "-c", "s"],
    ):
        assert_error(
            sbbf(*words), 3, f"{path}: the snapshot refers to schema-7, which does not exist\n"
        )


def test_a_table_that_may_not_be_written(plain, sbbf):
    with open_folder() as folder:
        table = shutil.copytree(plain.root, folder / "t")
        for path in (table, *table.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with without_privileges():
            outcome = sbbf("add-index", table, "-c", "s")
        assert_error(outcome, 4, "permission denied; nothing was changed")
        for path in (table, *table.rglob("*")):
            path.chmod(0o755)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "noise": lambda data: bytes(255 - byte for byte in data),
    "random": lambda data: damage(data, Random(len(data))),
    "long": lambda data: data[:20] + b"\xff" * 40 + data[60:],
}
PARTS = [
    "schema/schema-*",
    "snapshot/snapshot-4",
    "manifest/manifest-list-*",
    "manifest/manifest-[0-9a-f]*-0",
    "*/*.index",
    "*/*.parquet",
]


@each("damage", list(DAMAGES))
@each("pattern", PARTS)
def test_damaged_files_are_one_line(orders, index, pattern, damage, sbbf):
    """Whatever is broken, each command ends with a line about it or does not need it."""
    paths = sorted(orders.glob(pattern))
    assert paths
    for path in {paths[0], paths[-1]}:
        original = path.read_bytes()
        path.write_bytes(DAMAGES[damage](original))
        codes = []
        for arguments in (
            ["inspect", orders],
            ["probe", orders, "customer", "x"],
            ["verify", orders],
            ["add-index", orders, "-n", "-c", "customer"],
            ["build", index.with_suffix(""), "-n", "-c", "customer"],
            ["inspect", index],
            ["verify", index],
        ):
            code, _, err = sbbf(*arguments)
            codes.append(code)
            assert err.count("\n") == int(code > 1), (arguments, err)
            assert code != 3 or path.name in err or pattern.startswith("*")
        assert 3 in codes or "snapshot" not in pattern
        path.write_bytes(original)


def test_metadata_beyond_all_reason_is_not_read(orders, index, sbbf):
    for path, target in ((index, index), (orders / "snapshot" / "snapshot-4", orders)):
        os.truncate(path, 1 << 40)
        outcome = sbbf("inspect", target)
        assert_error(outcome, 3, "has 1,099,511,627,776 bytes")
        assert str(path) in outcome[2]


@each("arguments", [["inspect"], ["probe", "x", "1"], ["verify"], ["add-index", "-c", "x"]])
def test_folders_that_are_no_table(tmp_path, arguments, sbbf):
    command, *rest = arguments
    (tmp_path / "file").write_text("x")
    for target in (
        tmp_path,
        tmp_path / "file",
        tmp_path / "none",
        "s3://bucket/table",
        "nul\0",
        tmp_path / "none.index",
    ):
        code, out, err = sbbf(command, target, *rest)
        assert (code in (2, 3), out, err.count("\n")) == (True, "", 1)
    os.mkfifo(tmp_path / "pipe.index")
    (tmp_path / "pipe").write_text("x")
    if command in ("inspect", "verify"):
        assert_error(sbbf(command, tmp_path / "pipe.index"), 3, "not a regular file")


def test_every_answer_of_the_command_is_paimons(
    conformance: Path, tmp_path: Path, sbbf: Sbbf
) -> None:
    """Of real tables, every value that can be a line: remain and skip, hash for hash."""
    answers_of_all_tables: Answers = json.loads(
        (conformance / "paimon" / "answers.json").read_text()
    )
    num_compared = 0
    for table_answers in answers_of_all_tables["tables"].values():
        columns: dict[str, dict[tuple[str, str], Answers]] = {}
        for file, column, answer in bloom_answers(table_answers):
            for value in answer["present"] + answer["absent"]:
                text = format_value(value["value"], parse_type_text(answer["type"]))
                if text and not {"\n", "\r", "\0"} & set(text):
                    columns.setdefault(answer.get("column_name_today", column), {})[
                        file["file"], text
                    ] = value
        for column, expected in columns.items():
            values = tmp_path / "values"
            values.write_text(
                "".join(f"{text}\n" for text in sorted({text for _, text in expected}))
            )
            table = conformance / "paimon" / table_answers["location"]
            outcome = sbbf("probe", table, column, "--values-file", values, "--format", "json")
            answers = [
                (file["data_file"], answer)
                for file in document(outcome)["files"]
                for answer in file["answers"]
            ]
            assert outcome[0] == int(not any(answer["may_hold"] for _, answer in answers))
            for name, answer in answers:
                if (expected_answer := expected.get((name, answer["value"]))) is not None:
                    assert answer["may_hold"] == expected_answer["java_remain"]
                    num_compared += 1
    assert num_compared > 1000
