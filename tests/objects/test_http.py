"""HTTP servers: read by ranges, pinned to ETag or Last-Modified; what a server cannot do is an error and never misread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest
from large_files import large, small

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.places import open_source


@dataclass
class Site:
    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    knows_ranges: bool = True
    tags: str | None = '"{}"'
    modified: float | None = None
    status: int | None = None
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def put(self, path: str, data: bytes) -> str:
        self.files[path] = data
        return f"{self.url}/{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        site, headers = self.site, {name.lower(): value for name, value in self.headers.items()}
        site.asked.append((self.command, self.path, headers))
        data = site.files.get(unquote(urlsplit(self.path).path).lstrip("/"))
        if data is None or site.status:
            self._answer(site.status or 404, b"no", [])
            return
        told = []
        tag = site.tags.format(md5(data, usedforsecurity=False).hexdigest()) if site.tags else None
        if tag:
            told.append(("ETag", tag))
        if site.modified is not None:
            told.append(("Last-Modified", formatdate(site.modified, usegmt=True)))
        if headers.get("if-match", tag) != tag:
            self._answer(412, b"", told)
        elif "range" in headers and site.knows_ranges:
            first, last = headers["range"].removeprefix("bytes=").split("-")
            start, end = (max(0, len(data) - int(last)), len(data)) if not first else (int(first), min(int(last) + 1, len(data)))
            if start >= len(data):
                self._answer(416, b"", told)
            else:
                self._answer(206, data[start:end], [*told, ("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")])
        else:
            self._answer(200, data, told)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: int, data: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status)
        for name, value in (*headers, ("Content-Length", str(len(data)))):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@pytest.fixture
def site() -> Iterator[Site]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield handler.site
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_read_in_few_requests(site):
    url = site.put("a b/events.parquet", small()).replace(" ", "%20")
    assert sbbf_tool.inspect(url).row_groups == 3
    assert [command for command, _, _ in site.asked] == ["GET"]
    assert site.asked[0][2]["range"] == "bytes=-65536"


def test_what_is_read_is_what_is_there(site):
    url = site.put("x", large())
    with open_source(url) as source:
        for offset, length in ((0, 4), (1_000_000, 3_000_000), (len(large()) - 8, 8)):
            assert source.read(offset, length) == large()[offset : offset + length]
        assert all("if-match" in headers for _, _, headers in site.asked[1:])
    assert sbbf_tool.verify(url).is_sound


def test_a_signed_url_is_asked_whole_and_shown_without_its_signature(site, capsys):
    url = site.put("events.parquet", small()) + "?X-Amz-Signature=hush&x=a%2Fb"
    assert run(["inspect", url]) == 0
    assert all(path == "/events.parquet?X-Amz-Signature=hush&x=a%2Fb" for _, path, _ in site.asked)
    site.status = 403
    assert run(["inspect", url]) == 3
    site.status = None
    assert run(["inspect", url.replace("events", "none")]) == 3
    assert run(["add-filter", url, "-c", "id", "--in-place"]) == 4
    assert run(["add-filter", url, "-c", "id"]) == 2
    printed = "".join(capsys.readouterr())
    assert "hush" not in printed
    assert f"{site.url}/events.parquet?...: access denied; a signed URL may have expired" in printed


@pytest.mark.parametrize("told", ["etag", "last-modified"])
def test_a_changed_file_is_an_error_and_no_mixture(site, told):
    if told == "last-modified":
        site.tags, site.modified = None, 1_700_000_000
    url = site.put("x", large())
    with open_source(url) as source:
        source.read(0, 100)
        site.put("x", large()[::-1])
        site.modified = None if site.modified is None else site.modified + 60
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(1_000_000, 100)


@pytest.mark.parametrize("tags", [None, 'W/"{}"'])
def test_a_server_that_does_not_tell_versions_apart_is_not_read(site, tags):
    site.tags = tags
    with pytest.raises(UnreadableError, match="neither ETag nor Last-Modified"):
        open_source(site.put("x", small()))


def test_a_server_without_ranges_is_not_misread(site):
    site.knows_ranges = False
    with pytest.raises(UnreadableError, match="cannot give a part of a file: it answered with the whole; download it"):
        open_source(site.put("x", large()))


@pytest.mark.parametrize("status", [500, 503, 418])
def test_a_server_that_fails_is_told(site, status):
    site.status = status
    with pytest.raises(UnreadableError) as caught:
        open_source(site.put("x", small()))
    assert caught.value.message.startswith(f"the server answered {status}")
    assert len(site.asked) == (3 if status >= 500 else 1)


def test_an_empty_file_and_one_that_is_not_there(site, capsys):
    assert run(["inspect", site.put("empty.parquet", b"")]) == 3
    assert run(["inspect", f"{site.url}/none.parquet"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"sbbf: {site.url}/empty.parquet: ")
    assert lines[1] == f"sbbf: {site.url}/none.parquet: no such object"


def test_to_a_local_file(site, tmp_path):
    url = site.put("x.parquet", small())
    sbbf_tool.add_filters(url, ["id"], output=tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").read_bytes()[: len(small())] == small()
    assert sbbf_tool.verify(tmp_path / "x.parquet").is_sound
