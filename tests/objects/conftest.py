"""A real S3 server for all tests of this folder, and a bucket of its own for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import counting_proxy, http_site, swift_server
from support.buckets import Bucket, environment, forget_clients

_NUMBERS = itertools.count()


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


@pytest.fixture
def s3_environment(swift: counting_proxy.Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in environment(swift.url).items():
        monkeypatch.setenv(name, value)
    forget_clients()
    yield
    forget_clients()


@pytest.fixture
def bucket(swift: counting_proxy.Proxy, s3_environment: None) -> Iterator[Bucket]:
    from sbbf_tool.storage.objects import s3_bucket

    client = s3_bucket.client(os.getpid())
    name = f"bucket-{os.getpid()}-{next(_NUMBERS)}"
    client.create_bucket(Bucket=name)
    swift.forget()
    yield Bucket(name, swift, client)
    swift.forget()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)
