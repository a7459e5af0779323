"""Servers that are not S3, or whose answers do not end: one line and exit code 3, and hardly more
is read than was asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import cycle

import pytest

from objects import azure_server, google_server
from objects.large_files import small
from sbbf_tool.cli import run
from sbbf_tool.storage.objects import cloud, retries
from sbbf_tool.storage.objects.retries import Budget
from support.buckets import environment, forget_clients
from support.http_site import serve
from support.tables import each

# botocore leaves the connection that brought a redirect to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Welcome</body></html>"
DEEP = b"<a>" * 100_000
LIST = (
    b'<?xml version="1.0"?><ListBucketResult '
    b'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s</ListBucketResult>'
)

Answer = tuple[int, dict[str, str], bytes]


def always(status: int, body: bytes = b"", **headers: str) -> Callable[[str], Answer]:
    by_header = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda method: (status, by_header, body)


STRANGERS: dict[str, Callable[[str], Answer]] = {
    **{
        f"redirect {status}": always(status, Location="http://127.0.0.1:9/elsewhere")
        for status in (301, 302, 307)
    },
    "page": always(200, PAGE, Content_Type="text/html"),
    "page with 206": always(206, PAGE, Content_Type="text/html"),
    "another range": always(206, b"x" * 10, Content_Range="bytes 5-14/1000"),
    "more than the range": always(206, b"x" * 100_000, Content_Range="bytes 0-99999/100000"),
    "range beyond the end": always(206, b"x" * 10, Content_Range="bytes 995-1004/1000"),
    "number that is none": always(
        200, b"x", Last_Modified="yesterday", x_amz_tagging_count="many", x_amz_missing_meta="x"
    ),
    "date that is none": always(
        206, b"PAR1", Last_Modified="99999999999999", Content_Range="bytes 0-3/4"
    ),
    "deep XML": always(200, DEEP, Content_Type="application/xml"),
    "deep XML as an error": always(400, DEEP, Content_Type="application/xml"),
    "error code of 100 KB": always(
        403, b"<Error><Code>%s</Code></Error>" % (b"x\n" * 50_000), Content_Type="application/xml"
    ),
    "bytes": always(200, bytes(range(256)) * 10),
    "key without a name": always(200, LIST % b"<Contents><Size>3</Size></Contents>"),
    "same page for ever": always(
        200,
        LIST % b"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        b"<Contents><Key>a</Key></Contents>",
    ),
    "truth that is none": always(
        200, LIST % b"<IsTruncated>perhaps</IsTruncated><KeyCount>several</KeyCount>"
    ),
    "nothing at all": always(200),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer: Callable[[str], Answer]

    def handle(self) -> None:
        # A client need not read an unrequested response to its end.
        with suppress(ConnectionError):
            super().handle()

    def respond(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, body = type(self).answer(self.command)
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = respond  # noqa: N815


@pytest.fixture
def stranger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """AWS_ENDPOINT_URL leads to a server that gives one answer to every request."""
    handler = type("Handler", (_Handler,), {"answer": staticmethod(STRANGERS[request.param])})
    with serve(handler) as server:
        for name, value in environment(server.url).items():
            monkeypatch.setenv(name, value)
        forget_clients()
        yield request.param
        forget_clients()


URL = "s3://bucket/folder/x.parquet"
COMMANDS = (
    ["inspect", URL],
    ["add-filter", URL, "-c", "id", "--in-place"],
    ["probe", URL, "id", "1"],
    ["verify", URL],
    ["remove-filter", URL, "--in-place"],
    ["inspect", "s3://bucket/folder/*.parquet"],
    ["probe", URL, URL, "-c", "id", "--value", "1"],
)
LISTING = ["inspect", "s3://bucket/folder/"]
LISTINGS = ("key without a name", "same page for ever", "truth that is none", "nothing at all")
"""Answers that a listing misreads if anything does."""
PAIRS_OF_STRANGERS = [
    *zip(STRANGERS, cycle(COMMANDS), strict=False),
    *((name, LISTING) for name in LISTINGS),
]


@pytest.mark.parametrize(
    ("stranger", "arguments"), PAIRS_OF_STRANGERS, indirect=["stranger"], ids=str
)
def test_a_server_that_is_not_s3_is_one_line_and_exit_3(stranger, arguments, capfd):
    code = run(arguments)
    output, errors = capfd.readouterr()
    assert code in (3, 4, 5), errors
    assert code == 3 or "--in-place" in arguments
    lines = [line for line in errors.splitlines() if line]
    assert lines
    assert all(len(line) < 1000 for line in lines)
    assert all("internal error" not in line for line in lines)
    assert output == "" or arguments[0] == "check" or arguments.count(URL) > 1


MOST_BYTES = 100 << 20
"""Buffers of sockets and the longest answer of a service without a stated length take some."""

ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "a range in chunks": (206, {"Transfer-Encoding": "chunked"}),
    "a range without a length": (206, {"Connection": "close"}),
    "a range in chunks with a length": (
        206,
        {"Transfer-Encoding": "chunked", "Content-Length": "{length}"},
    ),
    "a range that is too long": (206, {"Content-Length": str(1 << 40)}),
    "all in chunks": (200, {"Transfer-Encoding": "chunked"}),
    "all without a length": (200, {"Connection": "close"}),
    "an error in chunks": (403, {"Transfer-Encoding": "chunked"}),
    "an error without a length": (404, {"Connection": "close"}),
}

SCHEMES = ("s3", "az", "gs", "http")
ENDLESS_COMMANDS = (
    ["inspect"],
    ["probe", "id", "1"],
    ["add-filter", "-c", "id", "--in-place", "--allow", "table-files"],
)


class _EndlessHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = 206
    headers_sent: dict[str, str]
    sent = 0
    states_length = True

    def log_message(self, *arguments: object) -> None:
        pass

    def requested_range(self) -> tuple[int, int]:
        first, last = (
            re.findall(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "") or [("0", "")]
        )[0]
        start = int(first) if first else max(0, len(small()) - int(last))
        return start, min(int(last) + 1, len(small())) if first and last else len(small())

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
        start, end = self.requested_range()
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
def handler(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_EndlessHandler]]:
    """The class of a server to which the settings of all stores lead."""
    handler = type("Handler", (_EndlessHandler,), {})
    with serve(handler) as server:
        handler.url = server.url
        account = str(google_server.write_account(tmp_path, server.url))
        settings = {
            **environment(server.url),
            **azure_server.environment(server.url),
            "GOOGLE_SERVICE_ACCOUNT": account,
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        forget_clients()
        yield handler
        forget_clients()


def url_of(scheme: str, handler: type[_EndlessHandler]) -> str:
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
PAIRS = [
    (scheme, answer)
    for scheme in SCHEMES
    for answer in ANSWERS
    if scheme == "s3" or "error" not in answer
]


@each(
    "scheme, answer, arguments",
    [(*pair, arguments) for pair, arguments in zip(PAIRS, cycle(ENDLESS_COMMANDS), strict=False)],
)
def test_an_answer_without_end(handler, scheme, answer, arguments, capfd):
    handler.status, handler.headers_sent = ANSWERS[answer]
    handler.sent = 0
    forget_clients()
    one_line(arguments, url_of(scheme, handler), capfd)
    assert handler.sent < MOST_BYTES


def _read_or_list(self: _EndlessHandler) -> None:
    """Answer as a container or a bucket with one object does."""
    start, end = self.requested_range()
    data = (
        small()[start:end]
        if "list" not in self.path
        else LIST % b""
        if "list-type" in self.path
        else BLOBS % b""
    )
    self.send_response_only(206 if "Range" in self.headers else 200)
    self.send_header("ETag", '"tag"')
    self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(small())}")
    self.send_header("x-goog-generation", "1")
    self.send_header("Content-Length", str(len(data)))
    self.end_headers()
    self.wfile.write(data)


CHANGE = ["add-filter", "-c", "id", "--in-place"]


def test_what_is_written_goes_to_no_other_host(handler, site, capfd, monkeypatch):
    def redirect(self: _EndlessHandler) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response_only(307)
        self.send_header("Location", site.url + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    monkeypatch.setattr(handler, "do_GET", _read_or_list)
    monkeypatch.setattr(handler, "do_PUT", redirect, raising=False)
    line = one_line(CHANGE, "az://bucket/x.parquet", capfd)
    assert (
        line
        == "sbbf: az://bucket/x.parquet: the service answered 307; the old object is untouched\n"
    )
    assert site.requests == []


@each(
    "body",
    [
        b"<html>",
        b"[]",
        b'"x"',
        b"\xff",
        b"null",
        b'{"generation": "x"}',
        b'{"generation": 1, "size": {}, "acl": 7, "owner": []}',
    ],
)
def test_an_answer_of_google_that_is_none(handler, body, capfd, monkeypatch):
    def describe(self: _EndlessHandler) -> None:
        if "/storage/v1/" not in self.path:
            _read_or_list(self)
            return
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    monkeypatch.setattr(cloud, "BUDGET", Budget.of_tries(1))
    monkeypatch.setattr(handler, "do_GET", describe)
    forget_clients()
    line = one_line(CHANGE, "gs://bucket/x.parquet", capfd)
    assert "the answer is not that of such a service; check the endpoint" in line


BLOBS = b"<EnumerationResults><Blobs>%s</Blobs></EnumerationResults>"
BLOB = (
    b"<Blob><Name>%s</Name><Properties><Last-Modified>Wed, 01 Jan 2025 00:00:00 GMT</Last-Modified>"
    b"<Etag>tag</Etag><Content-Length>100</Content-Length><Content-Type>x</Content-Type></Properties></Blob>"
)
OBJECTS = (
    LIST % b"<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>%s"
)
OBJECT = (
    b"<Contents><Key>%s</Key><LastModified>2025-01-01T00:00:00Z</LastModified>"
    b"<ETag>tag</ETag><Size>100</Size></Contents>"
)


@each(
    "scheme, body, message",
    [
        ("az", b"<EnumerationResults><Blobs><Blob><Name>folder/a", "the answer is cut off"),
        ("gs", b'{"items": [{"name"', "the answer is cut off"),
        (
            "gs",
            OBJECTS % (OBJECT % b"folder/a" + OBJECT % b"folder/b"),
            "the same objects again and again",
        ),
        (
            "az",
            BLOBS % (BLOB % b"folder//a"),
            "folder/: an object below cannot be opened: a part of its name is empty",
        ),
        ("gs", OBJECTS % (OBJECT % b"folder/../a"), "has a control character: folder/../a"),
    ],
)
def test_a_listing_that_is_cut_off_or_never_ends_or_has_odd_names(
    handler, scheme, body, message, capfd, monkeypatch
):
    monkeypatch.setattr(handler, "do_GET", _Handler.respond)
    monkeypatch.setattr(handler, "answer", always(200, body), raising=False)
    forget_clients()
    assert message in one_line(["inspect"], f"{scheme}://bucket/folder/", capfd)


def drip(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    """Send one byte after the other, until the client is gone."""
    with suppress(OSError):
        for byte in data:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.05)
    handler.close_connection = True


@each("what", ["object"], heavy=["head of an answer", "list", "list without end"])
def test_an_answer_that_comes_byte_after_byte(handler, what, capfd, monkeypatch):
    """Each byte comes in time, the answer does not."""

    def send(self: _EndlessHandler) -> None:
        if what == "head of an answer":
            drip(self, b"HTTP/1.1 206 OK\r\nx-long: " + b"x" * 60_000)
            return
        start, end = self.requested_range()
        data = LIST % (b" " * 60_000) if "list" in self.path else small()[start:end]
        self.send_response_only(206 if "Range" in self.headers else 200)
        self.send_header("ETag", '"tag"')
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(small())}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        drip(self, data)

    def go_on(self: _EndlessHandler) -> None:
        body = (
            b"<EnumerationResults><Blobs></Blobs><NextMarker>more</NextMarker></EnumerationResults>"
        )
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    is_azure = what == "list without end"
    handler.do_GET = go_on if is_azure else send  # to the end: some requests are abandoned
    monkeypatch.setattr(retries, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(retries, "LEAST_RATE", 1 << 20)
    monkeypatch.setattr(cloud, "LIST_SECONDS", 1.0)
    forget_clients()
    begin = time.monotonic()
    name = "bucket/folder/" if "list" in what else "bucket/x.parquet"
    line = one_line(["verify"], f"{'az' if is_azure else 's3'}://{name}", capfd)
    assert "the server sends too slowly" in line
    assert time.monotonic() - begin < 30


@each("scheme, total", [(scheme, total) for scheme in SCHEMES for total in (1 << 50, 10)], every=5)
def test_a_range_of_an_object_of_another_length(handler, scheme, total, capfd):
    def state(self: _EndlessHandler) -> None:
        if "list" in self.path:
            _read_or_list(self)
            return
        start, end = self.requested_range()
        self.send_response_only(206)
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.send_header("x-goog-generation", "1")
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(small()[start:end])

    handler.do_GET = state
    forget_clients()
    for command in (["inspect"], ["probe", "id", "1"], ["verify"]):
        one_line(command, url_of(scheme, handler), capfd)


@each("scheme", SCHEMES)
def test_a_head_without_a_length(handler, scheme, capfd):
    handler.status, handler.headers_sent, handler.states_length = (
        416,
        {"Content-Length": "0"},
        False,
    )
    one_line(["inspect"], url_of(scheme, handler), capfd)
