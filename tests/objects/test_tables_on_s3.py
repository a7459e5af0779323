"""Tables whose files are in S3: metadata files, commands, and commits: one writer wins, and lost
responses are recognised."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalake
import pytest
from obstore.store import MemoryStore

from sbbf_tool import inspect
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UncertainWriteError, WriteError
from sbbf_tool.extensions.tables.copies import OLD_SECONDS, delete_abandoned, find_unreferenced
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.extensions.tables.table_run import TableRun
from sbbf_tool.storage.objects.cloud import CloudStore
from sbbf_tool.storage.objects.retries import Retries
from sbbf_tool.storage.objects.store import list_keys
from sbbf_tool.storage.objects.stores import ObjectFolders
from sbbf_tool.storage.places import open_folders
from support.buckets import Bucket
from support.calls import call
from support.counting_proxy import Exchange, Fault
from support.delta_logs import CHANGE, actions_of, add, remove, write_table_with_vector
from support.delta_tables import ids_of, make_table
from support.ducklakes import SmallLake
from support.present import count_present
from support.tables import each


def upload(bucket: Bucket, folder: Path) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(f"lake/orders/{path.relative_to(folder)}", path.read_bytes())
    return bucket.url("lake/orders")


@pytest.fixture
def url(moto_bucket, tmp_path) -> str:
    return upload(moto_bucket, make_table(tmp_path / "orders"))


def test_filters_are_added_in_one_commit(moto_bucket, url, capsys):
    code, _, err = call(capsys, "add-filter", url, "-c", "id", "--in-place")
    assert code == 4
    assert "conditional-put" in err
    code, out, err = call(
        capsys,
        "add-filter",
        url,
        "-c",
        "id",
        "--in-place",
        "--allow",
        "conditional-put",
        "--format",
        "json",
    )
    assert (code, "of old files stay until VACUUM deletes them" in err) == (0, True)
    *rows, summary = [json.loads(line) for line in out.splitlines()]
    (commit,) = summary["totals"]["commits"]
    assert commit["files"] == len(rows) == summary["done"]
    copies = {key for key in moto_bucket.list_keys() if "/sbbf-" in key}
    assert copies == {row["output"].partition(f"{moto_bucket.name}/")[2] for row in rows}
    assert not [key for key in moto_bucket.list_keys() if "_sbbf-run-" in key]
    assert call(capsys, "verify", url)[0] == 0
    assert call(capsys, "repair", url, "--abandoned", "0s")[1].endswith("0 copies abandoned\n")


def test_copies_of_a_refused_commit_are_deleted(moto_bucket, url, capsys, monkeypatch):
    def refuse(*words: object) -> None:
        raise RefusedError("other commits come first in all attempts")

    monkeypatch.setattr(DeltaTable, "commit", refuse)
    before = set(moto_bucket.list_keys())
    assert (
        call(capsys, "add-filter", url, "-c", "id", "--in-place", "--allow", "conditional-put")[0]
        == 4
    )
    assert set(moto_bucket.list_keys()) == before


def test_copies_without_rows_are_deleted_after_an_interrupt(moto_bucket, url, capsys, monkeypatch):
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TableRun, "_collect", interrupt)
    before = set(moto_bucket.list_keys())
    assert (
        call(capsys, "add-filter", url, "-c", "id", "--in-place", "--allow", "conditional-put")[0]
        == 130
    )
    assert moto_bucket.proxy.operations().count("PutObject") > 3
    assert set(moto_bucket.list_keys()) == before


def test_log_files_of_a_hudi_table_are_not_queried(moto_bucket, tmp_path, capsys, fixtures):
    moto_bucket.put("lake/h/.hoodie/hoodie.properties", b"hoodie.table.type=MERGE_ON_READ\n")
    moto_bucket.put(
        "lake/h/p=1/f1_0-1-1_2024.parquet", (fixtures / "pyarrow-filters.parquet").read_bytes()
    )
    url = str(moto_bucket.url("lake/h"))
    assert call(capsys, "probe", url, "id", "-5")[0] == 1
    moto_bucket.put("lake/h/p=1/.f1_2024.log.1_0-2-2", b"#HUDI#" + bytes(40))
    for name in (url, f"{url}/p=*", f"{url}/p=1/*"):
        code, _, err = call(capsys, "probe", name, "id", "-5")
        assert (code, "a log file of a Hudi table" in err) == (0, True)


def test_deleted_rows_and_earlier_versions(moto_bucket, tmp_path, capsys):
    write_table_with_vector(tmp_path / "orders", "u", [3, 17])
    url = upload(moto_bucket, tmp_path / "orders")
    assert count_present(url, range(50)) == dict.fromkeys(set(range(40)) - {3, 17}, 1)
    assert count_present(url, range(50), all_versions=True) == dict.fromkeys(range(40), 1)
    moto_bucket.put("lake/orders/lost.parquet", (tmp_path / "orders" / "a.parquet").read_bytes())
    vector = next(
        action["add"] for action in actions_of(tmp_path / "orders", 1) if "add" in action
    )["deletionVector"]
    actions = (remove("a.parquet", deletionVector=vector), add("b.parquet"))
    moto_bucket.put(f"{LOG}/{2:020d}.json", "\n".join(map(json.dumps, actions)).encode())
    moto_bucket.put("lake/orders/b.parquet", moto_bucket.get("lake/orders/lost.parquet"))
    moto_bucket.client.delete_object(Bucket=moto_bucket.name, Key="lake/orders/a.parquet")
    code, out, err = call(capsys, "probe", url, "id", "99", "--confirm", "--all-versions")
    assert (code, err) == (1, "")
    assert "1 file of earlier versions is gone\n" in out
    assert (
        f"1 Parquet file below {url} is in no retained version; --as-files searches that folder\n"
        in out
    )


LOG = "lake/orders/_delta_log"


@pytest.fixture(
    params=[pytest.param("bucket", marks=pytest.mark.heavy), "moto_bucket"], ids=["swift", "moto"]
)
def each_bucket(request: pytest.FixtureRequest) -> Bucket:
    """A bucket of each server."""
    bucket: Bucket = request.getfixturevalue(request.param)
    return bucket


def download(bucket: Bucket, folder: Path) -> Path:
    for key in bucket.list_keys():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.get(key))
    return folder / "lake" / "orders"


def copies_on(bucket: Bucket, table: DeltaTable) -> list[Replacement]:
    replacements = []
    for file in table.live_files():
        new = table.copy_path(file, "sbbf-run-1-" + file.path.rpartition("/")[2])
        prefix = f"s3://{bucket.name}/"
        data = bucket.get(file.path.removeprefix(prefix))
        bucket.put(new.removeprefix(prefix), data)
        replacements.append(Replacement(file.path, new, len(data), 1_700_000_000_000))
    return replacements


def test_metadata_files_are_read_listed_created_and_removed(each_bucket):
    folders = open_folders(each_bucket.url("x"))
    assert isinstance(folders, ObjectFolders)
    for key in ("log/01.json", "log/02.json", "log/10.json", "log/_side/03.json", "log/_last"):
        each_bucket.put(key, key.encode())
    folder = each_bucket.url("log")
    assert folders.list(folder) == ["01.json", "02.json", "10.json", "_last"]
    assert folders.list(folder, "0") == ["01.json", "02.json"]
    assert folders.list(folder, "0", "01") == ["01.json", "02.json"]
    assert folders.list(folder, "0", "01.json") == ["02.json"]
    assert folders.list(each_bucket.url("nothing")) == []
    assert folders.read(f"{folder}/02.json") == b"log/02.json"
    assert folders.read(f"{folder}/02.json", 11) == b"log/02.json"
    with pytest.raises(OSError, match="11 bytes, more than the limit of 10"):
        folders.read(f"{folder}/02.json", 10)
    with pytest.raises(FileNotFoundError):
        folders.read(f"{folder}/03.json")
    folders.create(f"{folder}/03.json", b"new")
    with pytest.raises(FileExistsError):
        folders.create(f"{folder}/03.json", b"other")
    assert each_bucket.get("log/03.json") == b"new"
    folders.remove(f"{folder}/03.json")
    folders.remove(f"{folder}/03.json")
    assert folders.list(folder, "0") == ["01.json", "02.json"]
    before = each_bucket.list_keys()
    folders.ensure_exclusive(folder)
    assert each_bucket.list_keys() == before


def test_only_one_of_many_creates_an_object(moto_bucket):
    folders = open_folders(moto_bucket.url("x"))

    def create(number: int) -> bool:
        try:
            folders.create(moto_bucket.url("log/1.json"), b"%d" % number)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number, won in enumerate(pool.map(create, range(8))) if won]
    assert len(winners) == 1
    assert moto_bucket.get("log/1.json") == b"%d" % winners[0]


def test_a_store_that_ignores_conditions_is_refused(moto_bucket, tmp_path, monkeypatch):
    make_table(tmp_path, 1)
    url = upload(moto_bucket, tmp_path)
    table = DeltaTable(url)
    table.ensure_changeable(conditional_put=True)
    replacements = copies_on(moto_bucket, table)
    before = moto_bucket.list_keys()
    put = moto_bucket.client.put_object
    monkeypatch.setattr(
        moto_bucket.client,
        "put_object",
        lambda IfNoneMatch, **request: put(**request),  # noqa: N803
    )
    with pytest.raises(RefusedError, match="ignores the condition"):
        table.commit(replacements, CHANGE)
    assert moto_bucket.list_keys() == before


def test_a_checkpoint_on_s3_limits_the_listing(moto_bucket, tmp_path):
    make_table(tmp_path, 3)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    url = upload(moto_bucket, tmp_path)
    assert len(list(DeltaTable(url).live_files())) == 3
    queries = [
        exchange.query
        for exchange in moto_bucket.proxy.exchanges
        if exchange.operation == "ListObjectsV2"
    ]
    assert len(queries) == 1
    assert f"{2:020d}" in queries[0]


def at_log(answer: str | int) -> Fault:
    def fault(exchange: Exchange) -> str | int | None:
        return (
            answer if exchange.operation == "PutObject" and "_delta_log" in exchange.path else None
        )

    return fault


def test_a_commit_whose_response_is_lost(moto_bucket, tmp_path):
    """The repeated request finds that the object exists: it is this commit."""
    make_table(tmp_path / "original", 2)
    url = upload(moto_bucket, tmp_path / "original")
    table = DeltaTable(url)
    table.ensure_changeable(conditional_put=True)
    replacements = copies_on(moto_bucket, table)
    moto_bucket.proxy.fault = at_log("lose answer")
    result = table.commit(replacements, CHANGE)
    moto_bucket.proxy.forget()
    assert (result.version, result.rebuilds) == ("version 2", 0)
    assert sorted(
        key for key in moto_bucket.list_keys() if key.startswith(LOG) and key.endswith("2.json")
    )
    assert ids_of(download(moto_bucket, tmp_path / "after")) == list(range(20))


@each(
    "answer, error", [(503, UncertainWriteError), ("cut", UncertainWriteError), (403, RefusedError)]
)
def test_a_commit_that_fails(moto_bucket, tmp_path, answer, error):
    make_table(tmp_path, 1)
    url = upload(moto_bucket, tmp_path)
    table = DeltaTable(url)
    table.ensure_changeable(conditional_put=True)
    replacements = copies_on(moto_bucket, table)
    moto_bucket.proxy.fault = at_log(answer)
    with pytest.raises(error):
        table.commit(replacements, CHANGE)
    moto_bucket.proxy.forget()
    assert DeltaTable(url).version == "version 0"


def test_old_copies_of_dead_runs_are_found_by_the_time_of_their_objects(moto_bucket, tmp_path):
    """A copy without a marker, as after the clean-up of a marker that failed, is as old as its
    object."""
    make_table(tmp_path / "t")
    url = upload(moto_bucket, tmp_path / "t")
    copy = moto_bucket.put("lake/orders/sbbf-0123456789abcdef-00000000-part-0.parquet", b"copy")
    table = DeltaTable(url)
    assert [abandoned.path for abandoned in find_unreferenced(table, -3600)[0]] == [copy]
    assert find_unreferenced(table, OLD_SECONDS)[0] == []
    delete_abandoned(table, find_unreferenced(table, -3600)[0], -3600)
    assert find_unreferenced(table, -3600)[0] == []


def test_creation_by_obstore():
    """As for Google Cloud Storage and Azure, here in memory."""
    store = CloudStore.__new__(CloudStore)
    store._service, store.service_name, store._store, store._retries = (
        "gs",
        "a store in memory",
        MemoryStore(),
        Retries(),
    )
    store.create("log/1.json", b"first")
    with pytest.raises(FileExistsError):
        store.create("log/1.json", b"second")
    store.create("log/2.json", b"third")
    assert list(list_keys(store, "log/", after="log/1.json")) == ["log/2.json"]
    assert store.tail("log/1.json", 100)[0] == b"first"
    store.remove("log/1.json")
    assert list(list_keys(store, "log/")) == ["log/2.json"]


pytestmark = pytest.mark.slow


@pytest.fixture
def lake(bucket, tmp_path) -> SmallLake:
    lake = SmallLake(tmp_path, "sqlite")
    lake.run("update ducklake_metadata set value = ? where key = 'data_path'", bucket.url("lake/"))
    for number in (1, 2):
        path = lake.write_file(tmp_path / f"{number}.parquet")
        bucket.put(f"lake/main/events/{number}.parquet", path.read_bytes())
        lake.insert(
            "data_file", data_file_id=number, table_id=1, begin_snapshot=3,
            path=f"{number}.parquet", path_is_relative=True,
            file_format="parquet", record_count=100, file_size_bytes=path.stat().st_size,
            footer_size=1,
        )  # fmt: skip
    return lake


def test_a_run(lake, bucket):
    table = DuckLakeTable(lake.events)
    assert table.location == bucket.url("lake/main/events")
    assert run(["add-filter", lake.events, "-c", "user_id", "--in-place"]) == 0
    urls = [file.path for file in DuckLakeTable(lake.events).live_files()]
    stored = lake.run(
        "select path, file_size_bytes, footer_size from ducklake_data_file order by data_file_id"
    )
    for url, (path, size, footer) in zip(urls, stored, strict=True):
        assert url == bucket.url(f"lake/main/events/{path}")
        data = bucket.get(f"lake/main/events/{path}")
        assert (size, footer) == (len(data), int.from_bytes(data[-8:-4], "little"))
        assert {chunk.column for chunk in inspect(url).filters} == {"user_id"}
    scheduled = lake.run(
        "select path, path_is_relative from ducklake_files_scheduled_for_deletion order by 1"
    )
    assert scheduled == [("main/events/1.parquet", 1), ("main/events/2.parquet", 1)]
    assert len(bucket.list_keys()) == 4


def test_a_copy_that_is_missing(lake, bucket):
    table = DuckLakeTable(lake.events)
    url = bucket.url("lake/main/events/1.parquet")
    with pytest.raises(WriteError, match="none"):
        table.commit([Replacement(url, bucket.url("lake/main/events/none.parquet"), 1, 0)], CHANGE)
    assert lake.run("select count(*) from ducklake_files_scheduled_for_deletion") == [(0,)]
