"""Reads of HTTP servers, of Azure and Google by their emulators, and of HDFS by pyarrow: what
cannot be read is an error, never misread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from pyarrow import fs

import sbbf_tool
from objects import azure_server, google_server
from objects.large_files import large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import MissingError, RefusedError, UnreadableError
from sbbf_tool.storage.objects.arrow import ArrowStore
from sbbf_tool.storage.objects.store import OtherVersionError, list_keys, parse_location
from sbbf_tool.storage.places import open_source, parquet_files
from sbbf_tool.storage.source import LocalSource, PlannedSource
from support import http_site
from support.buckets import forget_clients
from support.swift_server import free_ports
from support.tables import each


def test_a_file_is_read_in_few_requests(site):
    url = site.put("a b/events.parquet", small()).replace(" ", "%20")
    assert sbbf_tool.inspect(url).row_groups == 3
    assert [command for command, _, _ in site.requests] == ["GET"]
    assert site.requests[0][2]["range"] == "bytes=-65536"


def test_reads_return_the_stored_bytes(site):
    url = site.put("x", large())
    with open_source(url) as source:
        for offset, length in ((0, 4), (1_000_000, 3_000_000), (len(large()) - 8, 8)):
            assert source.read(offset, length) == large()[offset : offset + length]
        assert len(site.requests) > 1
        assert all("if-match" in headers for _, _, headers in site.requests[1:])
    assert sbbf_tool.verify(url).is_sound


def test_a_signed_url_is_requested_whole_and_shown_without_its_signature(site, capsys):
    url = site.put("events.parquet", small()) + "?X-Amz-Signature=hush&x=a%2Fb"
    assert run(["inspect", url]) == 0
    assert {path for _, path, _ in site.requests} == {
        "/events.parquet?X-Amz-Signature=hush&x=a%2Fb"
    }
    site.status = 403
    assert run(["inspect", url]) == 3
    site.status = None
    assert run(["inspect", url.replace("events", "none")]) == 3
    assert run(["add-filter", url, "-c", "id", "--in-place"]) == 4
    assert run(["add-filter", url, "-c", "id"]) == 2
    printed = "".join(capsys.readouterr())
    assert "hush" not in printed
    assert f"{site.url}/events.parquet?...: access denied; a signed URL may have expired" in printed


@each("status", [301, 302, 307, 308])
def test_a_redirect_does_not_carry_the_signature_to_another_host(site, status, capfd):
    """obstore sends it as `Referer`."""
    with http_site.running() as store:
        site.put("x.parquet", b"")
        site.status, site.headers = status, {"Location": store.put("y.parquet", small()) + "?day=1"}
        forget_clients()
        assert run(["inspect", f"{site.url}/x.parquet?sig=hush"]) == 0
        assert "hush" not in repr(store.requests)
        assert {path for _, path, _ in store.requests} == {"/y.parquet?day=1"}
        site.headers = {"Location": f"{site.url}/x.parquet?sig=hush&more"}
        assert run(["inspect", f"{site.url}/x.parquet?sig=again"]) == 3
        assert "hush" not in capfd.readouterr().err


@pytest.mark.parametrize("answer", ["etag", "last-modified"])
def test_a_changed_file_is_an_error_and_no_mixture(site, answer):
    if answer == "last-modified":
        site.tags, site.modified = None, 1_700_000_000
    url = site.put("x", large())
    with open_source(url) as source:
        source.read(0, 100)
        site.put("x", large()[::-1])
        site.modified = None if site.modified is None else site.modified + 60
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(1_000_000, 100)


def test_a_weak_etag_is_compared_and_not_required(site):
    """It never matches a condition (RFC 9110, section 13.1.1)."""
    site.tags = 'W/"{}"'
    url = site.put("x", large())
    with open_source(url) as source:
        assert source.read(0, 4) == b"PAR1"
        assert not any("if-match" in headers for _, _, headers in site.requests)
        site.put("x", large()[::-1])
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(1_000_000, 100)


def test_a_server_that_does_not_distinguish_versions_is_not_read(site):
    site.tags = None
    with pytest.raises(UnreadableError, match="neither ETag nor Last-Modified"):
        open_source(site.put("x", small()))


def test_a_server_without_ranges_is_not_misread(site):
    site.knows_ranges = False
    with pytest.raises(
        UnreadableError,
        match="does not support range requests: it sent the whole file; download the file",
    ):
        open_source(site.put("x", large()))


@each("status", [500, 503, 418])
def test_an_error_of_the_server_is_reported(site, status):
    site.status = status
    site.requests.clear()
    with pytest.raises(UnreadableError) as caught:
        open_source(site.put("x", small()))
    assert caught.value.message.startswith(f"the server answered {status}")
    assert len(site.requests) == (3 if status >= 500 else 1)


def test_an_empty_file_and_one_that_is_not_there(site, capsys):
    assert run(["inspect", site.put("empty.parquet", b"")]) == 3
    assert run(["inspect", f"{site.url}/none.parquet"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"sbbf: {site.url}/empty.parquet: ")
    assert lines[1] == f"sbbf: {site.url}/none.parquet: no such object"


Put = Callable[[str, bytes], str]

"""Puts an object there and answers with its URL."""


@pytest.fixture
def azure(container: azure_server.Container) -> Put:
    return container.put


@pytest.fixture
def google(google_bucket: google_server.Bucket) -> Put:
    return google_bucket.put


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.environment(minutes=1)) for name in ("azure", "google")
    ]
)
def put(request: pytest.FixtureRequest) -> Put:
    method: Put = request.getfixturevalue(request.param)
    return method


def test_reading(put):
    url = put("lake/large.parquet", large())
    with open_source(url) as source:
        assert source.size == len(large())
        for offset, length in ((0, 4), (1_000_000, 3_000_000), (len(large()) - 8, 8)):
            assert source.read(offset, length) == large()[offset : offset + length]
    assert sbbf_tool.inspect(url).row_groups == 3
    assert sbbf_tool.verify(url).is_sound


def test_a_changed_object_is_an_error_and_no_mixture(put):
    url = put("x.parquet", large())
    with open_source(url) as source:
        put("x.parquet", large()[::-1])
        assert not source.is_unchanged()
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(100, 100)


def test_listing(put):
    for key in (
        "lake/a=1/x.parquet",
        "lake/a=1/_y.parquet",
        "lake/a=2/z.parquet",
        "lake2/q.parquet",
    ):
        url = put(key, small())
    root = url.removesuffix("lake2/q.parquet")

    def names(pattern: str) -> list[str]:
        return [name.removeprefix(root) for name in parquet_files(root + pattern)]

    assert names("lake") == names("lake/") == ["lake/a=1/x.parquet", "lake/a=2/z.parquet"]
    assert names("l*/*/[xz].parquet") == ["lake/a=1/x.parquet", "lake/a=2/z.parquet"]
    assert names("lake2/q.parquet") == ["lake2/q.parquet"]


def test_errors_are_one_line(put, capsys):
    url = put("x.parquet", small())
    assert run(["inspect", url.replace("x.parquet", "none.parquet")]) == 3
    assert (
        capsys.readouterr().err
        == f"sbbf: {url.replace('x.parquet', 'none.parquet')}: no such object\n"
    )
    assert run(["inspect", put("empty.parquet", b"")]) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "AZURE_", "AZURITE_"))]:
        monkeypatch.delenv(name)
    forget_clients()
    yield
    forget_clients()


@pytest.mark.usefixtures("no_settings")
def test_missing_credentials_are_reported(capsys, monkeypatch):
    for value, problem in (
        ("", "no usable credentials"),
        ("token\n", "AZURE_STORAGE_TOKEN has a control character, such as a line break"),
    ):
        monkeypatch.setenv("AZURE_STORAGE_TOKEN", value)
        assert run(["inspect", "az://container/x.parquet"]) == 3
        line = capsys.readouterr().err
        assert line.startswith("sbbf: az://container/x.parquet")
        assert f": {problem}" in line
        assert line.endswith(
            "; check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and the like\n"
        )


@pytest.mark.usefixtures("no_settings")
def test_a_store_that_cannot_be_reached_does_not_lack_credentials(tmp_path, monkeypatch, capsys):
    (port,) = free_ports(1)  # nothing listens there
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", azure_server.ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{azure_server.ACCOUNT}")
    monkeypatch.setenv(
        "GOOGLE_SERVICE_ACCOUNT",
        str(google_server.write_account(tmp_path, f"http://127.0.0.1:{port}")),
    )
    # An HTTP server is given no credentials, whatever its URLs are called.
    for url in (
        "az://container/x.parquet",
        "gs://bucket/x.parquet",
        f"http://127.0.0.1:{port}/Account/token.parquet",
    ):
        assert run(["inspect", url]) == 3
        assert f"sbbf: {url}: the service cannot be reached" in capsys.readouterr().err


@pytest.fixture
def store(tmp_path) -> ArrowStore:
    return ArrowStore(fs.LocalFileSystem(), f"{tmp_path}/")


def test_hdfs_is_read(store, tmp_path):
    (tmp_path / "x").write_bytes(large())
    tail, version = store.tail("x", 1000)
    assert tail == large()[-1000:]
    assert version.size == len(large())
    assert store.get("x", 5, 100, version) == large()[5:105]
    (tmp_path / "x").write_bytes(small())
    with pytest.raises(OtherVersionError):
        store.get("x", 5, 100, version)
    assert store.version("none") is None
    with pytest.raises(MissingError):
        store.tail("none", 10)


class _LocalCluster:
    """A cluster of HDFS whose files are those of this machine."""

    @staticmethod
    def from_uri(url: str) -> fs.FileSystem:
        assert url == "hdfs://cluster-of-a-test:8020/"
        return fs.LocalFileSystem()


def test_paths_of_hdfs_begin_at_its_root(monkeypatch, tmp_path):
    monkeypatch.setattr(fs, "HadoopFileSystem", _LocalCluster)
    (tmp_path / "x.parquet").write_bytes(small())
    folder = f"hdfs://cluster-of-a-test:8020{tmp_path}"
    assert list(parquet_files(folder)) == [f"{folder}/x.parquet"]
    with open_source(f"{folder}/x.parquet") as source:
        assert source.size == len(small())


def test_hdfs_is_listed(store, tmp_path):
    for name in ("a/1.parquet", "a/b/2.parquet", "ab.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(list_keys(store, "")) == ["a/1.parquet", "a/b/2.parquet", "ab.parquet"]
    assert list(list_keys(store, "a")) == ["a/1.parquet", "a/b/2.parquet", "ab.parquet"]
    assert list(list_keys(store, "a/", 1)) == ["a/1.parquet"]
    assert list(list_keys(store, "none/")) == []


def test_every_write_is_refused(store, tmp_path):
    target = parse_location("hdfs://cluster/new")
    for in_place in (False, True):
        with pytest.raises(RefusedError, match="sbbf cannot write to HDFS"):
            store.ensure_writable(target, in_place=in_place)
    (tmp_path / "old").write_bytes(small())
    with (
        LocalSource(tmp_path / "old") as source,
        pytest.raises(RefusedError, match="sbbf cannot write to"),
    ):
        store.replace(source, target, PlannedSource(target.name, source, source.size, [b"x"]))
    assert os.listdir(tmp_path) == ["old"]


def test_without_hadoop_the_error_names_the_settings():
    from sbbf_tool.storage.places import open_source

    if os.environ.get("HADOOP_HOME") or os.environ.get("ARROW_LIBHDFS_DIR"):
        pytest.skip("there is a Hadoop here")
    with pytest.raises(
        UnreadableError, match=r"HDFS cannot be reached .*pyarrow needs a Hadoop installation"
    ):
        open_source("hdfs://127.0.0.1:1/x.parquet")
