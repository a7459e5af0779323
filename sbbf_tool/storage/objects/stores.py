"""The store of a URL, and the connections that this process keeps."""

from __future__ import annotations

import os
from functools import lru_cache

from sbbf_tool.errors import ErrorPlace
from sbbf_tool.storage.objects.location import Location, parse_location
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import ObjectStore, naming_the_extra


def open_object(url: str) -> ObjectSource:
    """Open the object that a URL names. Raises UsageError if the URL cannot name an object, and UnreadableError if it cannot be read."""
    location = parse_location(url)
    return ObjectSource(store_of(location), location)


def store_of(location: Location) -> ObjectStore:
    """Return the store of a location. Raises UsageError if the required package is missing."""
    # For HTTP, each URL has its own store, since URLs are escaped and perhaps signed as a whole.
    path = location.key if location.service == "http" else ""
    with ErrorPlace(location.name):
        # A forked process must not use its parent's connections.
        return _store(os.getpid(), location.service, location.root, location.bucket, path, location.secret)


@lru_cache(256)
def _store(process: int, service: str, root: str, bucket: str, path: str, secret: str) -> ObjectStore:
    with naming_the_extra(service):
        if service == "s3":
            from sbbf_tool.storage.objects.s3_publish import S3Store

            return S3Store(bucket)
        if service == "hdfs":
            from sbbf_tool.storage.objects.arrow import ArrowStore

            return ArrowStore.of_hdfs(root)
        from sbbf_tool.storage.objects.cloud import CloudStore

        return CloudStore(service, root, path, secret)
