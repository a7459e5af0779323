"""A real S3 server and the emulators of Azure and Google for all tests of this folder, and a bucket
of its own for each."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from botocore.loaders import JSONFileLoader

from objects import azure_server, google_server
from sbbf_tool.storage.objects import cloud
from sbbf_tool.storage.objects.retries import Budget
from support import counting_proxy, http_site, swift_server
from support.buckets import Bucket, environment, forget_clients
from support.environments import NotInstallableError
from support.swift_server import free_ports, wait_for

_NUMBERS = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def parsed_models() -> Iterator[None]:
    """Parse the JSON files of botocore once: each test makes clients of its own."""
    load = JSONFileLoader.load_file

    @cache
    def load_once(path: str) -> object:
        return load(JSONFileLoader(), path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: load_once(path))
        yield


@pytest.fixture(scope="session")
def swift() -> Iterator[counting_proxy.Proxy]:
    """Swift behind a proxy that counts."""
    if find_spec("swift") is None:
        pytest.skip("OpenStack Swift is not installed")
    with swift_server.running() as address, counting_proxy.running(address) as proxy:
        yield proxy


@pytest.fixture
def site() -> Iterator[http_site.Site]:
    with http_site.running() as site:
        yield site


def make_bucket(server: counting_proxy.Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    from sbbf_tool.storage.objects import s3_bucket

    for name, value in environment(server.url).items():
        monkeypatch.setenv(name, value)
    forget_clients()
    client = s3_bucket.client(os.getpid())
    name = f"bucket-{os.getpid()}-{next(_NUMBERS)}"
    client.create_bucket(Bucket=name)
    server.forget()
    yield Bucket(name, server, client)
    server.forget()
    forget_clients()


@pytest.fixture
def bucket(swift: counting_proxy.Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    yield from make_bucket(swift, monkeypatch)


@pytest.fixture(scope="session")
def moto() -> Iterator[counting_proxy.Proxy]:
    if find_spec("moto") is None:
        pytest.skip("moto is not installed")
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(server, port)
        with counting_proxy.running(f"http://127.0.0.1:{port}") as proxy:
            yield proxy
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def moto_bucket(moto: counting_proxy.Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    yield from make_bucket(moto, monkeypatch)


@pytest.fixture(scope="session")
def azurite() -> Iterator[counting_proxy.Proxy]:
    """Azurite behind a proxy that counts."""
    try:
        with azure_server.running() as address, counting_proxy.running(address) as proxy:
            yield proxy
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture
def container(
    azurite: counting_proxy.Proxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[azure_server.Container]:
    for name, value in azure_server.environment(azurite.url).items():
        monkeypatch.setenv(name, value)
    # A request that a fault always fails is given up at once.
    monkeypatch.setattr(cloud, "BUDGET", Budget.of_tries(3))
    forget_clients()
    container = azure_server.Container(f"c{os.getpid()}x{next(_NUMBERS)}", azurite)
    container.create()
    azurite.forget()
    yield container
    azurite.forget()
    forget_clients()


@pytest.fixture(scope="session")
def google_storage() -> Iterator[tuple[google_server.Server, counting_proxy.Proxy]]:
    """The emulator of Google Cloud Storage behind a proxy that counts."""
    try:
        with google_server.running() as server, counting_proxy.running(server.url) as proxy:
            yield server, proxy
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture
def google_bucket(
    google_storage: tuple[google_server.Server, counting_proxy.Proxy],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[google_server.Bucket]:
    server, proxy = google_storage
    monkeypatch.setattr(cloud, "BUDGET", Budget.of_tries(3))
    monkeypatch.setenv(
        "GOOGLE_SERVICE_ACCOUNT", str(google_server.write_account(tmp_path, proxy.url))
    )
    forget_clients()
    bucket = google_server.Bucket(f"b{os.getpid()}x{next(_NUMBERS)}", proxy, server)
    bucket.create()
    proxy.forget()
    yield bucket
    proxy.forget()
    forget_clients()
