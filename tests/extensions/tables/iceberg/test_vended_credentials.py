"""Credentials that a catalog hands out: for every data file, in every command, and for nothing
else. The environment has keys that the store refuses."""

from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")
pytest.importorskip("moto", reason="moto is not installed")

import os
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
from support.buckets import environment, forget_clients

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
    vendor.config = lambda: dict(store.where)
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
    with table.io.new_output(elsewhere).create() as target:
        target.write(data)
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
