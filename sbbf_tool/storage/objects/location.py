"""The parts of a URL: service, bucket (or container, host or cluster), and key."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError

_SERVICES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl"), "azure"),
    **dict.fromkeys(("http", "https"), "http"),
    **dict.fromkeys(("hdfs", "viewfs"), "hdfs"),
}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(?:/(.*))?", re.DOTALL)


class Location(NamedTuple):
    service: str
    """`s3`, `gs`, `azure`, `http` or `hdfs`."""
    root: str
    """Scheme and bucket, container, host or cluster: `s3://bucket`."""
    bucket: str
    key: str
    """Key without a leading slash. It is not decoded: `%20` is three characters, except to an HTTP server."""
    secret: str = ""
    """The query of an HTTP URL, which may be a signature; it is never shown."""

    @property
    def url(self) -> str:
        """The URL including its secret."""
        return f"{self.root}/{self.key}{'?' if self.secret else ''}{self.secret}"

    @property
    def name(self) -> str:
        """The URL without its secret, for messages."""
        return redact(self.url)

    def with_key(self, key: str) -> Location:
        return self._replace(key=key, secret="")


def parse_location(url: str) -> Location:
    """Parse a URL. Raises UsageError if it names nothing that this package can read."""
    match = _URL.fullmatch(url)
    scheme = match[1].lower() if match else ""
    service = _SERVICES.get(scheme)
    if match is None or service is None:
        schemes = ", ".join(f"{name}://" for name in _SERVICES)
        hint = f"the schemes are {schemes}; give a local file as a path"
        raise UsageError(f"unknown URL scheme {scheme}://", hint="on Databricks, the path is /dbfs/..." if scheme == "dbfs" else hint)
    bucket, key = match[2], match[3] or ""
    if service == "http":
        return _parse_http(url)
    # In S3, only the name of an access point has a colon; any other colon separates an access key from its secret.
    is_key = service in ("s3", "gs") and (":" in bucket or "@" in bucket) and not bucket.startswith("arn:")
    if is_key or ("@" in bucket and ":" in bucket.rpartition("@")[0]):
        raise UsageError(
            f"{scheme}: a URL must not contain a password", hint="sbbf takes credentials from the environment, profiles and roles"
        )
    if not bucket and service != "hdfs":
        raise UsageError(f"the URL names no bucket: {url}", hint=f"{scheme}://BUCKET/KEY")
    if service in ("s3", "gs"):
        # Different schemes of one service name the same bucket.
        scheme = service
    return Location(service, f"{scheme}://{bucket}", bucket, key)


def _parse_http(url: str) -> Location:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError("not a valid HTTP URL", hint="https://HOST/PATH") from None
    if not host:
        raise UsageError("the URL names no host", hint="https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{parts.scheme}://{host}: a URL must not contain a password", hint="use a signed URL")
    origin = f"[{host}]" if ":" in host else host
    root = f"{parts.scheme.lower()}://{origin}{f':{port}' if port else ''}"
    return Location("http", root, host, parts.path.lstrip("/"), parts.query)
