"""A proxy on loopback between a client and a server: it counts the exchanges and injects faults."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.http_site import serve


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; sizes are those of the bodies."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    uploaded: int
    status: int
    downloaded: int

    @property
    def operation(self) -> str:
        """Return the name of the operation in S3."""
        query = parse_qs(self.query, keep_blank_values=True)
        copies = "x-amz-copy-source" in self.headers
        match self.method:
            case "PUT" if "partNumber" in query:
                return "UploadPartCopy" if copies else "UploadPart"
            case "PUT":
                return "PutObject"
            case "POST" if "uploads" in query:
                return "CreateMultipartUpload"
            case "POST" if "uploadId" in query:
                return "CompleteMultipartUpload"
            case "DELETE" if "uploadId" in query:
                return "AbortMultipartUpload"
            case "GET" if "uploadId" in query:
                return "ListParts"
            case "GET" if "uploads" in query:
                return "ListMultipartUploads"
            case "GET" if "list-type" in query:
                return "ListObjectsV2"
            case "GET" if "ownershipControls" in query:
                return "GetBucketOwnershipControls"
            case "GET" if "tagging" in query or "acl" in query:
                return "GetObjectTagging" if "tagging" in query else "GetObjectAcl"
            case "GET":
                return "GetObject"
            case "HEAD":
                return "HeadObject"
        return self.method


Fault = Callable[[Exchange], str | int | None]
"""Called before a request is forwarded, with status 0. A status as result answers with that error;
`cut` closes the connection within the body of the request, `cut answer` within that of the answer;
`lose answer` forwards the request and closes before the answer; None forwards both. The function
may have side effects of its own."""

_DRAIN_SECONDS = 120


@dataclass
class Proxy:
    url: str
    upstream: str
    exchanges: list[Exchange] = field(default_factory=list)
    fault: Fault | None = None
    codes: dict[int, str] = field(default_factory=dict)
    """The codes of errors by the statuses that a fault answers, beside the usual ones."""
    connections: set[object] = field(default_factory=set)
    """Addresses of the clients whose connections are open."""
    progress: threading.Condition = field(default_factory=threading.Condition)
    """Notified when `connections` changes."""

    @contextmanager
    def draining(self) -> Iterator[None]:
        """Wait at the end until all connections that were opened in the block are closed: what a
        killed client sent may arrive late."""
        before = set(self.connections)
        yield
        address = urlsplit(self.url)
        with socket.create_connection((address.hostname or "", address.port or 0)) as last:
            # Connections are accepted in the order in which they were opened.
            self._wait_for(lambda: last.getsockname() in self.connections)
        self._wait_for(lambda: self.connections <= before)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        with self.progress:
            assert self.progress.wait_for(condition, _DRAIN_SECONDS)

    def operations(self) -> list[str]:
        return [exchange.operation for exchange in self.exchanges]

    def count(self, operation: str) -> int:
        return self.operations().count(operation)

    @property
    def uploaded(self) -> int:
        return sum(exchange.uploaded for exchange in self.exchanges)

    @property
    def downloaded(self) -> int:
        return sum(exchange.downloaded for exchange in self.exchanges)

    def forget(self) -> None:
        self.exchanges.clear()
        self.fault = None
        self.codes = {}


@contextmanager
def running(upstream: str) -> Iterator[Proxy]:
    """A proxy before `upstream`, an address such as `http://127.0.0.1:8080`."""
    with serve(_Handler, _Server) as server:
        server.proxy = Proxy(server.url, upstream)
        yield server.proxy


class _Server(ThreadingHTTPServer):
    proxy: Proxy

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.proxy.progress:
            self.proxy.connections.add(client_address)
            self.proxy.progress.notify_all()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.proxy.progress:
                self.proxy.connections.discard(client_address)
                self.proxy.progress.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass

    def _pass_on(self) -> None:
        proxy: Proxy = self.server.proxy  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        length = int(headers.get("content-length", 0))
        fault = (
            proxy.fault(Exchange(self.command, parts.path, parts.query, headers, length, 0, 0))
            if proxy.fault
            else None
        )
        if fault == "cut":
            uploaded = len(self.rfile.read(length // 2))
            proxy.exchanges.append(
                Exchange(self.command, parts.path, parts.query, headers, uploaded, 0, 0)
            )
            self._break_off()
            return
        body = self.rfile.read(length)
        if len(body) < length:
            # The client is gone; a server drops a request that is not whole.
            self.close_connection = True
            return
        if isinstance(fault, int):
            codes = {403: "AccessDenied", 412: "PreconditionFailed", **proxy.codes}
            code = codes.get(fault, "InternalError")
            answer = f"<Error><Code>{code}</Code><Message>as asked</Message></Error>".encode()
            self._record(proxy, parts, headers, length, fault, len(answer))
            self._answer(fault, [("Content-Type", "application/xml")], answer)
            return
        connection = http.client.HTTPConnection(urlsplit(proxy.upstream).netloc, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            data = answer.read()
            self._record(proxy, parts, headers, length, answer.status, len(data))
            if fault == "lose answer":
                self._break_off()
            elif fault == "cut answer":
                self._answer(
                    answer.status, answer.getheaders(), data[: len(data) // 2], claimed=len(data)
                )
                self._break_off()
            else:
                self._answer(answer.status, answer.getheaders(), data)
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815  as http.server calls them

    def _record(
        self,
        proxy: Proxy,
        parts: object,
        headers: dict[str, str],
        uploaded: int,
        status: int,
        downloaded: int,
    ) -> None:
        proxy.exchanges.append(
            Exchange(self.command, parts.path, parts.query, headers, uploaded, status, downloaded)
        )  # type: ignore[attr-defined]

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, claimed: int | None = None
    ) -> None:
        self.send_response_only(status)
        has_length = False
        for name, value in headers:
            if name.lower() in ("connection", "transfer-encoding"):
                continue
            if name.lower() == "content-length":
                has_length = True
                if self.command != "HEAD":
                    self.send_header(name, str(len(data) if claimed is None else claimed))
                    continue
            self.send_header(name, value)
        if not has_length:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data)
        self.wfile.flush()

    def _break_off(self) -> None:
        """Close the connection with a reset, as a broken cable does; an orderly close would send
        buffered bytes first."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RDWR)
