"""A table's walk, from its directory to its data files, and that it reads nothing outside its
folder."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from extensions.paimon.paimon_tables import (
    NewFile,
    NewTable,
    TableMaker,
    columns,
    contents,
    manifest_header,
)
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.extensions.avro.file import build_file
from sbbf_tool.extensions.paimon.corpus import ENTRY_FIELDS, avro_header, record
from sbbf_tool.extensions.paimon.manifest import live_entries, parse_manifest, parse_manifest_list
from sbbf_tool.extensions.paimon.table import PATH_DIRECTORY, is_below, open_table
from sbbf_tool.extensions.paimon.table_schema import build_snapshot, parse_snapshot
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.tables import each

COLUMNS = {"id": pa.array([1, 2]), "s": pa.array(["a", "b"])}


def names(files: LocalFolders, maker: TableMaker, **how: int) -> list[str]:
    return [live.file.name for live in open_table(files, str(maker.root), **how).live_files]


def test_entries_may_come_in_any_order(new_table: NewTable) -> None:
    maker = new_table()
    new = NewFile(COLUMNS, name="x.parquet")
    maker.commit(new)
    add = maker._entry(0, new)
    delete = maker._entry(1, new)
    entries = parse_manifest(build_file(manifest_header(), [delete, add, add]))
    assert [entry.file.name for entry in live_entries(entries)] == ["x.parquet"]
    assert live_entries(entries[:2]) == []
    assert live_entries(entries[1::-1]) == []


@each("hint", [None, "1", "nonsense"])
def test_latest_is_only_a_hint(files: LocalFolders, new_table: NewTable, hint: str | None) -> None:
    maker = new_table()
    maker.commit(NewFile(COLUMNS))
    maker.commit(NewFile(COLUMNS))
    latest = maker.root / "snapshot" / "LATEST"
    if hint is None:
        latest.unlink()
    else:
        latest.write_text(hint)
    table = open_table(files, str(maker.root))
    assert table.snapshot is not None
    assert table.snapshot.id == 2
    # Paimon takes the hint where no later snapshot is there, and then fails: what that one added
    # would be missing from every answer.
    latest.write_text("99")
    with pytest.raises(UnreadableError, match="LATEST refers to snapshot 99"):
        open_table(files, str(maker.root))


def test_partitions_and_options_make_directories(files: LocalFolders, new_table: NewTable) -> None:
    fields = (("id", "BIGINT"), ("day", "DATE"), ("place", "STRING"))
    maker = new_table(
        fields, partition_keys=("day", "place"), options={"data-file.path-directory": "data"}
    )
    maker.commit(
        NewFile({"id": pa.array([1])}, partition=(19782, "a/b")),
        directory="data/day=19782/place=a%2Fb/bucket-0",
    )
    maker.commit(
        NewFile({"id": pa.array([1])}, partition=(None, None)),
        directory="data/day=__DEFAULT_PARTITION__/place=__DEFAULT_PARTITION__/bucket-0",
    )
    table = open_table(files, str(maker.root))
    assert all(Path(live.path).is_file() for live in table.live_files)
    assert [live.partition_text for live in table.live_files] == [
        "day=2024-02-29/place=a/b",
        "day=null/place=null",
    ]


def test_a_directory_that_cannot_be_computed_is_looked_for(
    files: LocalFolders, new_table: NewTable
) -> None:
    maker = new_table(
        (("id", "BIGINT"), ("raw", "BYTES"), ("n", "INT")), partition_keys=("raw", "n")
    )
    for at, hidden in enumerate(("raw=[B@1f2e", "raw=[B@7abc")):
        maker.commit(
            NewFile({"id": pa.array([1])}, partition=(bytes([at]), at)),
            directory=f"{hidden}/n={at}/bucket-0",
        )
    table = open_table(files, str(maker.root))
    assert [Path(live.path).is_file() for live in table.live_files] == [True, True]
    assert table.live_files[1].partition_text == "raw=0x01/n=1"


def test_branches_have_their_own_snapshots(files: LocalFolders, new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(COLUMNS, name="x.parquet"))
    branch = maker.root / "branch" / "branch-b1"
    for folder in ("snapshot", "schema"):
        shutil.copytree(maker.root / folder, branch / folder)
    maker.commit(NewFile(COLUMNS, name="y.parquet"))
    assert [
        live.file.name for live in open_table(files, str(maker.root), branch="b1").live_files
    ] == ["x.parquet"]
    assert names(files, maker) == ["x.parquet", "y.parquet"]
    with pytest.raises(UnreadableError):
        open_table(files, str(maker.root), branch="none")
    with pytest.raises(UnreadableError):
        open_table(files, str(maker.root), branch="../b1")


def test_older_manifests_lack_fields_and_newer_have_more() -> None:
    entry = {
        "_VERSION": 2,
        "_KIND": 0,
        "_PARTITION": bytes(12),
        "_BUCKET": 0,
        "_TOTAL_BUCKETS": 1,
        "_FILE": {
            "_FILE_NAME": "x",
            "_FILE_SIZE": 1,
            "_ROW_COUNT": 1,
            "_SCHEMA_ID": 0,
            "_LEVEL": 0,
            "_NEW": "?",
        },
    }
    file = {
        "_FILE_NAME": "string",
        "_FILE_SIZE": "long",
        "_ROW_COUNT": "long",
        "_SCHEMA_ID": "long",
        "_LEVEL": "int",
        "_NEW": "string",
    }
    (live,) = parse_manifest(
        build_file(avro_header({**ENTRY_FIELDS, "_FILE": record("f", file)}), [entry])
    )
    assert (live.file.name, live.file.extra_files, live.file.embedded_index) == ("x", (), None)
    assert live.record["_FILE"]["_NEW"] == "?"


@each("kind", ["orc", "parquet"])
def test_manifests_in_columns(kind: str) -> None:
    rows = pa.table(
        {
            "_VERSION": pa.array([2, 2], pa.int32()),
            "_FILE_NAME": ["manifest-a", "manifest-b"],
            "_FILE_SIZE": [1, 2],
        }
    )
    sink = io.BytesIO()
    (orc if kind == "orc" else pq).write_table(rows, sink)
    assert [name for name, _ in parse_manifest_list(sink.getvalue())] == [
        "manifest-a",
        "manifest-b",
    ]
    for end in range(8, len(sink.getvalue()), 37):
        with pytest.raises(UnreadableError):
            parse_manifest_list(sink.getvalue()[:end])


def test_names_that_lead_out_of_the_table_are_unreadable(new_table: NewTable) -> None:
    for name in ("../x", "/etc/passwd", "..", "", "a/b", "a\0b"):
        manifest_list = build_file(
            avro_header({"_VERSION": "int", "_FILE_NAME": "string"}),
            [{"_VERSION": 2, "_FILE_NAME": name}],
        )
        with pytest.raises(UnreadableError, match="not a plain file name"):
            parse_manifest_list(manifest_list)
    maker = new_table()
    maker.commit(NewFile(COLUMNS, extra_files=("../outside.index",)))
    with pytest.raises(UnreadableError, match="not a plain file name"):
        inspect_paimon(str(maker.root))


def test_a_snapshot_comes_back() -> None:
    record = {
        "id": 3,
        "schemaId": 1,
        "baseManifestList": "a",
        "deltaManifestList": "b",
        "commitKind": "APPEND",
        "é": [1, None],
    }
    snapshot = parse_snapshot(build_snapshot(record))
    assert snapshot.record == record
    assert snapshot.manifest_lists == ("a", "b")
    list_is_missing = '{"id": 1, "schemaId": 0, "baseManifestList": "a"}'
    for content in (
        "[]",
        "3",
        "{",
        '{"id": "1"}',
        list_is_missing,
        "[" * 100_000,
        '{"id":' + "9" * 5000 + "}",
    ):
        with pytest.raises(UnreadableError):
            parse_snapshot(content.encode())


def test_an_error_names_its_file(files: LocalFolders, new_table: NewTable, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="not a Paimon table"):
        open_table(files, str(tmp_path))
    maker = new_table()
    table = open_table(files, str(maker.root))
    assert (table.snapshot, table.live_files) == (None, ())
    maker.commit(NewFile(COLUMNS))
    maker.manifests.append(maker.manifests[0])
    maker.commit(NewFile(COLUMNS))
    with pytest.raises(UnreadableError, match="twice"):
        names(files, maker)
    (maker.root / "snapshot" / "snapshot-2").unlink()
    (maker.root / "snapshot" / "LATEST").write_text("1")
    manifest, snapshot = (
        maker.root / "manifest" / "manifest-1",
        maker.root / "snapshot" / "snapshot-1",
    )
    for act, path, message in (
        (lambda: manifest.write_bytes(b"Obj"), manifest, "manifest-1"),
        (manifest.unlink, manifest, "no such file"),
        (lambda: snapshot.write_text(json.dumps({"id": 1})), snapshot, "schemaId is missing"),
    ):
        act()
        with pytest.raises(UnreadableError, match=message) as caught:
            names(files, maker)
        assert caught.value.file == str(path)


INDEX_FILES = {"file-index.in-manifest-threshold": "1 b"}


def set_option(maker: TableMaker, name: str, value: str) -> None:
    for path in (maker.root / "schema").iterdir():
        schema = json.loads(path.read_bytes())
        schema["options"][name] = value
        path.write_text(json.dumps(schema))


@each(
    "command, directory",
    [
        ("inspect", "a/../../other"),
        ("probe", "/etc"),
        ("verify", "file:/etc"),
        ("add-index", ".."),
        ("add-index", "s3://bucket/x"),
    ],
)
def test_an_option_that_leads_out_of_the_table_is_refused(
    new_table: NewTable, tmp_path, command, directory, capfd
):
    maker = new_table()
    maker.commit(NewFile(columns()))
    set_option(maker, PATH_DIRECTORY, directory)
    before = contents(tmp_path)
    arguments = {"probe": ["id", "1"], "add-index": ["-c", "id"]}.get(command, [])
    assert run(["paimon", command, str(maker.root), *arguments]) == RefusedError.exit_code
    assert f"{PATH_DIRECTORY} leads out of the table: {directory}" in capfd.readouterr().err
    assert contents(tmp_path) == before


def external(new_table: NewTable, path: str, roots: str) -> TableMaker:
    maker = new_table(options={**INDEX_FILES, "data-file.external-paths": roots})
    maker.commit(NewFile(columns(), name="a.parquet", external_path=path))
    return maker


@each(
    "path, roots",
    [
        ("{0}/else/a.parquet", "{0}/elsewhere"),
        ("{0}/else/../secret/a.parquet", "{0}/else"),
        ("{0}/else/a.parquet", ""),
    ],
)
def test_an_external_path_must_be_below_the_declared_ones(files, new_table, tmp_path, path, roots):
    (tmp_path / "else").mkdir()
    maker = external(new_table, path.format(tmp_path), roots.format(tmp_path))
    (live,) = open_table(files, str(maker.root)).live_files
    assert "is not below the table's data-file.external-paths" in str(live.outside)
    assert is_below("file:/a/b/c.parquet", ["file:///a/b"])
    assert is_below("/a/b/c.parquet", [" /x", " /a/b/ "])
    assert not is_below("/a/bc/c.parquet", ["/a/b"])
    assert not is_below("/a/b/../c.parquet", ["/a/b"])
    assert not is_below("/a/b/c.parquet", ["", " "])


@pytest.fixture
def linked(new_table: NewTable, tmp_path: Path) -> TableMaker:
    """A table of two data files; one of them is a link to a file outside the table."""
    maker = new_table(options=INDEX_FILES)
    maker.commit(NewFile(columns(), name="a.parquet"), NewFile(columns(100), name="b.parquet"))
    secret = tmp_path / "secret.parquet"
    (maker.root / "bucket-0" / "b.parquet").rename(secret)
    (maker.root / "bucket-0" / "b.parquet").symlink_to(secret)
    return maker


def test_a_link_out_of_the_table_is_left_out(linked, tmp_path):
    report = add_paimon_index(str(linked.root), ["s"])
    assert [row.data_file for row in report.new_indexes] == ["a.parquet"]
    assert [(file.data_file, file.reason) for file in report.skipped] == [
        ("b.parquet", f"the file is outside the table, at {tmp_path}/secret.parquet")
    ]
    findings = [
        finding
        for finding in inspect_paimon(str(linked.root)).findings
        if finding.rule == "outside-table"
    ]
    assert [finding.file for finding in findings] == ["b.parquet"]
    # It may hold any value.
    probed = probe_paimon(str(linked.root), "s", ["nowhere"])
    assert {file.data_file: file.answers[0].may_hold for file in probed.files} == {
        "a.parquet": False,
        "b.parquet": True,
    }


def test_with_allow_outside_it_is_read_and_nothing_written_outside(linked, tmp_path):
    report = add_paimon_index(str(linked.root), ["s"], allow_outside=True)
    assert sorted(row.data_file for row in report.new_indexes) == ["a.parquet", "b.parquet"]
    # The index is beside the link, in the table.
    assert (linked.root / "bucket-0" / "b.parquet.index").is_file()
    assert sorted(os.listdir(tmp_path)) == sorted(
        {linked.root.relative_to(tmp_path).parts[0], "secret.parquet"}
    )
    assert not verify_paimon(str(linked.root), allow_outside=True).has_false_negatives


def test_an_index_file_outside_is_not_read(linked, tmp_path):
    add_paimon_index(str(linked.root), ["s"], allow_outside=True)
    index = linked.root / "bucket-0" / "a.parquet.index"
    index.rename(tmp_path / "stolen.index")
    index.symlink_to(tmp_path / "stolen.index")
    files = {file.data_file: file for file in verify_paimon(str(linked.root)).files}
    assert "leads outside the table" in str(files["a.parquet"].problem)
    assert "is outside the table" in str(files["b.parquet"].problem)


@each("part", ["manifest", "schema", "snapshot", "bucket-0"])
def test_folders_that_lead_out_are_not_followed(new_table, tmp_path, part):
    maker = new_table(options=INDEX_FILES)
    maker.commit(NewFile(columns(), name="a.parquet"))
    (maker.root / part).rename(tmp_path / "moved")
    (maker.root / part).symlink_to(tmp_path / "moved")
    before = contents(tmp_path)
    if part == "bucket-0":
        assert [file.data_file for file in add_paimon_index(str(maker.root), ["s"]).skipped] == [
            "a.parquet"
        ]
    else:
        with pytest.raises(UnreadableError, match="leads outside the table"):
            add_paimon_index(str(maker.root), ["s"])
    assert contents(tmp_path) == before
