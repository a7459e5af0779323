"""Azure against Azurite, Microsoft's emulator (`npm install -g azurite`), where it is installed; Google Cloud Storage against moto, whose
S3 answers have the form of Google's XML: so this shows that URLs, ranges and pins arrive as they should, and nothing of Google's service.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from email.utils import formatdate
from importlib.util import find_spec

import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.storage.places import open_source, parquet_files
from support.buckets import environment, forget_clients
from support.large_files import large, small
from support.swift_server import free_ports, wait_for

Put = Callable[[str, bytes], str]
"""Puts an object there and answers with its URL."""

# A public key: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="module")
def azurite(tmp_path_factory) -> Iterator[str]:
    command = shutil.which("azurite-blob")
    if command is None:
        pytest.skip("Azurite is not installed")
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [command, "--blobPort", str(port), "--location", str(tmp_path_factory.mktemp("azurite")), "--silent", "--skipApiVersionCheck"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def put_blob(url: str, path: str, data: bytes, query: str, *headers: tuple[str, str]) -> None:
    """Signed as https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key says."""
    request_headers = dict((*headers, ("x-ms-date", formatdate(usegmt=True)), ("x-ms-version", "2021-12-02")))
    header_lines = "".join(f"{name}:{request_headers[name]}\n" for name in sorted(request_headers))
    query_lines = "".join(f"\n{name}:{value}" for name, value in sorted(pair.split("=") for pair in query.split("&") if pair))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{path}{query_lines}"
    text = f"PUT\n\n\n{len(data) or ''}\n\napplication/octet-stream\n\n\n\n\n\n\n{header_lines}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    request_headers |= {
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        "Content-Type": "application/octet-stream",
        "Content-Length": str(len(data)),
    }
    request = urllib.request.Request(f"{url}/{ACCOUNT}/{path}{'?' if query else ''}{query}", data, request_headers, method="PUT")
    urllib.request.urlopen(request).close()


@pytest.fixture
def azure(azurite: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azurite)
    forget_clients()
    container = f"c{free_ports(1)[0]}"
    put_blob(azurite, container, b"", "restype=container")

    def put(key: str, data: bytes) -> str:
        put_blob(azurite, f"{container}/{key}", data, "", ("x-ms-blob-type", "BlockBlob"))
        return f"az://{container}/{key}"

    yield put
    forget_clients()


@pytest.fixture(scope="module")
def xml_server() -> Iterator[str]:
    if find_spec("moto") is None:
        pytest.skip("moto is not installed")
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def google_account(url: str) -> str:
    """The file of a service account whose requests go to `url`, unsigned."""
    return json.dumps({"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""})


@pytest.fixture
def google(xml_server: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    from sbbf_tool.storage.objects import s3_bucket

    account = tmp_path / "account.json"
    account.write_text(google_account(xml_server))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(account))
    forget_clients()
    bucket = f"b{free_ports(1)[0]}"
    for name, value in environment(xml_server).items():
        monkeypatch.setenv(name, value)
    client = s3_bucket.client(os.getpid())
    client.create_bucket(Bucket=bucket)

    def put(key: str, data: bytes) -> str:
        client.put_object(Bucket=bucket, Key=key, Body=data, ACL="public-read")
        return f"gs://{bucket}/{key}"

    yield put
    forget_clients()


@pytest.fixture(params=["azure", "google"])
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


def test_writes_are_refused(put, tmp_path):
    url = put("x.parquet", small())
    with pytest.raises(RefusedError, match="sbbf cannot write to"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    sbbf_tool.add_filters(url, ["id"], output=tmp_path / "x.parquet")
    assert sbbf_tool.verify(tmp_path / "x.parquet").is_sound


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
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{ACCOUNT}")
    (tmp_path / "account.json").write_text(google_account(f"http://127.0.0.1:{port}"))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
    # An HTTP server is given no credentials, whatever its URLs are called.
    for url in ("az://container/x.parquet", "gs://bucket/x.parquet", f"http://127.0.0.1:{port}/Account/token.parquet"):
        assert run(["inspect", url]) == 3
        assert f"sbbf: {url}: the service cannot be reached" in capsys.readouterr().err
