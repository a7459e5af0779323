"""Inspecting and probing tables: which index counts, the findings, and the queries of older files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sbbf_tool.extensions.paimon.bloom64 import BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.build_index import build_index
from sbbf_tool.extensions.paimon.index_container import build_container, lay_out
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.reports import InspectReport, ProbeReport
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.paimon_tables import NewFile, NewTable, TableMaker
from support.tables import each


def index_of(columns: dict[str, pa.Array], *names: str) -> bytes:
    """A container as Paimon would write it for these columns."""
    import io

    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return build_index(sink.getvalue(), "x.parquet", [IndexRequest(name, 100, 0.01) for name in names]).container


def rules(report: InspectReport) -> list[str]:
    return [finding.rule for finding in report.findings]


def answers(report: ProbeReport) -> dict[str, list[bool]]:
    return {file.data_file: [answer.may_hold for answer in file.answers] for file in report.files}


ONE_VALUE = {"id": pa.array([1, 2, 3]), "s": pa.array(["a", "b", None])}
TWO = {"id": pa.array([11, 12, 13]), "s": pa.array(["x", "y", "z"])}


def two_files(maker: TableMaker) -> None:
    """One data file with its index in the manifest, one with it in a file, and one without any."""
    maker.commit(NewFile(ONE_VALUE, name="one.parquet", embedded=index_of(ONE_VALUE, "id", "s")))
    maker.commit(NewFile(TWO, name="two.parquet", extra_files=("two.parquet.index",)), NewFile(TWO, name="three.parquet"))
    (maker.root / "bucket-0" / "two.parquet.index").write_bytes(index_of(TWO, "id", "s"))


def test_the_embedded_index_counts(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(ONE_VALUE, name="one.parquet", embedded=index_of(ONE_VALUE, "s"), extra_files=("one.parquet.index",)))
    (maker.root / "bucket-0" / "one.parquet.index").write_bytes(index_of(TWO, "s"))
    assert rules(inspect_paimon(str(maker.root))) == ["duplicate-index"]
    assert answers(probe_paimon(str(maker.root), "s", ["a", "x"])) == {"one.parquet": [True, False]}


def test_warnings_about_files(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(
        NewFile(ONE_VALUE, name="stale.parquet", extra_files=("stale.parquet-1.index",)),
        NewFile(ONE_VALUE, name="missing.parquet", extra_files=("missing.parquet.index",)),
        NewFile(ONE_VALUE, name="twice.parquet", extra_files=("twice.parquet.index", "twice.parquet-1.index")),
        NewFile(ONE_VALUE, name="broken.parquet", embedded=b"\0" * 30),
    )
    for name in ("stale.parquet.index", "stale.parquet-1.index", "stranger.parquet.index"):
        (maker.root / "bucket-0" / name).write_bytes(index_of(ONE_VALUE, "s"))
    report = inspect_paimon(str(maker.root))
    assert [(finding.rule, finding.file) for finding in report.findings] == [
        ("unreferenced-index", "stale.parquet"),
        ("unreadable-index", "missing.parquet"),
        ("unreadable-index", "twice.parquet"),
        ("unreadable-index", "broken.parquet"),
    ]
    assert report.errors
    probed = probe_paimon(str(maker.root), "s", ["nowhere"])
    assert answers(probed) == {"stale.parquet": [False], "missing.parquet": [True], "twice.parquet": [True], "broken.parquet": [True]}
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
    new_table: NewTable, primary_keys: tuple[str, ...], options: dict[str, str], unused_reason: str | None
) -> None:
    maker = new_table(primary_keys=primary_keys, options=options)
    maker.commit(NewFile(ONE_VALUE, embedded=index_of(ONE_VALUE, "s")))
    assert rules(inspect_paimon(str(maker.root))) == (["unused-index"] if unused_reason else [])
    report = probe_paimon(str(maker.root), "s", ["nowhere"])
    assert report.unused_reason == unused_reason
    assert len(report.skipped) == 1


def test_probe_says_which_files_remain(new_table: NewTable) -> None:
    maker = new_table()
    two_files(maker)
    read: list[str] = []

    class RecordingFiles(LocalFolders):
        def read(self, path: str, most: int | None = None) -> bytes:
            read.append(path)
            return super().read(path, most)

    report = probe_paimon(str(maker.root), "s", ["a", "x", None, "nowhere"], files=RecordingFiles())
    assert answers(report) == {
        "one.parquet": [True, False, True, False],
        "two.parquet": [False, True, True, False],
        "three.parquet": [True, True, True, True],
    }
    assert [file.data_file for file in probe_paimon(str(maker.root), "id", ["1"]).remaining] == ["one.parquet", "three.parquet"]
    assert report.files[0].answers[0].hash64 == "d24ec4f1a98c6e5b"
    assert read
    assert not any(path.endswith(".parquet") for path in read)


def test_a_type_without_hash_and_a_column_without_index_remain(new_table: NewTable) -> None:
    maker = new_table([("id", "BIGINT"), ("s", "STRING"), ("flag", "BOOLEAN"), ("n", "INT")])
    container = {"flag": {"bloom-filter": bytes(3) + b"\1\0"}, "n": {"bitmap": b""}, "s": {"bloom-filter": None}}
    maker.commit(NewFile(ONE_VALUE, name="x", embedded=build_container(lay_out(container))))
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
    new = {"renamed": pa.array(["b"]), "n": pa.array([2]), "v": pa.array(["w"]), "extra": pa.array(["e"])}
    maker = new_table([("s", "STRING"), ("n", "INT NOT NULL"), ("v", "VARCHAR(5)")])
    maker.commit(NewFile(old, name="old", embedded=index_of(old, "s", "n", "v")))
    maker.put_schema(
        1, [(0, "renamed", "STRING NOT NULL"), (1, "n", "BIGINT"), (2, "v", "STRING"), (3, "extra", "STRING"), (4, "s", "INT")]
    )
    maker.commit(NewFile(new, schema_id=1, name="new", embedded=index_of(new, "renamed", "n", "v", "extra")))

    def probe_answers(column: str, *values: str) -> dict[str, list[bool]]:
        return answers(probe_paimon(str(maker.root), column, values))

    assert probe_answers("renamed", "a", "b", "c") == {"old": [True, False, False], "new": [False, True, False]}
    assert probe_answers("n", "1", "2", str(2**40)) == {"old": [True, False, True], "new": [False, True, False]}
    assert probe_answers("v", "nowhere") == {"old": [True], "new": [False]}
    assert probe_answers("extra", "nowhere") == {"old": [True], "new": [False]}
    assert probe_answers("s", "5") == {"old": [True], "new": [True]}
    assert probe_answers("renamed", "b")["old"] == [False]
    report = inspect_paimon(str(maker.root))
    assert {index.column: index.current_column for index in report.files[0].indexes} == {"s": "renamed", "n": "n", "v": "v"}
    assert answers(probe_paimon(str(maker.root), "s", ["b"], snapshot=1)) == {"old": [False]}


def test_k_of_128_and_more_is_queried_as_paimon_does(new_table: NewTable) -> None:
    bloom = BloomFilter64(np.zeros(100, np.uint8), 133)
    maker = new_table()
    maker.commit(NewFile(ONE_VALUE, name="x", embedded=build_container(lay_out({"s": {"bloom-filter": build_bloom64(bloom)}}))))
    report = probe_paimon(str(maker.root), "s", ["a"])
    assert answers(report) == {"x": [True]}
    assert "k = 133" in report.files[0].answers[0].reason
