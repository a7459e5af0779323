"""Servers whose answers do not end, or state no length: one line and exit code 3, and hardly more is read than was asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

import pytest

from sbbf_tool.cli import run
from support import azure_server, google_server
from support.buckets import environment, forget_clients
from support.large_files import small
from support.tables import each

MOST_BYTES = 100 << 20
"""Buffers of sockets and the longest answer of a service without a stated length take some."""

ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "a range in chunks": (206, {"Transfer-Encoding": "chunked"}),
    "a range without a length": (206, {"Connection": "close"}),
    "a range in chunks with a length": (206, {"Transfer-Encoding": "chunked", "Content-Length": "{length}"}),
    "a range that is too long": (206, {"Content-Length": str(1 << 40)}),
    "all in chunks": (200, {"Transfer-Encoding": "chunked"}),
    "all without a length": (200, {"Connection": "close"}),
    "an error in chunks": (403, {"Transfer-Encoding": "chunked"}),
    "an error without a length": (404, {"Connection": "close"}),
}
SCHEMES = ("s3", "az", "gs", "http")
COMMANDS = (["inspect"], ["probe", "id", "1"], ["add-filter", "-c", "id", "--in-place", "--allow-table-files"])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = 206
    headers_sent: dict[str, str]
    sent = 0
    states_length = True

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response_only(200)
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.send_header("x-ms-blob-type", "BlockBlob")
        if self.states_length:
            self.send_header("Content-Length", str(len(small())))
        self.end_headers()

    def do_GET(self) -> None:
        kind, size = type(self), len(small())
        first, last = (re.findall(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "") or [("0", "")])[0]
        start = int(first) if first else max(0, size - int(last))
        end = min(int(last) + 1, size) if first and last else size
        self.send_response_only(kind.status)
        for name, value in kind.headers_sent.items():
            self.send_header(name, value.format(length=end - start))
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        if kind.status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        block = b"x" * (1 << 16)
        data = b"10000\r\n%s\r\n" % block if "Transfer-Encoding" in kind.headers_sent else block
        with suppress(OSError):
            while kind.sent < 4 * MOST_BYTES:
                kind.sent += self.connection.send(data)
        self.close_connection = True


@pytest.fixture
def handler(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Handler]]:
    """The class of a server to which the settings of all stores lead."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    settings = {
        **environment(url),
        **azure_server.environment(url),
        "GOOGLE_SERVICE_ACCOUNT": str(google_server.write_account(tmp_path, url)),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    forget_clients()
    handler.url = url
    yield handler
    server.shutdown()
    server.server_close()
    forget_clients()


def url_of(scheme: str, handler: type[_Handler]) -> str:
    return f"{handler.url}/x.parquet" if scheme == "http" else f"{scheme}://bucket/x.parquet"


def one_line(arguments: list[str], url: str, capfd: pytest.CaptureFixture[str]) -> str:
    command, *others = arguments
    code = run([command, url, *others])
    errors = capfd.readouterr().err
    assert code in (3, 4, 5), errors
    assert len(errors.splitlines()) == 1, errors
    assert "internal error" not in errors
    return errors


# The Rust library reads the text of an error as a whole, within the time limit of a request.
PAIRS = [(scheme, answer) for scheme in SCHEMES for answer in ANSWERS if scheme == "s3" or "error" not in answer]


@each("scheme, answer, arguments", [(*pair, arguments) for pair, arguments in zip(PAIRS, cycle(COMMANDS), strict=False)])
def test_an_answer_without_end(handler, scheme, answer, arguments, capfd):
    handler.status, handler.headers_sent = ANSWERS[answer]
    handler.sent = 0
    forget_clients()
    one_line(arguments, url_of(scheme, handler), capfd)
    assert handler.sent < MOST_BYTES


@each("scheme", SCHEMES)
def test_a_head_without_a_length(handler, scheme, capfd):
    handler.status, handler.headers_sent, handler.states_length = 416, {"Content-Length": "0"}, False
    one_line(["inspect"], url_of(scheme, handler), capfd)
