"""Credentials of Azure and Google Cloud Storage: which are sent, and that no output contains
them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

import sbbf_tool
from objects import azure_server, google_server
from objects.large_files import large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.objects import azure_blocks
from sbbf_tool.storage.objects.azure import EMULATOR_KEY
from support.buckets import forget_clients
from support.http_site import serve

pytestmark = pytest.mark.environment(minutes=1)

HEAVY = pytest.mark.nightly(minutes=1)
SECRET = "hUsHs3cr3t"
CHANGES = (
    ["add-filter", "<URL>", "-c", "id", "--in-place"],
    ["add-filter", "<URL>", "-c", "id", "--in-place", "--dry-run", "--format", "json"],
    ["remove-filter", "<URL>", "--in-place"],
    ["resize", "<URL>", "--max-bytes", "1024", "--in-place", "--allow", "weak-filters"],
    ["repair", "<URL>", "--in-place"],
)


@pytest.fixture
def root_log() -> Iterator[io.StringIO]:
    """All that a handler of the root logger gets."""
    root, text = logging.getLogger(), io.StringIO()
    handler, level = logging.StreamHandler(text), root.level
    root.addHandler(handler)
    root.setLevel("DEBUG")
    yield text
    root.setLevel(level)
    root.removeHandler(handler)


def use_account(
    container: azure_server.Container, monkeypatch: pytest.MonkeyPatch, **settings: str
) -> None:
    """Use the account of the emulator, with these settings in place of its key."""
    names = {
        "ACCOUNT_NAME": azure_server.ACCOUNT,
        "ENDPOINT": f"{container.proxy.url}/{azure_server.ACCOUNT}",
        **settings,
    }
    for name, value in names.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    monkeypatch.delenv("AZURE_STORAGE_USE_EMULATOR")
    forget_clients()
    container.proxy.forget()


@pytest.mark.parametrize(
    "fault", [None, 403, pytest.param(500, marks=HEAVY), pytest.param("cut", marks=HEAVY)]
)
def test_changes_of_azure_print_no_signature(container, fault, capfd, root_log, monkeypatch):
    url = container.put("x.parquet", large())
    use_account(
        container, monkeypatch, SAS_TOKEN=f"{azure_server.account_signature()}&extra={SECRET}"
    )
    root_log.truncate(0)
    # Also of the URL with which the service itself would read.
    monkeypatch.setattr(azure_blocks, "MOST_UPLOADED_AGAIN", 1 << 20)
    if fault is not None:
        container.proxy.fault = lambda exchange: fault if exchange.method == "PUT" else None
    for words in CHANGES:
        code = run([*(url if word == "<URL>" else word for word in words), "--verbose"])
        printed = "".join(capfd.readouterr()) + root_log.getvalue()
        assert SECRET not in printed
        assert "sig=" not in printed
        assert code != 70, printed
        assert fault is not None or words[0] == "resize" or code == 0, printed
    assert any(
        SECRET in exchange.query
        for exchange in container.proxy.exchanges
        if exchange.method == "PUT"
    )


@pytest.mark.parametrize(
    "fault", [403, pytest.param(500, marks=HEAVY), pytest.param("cut", marks=HEAVY)]
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_changes_of_azure_print_no_key(container, fault, method, capfd, root_log, monkeypatch):
    url = container.put("x.parquet", small())
    container.proxy.fault = lambda exchange: fault if exchange.method == method else None
    for words in CHANGES:
        code = run([*(url if word == "<URL>" else word for word in words), "--verbose"])
        printed = "".join(capfd.readouterr()) + root_log.getvalue()
        assert "SharedKey" not in printed
        assert EMULATOR_KEY not in printed
        assert code != 70, printed


def test_a_bearer_token_is_sent_and_not_printed(container, monkeypatch):
    url = container.put("x.parquet", small())
    use_account(container, monkeypatch, TOKEN=SECRET)
    for call in (
        lambda: sbbf_tool.inspect(url),
        lambda: sbbf_tool.add_filters(url, ["id"], in_place=True),
    ):
        with pytest.raises(
            UnreadableError, match=r"access denied|the server answered|only supported with HTTPS"
        ) as caught:
            call()
        assert SECRET not in str(caught.value)
    assert container.proxy.exchanges[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_key_of_azure_that_cannot_be_used(monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_USE_EMULATOR", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", f"{SECRET}!")
    forget_clients()
    with pytest.raises(UnreadableError, match="no usable credentials") as caught:
        sbbf_tool.inspect("az://container/x.parquet")
    assert SECRET not in str(caught.value)


@pytest.fixture
def token_server() -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives an access token for each signed request; its address, and the bodies of
    the requests."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(
                {"access_token": SECRET, "expires_in": 3600, "token_type": "Bearer"}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            pass

    with serve(Handler) as server:
        yield f"{server.url}/token", bodies


@pytest.mark.parametrize("fault", [None, 401, 500])
def test_a_service_account_of_google(
    google_bucket, token_server, fault, monkeypatch, capfd, root_log
):
    pytest.importorskip("google.auth", reason="the Python package google-auth is not installed")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    from sbbf_tool.storage.objects import google

    url = google_bucket.put("x.parquet", small())
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {
        "type": "service_account",
        "client_email": "me@example.iam.gserviceaccount.com",
        "private_key": pem,
        "private_key_id": "1",
        "token_uri": token_server[0],
        "gcs_base_url": google_bucket.proxy.url,
    }
    # obstore reads without credentials, because it signs its own tokens; the requests that write
    # are signed by google-auth.
    monkeypatch.setattr(google, "_service_account", lambda: account)
    forget_clients()
    if fault is not None:
        google_bucket.proxy.fault = lambda exchange: (
            fault if google_server.operation(exchange) == "Upload" else None
        )
    code = run(["add-filter", url, "-c", "id", "--in-place", "--verbose"])
    assert code == {None: 0, 401: 4, 500: 5}[fault]
    printed = "".join(capfd.readouterr()) + root_log.getvalue()
    assert SECRET not in printed
    assert "PRIVATE KEY" not in printed
    (upload, *_) = (
        exchange
        for exchange in google_bucket.proxy.exchanges
        if google_server.operation(exchange) == "Upload"
    )
    assert upload.headers["authorization"] == f"Bearer {SECRET}"
    assert (
        len(token_server[1]) == 1 or fault == 401
    )  # a token serves until it expires, or is rejected


@pytest.mark.parametrize("service", ["moto_bucket", "google_bucket"])
def test_the_reader_accepts_the_costs_of_each_request(service, request, monkeypatch):
    bucket = request.getfixturevalue(service)
    url = bucket.put("lake/x.parquet", large())
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "ours")
    forget_clients()
    assert run(["add-filter", bucket.url("lake/"), "-c", "id", "--in-place"]) == 0
    assert sbbf_tool.verify(url).is_sound
    for exchange in bucket.proxy.exchanges:
        payer = exchange.headers.get("x-amz-request-payer") or exchange.headers.get(
            "x-goog-user-project"
        )
        assert payer in ("requester", "ours") or "userProject=ours" in exchange.query


def test_changes_of_s3_log_no_signature(moto_bucket, root_log):
    url = moto_bucket.put("x.parquet", small())
    assert "\nSignature:\n" in root_log.getvalue()  # of the application's own use of the library
    root_log.truncate(0)
    assert run(["add-filter", url, "-c", "id", "--in-place", "--verbose"]) == 0
    assert "opened s3://" in root_log.getvalue()
    assert "ignature" not in root_log.getvalue()


@pytest.mark.parametrize("service", ["container", "google_bucket"])
def test_a_change_is_undone_and_applied(service, request, tmp_path):
    """The old bytes return."""
    bucket = request.getfixturevalue(service)
    data = {"lake/a.parquet": small(), "lake/b.parquet": large()}
    for key, content in data.items():
        bucket.put(key, content)
    lake = bucket.url("lake/")
    assert run(["add-filter", lake, "-c", "id", "--in-place"]) == 0
    assert sbbf_tool.verify(bucket.url("lake/b.parquet")).is_sound
    assert run(["remove-filter", lake, "--ours", "--in-place"]) == 0
    assert {key: bucket.get(key) for key in data} == data
    declaration = tmp_path / "sbbf.toml"
    declaration.write_text(f'[[filters]]\npaths = "{lake}"\ncolumns = ["id"]\n')
    assert run(["apply", "--config", str(declaration), "--in-place"]) == 0
    assert all(len(sbbf_tool.inspect(bucket.url(key)).filters) == 3 for key in data)


def test_a_service_account_whose_key_cannot_be_used(google_bucket, tmp_path, monkeypatch):
    from sbbf_tool.storage.objects import google

    url = google_bucket.put("x.parquet", small())
    account = {
        "type": "service_account",
        "client_email": "me",
        "private_key": SECRET,
        "token_uri": "http://127.0.0.1:1/",
    }
    monkeypatch.setattr(
        google, "_service_account", lambda: {**account, "gcs_base_url": google_bucket.proxy.url}
    )
    forget_clients()
    with pytest.raises(Exception, match="no usable credentials") as caught:
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert SECRET not in str(caught.value)
