"""Credentials that a catalog hands out: for every data file, in every command, and for nothing
else. The environment has keys that the store refuses."""

from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")
pytest.importorskip("moto", reason="moto is not installed")

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from extensions.tables.iceberg.iceberg_tables import ids_of, rows
from extensions.tables.iceberg.vending import (
    BUCKET,
    Store,
    Vendor,
    configure,
    start_store,
    start_vendor,
)
from sbbf_tool import cli
from sbbf_tool.extensions.tables.locate import find_table
from support import http_site
from support.buckets import environment, forget_clients
from support.clusters import CLUSTER, REPOSITORY, settings_of_spark

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with start_store() as store:
        yield store


@pytest.fixture
def home(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of PyIceberg's configuration. The keys of the environment are unknown to the
    store, and go to its address."""
    for name, value in environment(store.proxy.url).items():
        monkeypatch.setenv(name, value)
    # pyarrow would send bodies in chunks.
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    forget_clients()
    store.used.clear()
    return tmp_path


@pytest.fixture
def vendor(home: Path, store: Store) -> Iterator[Vendor]:
    """A catalog `vend` with the table n.t of two files, which hands out keys for its prefix."""
    warehouse = f"s3://{BUCKET}/{home.name}"
    with start_vendor(home, store.admin, warehouse) as vendor:
        table = vendor.inner.create_table("n.t", schema=rows(0, 1).schema)
        table.append(rows(0, 100))
        table.append(rows(100, 100))
        prefix = table.location()
        path = f"/{prefix.removeprefix('s3://')}/"
        vendor.credentials = lambda: [
            {"prefix": prefix, "config": {**store.where, **store.assume((path,))}}
        ]
        configure(home, {"vend": {"type": "rest", "uri": vendor.url}})
        yield vendor


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.run([*words])
    return code, "".join(capfd.readouterr())


@pytest.mark.heavy(1)
def test_every_command_uses_them(vendor, store, capfd):
    words = ("add-filter", "vend:n.t", "-c", "id", "--in-place", "-v")
    code, out = run(capfd, *words)
    assert (code, "2 filters added" in out) == (0, True), out
    assert vendor.requests.count("commit") == 1
    for words, wanted in [
        (("probe", "vend:n.t", "id", "42"), 0),
        (("probe", "vend:n.t", "id", "1000000"), 1),
        (("inspect", "vend:n.t"), 0),
        (("verify", "vend:n.t"), 0),
        (("check", "vend:n.t"), 0),
        (("explain", "vend:n.t", "-q", "id = 42"), 0),
        (("advise", "vend:n.t"), 0),
        (("resize", "vend:n.t", "--fpp", "0.1", "--in-place"), 0),
        (("remove-filter", "vend:n.t", "--in-place"), 0),
        (("repair", "vend:n.t", "--abandoned", "1s"), 0),
    ]:
        code, out = run(capfd, *words)
        assert code == wanted, (words, out)
    assert ids_of(vendor.inner.load_table("n.t")) == list(range(200))
    assert all(headers["x-iceberg-access-delegation"] for headers in vendor.headers[1:])
    assert {key for key, _ in store.used} <= store.rights.keys()


@pytest.mark.heavy(1)
def test_two_catalogs_have_two_sets_of_keys_for_one_bucket(vendor, store, home, capfd):
    """One catalog hands out keys, the other has them in the configuration, in one run."""
    other_home = home / "other"
    other_home.mkdir()
    own = store.assume((f"/{BUCKET}/{home.name}-other/",))
    with start_vendor(other_home, store.admin, f"s3://{BUCKET}/{home.name}-other") as other:
        other.inner.create_table("n.t", schema=rows(0, 1).schema).append(rows(0, 50))
        settings = {"type": "rest", "uri": other.url, **store.where, **own}
        configure(home, {"vend": {"type": "rest", "uri": vendor.url}, "own": settings})
        declared = "".join(
            f'[[filters]]\npaths = ["{name}:n.t"]\ncolumns = ["id"]\n' for name in ("vend", "own")
        )
        (home / "sbbf.toml").write_text(declared)
        store.used.clear()
        code, out = run(capfd, "apply", "--config", f"{home}/sbbf.toml", "--in-place")
        assert (code, out.count("committed")) == (0, 2), out
    by_key: dict[str, set[str]] = {}
    for key, path in store.used:
        parts = path.strip("/").split("/")
        if len(parts) > 1:  # of an object, and not of the bucket
            by_key.setdefault(key, set()).add(parts[1])
    assert by_key.pop(own["s3.access-key-id"]) == {f"{home.name}-other"}
    assert set().union(*by_key.values()) == {home.name}


def test_the_longest_prefix_counts(vendor, store, capfd):
    """Keys of the table itself, and others for the folder of its data."""
    table = vendor.inner.load_table("n.t")
    folder = f"/{table.location().removeprefix('s3://')}"
    for_all = store.assume((f"{folder}/metadata/",))
    for_data = store.assume((f"{folder}/data/",))
    vendor.defaults = store.where
    vendor.credentials = lambda: [
        {"prefix": f"{table.location()}/data/".replace("s3://", "s3a://"), "config": for_data},
        {"prefix": table.location(), "config": for_all},
        {"prefix": f"{table.location()}/data-of-others/", "config": store.assume(())},
    ]
    code, out = run(capfd, "verify", "vend:n.t")
    assert code == 0, out
    used = {(key, path.removeprefix(folder).split("/")[1]) for key, path in store.used}
    assert used == {
        (for_all["s3.access-key-id"], "metadata"),
        (for_data["s3.access-key-id"], "data"),
    }


@pytest.mark.heavy(1)
def test_a_location_without_credentials_is_read_with_those_of_the_environment(
    vendor, store, home, capfd, monkeypatch
):
    """A file that was added from elsewhere. The catalog repeats the keys of the table's prefix, as
    some do for older clients, and they are for no other file."""
    elsewhere = f"s3://{BUCKET}/{home.name}-elsewhere/a.parquet"
    table = vendor.inner.load_table("n.t")
    first = next(iter(table.scan().plan_files())).file.file_path
    with table.io.new_input(first).open() as source:
        data = source.read()
    store.put(elsewhere, data)
    table.add_files([elsewhere], check_duplicate_files=False)
    credentials = vendor.credentials()
    vendor.credentials = lambda: credentials
    vendor.config = lambda: credentials[0]["config"]
    code, out = run(capfd, "inspect", "vend:n.t")
    assert code == 3
    assert "the catalog hands out no credentials for this location" in out
    assert out.count("access denied") + out.count("rejects the credentials") == 1, out
    keys = store.assume((f"/{BUCKET}/{home.name}-elsewhere/",))
    for name in ("access-key-id", "secret-access-key", "session-token"):
        monkeypatch.setenv(f"AWS_{name.replace('-', '_').upper()}", keys[f"s3.{name}"])
    forget_clients()
    code, out = run(capfd, "verify", "vend:n.t")
    assert code == 0, out
    code, out = run(capfd, "add-filter", "vend:n.t", "-c", "id", "--in-place")
    assert (code, "3 filters added" in out) == (0, True), out
    assert len(ids_of(vendor.inner.load_table("n.t"))) == 300


def test_remote_signing_is_refused_by_its_name(vendor, capfd, home, store):
    vendor.credentials = list
    vendor.config = lambda: {"s3.remote-signing-enabled": "true", **store.where}
    code, out = run(capfd, "inspect", "vend:n.t")
    assert (code, out.count("\n")) == (4, 1), out
    assert "s3.remote-signing-enabled" in out


def test_denied_credentials_are_named_by_their_origin(vendor, store, capfd):
    table = vendor.inner.load_table("n.t")
    path = f"/{table.location().removeprefix('s3://')}"
    keys = store.assume((f"{path}/metadata/",))
    vendor.credentials = lambda: [{"prefix": table.location(), "config": {**store.where, **keys}}]
    code, out = run(capfd, "inspect", "vend:n.t")
    assert code == 3
    assert f"the credentials are those of the catalog for {table.location()}" in out
    assert "AWS_PROFILE" not in out


@pytest.mark.heavy(1)
def test_no_secret_is_shown(vendor, store, home, capfd, caplog):
    given = []
    hand_out = vendor.credentials

    def hand_out_nothing():
        return [{"prefix": "s3", "config": {**store.where, **store.assume(())}}]

    def credentials():
        given.extend(hand_out())
        return given[-1:]

    vendor.credentials = credentials
    caplog.set_level("DEBUG", "sbbf_tool")
    state = f"{home}/state.db"
    texts = []
    for words in [
        ("add-filter", "vend:n.t", "-c", "id", "--in-place", "-v", "--state", state),
        ("check", "vend:n.t", "-v", "--format", "json"),
        ("index", "vend:n.t", "-c", "id", "-o", f"{home}/ids.sbbfx"),
        ("probe", f"{home}/ids.sbbfx", "id", "42", "-v"),
    ]:
        code, out = run(capfd, *words)
        assert code == 0, (words, out)
        texts.append(out)
    access = find_table("vend:n.t").access
    texts += [repr(access), repr(access._lease.keys), repr(access._lease.issue)]
    hand_out = hand_out_nothing
    code, out = run(capfd, "inspect", "vend:n.t", "-v")
    assert code == 3
    texts += [out, *(record.getMessage() for record in caplog.records)]
    for folder, _, names in os.walk(home):
        texts += [Path(folder, name).read_bytes().decode("latin-1") for name in names]
    secrets = {
        text
        for credential in given
        for name, text in credential["config"].items()
        if name not in store.where
    }
    assert len(secrets) > 10
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []


@pytest.fixture
def many_files(vendor: Vendor, store: Store) -> int:
    """Give the table 200 files; return their number."""
    table = vendor.inner.load_table("n.t")
    folder = table.location()
    first = next(iter(table.scan().plan_files())).file.file_path
    with table.io.new_input(first).open() as source:
        data = source.read()
    paths = [f"{folder}/data/{number:03}.parquet" for number in range(198)]
    for path in paths:
        store.put(path, data)
    table.add_files(paths, check_duplicate_files=False)
    vendor.requests.clear()
    store.used.clear()
    yield 200
    store.expires_at.clear()


@pytest.mark.heavy(1)
@pytest.mark.parametrize("endpoint", [False, True])
def test_keys_that_expire_in_the_middle_of_a_run_are_renewed(
    many_files, vendor, store, capfd, endpoint
):
    """Nothing says when they expire. The catalog names an address for credentials, or gives them
    with the table."""
    if endpoint:
        path = "v1/namespaces/n/tables/t/credentials"
        vendor.config = lambda: {"client.refresh-credentials-endpoint": path}
    store.expires_at = [60, 600]
    code, out = run(capfd, "add-filter", "vend:n.t", "-c", "id", "--in-place")
    assert (code, f"{many_files} filters added" in out) == (0, True), out
    assert vendor.requests.count("credentials") == (2 if endpoint else 0)
    assert vendor.requests.count("commit") == 1
    assert len(store.used) > 600
    assert len(ids_of(vendor.inner.load_table("n.t"))) == 100 * many_files


@pytest.mark.heavy(1)
def test_keys_that_expire_in_seconds_are_renewed_before(many_files, vendor, store, capfd):
    hand_out = vendor.credentials

    def credentials():
        (entry,) = hand_out()
        ends = f"{(time.time_ns() + 1_500_000_000) // 1_000_000}"
        entry["config"]["s3.session-token-expires-at-ms"] = ends
        return [entry]

    vendor.credentials = credentials
    code, out = run(capfd, "add-filter", "vend:n.t", "-c", "id", "--in-place")
    assert code == 0, out
    assert vendor.requests.count("load") > 4


@pytest.mark.heavy(1)
def test_keys_that_never_work_are_not_renewed_without_end(many_files, vendor, store, capfd):
    folder = vendor.inner.load_table("n.t").location()
    dead = {**store.where, **store.assume(("/",))}
    store.expire()
    alive = vendor.credentials()[0]["config"]
    vendor.credentials = lambda: [
        {"prefix": f"{folder}/data", "config": dead},
        {"prefix": folder, "config": alive},
    ]
    code, out = run(capfd, "inspect", "vend:n.t", "--all")
    assert code == 3
    assert out.count("ExpiredToken") == many_files, out
    assert len(vendor.requests) == 2, vendor.requests


def test_another_server_gets_neither_the_keys_nor_the_token(vendor, store, home, capfd):
    """The catalog names another address for credentials, and, with those that follow expired ones,
    another endpoint."""
    folder = vendor.inner.load_table("n.t").location()
    alive = vendor.credentials()[0]["config"]
    expired = {**store.where, **store.assume(("/",))}
    store.rights[expired["s3.access-key-id"]].is_expired = True
    configure(home, {"vend": {"type": "rest", "uri": vendor.url, "token": "of-the-catalog"}})
    with http_site.running() as other:
        vendor.config = lambda: {"client.refresh-credentials-endpoint": f"{other.url}/credentials"}
        later = {**alive, "s3.endpoint": other.url}
        for_data = iter([expired, later, later])
        vendor.credentials = lambda: [
            {"prefix": f"{folder}/data", "config": next(for_data)},
            {"prefix": folder, "config": alive},
        ]
        code, out = run(capfd, "verify", "vend:n.t")
        assert code == 0, out
        assert vendor.requests == ["load", "load"]
        assert other.requests == []


def test_an_endpoint_that_redirects_is_no_store(vendor, store, capfd):
    folder = vendor.inner.load_table("n.t").location()
    metadata = f"/{folder.removeprefix('s3://')}/metadata/"
    with http_site.running() as other, http_site.running() as redirecting:
        redirecting.status = 307
        redirecting.headers["Location"] = f"{other.url}/a"
        config = {**store.where, **store.assume(("/",)), "s3.endpoint": redirecting.url}
        vendor.credentials = lambda: [
            {"prefix": f"{folder}/data", "config": config},
            {"prefix": folder, "config": {**store.where, **store.assume((metadata,))}},
        ]
        code, out = run(capfd, "inspect", "vend:n.t")
        assert code == 3
        assert "redirects" in out
        assert redirecting.requests
        assert other.requests == []


def run_on_spark(home: Path, *words: str) -> tuple[str, list[str]]:
    """Run a command on a local cluster; return its output, and the texts of the logs of Spark and
    of its executors."""
    pyspark = pytest.importorskip("pyspark")
    (home / "events").mkdir(exist_ok=True)
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.glob("*"))
    settings = [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir={home / 'events'}",
        "spark.eventLog.compress=false",
        f"spark.local.dir={home / 'blocks'}",
        f"spark.sql.warehouse.dir={home / 'spark'}",
    ]
    command = [sys.executable, "-m", "sbbf_tool", *words, "--on", f"spark:{CLUSTER}"]
    done = subprocess.run(
        [*command, *settings_of_spark(home, settings)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=600,
        cwd=home,
    )
    folders = [home / "events", home / "blocks", *(set(work.glob("*")) - before)]
    texts = []
    for folder in folders:
        files = filter(Path.is_file, folder.rglob("*"))
        texts += [path.read_bytes().decode("latin-1") for path in files]
    for folder in folders[2:]:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr, texts


@pytest.mark.engines
@pytest.mark.heavy(2)
def test_executors_get_them_and_ask_for_others_by_no_channel_that_is_shown(vendor, store, home):
    """The keys expire while executors work; these ask the catalog of their own configuration."""
    given: list[dict[str, str]] = []
    hand_out = vendor.credentials

    def credentials():
        entries = hand_out()
        given.extend(entry["config"] for entry in entries)
        return entries

    vendor.credentials = credentials
    configure(home, {"vend": {"type": "rest", "uri": vendor.url, "token": "of-the-catalog"}})
    store.used.clear()
    store.expires_with = lambda exchange: "/data/sbbf-" in exchange.path
    words = ("add-filter", "vend:n.t", "-c", "id", "--in-place", "-v")
    output, texts = run_on_spark(home, *words)
    assert store.expires_with is None
    assert "2 filters added" in output
    assert ids_of(vendor.inner.load_table("n.t")) == list(range(200))
    assert any("SparkListenerTaskEnd" in text for text in texts)
    secrets = {"of-the-catalog"}
    for config in given:
        secrets |= {text for name, text in config.items() if name not in store.where}
    assert len(secrets) > 9
    assert [secret for secret in secrets if any(secret in text for text in (output, *texts))] == []
