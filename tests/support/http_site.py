"""An HTTP server of files in memory; a test configures its validators and failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Site:
    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    knows_ranges: bool = True
    tags: str | None = '"{}"'
    modified: float | None = None
    status: int | None = None
    knows_head: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of every answer."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def put(self, path: str, data: bytes) -> str:
        self.files[path] = data
        return f"{self.url}/{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        site, headers = self.site, {name.lower(): value for name, value in self.headers.items()}
        site.requests.append((self.command, self.path, headers))
        data = site.files.get(unquote(urlsplit(self.path).path).lstrip("/"))
        refusal = 405 if self.command == "HEAD" and not site.knows_head else site.status
        if data is None or refusal:
            self._answer(refusal or 404, b"no", [])
            return
        validators = []
        tag = site.tags.format(md5(data, usedforsecurity=False).hexdigest()) if site.tags else None
        if tag:
            validators.append(("ETag", tag))
        if site.modified is not None:
            validators.append(("Last-Modified", formatdate(site.modified, usegmt=True)))
        if headers.get("if-match", tag) != tag:
            self._answer(412, b"", validators)
        elif "range" in headers and site.knows_ranges:
            first, last = headers["range"].removeprefix("bytes=").split("-")
            start, end = (
                (max(0, len(data) - int(last)), len(data))
                if not first
                else (int(first), min(int(last) + 1, len(data)))
            )
            if start >= len(data):
                self._answer(416, b"", validators)
            else:
                self._answer(
                    206,
                    data[start:end],
                    [*validators, ("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")],
                )
        else:
            self._answer(200, data, validators)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: int, data: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status)
        for name, value in (
            *headers,
            *self.site.headers.items(),
            ("Content-Length", str(len(data))),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def serve(
    handler: type[BaseHTTPRequestHandler], kind: type[ThreadingHTTPServer] = ThreadingHTTPServer
) -> Iterator[Any]:
    """Run a server on loopback for the length of the block; yield it, with its address as `url`."""
    server: Any = kind(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def running() -> Iterator[Site]:
    handler = type("Handler", (_Handler,), {})
    with serve(handler) as server:
        handler.site = Site(server.url)
        yield handler.site
