"""Other readers and writers of Iceberg tables, before, during and after a commit, and kills at its
steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.transforms import IdentityTransform

from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    convert,
    delete_by_position,
    delete_by_vectors,
    edit_metadata,
    ids_of,
    make_copies,
    make_copy,
    newest_metadata,
    open_static,
    open_table,
    rows,
    source_of,
    to_hadoop,
)
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from support.ducklakes import DuckDB
from support.environments import NotInstallableError

pytestmark = [pytest.mark.slow, pytest.mark.engines]

# ClickHouse reads only below its working folder, and a new process has no earlier version of the
# table in a cache.
CLICKHOUSE = """
import chdb, sys
table = f"icebergLocal('{sys.argv[1]}', SETTINGS iceberg_metadata_file_path = '{sys.argv[2]}')"
rows = chdb.query(f"SELECT * FROM {table} {sys.argv[3]} ORDER BY ALL", "TSV")
print(rows.bytes().decode(), end="")
"""


def metadata_of(catalog):
    return Path(catalog.load_table("n.t").metadata_location.removeprefix("file://"))


def read_clickhouse(catalog, where=""):
    path = metadata_of(catalog)
    folder = path.parent.parent
    command = [sys.executable, "-c", CLICKHOUSE, str(folder), os.path.relpath(path, folder), where]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return sorted(tuple(line.split("\t")) for line in answer.stdout.splitlines())


def read_polars(catalog):
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    return sorted(polars.scan_iceberg(catalog.load_table("n.t")).collect().rows())


def test_rows_are_the_same_for_every_reader(catalog, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 50))
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
    table.append(rows(50, 50))
    with table.update_schema() as update:
        update.rename_column("day", "date")
        update.add_column("size", pa_type())
    table.append(pa.table({"id": [1000], "date": ["d0"], "size": [7]}))
    before = (
        ids_of(table),
        read_polars(catalog),
        read_clickhouse(catalog),
        read_clickhouse(catalog, "WHERE id = 70"),
    )
    assert [len(answer) for answer in before] == [101, 101, 101, 1]
    assert convert(open_table(catalog)).num_files == 5
    table.refresh()
    assert (
        ids_of(table),
        read_polars(catalog),
        read_clickhouse(catalog),
        read_clickhouse(catalog, "WHERE id = 70"),
    ) == before
    assert read_clickhouse(catalog, "WHERE id = 101") == []


def pa_type():
    from pyiceberg.types import LongType

    return LongType()


def test_position_deletes(catalog, table, tmp_path):
    file = next(iter(open_table(catalog).live_files()))
    delete_by_position(
        source_of(catalog), tmp_path / "warehouse/n/t", {f"file://{file.path}": [0, 1, 2]}
    )
    before = read_clickhouse(catalog)
    assert len(before) == 197
    assert convert(open_table(catalog)).num_files == 2
    assert read_clickhouse(catalog) == before


def test_clickhouse_uses_the_filters(catalog):
    """With the data pages overwritten, only a reader that skips the row group by its filter has an
    answer."""
    table = catalog.create_table(
        "n.t",
        schema=pa.schema([("id", pa.int64())]),
        properties={"write.parquet.dict-size-bytes": "1"},
    )
    table.append(pa.table({"id": pa.array(range(0, 20_000, 2), pa.int64())}))
    convert(open_table(catalog))
    path = Path(next(iter(open_table(catalog).live_files())).path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    end = (chunk.dictionary_page_offset or start) + chunk.total_compressed_size
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    assert read_clickhouse(catalog, "WHERE id = 9999") == []
    with pytest.raises(AssertionError):
        read_clickhouse(catalog, "WHERE id = 9998")


APPENDER = """
import sys
from pathlib import Path
from pyiceberg.exceptions import CommitFailedException
from extensions.tables.iceberg.iceberg_tables import rows, sql_catalog
catalog = sql_catalog(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    while True:
        try:
            catalog.load_table("n.t").append(rows(number * 10, 10))
            break
        except CommitFailedException:
            pass
"""

CONVERTER = """
import os, sys
from pathlib import Path
from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from support.ducklakes import DuckDB
from support.environments import NotInstallableError
from extensions.tables.iceberg.iceberg_tables import ADD, make_copies, open_table, sql_catalog
total = 0
while True:
    if sys.argv[3] == "catalog":
        table = open_table(sql_catalog(Path(sys.argv[1])))
    else:
        table = open_folder(sys.argv[1])
    made = make_copies(table, run=os.urandom(6).hex())
    copies = [copy for copy in made if "sbbf-" not in copy.old_path]
    if not copies and len(list(table.live_files())) >= int(sys.argv[2]):
        break
    try:
        total += table.commit(copies, ADD).num_files if copies else 0
    except RefusedError as error:
        assert "other commits came first" in str(error)
print(total)
"""

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[3]), str(Path(__file__).parents[4]))),
}


def start(program, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(*processes):
    answers = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), [
        errors[-2000:] for _, errors in answers
    ]
    return [int(output or 0) for output, _ in answers]


@pytest.mark.heavy
def test_a_writer_of_pyiceberg_at_the_same_time(catalog, table, tmp_path):
    _, total = finish(start(APPENDER, tmp_path, 20, 30), start(CONVERTER, tmp_path, 12, "catalog"))
    assert total == 12
    table.refresh()
    assert ids_of(table) == list(range(300))


@pytest.mark.heavy
def test_converters_of_a_hadoop_table_at_the_same_time(catalog, table):
    for start_row in range(200, 300, 10):
        table.append(rows(start_row, 10))
    folder = to_hadoop(table)
    totals = finish(*(start(CONVERTER, folder, 12, "folder") for _ in range(3)))
    assert ids_of(open_static(folder)) == list(range(300))
    assert sum(totals) == 12
    assert all("sbbf-" in file.path for file in open_folder(str(folder)).live_files())


KILLS = """
import os, signal, sys
from extensions.tables.iceberg.iceberg_tables import ADD
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from support.ducklakes import DuckDB
from support.environments import NotInstallableError
from sbbf_tool.extensions.tables.lake_table import Replacement
remaining = int(sys.argv[2])
def kill_at(name, function):
    def step(*arguments, **options):
        global remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return step
for name in ("open", "write", "fsync", "link", "rename", "unlink"):
    setattr(os, name, kill_at(name, getattr(os, name)))
copies = []
for pair in sys.argv[3:]:
    old, new = pair.split("|")
    copies.append(Replacement(old, new, os.path.getsize(new), 0))
open_folder(sys.argv[1]).commit(copies, ADD)
"""


@pytest.mark.heavy(2)
@pytest.mark.parametrize("version", [2, 3])
def test_a_kill_at_any_step_leaves_a_whole_table(catalog, table, tmp_path, version):
    location = f"file://{next(iter(open_table(catalog).live_files())).path}"
    folder = to_hadoop(table)
    if version == 2:
        delete_by_position(FolderSource(str(folder)), tmp_path, {location: [0, 1]})
    else:
        edit_metadata(folder, format_version=3, next_row_id=0)
        delete_by_vectors(FolderSource(str(folder)), tmp_path, {location: [0, 1]})
    expected = ids_of(open_static(folder))
    assert len(expected) == 198
    copies = make_copies(open_folder(str(folder)))
    pairs = [f"{copy.old_path}|{copy.new_path}" for copy in copies]
    for step in range(1, 200, 3):
        before = open_folder(str(folder)).version
        process = start(KILLS, folder, step, *pairs)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGKILL), errors
        after = open_folder(str(folder))
        paths = {file.path for file in after.live_files()}
        new = {copy.new_path for copy in copies}
        assert paths == (new if after.version != before else {copy.old_path for copy in copies})
        assert ids_of(open_static(folder)) == expected
        if after.version != before:
            break
    else:
        raise AssertionError("no commit was made")
    assert convert(open_folder(str(folder))).num_files == 2
    assert not [name for name in os.listdir(folder / "metadata") if name.endswith(".tmp")]
    assert ids_of(open_static(folder)) == expected


@pytest.mark.environment(minutes=2)
@pytest.mark.nightly(2)
@pytest.mark.parametrize("version", [2, 3])
def test_duckdb_reads_the_rows_of_every_snapshot(catalog, table, tmp_path, version):
    """Position delete files of one and of several data files; in format 3, deletion vectors beside
    those from before the upgrade."""
    try:
        duckdb = DuckDB("1.5.5", "duckdb-iceberg", ("avro", "iceberg"))
    except NotInstallableError as error:
        pytest.skip(str(error))
    first, second = [f"file://{file.path}" for file in open_table(catalog).live_files()]
    folder = to_hadoop(table)
    source = FolderSource(str(folder))
    delete_by_position(source, tmp_path, {first: [0, 1], second: [2]})
    if version == 2:
        delete_by_position(source, tmp_path, {first: [1, 99]})
    else:
        edit_metadata(folder, format_version=3, next_row_id=0)
        delete_by_vectors(source, tmp_path, {first: [0, 1, 99]})
    with duckdb:

        def read():
            path = newest_metadata(folder)
            return {
                snapshot: duckdb.run(
                    f"SELECT id, day FROM iceberg_scan('{path}', "
                    f"snapshot_from_id = {snapshot}) ORDER BY id"
                )
                for snapshot in source.load().metadata.snapshots
            }

        before = read()
        assert len(before[source.load().metadata.current.id]) == 196
        iceberg = open_folder(str(folder))
        iceberg.commit([make_copy(iceberg, next(iter(iceberg.live_files())))], ADD)
        assert convert(open_folder(str(folder))).num_files == 2
        after = read()
        assert after.items() >= before.items()
        assert after[source.load().metadata.current.id] == list(before.values())[-1]
