"""DuckLake itself, DuckDB with its extension, on tables that got filters: the same rows in all
snapshots, and later changes go on.

Each version of DuckDB writes another version of the catalog. DuckDB of this environment reads
catalogs of newer versions, so SQLite is the catalog where versions differ.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError
from sbbf_tool.extensions.tables.ducklake import catalog
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from support.ducklakes import CHANGE, SCHEMA, DuckDB, DuckLakeError, copy_with_filters, fill
from support.environments import NotInstallableError
from support.present import count_present

pytestmark = [
    pytest.mark.nightly(minutes=1),
    pytest.mark.environment(minutes=1),
    pytest.mark.timeout(600),
]

NEWEST = "1.5.5"
CATALOG_VERSIONS = {"1.3.2": "0.2", "1.4.4": "0.3", "1.5.0": "0.4", NEWEST: "1.0"}
Rows = list[list[object]]


def start(version: str = NEWEST) -> DuckDB:
    try:
        return DuckDB(version)
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture
def duckdb() -> Iterator[DuckDB]:
    with start() as database:
        yield database


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[str]:
    """Connection string of a PostgreSQL server that runs for one test."""
    pytest.importorskip("psycopg", reason="the Python package psycopg is not installed")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed")
    folder = (
        Path("/tmp") / f"sbbf-postgres-{os.getpid()}"
    )  # the path of its socket has at most 107 bytes
    folder.mkdir(mode=0o700)
    user = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = {"user": owner.pw_uid, "group": owner.pw_gid}
    data = folder / "data"
    run = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/", **user}
    subprocess.run([programs[-1], "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"], **run)
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    control = [programs[-1].parent / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], **run)
    try:
        yield f"host={folder} user=postgres dbname=postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **run)
        shutil.rmtree(folder)


class Lake:
    """A DuckLake in one of the databases, with a partitioned table `events` of several snapshots,
    deleted rows among them."""

    def __init__(self, database: DuckDB, folder: Path, place: str) -> None:
        self._database = database
        self.name = f"ducklake:{place}#events"
        self._attach = f"attach 'ducklake:{place}' as l (data_path '{folder}/data/')"
        database.run(self._attach)

    def create(self) -> None:
        self.run("create table l.events(id bigint, name varchar, day date)")
        self.run("alter table l.events set partitioned by (day)")
        self.run(
            "insert into l.events select i, 'n' || i, date '2026-01-01' + (i % 3)::int from "
            "range(9000) r(i)"
        )
        self.run("delete from l.events where id % 100 = 0")
        self.run(
            "insert into l.events select i, 'n' || i, date '2026-01-01' + (i % 3)::int from "
            "range(9000, 12000) r(i)"
        )
        self.run("delete from l.events where id = 5")

    def run(self, query: str) -> Rows:
        return self._database.run(query)

    def fill(self, column: str, run: str) -> int:
        """Give the table filters. A catalog in a DuckDB file is detached first: only one process
        can have it open."""
        self.run("detach l")
        commit = fill(self.name, column, run)
        self.run(self._attach)
        assert commit.vanished == ()
        return commit.num_files

    def history(self) -> dict[object, Rows]:
        """Return a digest of the rows of each snapshot that has the table."""
        versions = self.run("select snapshot_id from ducklake_snapshots('l') where snapshot_id > 0")
        return {version: self.rows(f"at (version => {version})") for (version,) in versions}

    def rows(self, at: str = "") -> Rows:
        return self.run(
            f"select count(*), sum(hash(id, name, day)), min(id), max(id) from l.events {at}"
        )


def place_of(database: str, folder: Path) -> str:
    return {"sqlite": f"sqlite:{folder}/metadata.sqlite", "duckdb": f"{folder}/metadata.ducklake"}[
        database
    ]


def live_through(lake: Lake) -> None:
    """Give a table filters between other changes; compare the rows of all snapshots after each
    step."""
    lake.create()
    history = lake.history()
    assert lake.fill("name", "sbbf-test-1") == 6
    assert lake.history() == history
    assert lake.run("select id from l.events where name = 'n7777'") == [[7777]]
    lake.run("delete from l.events where id % 7 = 0")
    lake.run("update l.events set name = 'u' || id where id % 11 = 0")
    lake.run("insert into l.events values (99999, 'z', date '2026-01-02')")
    rows, history = lake.rows(), lake.history()
    assert len(lake.run("call ducklake_cleanup_old_files('l', cleanup_all => true)")) >= 6
    assert lake.history() == history
    for call in (
        "ducklake_merge_adjacent_files('l')",
        "ducklake_rewrite_data_files('l', 'events', delete_threshold => 0.01)",
    ):
        try:
            lake.run(f"call {call}")
        except DuckLakeError as error:
            # Old versions do not have it; 1.4.4 fails on partitions, with or without filters.
            if "does not exist" not in str(error) and "different hive partition path" not in str(
                error
            ):
                raise
    assert lake.rows() == rows
    history = lake.history()
    assert lake.fill("id", "sbbf-test-2") >= 3
    assert lake.history() == history
    lake.run("call ducklake_cleanup_old_files('l', cleanup_all => true)")
    assert lake.history() == history
    files = (
        {file.path for file in DuckLakeTable(lake.name).live_files()}
        if "sqlite" in lake.name
        else set()
    )
    assert all(Path(path).is_file() for path in files)
    lake.run("call ducklake_expire_snapshots('l', older_than => now())")
    lake.run("call ducklake_cleanup_old_files('l', cleanup_all => true)")
    assert lake.rows() == rows


@pytest.mark.parametrize("version", CATALOG_VERSIONS)
def test_versions_of_the_catalog(version, tmp_path):
    with start(version) as database:
        lake = Lake(database, tmp_path, place_of("sqlite", tmp_path))
        ((catalog_version,),) = lake.run(
            "select value from __ducklake_metadata_l.ducklake_metadata where key = 'version'"
        )
        assert catalog_version == CATALOG_VERSIONS[version]
        live_through(lake)


def test_a_catalog_in_duckdb(duckdb, tmp_path):
    live_through(Lake(duckdb, tmp_path, place_of("duckdb", tmp_path)))


def test_a_catalog_in_postgres(duckdb, postgres, tmp_path):
    live_through(Lake(duckdb, tmp_path, f"postgres:{postgres}"))


def test_files_that_were_added_keep_the_partition_values_of_their_folders(duckdb, tmp_path):
    folder = tmp_path / "elsewhere" / "day=2026-01-01"
    folder.mkdir(parents=True)
    duckdb.run(
        f"copy (select i as id, 'n' || i as name from range(3000) r(i)) to '{folder}/x.parquet'"
    )
    place = place_of("sqlite", tmp_path)
    lake = Lake(duckdb, tmp_path, place)
    lake.run("create table l.events(id bigint, name varchar, day date)")
    lake.run("alter table l.events set partitioned by (day)")
    lake.run(
        f"call ducklake_add_data_files('l', 'events', '{folder}/x.parquet', hive_partitioning => "
        "true)"
    )
    lake.run("alter table l.events rename column name to label")
    query = "select day, count(*), max(label) from l.events group by day"
    rows = lake.run(query)
    (file,) = DuckLakeTable(lake.name).live_files()
    assert file.columns is not None
    assert file.columns.by_path["name",] == ("label",)
    assert file.partition == {"day": "2026-01-01"}
    assert lake.fill("name", "sbbf-test-1") == 1
    assert lake.run(query) == rows
    lake.run("call ducklake_cleanup_old_files('l', cleanup_all => true)")
    assert lake.run(query) == rows


def test_operators_and_views_of_a_catalog_in_postgres_are_not_run(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute(SCHEMA)
        database.execute("create schema evil")
        database.execute(
            "create function evil.eq(text, text) returns bool language plpgsql as $$ begin raise "
            "'run'; end $$"
        )
        database.execute(
            "create operator evil.= (leftarg = text, rightarg = text, function = evil.eq)"
        )
        database.execute("alter database postgres set search_path = evil, public, pg_catalog")
        with pytest.raises(RefusedError, match="has version none"):
            DuckLakeTable(f"ducklake:postgres:{postgres}")
        database.execute("alter table public.ducklake_data_file set schema evil")
        database.execute(
            "create view public.ducklake_data_file as select * from evil.ducklake_data_file"
        )
        database.execute("alter database postgres set search_path = public")
        with pytest.raises(UnreadableError, match="it has no table ducklake_data_file"):
            DuckLakeTable(f"ducklake:postgres:{postgres}")


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_changes_by_others_meanwhile(duckdb, database, tmp_path, request):
    """Another process inserts, deletes, merges and rewrites while filters are added again and
    again: no row is lost or doubled."""
    place = (
        place_of("sqlite", tmp_path)
        if database == "sqlite"
        else f"postgres:{request.getfixturevalue('postgres')}"
    )
    lake = Lake(duckdb, tmp_path, place)
    lake.run("create table l.events(id bigint, name varchar)")
    lake.run("call l.set_option('data_inlining_row_limit', 0)")
    for first in range(0, 6000, 2000):
        lake.run(
            f"insert into l.events select i, 'n' || i from range({first}, {first + 2000}) r(i)"
        )
    ids = set(range(6000))
    end = time.monotonic() + 12

    def change(draw: random.Random) -> None:
        first = 100_000
        with DuckDB(NEWEST) as writer:
            writer.run(f"attach 'ducklake:{place}' as l")
            while time.monotonic() < end:
                kind, share = (
                    draw.choice(["insert", "delete", "merge", "rewrite"]),
                    draw.randrange(200),
                )
                statement = {
                    "insert": f"insert into l.events select i, 'n' || i from range({first}, "
                    f"{first + 500}) r(i)",
                    "delete": f"delete from l.events where id % 200 = {share}",
                    "merge": "call ducklake_merge_adjacent_files('l')",
                    "rewrite": "call ducklake_rewrite_data_files('l', 'events', "
                    "delete_threshold => 0.01)",
                }[kind]
                try:
                    writer.run(statement)
                except DuckLakeError:
                    continue  # the catalog was locked
                if kind == "insert":
                    ids.update(range(first, first + 500))
                    first += 500
                elif kind == "delete":
                    ids.difference_update([id for id in ids if id % 200 == share])

    thread = threading.Thread(target=change, args=(random.Random(4),))
    thread.start()
    run = successes = 0
    while time.monotonic() < end:
        run += 1
        table = DuckLakeTable(lake.name)
        try:
            replacements = copy_with_filters(table, ["name", "id"][run % 2], f"sbbf-test-{run}")
        except UnreadableError:
            continue  # the file was removed after the table was read
        commit = table.commit(replacements, CHANGE)
        successes += commit.num_files
    thread.join()
    assert successes > 0
    assert [id for (id,) in lake.run("select id from l.events order by id")] == sorted(ids)
    lake.run("call ducklake_cleanup_old_files('l', cleanup_all => true)")
    assert [id for (id,) in lake.run("select id from l.events order by id")] == sorted(ids)


def test_a_duckdb_catalog_that_another_process_has_open(duckdb, tmp_path, monkeypatch):
    lake = Lake(duckdb, tmp_path, place_of("duckdb", tmp_path))
    lake.create()
    monkeypatch.setattr(catalog, "WAIT_SECONDS", 0.1)
    with pytest.raises(ChangedError, match="another process has the DuckLake catalog open"):
        DuckLakeTable(lake.name)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("inlined", [0, 10])
def test_deleted_rows_are_not_present(duckdb, tmp_path, vectors, inlined):
    """Rows are deleted by files, in Parquet or Puffin, and in the catalog; DuckDB counts the
    others."""
    place = f"sqlite:{tmp_path}/m.sqlite"
    options = f"write_deletion_vectors {vectors}, data_inlining_row_limit {inlined}"
    duckdb.run(f"attach 'ducklake:{place}' as l (data_path '{tmp_path}/data/', {options})")
    duckdb.run("create table l.events as select i as id from range(3000) r(i)")
    duckdb.run("insert into l.events select i as id from range(3000, 4000) r(i)")
    for predicate in ("id % 7 = 0", "id = 50", "id between 1000 and 1500", "id = 51"):
        duckdb.run(f"delete from l.events where {predicate}")
    expected = {number: 1 for (number,) in duckdb.run("select id from l.events")}
    files = {
        row[0]
        for row in duckdb.run(
            "select distinct format from __ducklake_metadata_l.ducklake_delete_file"
        )
    }
    assert files == {"puffin" if vectors else "parquet"}
    name = f"ducklake:{place}#events"
    assert count_present(name, range(4010)) == expected
    assert count_present(name, range(4010), all_versions=True) == dict.fromkeys(range(4000), 1)
    fill(name, "id")
    assert count_present(name, range(4010)) == expected
    duckdb.run("call ducklake_rewrite_data_files('l', 'events', delete_threshold => 0.0)")
    assert count_present(name, range(4010)) == expected
    assert count_present(name, [7, 8], all_versions=True) == {7: 1, 8: 2}
