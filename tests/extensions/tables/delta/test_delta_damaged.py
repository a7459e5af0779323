"""Damaged and hostile logs: one error of this package that names the file, or a table; never another exception."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyarrow import parquet

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.file.page_limit import PageLimit
from support.delta_logs import CHANGE, add, copies_of, metadata, protocol, remove, write_version
from support.delta_tables import make_table, rows_of
from support.tables import each

DEEP = "[" * 100_000 + "]" * 100_000
NESTED = '{"type":"array","containsNull":true,"elementType":' * 2000 + '"long"' + "}" * 2000


def with_fields(text: str) -> dict[str, object]:
    return {"metaData": {"schemaString": f'{{"type":"struct","fields":{text}}}'}}


HOSTILE_LINES = {
    "not JSON": ("{", "line 3: not valid JSON"),
    "not text": ('{"add":{"path":"\udcff"}}', "line 3: not valid JSON"),
    "a list": ("[]", "line 3: not a JSON object"),
    "a number": ("1", "line 3: not a JSON object"),
    "nested too deep": (f'{{"add":{DEEP}}}', "line 3: not valid JSON"),
    "a number of 10,000 digits": (f'{{"add":{{"size":{"9" * 10_000}}}}}', "line 3: not valid JSON"),
    "a constant that JSON does not have": ('{"add":{"size":NaN}}', "line 3: not valid JSON"),
    "an action that is a text": ('{"add":"x"}', "add must be an object"),
    "no path": ({"add": {"size": 1}}, "path is missing"),
    "a path that is a number": (add(7), "path must be of type str"),
    "an empty path": (add(""), "no file can have the path"),
    "a path with NUL": (add("a%00b"), "no file can have the path"),
    "a path that is not UTF-8": (add("a%ff"), "is not text"),
    "a path with half a surrogate": (add("a\ud800"), "is not text"),
    "a size that is a text": (add("x", size="3"), "size must be of type int"),
    "a size that is a truth value": (add("x", size=True), "size must be of type int"),
    "a size below 0": (add("x", size=-1), "size is outside its range"),
    "a size of 65 bits": (add("x", size=1 << 64), "size is outside its range"),
    "a size of 1e3": ('{"add":{"path":"x","size":1e3}}', "size must be of type int"),
    "partition values that are a list": (add("x", partitionValues=["a"]), "partitionValues must be of type dict"),
    "partition values that are numbers": (add("x", partitionValues={"a": 1}), "partitionValues is not a map of texts"),
    "a deletion vector without a path": (add("x", deletionVector={"storageType": "u"}), "pathOrInlineDv is missing"),
    "a deletion vector with a text as offset": (
        add("x", deletionVector={"storageType": "u", "pathOrInlineDv": "x", "offset": "1"}), "offset must be of type int"),
    "a removal without a path": (remove(None), "path is missing"),
    "no schema": ({"metaData": {}}, "schemaString is missing"),
    "a schema that is not JSON": ({"metaData": {"schemaString": "{"}}, "the schema is not valid JSON"),
    "a schema without fields": ({"metaData": {"schemaString": '{"type":"struct"}'}}, "fields is missing"),
    "a field that is a text": (with_fields('["a"]'), "must be objects"),
    "a field without a name": (with_fields('[{}]'), "name is missing"),
    "a field without a type": (with_fields('[{"name":"a"}]'), "a type must be a text or an object"),
    "an unknown type": (with_fields('[{"name":"a","type":{"type":"tree"}}]'), "unknown type 'tree'"),
    "types nested too deep": (with_fields(f'[{{"name":"a","type":{NESTED}}}]'), "nested|not valid JSON"),
    "an unknown mode": (metadata({"delta.columnMapping.mode": "guess"}), "delta.columnMapping.mode"),
    "a physical name that is a number": (
        metadata({"delta.columnMapping.mode": "name"},
                 [{"name": "a", "type": "long", "metadata": {"delta.columnMapping.physicalName": 3}}]), "physicalName must be of type str"),
    "partition columns that are a text": ({"metaData": metadata()["metaData"] | {"partitionColumns": "a"}}, "partitionColumns"),
    "properties that are a list": ({"metaData": metadata()["metaData"] | {"configuration": [1]}}, "configuration"),
    "a protocol without a version": ({"protocol": {"minReaderVersion": 1}}, "minWriterVersion is missing"),
    "a protocol with a large version": ({"protocol": {"minReaderVersion": 10**4000, "minWriterVersion": 7}}, "reader version 1000"),
    "features that are a text": (
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "v2Checkpoint"}}, "readerFeatures"),
}  # fmt: skip


@each("line, message", HOSTILE_LINES)
def test_a_damaged_action_is_named(tmp_path: Path, line: object, message: str):
    (tmp_path / "_delta_log").mkdir()
    text = line if isinstance(line, str) else json.dumps(line)
    lines = [json.dumps(protocol(1, 2)), json.dumps(metadata()), text]
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    with pytest.raises((UnreadableError, RefusedError), match=message) as caught:
        DeltaTable(str(tmp_path))
    assert caught.value.file is not None
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@each("text", ['{"unknown":7}', '{"cdc":"x"}', '{"txn":null}', '{"add":null}', "", "  ", '{"domainMetadata":{"domain":3}}'])
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


def test_sidecars_do_not_lead_out_of_their_folder(tmp_path: Path):
    write_version(tmp_path, 0, protocol(features=["v2Checkpoint"]), metadata(), add("x"))
    checkpoint = [protocol(features=["v2Checkpoint"]), metadata(), {"checkpointMetadata": {"version": 0}}]
    name = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    for path, message in (
        ("..", "not a plain file name"),
        ("a%2F..", "not a plain file name"),
        ("../../x.parquet", "_sidecars/x.parquet: no such file"),
    ):
        lines = [*checkpoint, {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}]
        name.write_text("\n".join(map(json.dumps, lines)))
        with pytest.raises(UnreadableError, match=message):
            DeltaTable(str(tmp_path))


def test_a_sidecar_that_refers_to_itself_is_read_once(tmp_path: Path):
    write_version(tmp_path, 0, protocol(features=["v2Checkpoint"]), metadata(), add("x"))
    folder = tmp_path / "_delta_log" / "_sidecars"
    folder.mkdir()
    sidecar = {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}
    parquet.write_table(pa.table({"sidecar": [sidecar], "add": [{"path": "y", "size": 3}]}), folder / "s.parquet")
    name = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    name.write_text("\n".join(map(json.dumps, [protocol(features=["v2Checkpoint"]), metadata(), {"sidecar": sidecar}])))
    assert [file.path for file in DeltaTable(str(tmp_path)).live_files()] == [f"{tmp_path}/y"]


def test_a_page_of_a_checkpoint_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make_table(tmp_path, 1)
    rows = pa.table({"add": [{"path": "x" * (4 << 20), "size": 3}]})
    name = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    parquet.write_table(rows, name, compression="zstd", use_dictionary=False, write_statistics=False)
    assert name.stat().st_size < 100_000
    monkeypatch.setattr(PageLimit, "bytes_of", lambda limit, stored: 2 << 20)
    with pytest.raises(SbbfError, match=r"states 4,194,.* uncompressed bytes"):
        DeltaTable(str(tmp_path))


def mutate(data: bytes, source: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 8))):
        position = source.randrange(len(content))
        match source.randrange(4):
            case 0:
                content[position] = source.randrange(256)
            case 1:
                content[position] ^= 1 << source.randrange(8)
            case 2:
                del content[position : position + source.randrange(1, 20)]
            case 3:
                content[position:position] = source.choice((b"9" * 20, b"null", b'"', b"{}", b"[", b"\\u0000", b"%00", b"-1"))
    return bytes(content or b"x")


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
        file.write_bytes(mutate(data, source))
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
