"""The keys of encrypted files, as a caller gives them and as the command line finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sbbf_tool.parquet.encryption.keys import Keys as Keys
from sbbf_tool.parquet.encryption.keys import KeyService, KmsClient

KeysGiven = Keys | Mapping[str, Any] | KeyService | KmsClient | None
"""`Keys`, the object that a keys file holds (keys may be bytes), a function from a key metadata to a key, or a KMS client: `Keys.of`."""


def read_keys(path: str | None) -> Keys | None:
    """The keys of this file, else those that the environment names or holds; None where there are none. Raises UsageError."""
    return Keys.from_file(path) if path is not None else Keys.from_environment()
