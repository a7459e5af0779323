"""Inspecting, probing, building and verifying: which index counts, the queries of older files, and
false negatives."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from extensions.paimon.paimon_tables import NewFile, NewTable
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.bloom64 import BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.index_container import build_container, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.reports import PaimonInspectReport, PaimonProbeReport
from sbbf_tool.extensions.paimon.table_schema import parse_type_text
from sbbf_tool.extensions.paimon.verbs.build import DistinctHashes, build, build_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.tables import each


def index_of(columns: dict[str, pa.Array], *names: str) -> bytes:
    """A container as Paimon would write it for these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return build_index(
        sink.getvalue(), "x.parquet", [IndexRequest(name, 100, 0.01) for name in names]
    ).container


def rules(report: PaimonInspectReport) -> list[str]:
    return [finding.rule for finding in report.findings]


def answers(report: PaimonProbeReport) -> dict[str, list[bool]]:
    return {file.data_file: [answer.may_hold for answer in file.answers] for file in report.files}


ONE_VALUE = {"id": pa.array([1, 2, 3]), "s": pa.array(["a", "b", None])}


def test_a_file_whose_index_cannot_be_read_may_hold_any_value(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(
        NewFile(ONE_VALUE, name="sound.parquet", embedded=index_of(ONE_VALUE, "s")),
        NewFile(ONE_VALUE, name="missing.parquet", extra_files=("missing.parquet.index",)),
        NewFile(
            ONE_VALUE,
            name="twice.parquet",
            extra_files=("twice.parquet.index", "twice.parquet-1.index"),
        ),
        NewFile(ONE_VALUE, name="broken.parquet", embedded=b"\0" * 30),
        NewFile(
            ONE_VALUE,
            name="short.parquet",
            embedded=build_container({"s": {"bloom-filter": b"\0\0"}}),
        ),
    )
    report = inspect_paimon(str(maker.root))
    assert (rules(report), bool(report.errors)) == (["unreadable-index"] * 4, True)
    probed = probe_paimon(str(maker.root), "s", ["nowhere"])
    assert answers(probed) == {
        f"{name}.parquet": [name != "sound"]
        for name in ("sound", "missing", "twice", "broken", "short")
    }
    assert "Paimon fails on it" in probed.files[1].answers[0].reason


@each(
    "primary_keys, options, unused_reason",
    [
        ((), {"file-index.read.enabled": "false"}, "file-index.read.enabled is false"),
        (("id",), {}, "the table has a primary key and no deletion vectors"),
        (("id",), {"deletion-vectors.enabled": "true"}, None),
    ],
)
def test_indexes_paimon_does_not_look_at(
    new_table: NewTable,
    primary_keys: tuple[str, ...],
    options: dict[str, str],
    unused_reason: str | None,
) -> None:
    maker = new_table(primary_keys=primary_keys, options=options)
    maker.commit(NewFile(ONE_VALUE, embedded=index_of(ONE_VALUE, "s")))
    assert rules(inspect_paimon(str(maker.root))) == (["unused-index"] if unused_reason else [])
    report = probe_paimon(str(maker.root), "s", ["nowhere"])
    assert report.unused_reason == unused_reason
    assert len(report.skipped) == 1


def test_a_type_without_hash_and_a_column_without_index_remain(new_table: NewTable) -> None:
    maker = new_table([("id", "BIGINT"), ("s", "STRING"), ("flag", "BOOLEAN"), ("n", "INT")])
    container = {
        "flag": {"bloom-filter": bytes(3) + b"\1\0"},
        "n": {"bitmap": b""},
        "s": {"bloom-filter": None},
    }
    maker.commit(NewFile(ONE_VALUE, name="x", embedded=build_container(container)))
    assert answers(probe_paimon(str(maker.root), "flag", ["true"])) == {"x": [True]}
    assert answers(probe_paimon(str(maker.root), "n", ["1"])) == {"x": [True]}
    assert answers(probe_paimon(str(maker.root), "id", ["1"])) == {"x": [True]}
    assert answers(probe_paimon(str(maker.root), "s", ["a", None])) == {"x": [False, False]}


def test_entries_of_maps(new_table: NewTable) -> None:
    columns = {"m": pa.array([[("k", 1), ("x", 5)], None], pa.map_(pa.string(), pa.int32()))}
    maker = new_table([("m", {"type": "MAP", "key": "STRING", "value": "INT"})])
    maker.commit(NewFile(columns, name="x", embedded=index_of(columns, "m[k]", "m[none]")))
    assert answers(probe_paimon(str(maker.root), "m[k]", ["1", "5"])) == {"x": [True, False]}
    assert answers(probe_paimon(str(maker.root), "m[none]", ["1"])) == {"x": [False]}
    assert answers(probe_paimon(str(maker.root), "m[other]", ["1"])) == {"x": [True]}
    assert answers(probe_paimon(str(maker.root), "m", ["1"])) == {"x": [True]}


def test_older_files_know_columns_by_older_names_and_types(new_table: NewTable) -> None:
    old = {"s": pa.array(["a"]), "n": pa.array([1], pa.int32()), "v": pa.array(["v"])}
    new = {
        "renamed": pa.array(["b"]),
        "n": pa.array([2]),
        "v": pa.array(["w"]),
        "extra": pa.array(["e"]),
    }
    maker = new_table([("s", "STRING"), ("n", "INT NOT NULL"), ("v", "VARCHAR(5)")])
    maker.commit(NewFile(old, name="old", embedded=index_of(old, "s", "n", "v")))
    maker.put_schema(
        1,
        [
            (0, "renamed", "STRING NOT NULL"),
            (1, "n", "BIGINT"),
            (2, "v", "STRING"),
            (3, "extra", "STRING"),
            (4, "s", "INT"),
        ],
    )
    maker.commit(
        NewFile(new, schema_id=1, name="new", embedded=index_of(new, "renamed", "n", "v", "extra"))
    )

    def probe_answers(column: str, *values: str) -> dict[str, list[bool]]:
        return answers(probe_paimon(str(maker.root), column, values))

    assert probe_answers("renamed", "a", "b", "c") == {
        "old": [True, False, False],
        "new": [False, True, False],
    }
    assert probe_answers("n", "1", "2", str(2**40)) == {
        "old": [True, False, True],
        "new": [False, True, False],
    }
    assert probe_answers("n", *map(str, (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)))["old"] == [
        False,
        True,
        False,
        True,
    ]
    assert probe_answers("v", "nowhere") == {"old": [True], "new": [False]}
    assert probe_answers("extra", "nowhere") == {"old": [True], "new": [False]}
    assert probe_answers("s", "5") == {"old": [True], "new": [True]}
    assert probe_answers("renamed", "b")["old"] == [False]
    report = inspect_paimon(str(maker.root))
    assert {index.column: index.current_column for index in report.files[0].indexes} == {
        "s": "renamed",
        "n": "n",
        "v": "v",
    }
    assert answers(probe_paimon(str(maker.root), "s", ["b"], snapshot=1)) == {"old": [False]}


def test_k_of_128_and_more_is_queried_as_paimon_does(new_table: NewTable) -> None:
    bloom = BloomFilter64(np.zeros(100, np.uint8), 133)
    maker = new_table()
    maker.commit(
        NewFile(
            ONE_VALUE,
            name="x",
            embedded=build_container({"s": {"bloom-filter": build_bloom64(bloom)}}),
        )
    )
    report = probe_paimon(str(maker.root), "s", ["a"])
    assert answers(report) == {"x": [True]}
    assert "k = 133" in report.files[0].answers[0].reason


COLUMNS = {
    "id": pa.array(range(100)),
    "s": pa.array([f"value {at % 20}" if at % 3 else None for at in range(100)]),
}


@pytest.fixture
def data_file(tmp_path: Path) -> str:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return str(path)


def test_types_come_from_the_table_around(files: LocalFolders, new_table: NewTable) -> None:
    """A TIMESTAMP(9) that a writer stored in milliseconds, and ORC, which does not state the
    precision."""
    columns = {"t": pa.array([1_700_000_000_123], pa.timestamp("ms"))}
    maker = new_table([("t", "TIMESTAMP(9)")])
    new = NewFile(columns)
    maker.commit(new)
    (column,) = build(files, str(new.path), [IndexRequest("t")]).columns
    assert column.type == "TIMESTAMP(9)"
    loose = maker.root.parent / "loose.orc"
    orc.write_table(pa.table(columns), loose)
    with pytest.raises(UsageError, match="does not determine the Paimon type"):
        build(files, str(loose), [IndexRequest("t")])
    (column,) = build(
        files, str(loose), [IndexRequest("t", type=parse_type_text("TIMESTAMP(3)"))]
    ).columns
    assert column.type == "TIMESTAMP(3)"


def test_distinct_hashes_of_many_batches() -> None:
    distinct = DistinctHashes()
    for at in range(40):
        distinct.add(np.arange(at * 50_000, at * 50_000 + 100_000).astype(np.uint64), 100_000, 0)
    assert len(distinct.hashes) == 39 * 50_000 + 100_000
    assert distinct.rows == 4_000_000


def test_values_that_are_hard_to_format(files: LocalFolders, tmp_path: Path) -> None:
    index, data = tmp_path / "x.index", tmp_path / "x.parquet"
    broken_text = pa.array([b"\xff\xfe"]).view(pa.string())
    far = pa.array([2**62], pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"b": pa.array([b"\xff"]), "s": broken_text, "t": far}), data)
    index.write_bytes(
        build_container({name: {"bloom-filter": bytes(3) + b"\1\0"} for name in "bst"})
    )
    columns = verify_paimon(index, str(data), files=files).files[0].columns
    assert [column.examples for column in columns] == [
        ("0xff",),
        ("0xfffe",),
        ("a value that cannot be formatted",),
    ]


def test_a_column_that_cannot_be_verified_does_not_hide_the_others(
    files: LocalFolders, new_table: NewTable, tmp_path: Path
) -> None:
    index = tmp_path / "x.index"
    maker = new_table([("id", "BIGINT"), ("s", "INT"), ("broken", "BIGINT")])
    new = NewFile(COLUMNS | {"broken": COLUMNS["id"]})
    maker.commit(new)
    data_file = str(new.path)
    good = parse_container(build(files, data_file, [IndexRequest("id")]).container)
    body = good.body_of(good.indexes["id"]["bloom-filter"])
    index.write_bytes(
        build_container(
            {name: {"bloom-filter": body} for name in ("nope", "id", "s")}
            | {"broken": {"bloom-filter": b""}}
        )
    )
    report = verify_paimon(index, data_file, files=files)
    problems = {column.column: column.problem for column in report.files[0].columns}
    assert {
        (column.rows, column.nulls, column.false_negatives)
        for column in report.files[0].columns
        if column.problem
    } == {(0, 0, 0)}
    assert problems["id"] is None
    assert (
        problems["nope"] == "there is no column 'nope'; the columns of the file are id, s, broken"
    )
    assert (
        problems["s"] == "column s: the column is stored as string, which contradicts its type INT"
    )
    assert (
        problems["broken"]
        == "the bloom-filter index has 0 bytes; expected at least 5: 4 for k and 1 for the bits"
    )
    assert report.problems
    assert not report.has_false_negatives
