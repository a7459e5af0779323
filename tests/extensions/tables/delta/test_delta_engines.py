"""Query engines on Delta tables with filters: the same rows as before, and pages that a filter
excludes are not read.

The pages of the filtered column are overwritten with zeros: an engine that reads them fails, one
that uses the filter does not."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from pathlib import Path

import deltalake
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.errors import SbbfError
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.running.table import Commit
from support.delta_logs import CHANGE, before_create, copies_of, open_table
from support.delta_tables import copy_table, read_rows
from support.ducklakes import PROGRAM, DuckDB, DuckLakeError
from support.environments import NotInstallableError, install_python
from support.present import count_present
from support.tables import each

SAIL = "pysail==0.7.2", "pyspark-client==4.1.3"


class DeltaDuckDB(DuckDB):
    """DuckDB with its extension for Delta."""

    def __init__(self) -> None:
        super().__init__("1.5.5", "duckdb-delta", ("delta",))


class Sail(DuckDB):
    """Sail, which writes deletion vectors, in-commit timestamps and column mapping."""

    def __init__(self) -> None:
        """Raise NotInstallableError if it cannot be installed."""
        python = install_python("pysail-0.7.2", *SAIL)
        program = PROGRAM.with_name("sail_program.py")
        self._process = subprocess.Popen(
            [str(python), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def read_by_chdb(path: Path | str, columns: str = "*", where: str = "true") -> list[str]:
    """Return rows as text, sorted. A session of its own sees the newest version; ClickHouse reads
    only below its working folder."""
    from chdb.session import Session

    with chdir(os.path.dirname(path)):
        session = Session()
        try:
            answer = session.query(
                f"select {columns} from deltaLakeLocal('{path}') where {where}", "JSONEachRow"
            )
            return sorted(answer.data().splitlines())
        finally:
            session.close()


def zero_pages(path: str, column: str) -> None:
    """Overwrite the pages of a column with zeros, in all row groups; the footer and the filters
    stay."""
    metadata = pq.read_metadata(path)
    with open(path, "r+b") as stream:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for index in range(group.num_columns):
                chunk = group.column(index)
                if chunk.path_in_schema == column:
                    stream.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                    stream.write(bytes(chunk.total_compressed_size))


pytestmark = [pytest.mark.engines, pytest.mark.slow]

in_environment = [
    pytest.mark.nightly(minutes=2),
    pytest.mark.environment(minutes=2),
    pytest.mark.timeout(900),
]

ROOT = os.environ.get("SBBF_CONFORMANCE")
REAL = (
    sorted(path.name for path in (Path(ROOT) / "delta").iterdir() if path.is_dir())
    if ROOT
    else [""]
)
ROWS = 20_000
ABSENT = 2 * (ROWS // 2) + 1

Read = Callable[[Path, int], list[object]]


def start(engine: type[DuckDB]) -> Iterator[DuckDB]:
    try:
        database = engine()  # type: ignore[call-arg]
    except NotInstallableError as error:
        pytest.skip(str(error))
    with database:
        yield database


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDB]:
    yield from start(DeltaDuckDB)


@pytest.fixture(scope="module")
def sail() -> Iterator[DuckDB]:
    yield from start(Sail)


def find_columns(path: str) -> list[str]:
    """Return the columns that take a filter."""
    with ParquetFile.open(path) as file:
        names = [column.name for column in file.footer.columns]
    accepted = []
    for name in names:
        with suppress(SbbfError):
            sbbf_tool.add_filters(
                path, [name], output=f"{path}.trial", allow_table_files=True, dry_run=True, jobs=1
            )
            accepted.append(name)
    return accepted


def add_filters(path: Path | str, columns: list[str] | None) -> Commit:
    """Give all files of a table filters, in one commit; files that take none are left out."""
    table = open_table(path)
    replacements = []
    for file in table.live_files():
        new = table.copy_path(file, f"sbbf-r-1-{os.path.basename(file.path)}")
        try:
            names = find_columns(file.path) if columns is None else columns
            sbbf_tool.add_filters(file.path, names, output=new, allow_table_files=True, jobs=1)
        except SbbfError:
            continue
        replacements.append(
            Replacement(file.path, new, os.path.getsize(new), os.stat(new).st_mtime_ns // 1_000_000)
        )
    return table.commit(replacements, CHANGE)


def make_even_numbers(path: Path) -> Path:
    numbers = list(range(0, 2 * ROWS, 2))
    random.Random(0).shuffle(numbers)
    data = pa.table(
        {"id": pa.array(numbers, pa.int64()), "text": [f"x{number}" for number in numbers]}
    )
    properties = deltalake.WriterProperties(
        default_column_properties=deltalake.ColumnProperties(dictionary_enabled=False)
    )
    deltalake.write_deltalake(path, data, writer_properties=properties)
    return path


def count_by_delta_rs(path: Path, number: int) -> list[object]:
    query = f"select text from t where id = {number}"
    answer = (
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute(query).read_all()
    )
    return pa.table(answer).column("text").to_pylist()


def count_by_chdb(path: Path, number: int) -> list[object]:
    return list(read_by_chdb(path, "text", f"id = {number}"))


def assert_pages_are_skipped(path: Path, read: Read) -> None:
    make_even_numbers(path)
    copy = shutil.copytree(path, path.with_name("without"))
    add_filters(path, ["id"])
    assert len(read(path, 4)) == 1
    assert read(path, ABSENT) == []
    for folder in (path, copy):
        for file in DeltaTable(str(folder)).live_files():
            zero_pages(file.path, "id")
    assert read(path, ABSENT) == []
    with pytest.raises(Exception, match=r".+"):
        read(copy, ABSENT)


@each("read", [count_by_delta_rs, count_by_chdb])
def test_pages_that_a_filter_excludes_are_not_read(tmp_path: Path, read: Read):
    assert_pages_are_skipped(tmp_path / "it", read)


@in_environment[0]
@in_environment[1]
@in_environment[2]
def test_pages_that_a_filter_excludes_are_not_read_by_duckdb_and_sail(
    tmp_path: Path, duckdb: DuckDB, sail: DuckDB
):
    assert_pages_are_skipped(
        tmp_path / "duckdb",
        lambda path, number: duckdb.run(
            f"select text from delta_scan('{path}') where id = {number}"
        ),
    )
    shutil.rmtree(tmp_path / "without")
    assert_pages_are_skipped(
        tmp_path / "sail",
        lambda path, number: sail.run(f"select text from delta.`{path}` where id = {number}"),
    )


def run_or_fail(database: DuckDB, query: str) -> list[str] | None:
    """Return rows as text, sorted; None if the engine cannot read the table."""
    try:
        return sorted(map(repr, database.run(query)))
    except DuckLakeError:
        return None


def chdb_or_fail(path: Path) -> list[str] | None:
    try:
        return read_by_chdb(path)
    except Exception:
        return None


def polars_or_fail(path: Path) -> list[str] | None:
    try:
        return sorted(map(repr, polars.read_delta(str(path)).rows()))
    except (Exception, polars.exceptions.PanicException):
        return None


@in_environment[0]
@in_environment[1]
@in_environment[2]
def test_real_tables_have_the_same_rows_in_all_engines(
    conformance: Path, tmp_path: Path, duckdb: DuckDB, sail: DuckDB
):
    readable = dict.fromkeys(("delta-rs", "DuckDB", "Sail", "ClickHouse", "Polars"), 0)
    count = 0
    for name in REAL:
        path = copy_table(conformance / "delta" / name, tmp_path / name)

        def read(path: Path = path) -> dict[str, list[str] | None]:
            by_delta_rs = read_rows(path)
            return {
                "delta-rs": None if isinstance(by_delta_rs, str) else by_delta_rs,
                "DuckDB": run_or_fail(duckdb, f"select * from delta_scan('{path}')"),
                "Sail": run_or_fail(sail, f"select * from delta.`{path}`"),
                "ClickHouse": chdb_or_fail(path),
                "Polars": polars_or_fail(path),
            }

        before = read()
        try:
            count += add_filters(path, None).num_files
        except SbbfError:
            continue
        after = read()
        assert before == after, name
        shutil.rmtree(path)
        for engine, rows in after.items():
            readable[engine] += rows is not None
    assert count > 200
    assert all(count > 60 for count in readable.values()), readable


PROPERTIES = {
    "deletion vectors": "'delta.enableDeletionVectors'='true'",
    "in-commit timestamps": (
        "'delta.enableDeletionVectors'='true','delta.enableInCommitTimestamps'='true'"
    ),
    "column mapping": "'delta.enableDeletionVectors'='true','delta.columnMapping.mode'='name'",
}


@in_environment[0]
@in_environment[1]
@in_environment[2]
@pytest.mark.parametrize("kind", PROPERTIES)
def test_sail_deletes_rows_while_files_are_replaced(
    tmp_path: Path, sail: DuckDB, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Its deletion vectors grow before the commit and after it; later changes go on."""
    path = tmp_path / "it"
    name = f"t{abs(hash(str(path)))}"
    sail.run(
        f"create table {name} (id bigint, day string) using delta location '{path}' "
        f"tblproperties({PROPERTIES[kind]})"
    )
    sail.run(f"insert into {name} select id, 'a' from range(1000)")
    sail.run(f"insert into {name} select id + 1000, 'b' from range(1000)")
    sail.run(f"delete from {name} where id in (3, 4)")
    table = open_table(path)
    replacements = copies_of(table)
    before_create(table, monkeypatch, lambda: sail.run(f"delete from {name} where id in (5, 1005)"))
    result = table.commit(replacements, CHANGE)
    assert (result.num_files, result.rebuilds) == (2, 1)
    expected = set(range(2000)) - {3, 4, 5, 1005}
    assert {row[0] for row in sail.run(f"select id from {name}")} == expected
    assert [row[0] for row in sail.run(f"select count(*) from {name}")] == [len(expected)]
    assert len(read_rows(path)) == len(expected)
    sail.run(f"delete from {name} where id = 7")
    sail.run(f"insert into {name} values (5000, 'c')")
    sail.run(f"update {name} set day = 'z' where id = 8")
    expected = expected - {7} | {5000}
    assert {row[0] for row in sail.run(f"select id from {name}")} == expected
    assert len(read_rows(path)) == len(expected)
    assert len(deltalake.DeltaTable(path).history()) >= 7
    asked = [*range(2010), 5000]
    assert count_present(path, asked) == dict.fromkeys(expected, 1)
    assert count_present(path, asked, all_versions=True).keys() == {*range(2000), 5000}
