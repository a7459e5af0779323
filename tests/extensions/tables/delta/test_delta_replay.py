"""The replay of a log: real tables against delta-rs, logs written by hand, and damaged and hostile
ones."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyarrow import parquet

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.extensions.tables import deleted_rows
from sbbf_tool.extensions.tables.delta.actions import read_checkpoint, statistics_text
from sbbf_tool.extensions.tables.delta.log import (
    Log,
    plan_segment,
    split_names,
    uncovered_checkpoints,
)
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.storage.folders import LocalFolders
from support.damage import damage
from support.delta_logs import CHANGE, add, copies_of, metadata, protocol, remove, write_version
from support.delta_tables import copy_table, make_table, rows_of
from support.tables import each

ROOT = os.environ.get("SBBF_CONFORMANCE")
REAL = (
    sorted(path.name for path in (Path(ROOT) / "delta").iterdir() if path.is_dir())
    if ROOT
    else [""]
)
UNREADABLE = {
    "connectors__corrupted-last-checkpoint": "schemaString is missing",
    "connectors__deltalog-invalid-protocol-version": "reader version 99",
    "connectors__deltalog-state-reconstruction-without-metadata": "no action metaData",
    "crates__simple_table_features": "blahabl",
    "kernel__catalog-owned-preview": "catalogManaged",
}


@each("name", REAL)
def test_the_live_files_are_those_of_delta_rs(conformance: Path, name: str):
    # deltalake resolves links of the path.
    path = (conformance / "delta" / name).resolve()
    if name in UNREADABLE:
        with pytest.raises(SbbfError, match=UNREADABLE[name]):
            DeltaTable(str(path))
        with pytest.raises(Exception, match=r".*"):
            deltalake.DeltaTable(path)
        return
    theirs = deltalake.DeltaTable(path)
    ours = DeltaTable(str(path))
    assert ours.version == f"version {theirs.version()}"
    assert sorted(file.path for file in ours.live_files()) == sorted(
        uri.removeprefix("file://") for uri in theirs.file_uris()
    )
    assert ours.properties == theirs.metadata().configuration


def live(path: Path) -> list[str]:
    return sorted(os.path.relpath(file.path, path) for file in DeltaTable(str(path)).live_files())


def test_a_file_is_its_path_and_its_deletion_vector(tmp_path):
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab",
        "offset": 1,
        "sizeInBytes": 3,
        "cardinality": 1,
    }
    write_version(
        tmp_path,
        0,
        protocol(features=["deletionVectors"]),
        metadata(),
        add("x"),
        add("y", deletionVector=vector),
    )
    write_version(tmp_path, 1, remove("x", deletionVector=vector), remove("y"))
    assert live(tmp_path) == ["x", "y"]
    write_version(
        tmp_path,
        2,
        remove("x"),
        add("x", deletionVector=vector),
        remove("y", deletionVector=vector),
    )
    assert live(tmp_path) == ["x"]


def test_paths_are_decoded(tmp_path):
    write_version(
        tmp_path,
        0,
        protocol(1, 2),
        metadata(),
        add("a%20b%2525"),
        add("c=%C3%A9/d"),
        add("file:///else/where%20x"),
        add("../up"),
    )
    files = {file.path: file.unchangeable for file in DeltaTable(str(tmp_path)).live_files()}
    assert files.pop(f"{tmp_path}/a b%25") is None
    assert files.pop(f"{tmp_path}/c=é/d") is None
    assert "shallow clone" in files.pop("/else/where x")
    assert "leads out" in files.pop(f"{tmp_path}/../up")
    assert not files


def test_a_version_that_is_missing_is_named(tmp_path):
    make_table(tmp_path, 4)
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(UnreadableError, match="version 2 is missing"):
        DeltaTable(str(tmp_path))


@each(
    "hint",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":true}',
        b'{"version":-1}',
        b'{"version":1}',
        b'{"version":99}',
        b'{"version":1' + b"0" * 5000 + b"}",
    ],
)
def test_the_last_checkpoint_is_only_a_hint(tmp_path, hint):
    make_table(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / "_last_checkpoint").write_bytes(hint)
    assert len(live(tmp_path)) == 3


def test_statistics_of_a_checkpoint_are_those_of_the_commits(conformance: Path, tmp_path):
    path = copy_table(
        conformance / "delta" / "crates__delta-1.2.1-only-struct-stats", tmp_path / "t"
    )
    texts = {}
    for file in sorted((path / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            fields = json.loads(line).get("add")
            if fields:
                texts[fields["path"]] = fields["stats"]
    snapshot = Log(LocalFolders(), str(path)).read(lambda path: True)
    statistics = {
        entry.path: entry.action["stats"] for entry in snapshot.files.values() if entry.action
    }
    assert len(statistics) == len(snapshot.files)

    def parse(text: str) -> object:
        return json.loads(text, parse_float=Decimal)

    assert {name: parse(text) for name, text in statistics.items()} == {
        name: parse(texts[name]) for name in statistics
    }


def test_values_of_statistics_as_text():
    types = {"d": pa.date32(), "t": pa.timestamp("us", "UTC"), "n": pa.timestamp("us"),
        "i": pa.timestamp("ns"), "c": pa.decimal128(38, 4),
             "f": pa.float64(), "g": pa.float64(), "s": pa.string(),
             "none": pa.int64()}  # fmt: skip
    kind = pa.struct(list(types.items()))
    value = {"d": -1, "t": 1_500, "n": 1_000_000, "i": 5_000_000,
        "c": Decimal("12345678901234567890.1200"), "f": float("nan"), "g": 0.1,
             "s": 'é"\n', "none": None}  # fmt: skip
    text = statistics_text(
        pa.scalar(
            {"numRecords": 3, "minValues": value},
            pa.struct([("numRecords", pa.int64()), ("minValues", kind)]),
        )
    )
    assert text == (
        '{"numRecords":3,"minValues":{"d":"1969-12-31","t":"1970-01-01T00:00:00.001500Z","n":"1970-01-01T00:00:01.000",'
        '"i":"1970-01-01T00:00:00.005Z","c":12345678901234567890.1200,"f":null,"g":0.1,"s":"\\u00e9\\"\\n"}}'
    ).replace('"f":null,', "")


def field(name: str, kind: object, physical: str, number: int, **more: object) -> dict[str, object]:
    properties = {
        "delta.columnMapping.physicalName": physical,
        "delta.columnMapping.id": number,
        **more,
    }
    return {"name": name, "type": kind, "nullable": True, "metadata": properties}


NESTED_FIELDS = [
    field("name", "string", "p1", 1),
    field(
        "list",
        {"type": "array", "elementType": {"type": "struct",
            "fields": [field("inner", "long", "p3", 3)]}, "containsNull": True},
        "p2",
        2,
    ),
    field("map", {"type": "map", "keyType": "string", "valueType": "long",
        "valueContainsNull": True}, "p4", 4,
          **{"delta.columnMapping.nested.ids": {"p4.key": 5, "p4.value": 6}}),
    field("day", "date", "p7", 7),
]  # fmt: skip


@each("mode", ["name", "id", "none"])
def test_columns_have_the_names_that_users_know(tmp_path, mode):
    partition = {("day" if mode == "none" else "p7"): "2026-01-01"}
    configuration = {"delta.columnMapping.mode": mode}
    files = [
        add("x", partitionValues=partition),
        add("y", partitionValues=dict.fromkeys(partition, "")),
    ]
    write_version(
        tmp_path, 0, protocol(2, 5), metadata(configuration, NESTED_FIELDS, ["day"]), *files
    )
    table = DeltaTable(str(tmp_path))
    assert [file.partition for file in table.live_files()] == [{"day": "2026-01-01"}, {"day": None}]
    if mode == "none":
        assert (table.columns.by_id, table.columns.by_path) == ({}, {})
        return
    assert table.columns.by_path == {
        ("p1",): ("name",),
        ("p2", "p3"): ("list", "inner"),
        ("p4", "key"): ("map", "key"),
        ("p4", "value"): ("map", "value"),
        ("p7",): ("day",),
    }
    ids = {1: ("name",), 3: ("list", "inner"), 5: ("map", "key"), 6: ("map", "value"), 7: ("day",)}
    assert table.columns.by_id == (ids if mode == "id" else {})


@each("arguments, message", [
    ({"features": ["catalogManaged"]}, "catalogManaged"),
    ({"features": ["redirectReaderWriter-preview"]}, "redirectReaderWriter-preview"),
    ({"writer_only": ["coordinatedCommits-preview"]}, "coordinatedCommits-preview"),
    ({"writer_only": ["collations"]}, "collations"),
    ({"writer_only": ["somethingNew"]}, "somethingNew"),
    ({"reader": 1, "writer": 8}, "writer version 8"),
])  # fmt: skip
def test_what_is_not_supported_is_refused_by_its_name(tmp_path, arguments, message):
    write_version(tmp_path, 0, protocol(**arguments), metadata(), add("x"))
    if "features" in arguments:  # the table is not read either
        with pytest.raises(RefusedError, match=message):
            DeltaTable(str(tmp_path))
    else:
        with pytest.raises(RefusedError, match=message):
            DeltaTable(str(tmp_path)).ensure_changeable()


def test_a_table_of_files_that_are_not_parquet_is_refused(tmp_path):
    fields = metadata()
    fields["metaData"]["format"]["provider"] = "orc"
    write_version(tmp_path, 0, protocol(1, 2), fields, add("x"))
    with pytest.raises(RefusedError, match="not Parquet"):
        DeltaTable(str(tmp_path))


def test_names_of_a_log():
    zero = "0" * 20
    parts = [f"{2:020d}.checkpoint.{part:010d}.{3:010d}.parquet" for part in (1, 2, 3)]
    commits, checkpoints = split_names(
        [
            f"{zero}.json",
            f"{zero}.crc",
            f"{zero}.0.compacted.json",
            "_last_checkpoint",
            f".{zero}.json",
            f"{zero}.json.tmp",
            *parts[:2],
        ]
    )
    assert (commits, checkpoints) == ([0], [])
    _, checkpoints = split_names(
        [
            *parts,
            f"{1:020d}.checkpoint.parquet",
            f"{3:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        ]
    )
    assert [(checkpoint.version, len(checkpoint.names)) for checkpoint in checkpoints] == [
        (1, 1),
        (2, 3),
        (3, 1),
    ]
    assert [checkpoint.version for checkpoint in uncovered_checkpoints([2, 3, 4], checkpoints)] == [
        1
    ]
    assert [
        checkpoint.version for checkpoint in uncovered_checkpoints([0, 1, 3, 4], checkpoints)
    ] == [2]
    assert plan_segment([]) is None
    with pytest.raises(UnreadableError, match="version 0 is missing"):
        plan_segment([f"{10**19 + 5:020d}.json"])


DEEP = "[" * 100_000 + "]" * 100_000
NESTED = '{"type":"array","containsNull":true,"elementType":' * 2000 + '"long"' + "}" * 2000


def with_fields(text: str) -> dict[str, object]:
    return {"metaData": {"schemaString": f'{{"type":"struct","fields":{text}}}'}}


HOSTILE_LINES = {
    "not JSON": ("{", "line 3: not valid JSON"),
    "not text": ('{"add":{"path":"\udcff"}}', "line 3: not valid JSON"),
    "nested too deep": (f'{{"add":{DEEP}}}', "line 3: not valid JSON"),
    "a constant that JSON does not have": ('{"add":{"size":NaN}}', "line 3: not valid JSON"),
    "an action that is a text": ('{"add":"x"}', "add must be an object"),
    "no path": ({"add": {"size": 1}}, "path is missing"),
    "a path that is a number": (add(7), "path must be of type str"),
    "a path with NUL": (add("a%00b"), "no file can have the path"),
    "a path with half a surrogate": (add("a\ud800"), "is not text"),
    "a size that is a text": (add("x", size="3"), "size must be of type int"),
    "a size below 0": (add("x", size=-1), "size is outside its range"),
    "a size of 65 bits": (add("x", size=1 << 64), "size is outside its range"),
    "partition values that are a list": (add("x", partitionValues=["a"]),
        "partitionValues must be of type dict"),
    "partition values that are numbers": (add("x", partitionValues={"a": 1}),
        "partitionValues is not a map of texts"),
    "a deletion vector without a path": (add("x", deletionVector={"storageType": "u"}),
        "pathOrInlineDv is missing"),
    "a deletion vector with a text as offset": (
        add("x", deletionVector={"storageType": "u", "pathOrInlineDv": "x", "offset": "1"}),
        "offset must be of type int"),
    "a removal without a path": (remove(None), "path is missing"),
    "no schema": ({"metaData": {}}, "schemaString is missing"),
    "a schema that is not JSON": ({"metaData": {"schemaString": "{"}},
        "the schema is not valid JSON"),
    "a schema without fields": ({"metaData": {"schemaString": '{"type":"struct"}'}},
        "fields is missing"),
    "a field that is a text": (with_fields('["a"]'), "must be objects"),
    "an unknown type": (with_fields('[{"name":"a","type":{"type":"tree"}}]'),
        "unknown type 'tree'"),
    "types nested too deep": (with_fields(f'[{{"name":"a","type":{NESTED}}}]'),
        "nested|not valid JSON"),
    "an unknown mode": (metadata({"delta.columnMapping.mode": "guess"}),
        "delta.columnMapping.mode"),
    "a physical name that is a number": (
        metadata({"delta.columnMapping.mode": "name"},
                 [{"name": "a", "type": "long",
                     "metadata": {"delta.columnMapping.physicalName": 3}}]),
                     "physicalName must be of type str"),
    "partition columns that are a text": (
        {"metaData": metadata()["metaData"] | {"partitionColumns": "a"}},
        "partitionColumns",
    ),
    "a protocol without a version": ({"protocol": {"minReaderVersion": 1}},
        "minWriterVersion is missing"),
    "a protocol with a large version": ({"protocol": {"minReaderVersion": 10**4000,
        "minWriterVersion": 7}}, "reader version 1000"),
}  # fmt: skip


@each("line, message", HOSTILE_LINES)
def test_a_damaged_action_is_named(tmp_path: Path, line: object, message: str):
    (tmp_path / "_delta_log").mkdir()
    text = line if isinstance(line, str) else json.dumps(line)
    lines = [json.dumps(protocol(1, 2)), json.dumps(metadata()), text]
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_bytes(
        "\n".join(lines).encode(errors="surrogateescape")
    )
    with pytest.raises((UnreadableError, RefusedError), match=message) as caught:
        DeltaTable(str(tmp_path))
    assert caught.value.file is not None
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@each(
    "text",
    [
        '{"unknown":7}',
        '{"cdc":"x"}',
        '{"txn":null}',
        '{"add":null}',
        "",
        "  ",
        '{"domainMetadata":{"domain":3}}',
    ],
)
def test_other_actions_change_nothing(tmp_path: Path, text: str):
    write_version(tmp_path, 0, protocol(1, 2), metadata(), text, add("x"))
    assert len(list(DeltaTable(str(tmp_path)).live_files())) == 1


def test_a_folder_without_a_log_is_named(tmp_path: Path):
    for name in ("nothing", "empty"):
        with pytest.raises(UnreadableError, match="the log has no version"):
            DeltaTable(str(tmp_path / name))
        (tmp_path / "empty" / "_delta_log").mkdir(parents=True, exist_ok=True)
    (tmp_path / "file" / "_delta_log").parent.mkdir()
    (tmp_path / "file" / "_delta_log").write_text("x")
    with pytest.raises(UnreadableError, match="the log has no version"):
        DeltaTable(str(tmp_path / "file"))


def test_a_version_that_is_a_folder_or_a_fifo_is_named(tmp_path: Path):
    make_table(tmp_path, 1)
    name = tmp_path / "_delta_log" / f"{1:020d}.json"
    name.mkdir()
    with pytest.raises(UnreadableError, match=name.name):
        DeltaTable(str(tmp_path))
    name.rmdir()
    os.mkfifo(name)
    with pytest.raises(UnreadableError, match=name.name):
        DeltaTable(str(tmp_path))


@each("data", [b"", b"\n \n"])
def test_a_version_without_actions_is_no_version(tmp_path: Path, data: bytes):
    """A write that was interrupted left it: what it removed and added is unknown."""
    make_table(tmp_path, 1)
    table = DeltaTable(str(tmp_path))
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_bytes(data)
    with pytest.raises(UnreadableError, match=r"00001\.json: the file has no action"):
        DeltaTable(str(tmp_path))
    with pytest.raises(UnreadableError, match="the file has no action"):
        table.commit(copies_of(table), CHANGE)


_UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def write_checkpoint(folder: Path, version: int, *actions: object) -> None:
    path = folder / "_delta_log" / f"{version:020d}.checkpoint.{_UUID}.json"
    lines = [protocol(features=["v2Checkpoint"]), metadata(), *actions]
    path.write_text("\n".join(map(json.dumps, lines)))


def test_sidecars_do_not_lead_out_of_their_folder(tmp_path: Path):
    write_version(tmp_path, 0, protocol(features=["v2Checkpoint"]), metadata(), add("x"))
    for path, message in (
        ("..", "not a plain file name"),
        ("a%2F..", "not a plain file name"),
        ("../../x.parquet", "_sidecars/x.parquet: no such file"),
    ):
        sidecar = {"path": path, "sizeInBytes": 1, "modificationTime": 1}
        write_checkpoint(tmp_path, 0, {"checkpointMetadata": {"version": 0}}, {"sidecar": sidecar})
        with pytest.raises(UnreadableError, match=message):
            DeltaTable(str(tmp_path))


def test_a_sidecar_that_refers_to_itself_is_read_once(tmp_path: Path):
    write_version(tmp_path, 0, protocol(features=["v2Checkpoint"]), metadata(), add("x"))
    folder = tmp_path / "_delta_log" / "_sidecars"
    folder.mkdir()
    sidecar = {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}
    parquet.write_table(
        pa.table({"sidecar": [sidecar], "add": [{"path": "y", "size": 3}]}), folder / "s.parquet"
    )
    write_checkpoint(tmp_path, 0, {"sidecar": sidecar})
    assert [file.path for file in DeltaTable(str(tmp_path)).live_files()] == [f"{tmp_path}/y"]


def test_files_are_known_although_their_commits_were_removed(tmp_path: Path):
    """A checkpoint after each gap in the log has them."""
    write_version(tmp_path, 2, add("two"))
    write_version(tmp_path, 5, add("five"))
    write_checkpoint(tmp_path, 1, add("one"), remove("zero"))
    write_checkpoint(tmp_path, 4, add("one"), add("four"), remove("three"))
    write_checkpoint(tmp_path, 5, add("one"))
    assert sorted(set(DeltaTable(str(tmp_path)).paths_of_versions())) == sorted(
        ["zero", "one", "two", "three", "four", "five"]
    )


def test_a_sidecar_has_the_files_whose_removal_is_recorded(tmp_path: Path):
    folder = tmp_path / "_delta_log" / "_sidecars"
    folder.mkdir(parents=True)
    files = {"add": [{"path": "x", "size": 3}, None], "remove": [None, {"path": "old"}]}
    parquet.write_table(pa.table(files), folder / "s.parquet")
    sidecar = {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}
    write_checkpoint(tmp_path, 3, {"sidecar": sidecar})
    assert live(tmp_path) == ["x"]
    assert sorted(DeltaTable(str(tmp_path)).paths_of_versions()) == ["old", "x"]


def test_a_page_of_a_checkpoint_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make_table(tmp_path, 1)
    rows = pa.table({"add": [{"path": "x" * (4 << 20), "size": 3}]})
    name = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    parquet.write_table(
        rows, name, compression="zstd", use_dictionary=False, write_statistics=False
    )
    assert name.stat().st_size < 100_000
    monkeypatch.setattr(PageLimit, "bytes_of", lambda limit, stored: 2 << 20)
    with pytest.raises(SbbfError, match=r"states 4,194,.* uncompressed bytes"):
        DeltaTable(str(tmp_path))


def test_the_values_of_a_checkpoint_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A dictionary has a long value once, and each row refers to it."""
    adds = [{"path": "x" * (1 << 17), "size": 3}] * 1000
    path = tmp_path / "checkpoint.parquet"
    parquet.write_table(pa.table({"add": adds}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    assert len(list(read_checkpoint(str(path), None))) == 1000
    monkeypatch.setattr(deleted_rows, "_MOST_BYTES", 1 << 25)
    with pytest.raises(UnreadableError, match="its values take more than a gibibyte"):
        list(read_checkpoint(str(path), None))


def open_and_commit(path: Path) -> None:
    with suppress(SbbfError):
        table = DeltaTable(str(path))
        files = list(table.live_files())
        table.ensure_changeable()
        table.referenced({file.path for file in files[:1]})
        table.commit(copies_of(table, files), CHANGE)


def fuzz(path: Path, name: str, count: int) -> None:
    log = path / "_delta_log"
    file = log / name
    data = file.read_bytes()
    names = {entry.name for entry in log.iterdir()}
    source = random.Random(f"{name} {count}")
    for _ in range(count):
        file.write_bytes(damage(data, source))
        open_and_commit(path)
        for entry in log.iterdir():
            if entry.name not in names:
                entry.unlink()


def fuzz_table(path: Path) -> Path:
    make_table(path, 2, partitioned=True)
    deltalake.DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    for file in path.rglob("*.parquet"):
        if file.parent.name != "_delta_log":
            file.write_bytes(b"x")
    deltalake.write_deltalake(path, rows_of(100, 1), mode="append")
    return path


@each("name", [f"{2:020d}.json", f"{1:020d}.checkpoint.parquet", "_last_checkpoint"])
def test_random_damage(tmp_path: Path, name: str):
    fuzz(fuzz_table(tmp_path), name, 25)
