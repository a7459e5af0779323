"""`sbbf paimon` as a user meets it: over a table of Paimon's Java, over tables made here, and over damaged ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.data_types import parse_type_text
from sbbf_tool.extensions.paimon.index_container import build_container, lay_out
from support.paimon_answers import Answers, bloom_answers, format_value
from support.paimon_tables import NewFile, TableMaker, contents
from support.places import open_folder, without_privileges
from support.tables import each

CUSTOMER = "8fd593c4"
"""Of one order, which is in the last data file."""


@pytest.fixture
def orders(fixtures: Path, tmp_path: Path) -> Path:
    """Paimon's own table: two data files without an index, one with it in the manifest, one in a file."""
    return Path(shutil.copytree(fixtures / "paimon" / "orders", tmp_path / "orders"))


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    """A data file in no table."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(100), "name": [f"n{at}" for at in range(100)], "flag": [True, None] * 50}), path)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> TableMaker:
    """A table of two data files without an index, whose ranges of values overlap."""
    maker = TableMaker(tmp_path / "plain", (("id", "BIGINT"), ("s", "STRING")))
    for first in (0, 1):
        ids = range(first, 200, 2)
        maker.commit(NewFile({"id": pa.array(ids), "s": pa.array([f"value {at}" for at in ids])}, name=f"{first}.parquet"))
    return maker


def sbbf(*arguments: object) -> int:
    return run(["paimon", *map(str, arguments)])


def document(capfd: pytest.CaptureFixture[str]) -> Any:
    out, err = capfd.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return json.loads(out)


def one_error(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that an error may print."""
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("sbbf: ")
    assert err.count("\n") == 1
    assert "internal error" not in err
    return err


def customers(path: Path) -> list[str]:
    values: list[str] = pq.read_table(path, columns=["customer"])["customer"].to_pylist()
    return values


class TestInspect:
    def test_a_table(self, orders, capfd):
        assert sbbf("inspect", orders) == 0
        out, err = capfd.readouterr()
        first, header, *rows, total, diagnosis = out.splitlines()
        assert first == f"{orders}: snapshot 4, 4 data files, 2 with an index"
        assert header.split() == ["data", "file", "rows", "place", "column", "index", "bytes", "k", "bits", "fill", "fpp", "ndv"]
        assert [row.split()[2] for row in rows] == ["none", "none", "embedded", "file"]
        assert rows[3].split()[3:8] == ["customer", "bloom-filter", "604", "3", "4,800"]
        assert total.startswith("customer: 2 of 4 data files have a filter, 758 bytes; mean fpp ")
        assert diagnosis.startswith("customer: 14.6 % full where 50 % is best: items = 1000 is 4 x the 252 values (data-15622c60")
        assert err == ""

    def test_a_snapshot_before_an_index_file_and_the_document(self, orders, capfd):
        (index,) = orders.rglob("*.index")
        assert sbbf("inspect", index) == 0
        assert capfd.readouterr().out.startswith(f"{index}: 664 bytes, indexes: 1\ncolumn    index ")
        assert sbbf("inspect", orders, "--format", "json") == 0
        report = document(capfd)
        assert set(report) == {"schema", "version", "target", "snapshot", "files", "columns", "findings"}
        assert report["files"][2]["indexes"][0]["bloom"]["num_bits"] == 1200
        assert report["columns"][0]["filter_bytes"] == 758
        assert sbbf("inspect", orders, "--snapshot", 2) == 0
        assert capfd.readouterr().out.endswith("no data file has an index\n")
        assert sbbf("inspect", orders, "--snapshot", 7) == 2
        assert "no snapshot 7" in one_error(capfd)

    def test_a_broken_index_ends_with_3_and_does_not_hide_the_others(self, orders, capfd):
        (index,) = orders.rglob("*.index")
        index.write_bytes(b"noise")
        assert sbbf("inspect", orders) == 3
        out, err = capfd.readouterr()
        assert "1,200" in out
        assert "unreadable-index" in out
        assert err.count("\n") == 1
        assert err.startswith(f"sbbf: {index.name.removesuffix('.index')}: ")
        assert sbbf("inspect", index) == 3
        assert str(index) in one_error(capfd)


class TestProbe:
    def test_remaining_and_skipped_files(self, orders, capfd):
        assert sbbf("probe", orders, "customer", CUSTOMER) == 0
        out, err = capfd.readouterr()
        first, _, *rows, last = out.splitlines()
        assert first == f"{orders}: snapshot 4, column customer, STRING"
        assert [row.split()[4] for row in rows] == ["remains", "remains", "skipped", "remains"]
        assert rows[0].endswith("no index")
        assert rows[2].endswith("a bit of the value is not set")
        assert last == "remaining: 3 of 4 data files, 750 of 1,000 rows"
        assert err == ""

    def test_exit_1_where_all_are_skipped(self, plain, capfd):
        assert sbbf("add-index", plain.root, "-c", "s:fpp=0.000001", "-c", "id:fpp=0.000001") == 0
        capfd.readouterr()
        assert sbbf("probe", plain.root, "s", "nowhere", "value x", "-q") == 1
        assert sbbf("probe", plain.root, "s", "nowhere", "value 3", "-q") == 0
        assert sbbf("probe", plain.root, "id", "-7", "-q") == 1
        assert sbbf("probe", plain.root, "s", "--null", "-q") == 0
        assert capfd.readouterr() == ("", "")

    def test_stats_show_that_no_data_was_read(self, orders, capfd):
        assert sbbf("probe", orders, "customer", "x", "--stats") == 0
        err = capfd.readouterr().err
        read = [path for path in orders.rglob("*") if path.is_file() and path.suffix == ".index"]
        assert err.endswith(f" bytes from {len(read) + 4 + 2 + 5} files\n")  # manifests; lists; LATEST, snapshot, three schemas

    def test_the_partition_answers_where_no_filter_does(self, tmp_path, capfd):
        maker = TableMaker(tmp_path / "t", (("id", "BIGINT"), ("day", "DATE")), partition_keys=("day",))
        for day in (19782, 19783, None):
            folder = "__DEFAULT_PARTITION__" if day is None else day
            maker.commit(NewFile({"id": pa.array([1])}, partition=(day,)), directory=f"day={folder}/bucket-0")
        for values, expected in ((["2024-02-29"], [1, 0, 0]), (["2024-02-28"], [0, 0, 0]), (["--null"], [0, 0, 1])):
            assert sbbf("probe", maker.root, "day", *values, "--format", "json") == int(not any(expected))
            assert [file["answers"][0]["may_hold"] for file in document(capfd)["files"]] == expected

    @each(
        "arguments, message",
        [
            (["custmer", "x"], "column custmer: there is no column 'custmer'; did you mean customer?"),
            (["id", "one"], "column id: 'one' is not a value of type BIGINT"),
            (["day", "2024-02-30"], "not a valid date"),
            (["id"], "no value to query"),
            (["customer[k]", "x"], "not a map"),
        ],
    )
    def test_a_wrong_request_ends_with_2(self, orders, arguments, message, capfd):
        assert sbbf("probe", orders, *arguments) == 2
        assert message in one_error(capfd)


class TestBuild:
    def test_paimons_bytes_again(self, orders, tmp_path, capfd):
        (index,) = orders.rglob("*.index")
        data = index.with_suffix("")
        for options in (["-c", "customer:items=1000"], []):
            (tmp_path / "x").unlink(missing_ok=True)
            assert sbbf("build", data, *options, "-o", tmp_path / "x") == 0
            assert (tmp_path / "x").read_bytes() == index.read_bytes()
        assert f"table {orders} does not refer to this file" in capfd.readouterr().out

    def test_the_default_name_is_paimons(self, data_file, capfd):
        assert sbbf("build", data_file, "-c", "id", "-c", "name:fpp=0.01") == 0
        out = capfd.readouterr().out
        assert out.splitlines()[-1] == f"{data_file}.index: 274 bytes written; all values verified"
        assert (data_file.parent / "a.parquet.index").stat().st_size == 274
        assert sbbf("verify", f"{data_file}.index") == 0
        assert capfd.readouterr().out.endswith("2 of 2 filters verified\n")

    def test_nothing_is_overwritten(self, data_file, capfd):
        index = Path(f"{data_file}.index")
        index.write_bytes(b"old")
        assert sbbf("build", data_file, "-c", "id") == 4
        assert "the output file exists" in one_error(capfd)
        assert index.read_bytes() == b"old"

    @each(
        "options, code, message",
        [
            (["-c", "nmae"], 2, "no column 'nmae'"),
            (["-c", "id", "-c", "id"], 2, "a column is named twice"),
            (["-c", "flag"], 2, "no Bloom filter for type BOOLEAN"),
            (["-c", "id:item=3"], 2, "column id: 'item' is not an option, or is repeated; the options are items, fpp, type"),
            (["-c", "id:fpp=nan"], 2, "column id: fpp must be at least 1e-30 and below 1, not nan"),
            (["-c", "id:items=999999999999999999"], 2, "overflows"),
            ([], 2, "no column to index"),
            (["-c", "id", "-o", "/nowhere/at/all"], 4, "the folder of the output file does not exist"),
        ],
    )
    def test_invalid_requests_are_refused(self, data_file, options, code, message, capfd):
        assert sbbf("build", data_file, *options) == code
        assert message in one_error(capfd)
        assert os.listdir(data_file.parent) == ["a.parquet"]

    def test_paths_that_are_no_data_files(self, tmp_path, capfd):
        (tmp_path / "a.csv").write_text("1")
        for suffix in ("parquet", "orc", "avro"):
            (tmp_path / f"a.{suffix}").write_bytes(b"PAR1 or something, but not enough of it")
            assert sbbf("build", tmp_path / f"a.{suffix}", "-c", "id") == 3
            assert f"a.{suffix}: " in one_error(capfd)
        assert sbbf("build", tmp_path / "a.csv", "-c", "id") == 2
        assert "supported: parquet, orc, avro" in one_error(capfd)
        assert sbbf("build", tmp_path / "none.orc", "-c", "id") == 3
        assert "no such file" in one_error(capfd)


class TestVerify:
    def lie(self, path: Path, *columns: str) -> None:
        """An index without a bit set, beside its data file."""
        empty = build_bloom64(BloomFilter64.for_items(10, 0.1))
        path.write_bytes(build_container(lay_out({column: {KIND: empty} for column in columns})))

    def test_exit_1_on_false_negatives(self, orders, capfd):
        (index,) = orders.rglob("*.index")
        self.lie(index, "customer")
        assert sbbf("verify", orders) == 1
        out = capfd.readouterr().out
        assert "250  false negatives" in out
        assert f"{index.stem}: column customer: 250 false negatives, such as {customers(index.with_suffix(''))[0]}, " in out
        assert f"{orders}: 1 of 2 filters verified" in out
        assert sbbf("verify", index, "--format", "json") == 1
        assert document(capfd)["files"][0]["columns"][0]["false_negatives"] == 250

    def test_exit_3_where_a_filter_cannot_be_verified(self, orders, data_file, capfd):
        (index,) = orders.rglob("*.index")
        index.write_bytes(b"noise")
        assert sbbf("verify", orders) == 3
        out, err = capfd.readouterr()
        assert "1 of 1 filter verified" in out
        assert err.startswith(f"sbbf: {index.stem}: ")
        self.lie(index, "nope")
        assert sbbf("verify", index, data_file) == 3
        assert "column nope: there is no column 'nope'" in capfd.readouterr().err

    def test_a_data_file_that_is_not_beside_its_index(self, tmp_path, capfd):
        self.lie(tmp_path / "a.parquet-3.index", "id")
        assert sbbf("verify", tmp_path / "a.parquet-3.index") == 2
        assert "its data file a.parquet does not exist beside it; name the data file" in one_error(capfd)


class TestAddIndex:
    def test_files_without_an_index_get_one(self, orders, capfd):
        before = contents(orders)
        assert sbbf("add-index", orders, "-n") == 0
        assert capfd.readouterr().out.endswith("2 data files would get an index; nothing was written\n")
        assert sbbf("add-index", orders, "-c", "nope") == 2
        assert "no column 'nope'" in one_error(capfd)
        assert contents(orders) == before
        assert sbbf("add-index", orders) == 0
        out, err = capfd.readouterr()
        assert "skipped 2 data files: already indexed" in out
        assert out.splitlines()[-1] == f"{orders}: added an index to 2 data files, all values verified; committed as snapshot 5"
        assert err == ""
        assert sbbf("verify", orders) == 0
        assert capfd.readouterr().out.endswith("4 of 4 filters verified\n")
        assert sbbf("add-index", orders) == 0
        assert capfd.readouterr().out.endswith(f"{orders}: no data file needs an index; nothing was written\n")

    def test_exit_3_where_a_data_file_cannot_be_read(self, plain, capfd):
        (data_file,) = Path(plain.root).rglob("0.parquet")
        data_file.write_bytes(b"noise")
        assert sbbf("add-index", plain.root, "-c", "s") == 3
        out, err = capfd.readouterr()
        assert "skipped 0.parquet: " in out
        assert out.endswith("added an index to 1 data file, all values verified; committed as snapshot 3\n")
        assert err.startswith("sbbf: 0.parquet: the Parquet file cannot be read: ")
        assert err.count("\n") == 1

    @each("options", [[], ["--snapshot", "2"]])
    def test_a_snapshot_whose_schema_is_missing(self, plain, options, capfd):
        path = Path(plain.root, "snapshot", "snapshot-2")
        path.write_text(path.read_text().replace('"schemaId":0', '"schemaId":7').replace('"schemaId": 0', '"schemaId": 7'))
        assert sbbf("inspect", plain.root, *options) == 3
        assert one_error(capfd) == f"sbbf: {path}: the snapshot refers to schema-7, which does not exist\n"
        if not options:
            assert sbbf("add-index", plain.root, "-c", "s") == 3
            assert "the snapshot refers to schema-7, which does not exist" in one_error(capfd)

    def test_a_table_that_may_not_be_written(self, plain, capfd):
        with open_folder() as folder:
            table = shutil.copytree(plain.root, folder / "t")
            for path in (table, *table.rglob("*")):
                path.chmod(0o555 if path.is_dir() else 0o444)
            with without_privileges():
                assert sbbf("add-index", table, "-c", "s") == 4
            assert "permission denied; nothing was changed" in one_error(capfd)
            for path in (table, *table.rglob("*")):
                path.chmod(0o755)


def every_command(table: Path) -> list[list[object]]:
    index = next(iter(table.rglob("*.index")))
    return [
        ["inspect", table],
        ["probe", table, "customer", "x"],
        ["verify", table],
        ["add-index", table, "-n", "-c", "customer"],
        ["build", index.with_suffix(""), "-n", "-c", "customer"],
        ["inspect", index],
        ["verify", index],
    ]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "noise": lambda data: bytes(255 - byte for byte in data),
    "long": lambda data: data[:20] + b"\xff" * 40 + data[60:],
}


class TestBrokenInput:
    @each("damage", list(DAMAGES))
    @each("pattern", ["schema/schema-*", "snapshot/snapshot-4", "manifest/manifest-list-*", "manifest/manifest-[0-9a-f]*-0"])
    def test_metadata(self, orders, pattern, damage, capfd):
        """Whatever is broken, each command ends with a line about it or does not need it."""
        paths = sorted(orders.glob(pattern))
        assert paths
        for path in {paths[0], paths[-1]}:
            original = path.read_bytes()
            path.write_bytes(DAMAGES[damage](original))
            codes = []
            for arguments in every_command(orders):
                codes.append(sbbf(*arguments))
                err = capfd.readouterr().err
                assert codes[-1] in (0, 1, 2, 3, 4), (arguments, err)
                assert err.count("\n") == int(codes[-1] > 1), (arguments, err)
                assert "internal error" not in err
                if codes[-1] == 3:
                    assert path.name in err
            if "snapshot" in pattern:
                assert 3 in codes
            path.write_bytes(original)

    @each("damage", list(DAMAGES))
    def test_indexes_and_data_files(self, orders, damage, capfd):
        (index,) = orders.rglob("*.index")
        for path in (index, index.with_suffix("")):
            original = path.read_bytes()
            path.write_bytes(DAMAGES[damage](original))
            for arguments in every_command(orders):
                code = sbbf(*arguments)
                err = capfd.readouterr().err
                assert code in (0, 1, 3), (arguments, err)
                assert err.count("\n") == int(code == 3), (arguments, err)
                assert "internal error" not in err
            path.write_bytes(original)

    def test_metadata_beyond_all_reason_is_not_read(self, orders, capfd):
        (index,) = orders.rglob("*.index")
        for path, arguments in ((index, ["inspect", index]), (orders / "snapshot" / "snapshot-4", ["inspect", orders])):
            original = path.read_bytes()
            os.truncate(path, 1 << 40)
            assert sbbf(*arguments) == 3
            message = one_error(capfd)
            assert str(path) in message
            assert "has 1,099,511,627,776 bytes" in message
            path.write_bytes(original)

    @each("arguments", [["inspect"], ["probe", "x", "1"], ["verify"], ["add-index", "-c", "x"]])
    def test_folders_that_are_no_table(self, tmp_path, arguments, capfd):
        command, *rest = arguments
        (tmp_path / "file").write_text("x")
        os.mkfifo(tmp_path / "pipe.index")
        for target in (tmp_path, tmp_path / "file", tmp_path / "none", "s3://bucket/table", "nul\0", tmp_path / "none.index"):
            assert sbbf(command, target, *rest) in (2, 3)
            assert "internal error" not in one_error(capfd)
        if command in ("inspect", "verify"):
            (tmp_path / "pipe").write_text("x")
            assert sbbf(command, tmp_path / "pipe.index") == 3
            assert "not a regular file" in one_error(capfd)


def test_every_answer_of_the_command_is_paimons(conformance: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of real tables, every value that can be a line: remain and skip, hash for hash."""
    answers_of_all_tables: Answers = json.loads((conformance / "paimon" / "answers.json").read_text())
    num_compared = 0
    for table_answers in answers_of_all_tables["tables"].values():
        columns: dict[str, dict[tuple[str, str], Answers]] = {}
        for file, column, answer in bloom_answers(table_answers):
            for value in answer["present"] + answer["absent"]:
                text = format_value(value["value"], parse_type_text(answer["type"]))
                if text and not {"\n", "\r", "\0"} & set(text):
                    columns.setdefault(answer.get("column_name_today", column), {})[file["file"], text] = value
        for column, expected in columns.items():
            values = tmp_path / "values"
            values.write_text("".join(f"{text}\n" for text in sorted({text for _, text in expected})))
            code = sbbf("probe", conformance / "paimon" / table_answers["location"], column, "--values-file", values, "--format", "json")
            files = document(capfd)["files"]
            assert code == int(not any(answer["may_hold"] for file in files for answer in file["answers"]))
            for file in files:
                for answer in file["answers"]:
                    if (expected_answer := expected.get((file["data_file"], answer["value"]))) is not None:
                        assert answer["may_hold"] == expected_answer["java_remain"]
                        num_compared += 1
    assert num_compared > 1000


class TestRemoveIndex:
    def test_all_indexes(self, orders, capfd):
        before = contents(orders)
        assert sbbf("remove-index", orders, "-n", "-c", "customer") == 0
        assert capfd.readouterr().out.endswith("indexes would be removed from 2 data files; nothing was written\n")
        assert contents(orders) == before
        assert sbbf("remove-index", orders) == 0
        out, err = capfd.readouterr()
        header, *rows, note, last = out.splitlines()
        assert header.split() == ["data", "file", "removed", "place", "bytes"]
        assert [row.split()[1:] for row in rows] == [["customer", "none", "0"]] * 2
        assert note.startswith("note: file-index.bloom-filter.columns names customer: ")
        assert last == f"{orders}: removed indexes from 2 data files; committed as snapshot 5"
        assert err == ""
        assert sbbf("remove-index", orders) == 0
        assert capfd.readouterr().out.endswith(f"{orders}: no data file has such an index; nothing was written\n")

    def test_indexes_that_cannot_be_read(self, orders, capfd):
        (index,) = orders.rglob("*.index")
        index.write_bytes(b"noise")
        assert sbbf("remove-index", orders, "-n") == 3
        out, err = capfd.readouterr()
        assert "; removing unreadable indexes removes it" in out
        assert err.count("\n") == 1
        assert sbbf("remove-index", orders, "--unreadable") == 0
        assert "unreadable index" in capfd.readouterr().out
        assert sbbf("inspect", orders) == 0
