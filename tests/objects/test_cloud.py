"""Reads of Azure against Azurite, Microsoft's emulator, and of Google Cloud Storage against fake-gcs-server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.places import open_source, parquet_files
from support import azure_server, google_server
from support.buckets import forget_clients
from support.large_files import large, small
from support.swift_server import free_ports

Put = Callable[[str, bytes], str]
"""Puts an object there and answers with its URL."""


@pytest.fixture
def azure(container: azure_server.Container) -> Put:
    return container.put


@pytest.fixture
def google(google_bucket: google_server.Bucket) -> Put:
    return google_bucket.put


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.environment(minutes=1)) for name in ("azure", "google")])
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
    for key in ("lake/a=1/x.parquet", "lake/a=1/_y.parquet", "lake/a=2/z.parquet", "lake2/q.parquet"):
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
    assert capsys.readouterr().err == f"sbbf: {url.replace('x.parquet', 'none.parquet')}: no such object\n"
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
def test_missing_credentials_are_reported(capsys):
    assert run(["inspect", "az://container/x.parquet"]) == 3
    assert "no usable credentials; check AZURE_STORAGE_ACCOUNT_NAME" in capsys.readouterr().err


@pytest.mark.usefixtures("no_settings")
def test_a_store_that_cannot_be_reached_does_not_lack_credentials(tmp_path, monkeypatch, capsys):
    (port,) = free_ports(1)  # nothing listens there
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", azure_server.ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{azure_server.ACCOUNT}")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(google_server.write_account(tmp_path, f"http://127.0.0.1:{port}")))
    # An HTTP server is given no credentials, whatever its URLs are called.
    for url in ("az://container/x.parquet", "gs://bucket/x.parquet", f"http://127.0.0.1:{port}/Account/token.parquet"):
        assert run(["inspect", url]) == 3
        assert f"sbbf: {url}: the service cannot be reached" in capsys.readouterr().err
