"""Keys for S3 that a table has in place of those of the environment, and where they are for."""

from __future__ import annotations

from typing import Any

from botocore.credentials import Credentials, ReadOnlyCredentials

from sbbf_tool.frozen import Frozen, field
from sbbf_tool.storage.objects.lease import LeasePart


class S3Keys(Frozen):
    """A pair of keys, and the service that they are for: what is empty is as in the environment."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    region: str = ""
    endpoint: str = ""
    path_style: bool | None = None
    """Whether the bucket is in the path of a URL, and not in its host; None for the usual place."""


class LeasedCredentials(Credentials):  # type: ignore[misc]
    """Credentials of botocore that are the newest ones of a lease whenever a request is signed."""

    def __init__(self, lease: LeasePart[S3Keys]) -> None:
        self._lease = lease
        keys = lease.keys
        super().__init__(keys.access_key, keys.secret_key, keys.token or None, method="lease")

    def get_frozen_credentials(self) -> Any:
        keys = self._lease.keys
        return ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token or None)
