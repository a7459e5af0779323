"""Azurite, Microsoft's emulator of Azure's blobs, from npm, with the headers of block blobs that it
does not know.

It compares MD5 hashes and holds conditions, leases and tags; it has no Put Block From URL. Where
`azurite-blob` is not installed, it is installed among the tests' environments.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from urllib.parse import parse_qs, quote, urlencode

from support.counting_proxy import Exchange, Proxy
from support.environments import install_npm
from support.swift_server import free_ports, wait_for

ACCOUNT = "devstoreaccount1"
_PACKAGE = '{"private": true, "dependencies": {"azurite": "3.35.0"}}'


@contextmanager
def running() -> Iterator[str]:
    """Run a server for the length of the block; yield its address. Raises NotInstallableError."""
    installed = shutil.which("azurite-blob")
    command = (
        [installed]
        if installed
        else [
            "node",
            str(install_npm("azurite", _PACKAGE) / "node_modules/azurite/dist/src/blob/main.js"),
        ]
    )
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="azurite-") as folder:
        options = [
            "--blobPort",
            str(port),
            "--location",
            folder,
            "--silent",
            "--skipApiVersionCheck",
            "--disableTelemetry",
        ]
        server = subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            wait_for(server, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def environment(url: str) -> dict[str, str]:
    """Return the environment that directs clients of Azure to this address."""
    return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": url}


@cache
def account_signature() -> str:
    """Return the query of a URL that allows everything in the account."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    from sbbf_tool.storage.objects.azure import EMULATOR_KEY

    everything = (
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string("rwdxlacuptfi"),
    )
    signature: str = generate_account_sas(
        ACCOUNT, EMULATOR_KEY, *everything, expiry=datetime(2099, 1, 1, tzinfo=UTC)
    )
    return signature


def operation(exchange: Exchange) -> str:
    """Return the name of an exchange's operation."""
    query = parse_qs(exchange.query, keep_blank_values=True)
    parts = {
        "block": "PutBlock",
        "blocklist": "PutBlockList",
        "tags": "SetBlobTags",
        "lease": "LeaseBlob",
        "tier": "SetBlobTier",
    }
    match exchange.method, query.get("comp", [""])[0]:
        case "PUT", "block" if "x-ms-copy-source" in exchange.headers:
            return "PutBlockFromURL"
        case "PUT", part if part in parts:
            return parts[part]
        case "PUT", _:
            return "CreateContainer" if "restype" in query else "PutBlob"
        case "GET", "blocklist":
            return "GetBlockList"
        case "GET", "tags":
            return "GetBlobTags"
        case "GET", "list":
            return "ListBlobs"
        case "GET", _:
            return "GetBlob"
        case "HEAD", _:
            return "GetBlobProperties"
    return exchange.method


def blocks_of(data: bytes, size: int = 2 << 20, id_bytes: int = 8) -> list[tuple[str, bytes]]:
    """Split data into blocks, each with its id."""
    ids = [
        base64.b64encode(number.to_bytes(id_bytes, "big")).decode()
        for number in range(-(-len(data) // size))
    ]
    return [
        (block_id, data[number * size : (number + 1) * size]) for number, block_id in enumerate(ids)
    ]


@dataclass
class Container:
    """A container on the server, for what tests do beside the commands."""

    name: str
    proxy: Proxy

    def url(self, key: str) -> str:
        return f"az://{self.name}/{key}"

    def send(
        self,
        method: str,
        key: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ):  # type: ignore[no-untyped-def]
        """Send a request that is not counted, straight to the server."""
        import requests

        blob = f"{ACCOUNT}/{self.name}/{quote(key, safe='/~')}"
        url = f"{self.proxy.upstream}/{blob}?{urlencode(query or {})}&{account_signature()}"
        answer = requests.request(
            method,
            url,
            headers={"x-ms-version": "2021-12-02", **(headers or {})},
            data=body,
            timeout=60,
        )
        answer.raise_for_status()
        return SimpleNamespace(headers=answer.headers, body=answer.content)

    def create(self) -> None:
        self.send("PUT", "", {"restype": "container"})

    def put(self, key: str, data: bytes, **headers: str) -> str:
        """Store a blob by one Put Blob, so that it has no blocks; return its URL."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.send("PUT", key, headers={"x-ms-blob-type": "BlockBlob", **names}, body=data)
        return self.url(key)

    def put_blocks(self, key: str, blocks: list[tuple[str, bytes]], **headers: str) -> str:
        """Store a blob of blocks, each given as id and bytes; return its URL."""
        for block_id, data in blocks:
            self.send("PUT", key, {"comp": "block", "blockid": block_id}, body=data)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        ids = "".join(f"<Latest>{block_id}</Latest>" for block_id, _ in blocks)
        block_list = f"<BlockList>{ids}</BlockList>".encode()
        self.send("PUT", key, {"comp": "blocklist"}, names, block_list)
        return self.url(key)

    def get(self, key: str) -> bytes:
        data: bytes = self.send("GET", key).body
        return data

    def head(self, key: str) -> dict[str, str]:
        return {name.lower(): value for name, value in self.send("HEAD", key).headers.items()}

    def block_ids(self, key: str, kind: str = "committed") -> list[str]:
        import xml.etree.ElementTree as ET

        answer = self.send("GET", key, {"comp": "blocklist", "blocklisttype": kind})
        return [name.text or "" for name in ET.fromstring(answer.body).iter("Name")]

    def operations(self) -> list[str]:
        return [operation(exchange) for exchange in self.proxy.exchanges]

    def count(self, name: str) -> int:
        return self.operations().count(name)

    def fail(self, name: str, answer: str | int) -> None:
        """Give this answer to each request of one operation."""
        self.proxy.fault = lambda exchange: answer if operation(exchange) == name else None
