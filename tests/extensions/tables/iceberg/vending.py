"""A REST catalog of the tests that hands out credentials, before a catalog of PyIceberg on SQLite;
and S3 that accepts those alone: moto with enforced IAM, behind a proxy that holds the rest of what
moto does not (which prefix a key is for, and that it expires)."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import botocore.session
from pyiceberg.catalog.rest import CommitTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from support import counting_proxy
from support.counting_proxy import Exchange
from support.http_site import serve
from support.swift_server import free_ports, wait_for

BUCKET = "lake"
REGION = "us-east-1"
Keys = dict[str, str]
"""Properties of Iceberg for S3."""

_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}


@dataclass
class Right:
    """What a key may do: read and write objects below prefixes, until it expires."""

    prefixes: tuple[str, ...]
    is_expired: bool = False


@dataclass
class Store:
    """S3 with enforced IAM. Keys of roles have rights; the administrator has all."""

    proxy: counting_proxy.Proxy
    admin: Keys
    sts: Any
    s3: Any
    rights: dict[str, Right] = field(default_factory=dict)
    expires_at: list[int] = field(default_factory=list)
    """Numbers of requests, as `used` counts them, at which all keys of sessions expire."""
    expires_with: Callable[[Exchange], bool] | None = None
    """All keys of sessions expire with the first request for which it is true."""
    used: list[tuple[str, str]] = field(default_factory=list)
    """The key and the path of each request, but for those of the administrator."""

    @property
    def where(self) -> Keys:
        return {"s3.endpoint": self.proxy.url, "s3.region": REGION}

    def assume(self, prefixes: tuple[str, ...]) -> Keys:
        """Return keys of a session for these prefixes, such as `/lake/n/t`."""
        session = next(_NUMBERS)
        answer = self.sts.assume_role(
            RoleArn="arn:aws:iam::123456789012:role/vended", RoleSessionName=f"session-{session}"
        )["Credentials"]
        self.rights[answer["AccessKeyId"]] = Right(prefixes)
        return _properties(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])

    def put(self, url: str, data: bytes) -> None:
        """Store an object as the administrator."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        self.s3.put_object(Bucket=bucket, Key=key, Body=data)

    def expire(self) -> None:
        """Let all keys of sessions expire."""
        for right in tuple(self.rights.values()):
            right.is_expired = True

    def judge(self, exchange: Exchange) -> int | None:
        """Answer with an error for what a key may not do; moto checks its signature."""
        match = re.search(r"Credential=([^/]+)/", exchange.headers.get("authorization", ""))
        key = match[1] if match else ""
        if key == self.admin["s3.access-key-id"]:
            return None
        self.used.append((key, unquote(exchange.path)))
        if len(self.used) in self.expires_at:
            self.expire()
        if self.expires_with is not None and self.expires_with(exchange):
            self.expires_with = None
            self.expire()
        right = self.rights.get(key)
        if right is None:
            return 403
        if right.is_expired:
            return 400
        path = unquote(exchange.path)
        if exchange.query == "acl":
            return 403  # moto fails
        if exchange.method == "GET" and path.strip("/").count("/") == 0:
            return None  # a list, of which moto knows no prefix
        return None if path.startswith(right.prefixes) else 403


_NUMBERS = itertools.count()


def _properties(key: str, secret: str, token: str = "") -> Keys:
    keys = {"s3.access-key-id": key, "s3.secret-access-key": secret}
    return {**keys, "s3.session-token": token} if token else keys


@contextmanager
def start_store() -> Iterator[Store]:
    """Start moto, which from now on checks every signature."""
    (port,) = free_ports(1)
    steps = 6  # of `_make_admin`
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(steps)},
    )
    try:
        wait_for(server, port)
        url = f"http://127.0.0.1:{port}"
        with counting_proxy.running(url) as proxy:
            admin, sts, s3 = _make_admin(url)
            where = {"s3.endpoint": proxy.url, "s3.region": REGION}
            store = Store(proxy, {**admin, **where}, sts, s3)
            proxy.fault = store.judge
            proxy.codes = {400: "ExpiredToken"}
            yield store
    finally:
        server.kill()
        server.wait()


def _make_admin(url: str) -> tuple[Keys, Any, Any]:
    """Make a user who may do everything, a role to assume, and the bucket; return the user's keys
    and clients."""

    def client(service: str, key: str = "none", secret: str = "none") -> Any:
        session = botocore.session.Session()
        session.set_credentials(key, secret)
        return session.create_client(service, region_name=REGION, endpoint_url=url)

    iam = client("iam")
    policy = json.dumps(_POLICY).replace("s3:*", "*")
    iam.create_user(UserName="admin")
    iam.put_user_policy(UserName="admin", PolicyName="all", PolicyDocument=policy)
    pair = iam.create_access_key(UserName="admin")["AccessKey"]
    iam.create_role(RoleName="vended", AssumeRolePolicyDocument=policy)
    iam.put_role_policy(RoleName="vended", PolicyName="s3", PolicyDocument=json.dumps(_POLICY))
    client("s3").create_bucket(Bucket=BUCKET)
    key, secret = pair["AccessKeyId"], pair["SecretAccessKey"]
    return _properties(key, secret), client("sts", key, secret), client("s3", key, secret)


@dataclass
class Vendor:
    """A catalog that hands out what `config` and `credentials` return with each table."""

    url: str
    inner: SqlCatalog
    config: Callable[[], dict[str, str]] = dict
    credentials: Callable[[], list[dict[str, Any]]] = list
    defaults: dict[str, str] = field(default_factory=dict)
    """Properties of all tables."""
    requests: list[str] = field(default_factory=list)
    """`load`, `commit` and `credentials`."""
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path == "/v1/config":
            return 200, {"defaults": self.defaults, "overrides": {}}
        match = re.fullmatch(r"/v1/namespaces/([^/]+)/tables/([^/]+)(/credentials)?", path)
        if match is None:
            return 404, {"error": {"message": path, "type": "NotFound", "code": 404}}
        if match[3]:
            self.requests.append("credentials")
            return 200, {"storage-credentials": self.credentials()}
        table = self.inner.load_table((match[1], match[2]))
        if method == "POST":
            self.requests.append("commit")
            request = CommitTableRequest.model_validate_json(body)
            try:
                done = self.inner.commit_table(table, request.requirements, request.updates)
            except CommitFailedException as error:
                return 409, {"error": {"message": str(error), "type": "Conflict", "code": 409}}
            return 200, _table_answer(done.metadata_location, done.metadata)
        self.requests.append("load")
        answer = _table_answer(table.metadata_location, table.metadata)
        answer |= {"config": self.config(), "storage-credentials": self.credentials()}
        return 200, answer


def _table_answer(location: str, metadata: Any) -> dict[str, Any]:
    return {"metadata-location": location, "metadata": json.loads(metadata.model_dump_json())}


class _Server(ThreadingHTTPServer):
    vendor: Vendor


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        vendor: Vendor = self.server.vendor  # type: ignore[attr-defined]
        vendor.headers.append({name.lower(): text for name, text in self.headers.items()})
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, answer = vendor.answer(self.command, self.path.partition("?")[0], body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.do_GET()


@contextmanager
def start_vendor(folder: Path, properties: dict[str, str], warehouse: str) -> Iterator[Vendor]:
    """Start a catalog with tables in `warehouse`, whose own access has these properties."""
    inner = SqlCatalog(
        folder.name, uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **properties
    )
    inner.create_namespace_if_not_exists("n")
    with serve(_Handler, _Server) as server:
        server.vendor = Vendor(server.url, inner)
        yield server.vendor
    inner.close()


def configure(home: Path, catalogs: dict[str, dict[str, str]]) -> None:
    """Write PyIceberg's configuration."""
    lines = ["catalog:"]
    for name, properties in catalogs.items():
        lines.append(f"  {name}:")
        lines += [f"    {key}: {json.dumps(text)}" for key, text in properties.items()]
    (home / ".pyiceberg.yaml").write_text("\n".join(lines))
