"""DuckLake tables in catalogs of DuckDB and SQLite: live files, names of columns, and commits. The
catalogs are made by SQL."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool import add_filters, inspect
from sbbf_tool.cli import run
from sbbf_tool.display import redact, redact_text
from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, UsageError, WriteError
from sbbf_tool.extensions.tables.copies import delete_abandoned, find_unreferenced
from sbbf_tool.extensions.tables.ducklake import catalog
from sbbf_tool.extensions.tables.ducklake.catalog import TableName, parse_name
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.file.table_file import new_run
from support.ducklakes import CHANGE, SmallLake, copy_with_filters, fill
from support.tables import each


@pytest.fixture(params=["sqlite", pytest.param("duckdb", marks=pytest.mark.slow)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SmallLake:
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="the Python package duckdb is not installed")
    return SmallLake(tmp_path, request.param)


@pytest.fixture
def sqlite_lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, "sqlite")


def prepare(lake: SmallLake, files: int = 1) -> tuple[DuckLakeTable, list[Replacement]]:
    """Add files to a lake; return its table and copies of these files."""
    for _ in range(files):
        lake.add_file()
    table = DuckLakeTable(lake.events)
    return table, copy_with_filters(table, "user_id")


@each(
    "text, expected",
    [
        ("ducklake:/x/m.ducklake", ("duckdb", "/x/m.ducklake", None, None)),
        ("ducklake:duckdb:/x/m.ducklake#events", ("duckdb", "/x/m.ducklake", None, "events")),
        (
            "ducklake:sqlite:/x/m#1.sqlite#sales.events",
            ("sqlite", "/x/m#1.sqlite", "sales", "events"),
        ),
        ('ducklake:/x/m#"a.b"."c#d""e"', ("duckdb", "/x/m", "a.b", 'c#d"e')),
        (
            "ducklake:postgres:dbname=lake host=h#events",
            ("postgres", "dbname=lake host=h", None, "events"),
        ),
        (
            "ducklake:postgres:postgresql://u:p@h:5432/lake",
            ("postgres", "postgresql://u:p@h:5432/lake", None, None),
        ),
    ],
)
def test_names(text, expected):
    assert parse_name(text) == TableName(text, *expected)


def test_passwords_are_in_no_error_and_no_marker():
    for text in (
        "ducklake:postgres:dbname=lake password=secret#main.events",
        "ducklake:postgres:dbname=lake password = 'secret s'#main.events",
        "ducklake:postgres:postgresql://me:secret@host/lake#main.events",
    ):
        assert "secret" not in redact(text)
        assert "secret" not in redact_text(f"name it {text}")
        assert (redact(text)[:18], redact(text)[-12:]) == ("ducklake:postgres:", "#main.events")
    for text in (
        "ducklake:postgres:postgresql://me:se#cret@host/lake",
        "ducklake:postgres:dbname=lake password=se#cret.x.y host=h",
    ):
        assert "cret" not in redact(text)
    names = [
        parse_name(f"ducklake:postgres:dbname=lake password={password}#events")
        for password in ("one", "two")
    ]
    assert len({name.marker_text(table) for name in names for table in (1, 2)}) == 2


@each("table", ["a.b.c", "s2.odd #.name", '"ev', ".ev", 'x"y'])
def test_the_table_of_a_name_has_one_form(tmp_path, table):
    for catalog_name in (f"ducklake:{tmp_path}/m", "ducklake:postgres:dbname=lake"):
        with pytest.raises(
            UsageError,
            match=r"text after the # is no name of a table; "
            r"write #TABLE or #SCHEMA\.TABLE; a part with",
        ):
            parse_name(f"{catalog_name}#{table}")


def test_only_copies_of_runs_of_the_catalog_are_abandoned(tmp_path):
    """Two catalogs have one data path, and a copy in a snapshot of one is in no snapshot of the
    other."""
    first, second = SmallLake(tmp_path / "a", "sqlite"), SmallLake(tmp_path / "b", "sqlite")
    second.run("update ducklake_metadata set value = ? where key = 'data_path'", f"{first.data}/")
    first.add_file()
    run = new_run()
    fill(first.events, "user_id", f"sbbf-{run}-00000000")
    table, foreign = DuckLakeTable(first.events), DuckLakeTable(second.events)
    assert table.location == foreign.location
    dead = Path(table.location, f"sbbf-{run}-11111111-x.parquet")
    dead.touch()
    assert find_unreferenced(table, 0)[0] == find_unreferenced(foreign, 0)[0] == []
    marker = Path(table.location, f"_sbbf-run-{run}-{int(time.time()) - 310}")
    marker.write_text(table.marker_text)
    assert find_unreferenced(foreign, 0)[0] == []
    delete_abandoned(foreign, (), 0)
    assert marker.exists()
    abandoned = find_unreferenced(table, 0)[0]
    assert [copy.path for copy in abandoned] == [str(dead)]
    delete_abandoned(table, abandoned, 0)
    assert not marker.exists()
    assert [Path(file.path).exists() for file in table.live_files()] == [True]


def test_live_files_are_those_of_the_newest_snapshot(lake):
    live = lake.add_file()
    lake.add_file(begin_snapshot=3, end_snapshot=5)
    table = DuckLakeTable(lake.events)
    assert [file.path for file in table.live_files()] == [live]
    assert [file.bytes for file in table.live_files()] == [Path(live).stat().st_size]
    assert (table.version, table.location, table.format) == (
        "snapshot 7",
        str(lake.data / "main" / "events"),
        "DuckLake",
    )
    table = DuckLakeTable(lake.events)  # which stays at its snapshot
    lake.add_file(begin_snapshot=8)
    lake.run("update ducklake_data_file set end_snapshot = 8 where data_file_id = 1")
    lake.insert("snapshot", snapshot_id=8)
    assert [file.path for file in table.live_files()] == [live]


def test_columns_of_an_added_file_are_found_by_its_mapping(lake):
    lake.add_file(mapping_id=9)
    lake.add_file()
    lake.insert("column_mapping", mapping_id=9, table_id=1, type="map_by_name")
    for id, source, target, parent in (
        (0, "old_id", 1, None),
        (1, "s", 2, None),
        (2, "x", 3, 1),
        (3, "tags", 5, None),
        (4, "list", 6, 3),
    ):
        lake.insert(
            "name_mapping",
            mapping_id=9,
            column_id=id,
            source_name=source,
            target_field_id=target,
            parent_column=parent,
        )
    foreign, own = DuckLakeTable(lake.events).live_files()
    assert own.columns is None
    assert foreign.columns is not None
    assert foreign.columns.by_id == {}
    assert foreign.columns.by_path == {
        ("old_id",): ("user_id",),
        ("s",): ("s",),
        ("s", "x"): ("s", "a"),
        ("tags",): ("tags",),
    }


def test_partition_keys_that_a_file_lacks_may_have_any_value(sqlite_lake):
    for partition, column, transform in ((5, 1, "year"), (6, 3, "year"), (7, 1, "identity")):
        sqlite_lake.insert(
            "partition_column",
            partition_id=partition,
            table_id=1,
            partition_key_index=0,
            column_id=column,
            transform=transform,
        )
        sqlite_lake.add_file(partition={0: "17"}, partition_id=partition)
    sqlite_lake.add_file()
    live_files = list(DuckLakeTable(sqlite_lake.events).live_files())
    assert [file.partition for file in live_files] == [{}, {"year": "17"}, {"user_id": "17"}, {}]
    assert [file.unknown for file in live_files] == [
        {"user_id", "year"},
        {"user_id"},
        {"year"},
        {"user_id", "year"},
    ]


def test_the_only_table_needs_no_name(lake):
    with pytest.raises(
        UsageError, match=r'2 tables; add #TABLE; the tables are main.events, sales."a.b"'
    ):
        DuckLakeTable(lake.name)
    with pytest.raises(
        UsageError, match=r'has no table \'event\'; the tables are main.events, sales."a.b"'
    ):
        DuckLakeTable(f"{lake.name}#event")
    assert DuckLakeTable(f'{lake.name}#SALES."a.b"').location.endswith("/data/sales/ab")
    lake.run("update ducklake_table set end_snapshot = 6 where table_id = 2")
    assert DuckLakeTable(lake.name).location.endswith("/data/main/events")


def test_a_commit_changes_the_rows_of_data_files(lake):
    first, second = lake.add_file(), lake.add_file("day=1/b.parquet")
    commit = fill(lake.events, "user_id")
    assert (commit.version, commit.num_files, commit.vanished, commit.rebuilds, commit.undo) == (
        "snapshot 7",
        2,
        (),
        0,
        None,
    )
    rows = lake.run(
        "select path, path_is_relative, file_size_bytes, footer_size from ducklake_data_file "
        "order by data_file_id"
    )
    copies = [Path(file.path) for file in DuckLakeTable(lake.events).live_files()]
    assert [copy.parent for copy in copies] == [Path(first).parent, Path(second).parent]
    for (path, is_relative, size, footer), copy in zip(rows, copies, strict=True):
        data = copy.read_bytes()
        assert (bool(is_relative), size, footer) == (
            True,
            len(data),
            int.from_bytes(data[-8:-4], "little"),
        )
        assert copy == lake.data / "main" / "events" / path
        assert inspect(copy).columns
    scheduled = lake.run(
        "select data_file_id, path, path_is_relative from ducklake_files_scheduled_for_deletion "
        "order by 1"
    )
    assert [(id, path, bool(flag)) for id, path, flag in scheduled] == [
        (1, "main/events/ducklake-1.parquet", True), (2, "main/events/day=1/b.parquet", True),
    ]  # fmt: skip
    ((start,),) = lake.run(
        "select cast(min(schedule_start) as varchar) from ducklake_files_scheduled_for_deletion"
    )
    assert str(start).startswith("20")


def test_an_added_file_keeps_its_folder_and_its_absolute_path(sqlite_lake):
    path = sqlite_lake.add_file(
        str(sqlite_lake.folder / "elsewhere" / "day=2026-01-01" / "x.parquet")
    )
    fill(sqlite_lake.events, "user_id")
    ((stored, is_relative),) = sqlite_lake.run(
        "select path, path_is_relative from ducklake_data_file"
    )
    assert not is_relative
    assert Path(stored).parent == Path(path).parent
    ((scheduled, is_relative),) = sqlite_lake.run(
        "select path, path_is_relative from ducklake_files_scheduled_for_deletion"
    )
    assert (scheduled, bool(is_relative)) == (path, False)


@each(
    "change",
    [
        "update ducklake_data_file set path = 'compacted.parquet' where data_file_id = 1",
        "update ducklake_data_file set end_snapshot = 8 where data_file_id = 1",
        "delete from ducklake_data_file where data_file_id = 1",
        "update ducklake_data_file set encryption_key = 'k' where data_file_id = 1",
    ],
)
def test_a_file_that_changed_meanwhile_is_left_out(tmp_path, change):
    lake = SmallLake(tmp_path, "sqlite")
    table, replacements = prepare(lake, 2)
    first, second = (replacement.old_path for replacement in replacements)
    lake.run(change)
    before = lake.run("select * from ducklake_data_file where data_file_id = 1")
    commit = table.commit(replacements, CHANGE)
    assert (commit.num_files, commit.vanished) == (1, (first,))
    assert lake.run("select * from ducklake_data_file where data_file_id = 1") == before
    assert lake.run("select data_file_id from ducklake_files_scheduled_for_deletion") == [(2,)]
    assert second not in [file.path for file in DuckLakeTable(lake.events).live_files()]


def test_a_file_that_other_rows_name_is_not_scheduled_for_deletion(sqlite_lake):
    table, replacements = prepare(sqlite_lake)
    path = replacements[0].old_path
    sqlite_lake.add_file(path, table_id=2)
    assert table.commit(replacements, CHANGE).num_files == 1
    assert sqlite_lake.run("select * from ducklake_files_scheduled_for_deletion") == []
    assert path not in [file.path for file in DuckLakeTable(sqlite_lake.events).live_files()]


def test_a_catalog_of_duckdb(fixtures, tmp_path, monkeypatch):
    """Its data path is relative to the folder in which the commands run."""
    shutil.copytree(fixtures / "ducklake", tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    name = "ducklake:sqlite:lake/metadata.sqlite"
    table = DuckLakeTable(name)
    assert (table.version, table.location) == (
        "snapshot 5",
        str(tmp_path / "lake" / "data" / "main" / "orders"),
    )
    assert table.columns.by_id == {1: ("customer",), 2: ("amount",), 3: ("day",)}
    assert fill(name, "user_id").num_files == 3
    files = [Path(file.path) for file in DuckLakeTable(name).live_files()]
    assert all("user_id" in {chunk.column for chunk in inspect(file).filters} for file in files)


def test_files_that_cannot_be_replaced_have_a_reason(sqlite_lake):
    sqlite_lake.add_file(encryption_key="a2V5")
    sqlite_lake.add_file(file_format="orc")
    path = sqlite_lake.add_file()
    sqlite_lake.add_file(path)
    (sqlite_lake.folder / "orders" / "_delta_log").mkdir(parents=True)
    sqlite_lake.add_file(str(sqlite_lake.folder / "orders" / "a.parquet"))
    sqlite_lake.add_file("../../x.parquet")
    elsewhere = sqlite_lake.folder / "elsewhere"
    elsewhere.mkdir()
    location = Path(DuckLakeTable(sqlite_lake.events).location)
    location.mkdir(parents=True, exist_ok=True)
    (location / "lnk").symlink_to(elsewhere)
    sqlite_lake.add_file("lnk/x.parquet")
    reasons = [file.unchangeable for file in DuckLakeTable(sqlite_lake.events).live_files()]
    assert reasons == [
        "it is encrypted with a key of the catalog",
        "its format is orc, not Parquet",
        "the catalog names it more than once",
        "the catalog names it more than once",
        f"it also belongs to the Delta table {sqlite_lake.folder / 'orders'}",
        "its path leads out of the table's folder",
        f"a link in its path leads out of the table's folder, to {elsewhere}",
    ]


def die_in_a_change(database: Path) -> None:
    """Leave the journal of a writer that was killed before it committed."""
    program = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("pragma cache_size = 1")
connection.execute("begin")
connection.execute("update ducklake_data_file set path = 'gone.parquet'")
connection.execute("create table pages (page text)")
for _ in range(100):
    connection.execute("insert into pages values (hex(randomblob(4000)))")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(database)], check=False)
    assert database.with_name(f"{database.name}-journal").stat().st_size


@each(
    "command", [["inspect"], ["repair", "--dry-run"], ["add-filter", "-c", "user_id", "--in-place"]]
)
def test_the_change_of_a_writer_that_died_is_undone(command):
    with tempfile.TemporaryDirectory() as folder:
        lake = SmallLake(Path(folder), "sqlite")
        lake.add_file()
        die_in_a_change(lake.path)
        assert run([command[0], lake.events, *command[1:]]) == 0
        assert "gone.parquet" not in DuckLakeTable(lake.events).live_files()[0].path


@contextmanager
def without_rights() -> Iterator[None]:
    """Run a block as a user who has no rights of root."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_change_that_may_not_be_undone_is_named(capsys):
    """Without the permission to write, the error says who can open the catalog."""
    with tempfile.TemporaryDirectory() as name:
        lake = SmallLake(Path(name), "sqlite")
        lake.add_file()
        assert run(["inspect", lake.events]) == 0  # all modules are imported
        die_in_a_change(lake.path)
        for path in [*Path(name).rglob("*"), Path(name)]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        capsys.readouterr()
        with without_rights():
            code = run(["inspect", lake.events])
        Path(name).chmod(0o755)
    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (3, 1), error
    assert "a writer ended in the middle of a change" in error
    assert "as a user who may write to it" in error


def test_a_copy_that_is_missing_or_that_changed_stops_the_commit(sqlite_lake):
    table, (replacement,) = prepare(sqlite_lake)
    copy = Path(replacement.new_path)
    data = copy.read_bytes()
    before = sqlite_lake.run("select * from ducklake_data_file")
    for change, error in (
        (copy.unlink, WriteError),
        (lambda: copy.write_bytes(data[:-1]), ChangedError),
    ):
        change()
        with pytest.raises(error):
            table.commit([replacement], CHANGE)
    copy.write_bytes(data[:-4] + b"PARE")
    with pytest.raises(WriteError, match="not a Parquet file"):
        table.commit([replacement], CHANGE)
    assert sqlite_lake.run("select * from ducklake_data_file") == before


@each("prefix", ["", "sbbf-0123456789abcdef-01234567-"])
def test_a_file_of_ducklake_alone_is_not_changed(sqlite_lake, prefix):
    """Its catalog records the length, and is not beside the file; the name shows whose it is."""
    path = sqlite_lake.write_file(
        sqlite_lake.folder / f"{prefix}ducklake-01a20547-d713-7649-911b-b85f7706109a.parquet"
    )
    with pytest.raises(
        RefusedError,
        match=r"belongs to a DuckLake table .*; name the table itself, ducklake:CATALOG#TABLE",
    ):
        add_filters(path, columns="user_id", in_place=True)
    sqlite_lake.add_file(str(path))
    (file,) = DuckLakeTable(sqlite_lake.events).live_files()
    assert file.unchangeable is None


def test_files_that_any_snapshot_names_are_referenced(lake):
    live, old = lake.add_file(), lake.add_file(end_snapshot=5)
    lake.insert(
        "delete_file",
        delete_file_id=90,
        table_id=1,
        data_file_id=1,
        path="d.parquet",
        path_is_relative=True,
    )
    lake.insert(
        "files_scheduled_for_deletion",
        data_file_id=80,
        path="main/events/s.parquet",
        path_is_relative=True,
    )
    lake.insert(
        "files_scheduled_for_deletion",
        data_file_id=81,
        path="/elsewhere/t.parquet",
        path_is_relative=False,
    )
    folder = lake.data / "main" / "events"
    referenced = {live, old, f"{folder}/d.parquet", f"{folder}/s.parquet", "/elsewhere/t.parquet"}
    table = DuckLakeTable(lake.events)
    assert table.referenced(referenced | {f"{folder}/sbbf-1-0-a.parquet"}) == referenced


@each("version", ["0.1", "0.3-dev1", "1.1", "2.0", "x\ny"])
def test_versions_that_are_not_supported_are_refused(tmp_path, version):
    sqlite_lake = SmallLake(tmp_path, "sqlite")
    table, replacements = prepare(sqlite_lake)
    sqlite_lake.run("update ducklake_metadata set value = ? where key = 'version'", version)
    for change in (table.ensure_changeable, lambda: table.commit(replacements, CHANGE)):
        with pytest.raises(RefusedError, match="which is not supported"):
            change()
    assert sqlite_lake.run("select count(*) from ducklake_files_scheduled_for_deletion") == [(0,)]
    with pytest.raises(
        RefusedError,
        match=r"(?s)version .*, which is not supported; versions 0.2, 0.3, 0.4, 1.0 are supported",
    ):
        DuckLakeTable(sqlite_lake.events)


@each(
    "statement, message",
    [
        ("drop table ducklake_column", "not a DuckLake catalog: it has no table ducklake_column"),
        ("delete from ducklake_metadata where key = 'data_path'", "does not state data_path"),
        ("delete from ducklake_snapshot", "a row of ducklake_snapshot has the value None"),
        (
            "update ducklake_column set parent_column = 3 where column_id in (2, 3)",
            "column 2 is nested more than 100 deep",
        ),
        (
            "update ducklake_column set parent_column = 77 where column_id = 3",
            "column 3 is in column 77, which the table does not have",
        ),
        (
            "update ducklake_column set column_name = null where column_id = 3",
            "a row of ducklake_column has the value None",
        ),
        (
            "update ducklake_data_file set path = null",
            "a row of ducklake_data_file has the value None",
        ),
        (
            "insert into ducklake_metadata values ('version', '1.0', 'table', 1), ('a' || "
            "chr(0), 'b', null, null)",
            "ducklake_metadata",
        ),
    ],
)
def test_metadata_that_contradicts_the_format(lake, statement, message):
    lake.add_file()
    lake.run(
        statement.replace("chr(", "char(") if lake.name.startswith("ducklake:sqlite") else statement
    )
    with pytest.raises(UnreadableError, match=message) as caught:
        list(DuckLakeTable(lake.events).live_files())
    assert lake.events in str(caught.value)


def test_views_and_macros_are_not_run(lake):
    if not lake.name.startswith("ducklake:sqlite"):
        lake.run("create macro max(x) as 99")
        assert DuckLakeTable(lake.events).version == "snapshot 7"
        lake.run("create schema other")
        lake.run("create table other.ducklake_data_file (x int)")
    assert DuckLakeTable(lake.events).version == "snapshot 7"
    value = (
        "hex(zeroblob(8000000))"
        if lake.name.startswith("ducklake:sqlite")
        else "repeat('x', 8000000)"
    )
    for columns in ("path varchar", f"x int, path varchar generated always as ({value})"):
        lake.run("drop table ducklake_name_mapping")
        lake.run(f"create table ducklake_name_mapping ({columns})")
    with pytest.raises(UnreadableError, match="no table ducklake_name_mapping"):
        DuckLakeTable(lake.events)
    lake.run("drop table ducklake_data_file")
    lake.run("create view ducklake_data_file as select 1 as data_file_id")
    with pytest.raises(UnreadableError, match="no table ducklake_data_file"):
        DuckLakeTable(lake.events)


@each(
    "statement",
    [
        "update ducklake_data_file set path = x'00ff'",
        "update ducklake_data_file set path_is_relative = 2",
        "update ducklake_data_file set path = cast(x'ff2e' as text)",
        "update ducklake_data_file set path = hex(zeroblob(40000))",
    ],
)
def test_values_of_wrong_types_in_sqlite(sqlite_lake, statement):
    sqlite_lake.add_file()
    sqlite_lake.run(statement)
    with pytest.raises(UnreadableError, match=r"which is of a wrong type|cannot be read"):
        list(DuckLakeTable(sqlite_lake.events).live_files())


def test_triggers_are_not_run(sqlite_lake):
    """One could take for ever, and hold back an interrupt."""
    table, replacements = prepare(sqlite_lake)
    endless = (
        "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c"
    )
    sqlite_lake.run(
        f"create trigger t before update on ducklake_data_file begin select ({endless}); end"
    )
    before = sqlite_lake.run("select * from ducklake_data_file")
    for change in (table.ensure_changeable, lambda: table.commit(replacements, CHANGE)):
        with pytest.raises(RefusedError, match="cannot be changed: a trigger or a view would run"):
            change()
    assert sqlite_lake.run("select * from ducklake_data_file") == before


def test_files_of_other_servers_leave_the_table_readable(sqlite_lake):
    for path in ("http://127.0.0.1:1/x.parquet", "ftp://host/x.parquet"):
        sqlite_lake.insert(
            "data_file",
            data_file_id=len(path),
            table_id=1,
            begin_snapshot=0,
            path=path,
            path_is_relative=False,
            file_format="parquet",
        )
    reasons = [file.unchangeable for file in DuckLakeTable(sqlite_lake.events).live_files()]
    assert sorted(map(str, reasons)) == [
        f"it is unknown whose it is: {problem}"
        for problem in ("an HTTP server does not list its files", "unknown URL scheme ftp://")
    ]


def test_files_that_are_no_catalog(tmp_path):
    pytest.importorskip("duckdb", reason="the Python package duckdb is not installed")
    (tmp_path / "text").write_text("hello " * 2000)
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    for name, problem in (
        ("text", "cannot be read"),
        ("none", "no such file"),
        ("empty.sqlite", "DuckLake catalog"),
    ):
        for database in ("", "sqlite:"):
            with pytest.raises(UnreadableError, match=problem):
                DuckLakeTable(f"ducklake:{database}{tmp_path / name}")
    assert not (tmp_path / "none").exists()


def test_a_catalog_that_another_process_has_locked(sqlite_lake, monkeypatch):
    table, replacements = prepare(sqlite_lake)
    monkeypatch.setattr(catalog, "WAIT_SECONDS", 0.05)
    holder = sqlite3.connect(sqlite_lake.path, isolation_level=None)
    holder.execute("begin immediate")
    for call in (table.ensure_changeable, lambda: table.commit(replacements, CHANGE)):
        with pytest.raises(
            ChangedError,
            match="another process has the DuckLake catalog open; run the command again",
        ):
            call()
    holder.execute("rollback")
    holder.execute("begin")
    holder.execute(
        "select * from ducklake_data_file"
    ).fetchone()  # a reader, too, stops the commit whole
    with pytest.raises(ChangedError):
        table.commit(replacements, CHANGE)
    holder.close()
    assert [file.path for file in DuckLakeTable(sqlite_lake.events).live_files()] == [
        replacements[0].old_path
    ]
    assert table.commit(replacements, CHANGE).num_files == 1
    unknown = Replacement(
        "/elsewhere/x.parquet", replacements[0].new_path, replacements[0].new_bytes, 0
    )
    assert table.commit([unknown], CHANGE).vanished == ("/elsewhere/x.parquet",)
    for name in ("table", "data_file", "column"):
        sqlite_lake.run(f"update ducklake_{name} set end_snapshot = 8")
    assert table.commit(replacements, CHANGE).vanished == (replacements[0].old_path,)


def test_an_error_within_the_transaction_undoes_it(lake):
    table, replacements = prepare(lake, 2)
    before = lake.run("select * from ducklake_data_file")
    lake.run("alter table ducklake_files_scheduled_for_deletion rename column path to p")
    with pytest.raises(RefusedError, match="cannot be changed"):
        table.commit(replacements, CHANGE)
    assert lake.run("select * from ducklake_data_file") == before
