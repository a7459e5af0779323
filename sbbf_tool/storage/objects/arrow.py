"""File systems of pyarrow: HDFS, and those that a caller gives, among them every file system of
fsspec.

For HDFS, pyarrow uses libhdfs of the installed Hadoop, found through `HADOOP_HOME`,
`ARROW_LIBHDFS_DIR` and `CLASSPATH`.

Read-only: pyarrow's move removes the old file first, so for a moment neither file would exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import ArrowException
from pyarrow import fs as arrow

from sbbf_tool.display import redact, redact_answer
from sbbf_tool.errors import MissingError, UnreadableError, UsageError
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import (
    DeniedError,
    Location,
    ObjectStore,
    OtherVersionError,
    Version,
    parse_location,
    with_text_of,
)


class ArrowStore(ObjectStore):
    """An `ObjectStore` of the files of a pyarrow file system.

    A file's version is its length and modification time; in a file system of fsspec, also the key
    that fsspec makes from all it knows of the file, such as its ETag.
    """

    service_name = "HDFS"

    def __init__(self, files: Any, root: str) -> None:
        self._files = files
        self._root = root
        self._fsspec: Any = None
        self._errors: tuple[type[Exception], ...] = (OSError, ArrowException)
        if isinstance(files, arrow.PyFileSystem):
            # A file system in Python may raise anything.
            self._errors = (Exception,)
            if isinstance(files.handler, arrow.FSSpecHandler):
                self._fsspec = files.handler.fs

    @classmethod
    def of_hdfs(cls, url: str) -> ArrowStore:
        """Connect to the cluster of `hdfs://HOST:PORT`, or, for `hdfs://`, to the cluster in
        Hadoop's configuration."""
        cluster = "hdfs://default:0" if url == "hdfs://" else url
        try:
            return cls(arrow.HadoopFileSystem.from_uri(f"{cluster}/"), "/")
        except (OSError, ArrowException, ValueError) as error:
            hint = (
                "pyarrow needs a Hadoop installation: JAVA_HOME, HADOOP_HOME, CLASSPATH from "
                "`hadoop classpath --glob`"
            )
            problem = UnreadableError(f"HDFS cannot be reached ({_reason(error)})", hint=hint)
            raise with_text_of(problem, error) from None

    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        version = self.version(key)
        if version is None:
            raise MissingError("no such file")
        start = max(0, version.size - length)
        return self.get(key, start, version.size - start, version), version

    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        with self._translating_errors(), self._files.open_input_file(self._path(key)) as stream:
            data: bytes = stream.read_at(length, offset)
        # Checked after the read: if the version is unchanged now, it was unchanged during the read.
        if self.version(key) != version:
            raise OtherVersionError
        return data

    def version(self, key: str) -> Version | None:
        with self._translating_errors():
            info = self._files.get_file_info(self._path(key))
            if info.type != arrow.FileType.File:
                return None
            unique_key = None
            if self._fsspec is not None:
                unique_key = str(self._fsspec.ukey(self._path(key)))
        return Version(info.size, unique_key, str(info.mtime_ns))

    def objects(
        self, prefix: str, limit: int | None = None, after: str = ""
    ) -> Iterator[tuple[str, Version]]:
        folder = self._path(prefix[: prefix.rfind("/") + 1])
        with self._translating_errors():
            selector = arrow.FileSelector(folder, allow_not_found=True, recursive=True)
            entries = self._files.get_file_info(selector)
        files = {}
        for info in entries:
            key = info.path[len(self._root) :]
            if info.type == arrow.FileType.File and key.startswith(prefix) and key > after:
                files[key] = info
        for key in sorted(files)[:limit]:
            yield key, Version(files[key].size, None, str(files[key].mtime_ns))

    def _path(self, key: str) -> str:
        return f"{self._root}{key}"

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise with_text_of(self._translate_error(error), error) from None

    def _translate_error(self, error: Any) -> UnreadableError:
        if isinstance(error, FileNotFoundError):
            return MissingError("no such file")
        if isinstance(error, PermissionError):
            hint = None
            if isinstance(self._files, arrow.HadoopFileSystem):
                hint = "check the user (HADOOP_USER_NAME) or the Kerberos ticket (kinit)"
            return DeniedError("access denied", hint=hint)
        return UnreadableError(f"the file cannot be read ({_reason(error)})")


class PathIn(Location):
    """Path in a file system that the caller gave, which is no part of the name."""

    @property
    def url(self) -> str:
        return self.key

    @property
    def name(self) -> str:
        return redact(self.key)


class _FileInSource(ObjectSource):
    can_reopen = False


def open_in(files: arrow.FileSystem, path: str) -> ObjectSource:
    """Open a file of a pyarrow file system. Raises UnreadableError."""
    return _FileInSource(ArrowStore(files, ""), PathIn("arrow", "", "", path))


def file_system(urls: list[str]) -> tuple[Any, list[str]]:
    """Return the pyarrow file system of these URLs, and their paths in it. Raises UsageError unless
    one file system has them all."""
    locations = [parse_location(url) for url in urls]
    services = {location.service for location in locations}
    if len(services) > 1:
        raise UsageError(
            "one dataset cannot have files of several services",
            hint="make one pyarrow dataset per service, and a union of them",
        )
    paths = [f"{location.bucket}/{location.key}" for location in locations]
    if services == {"s3"}:
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or None
        return arrow.S3FileSystem(endpoint_override=endpoint, region=region), paths
    if services == {"gs"}:
        return arrow.GcsFileSystem(), paths
    hint = "make a pyarrow dataset with the file system that you use, and prune that"
    raise UsageError(f"sbbf cannot make a dataset of {locations[0].root}", hint=hint)


def _reason(error: Exception) -> str:
    return redact_answer(" ".join(str(error).split())[:200])
