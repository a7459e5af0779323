"""Key metadata as parquet-java's key tools write it, and so Spark and Hive (parquet-java `KeyMetadata`, `KeyMaterial`, `KeyToolkit`).

    {"keyMaterialType": "PKMT1", "internalStorage": true, "isFooterKey": ..., "kmsInstanceID": ..., "kmsInstanceURL": ...,
     "masterKeyID": ..., "wrappedDEK": ..., "doubleWrapping": ..., "keyEncryptionKeyID": ..., "wrappedKEK": ...}

The key that encrypts data (DEK) is random, and stored wrapped: by the key service under a master key, or, with double wrapping, by a
key (KEK) that is itself so wrapped. Where storage is not internal, the file names a `keyReference` only, and the rest stands in
`_KEY_MATERIAL_FOR_<file name>.json` beside it, one text for each reference.

Wrapping here is AES-GCM, as parquet-java does it for itself: nonce (12), ciphertext, tag (16) in base64, with the id of the wrapping
key as AAD; a key service that only stores master keys (`LocalWrapKmsClient`) puts that into an object. Any other service unwraps alone.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.parquet.encryption.modules import KEY_SIZES, Key, open_gcm

_TYPE = "PKMT1"


@dataclass(frozen=True)
class KeyMaterial:
    """A wrapped key, and by which master key. What is wrapped is no secret."""

    raw: bytes
    """The whole text, for a key service."""
    master_key_id: str
    wrapped: str
    wrapping_key_id: str | None
    """Of double wrapping, in base64; None where the master key itself wraps the key."""
    wrapped_wrapping_key: str | None

    def unwrap(self, by_master: Callable[[str, str], Key]) -> Key:
        """The key, where `by_master(wrapped, master key's id)` unwraps what the key service wrapped. Raises AuthenticationError where
        that was not the right key, and what `by_master` raises.
        """
        if self.wrapping_key_id is None:
            return by_master(self.wrapped, self.master_key_id)
        assert self.wrapped_wrapping_key is not None
        wrapping = by_master(self.wrapped_wrapping_key, self.master_key_id)
        return self._opened(wrapping, self.wrapped, _from_base64(self.wrapping_key_id))

    def unwrap_locally(self, master: Key) -> Key:
        """The key, by its master key. Raises AuthenticationError where this is not it, or where the key service wraps otherwise."""
        return self.unwrap(lambda wrapped, name: self._opened(master, _local_wrap(wrapped), name.encode()))

    def _opened(self, key: Key, wrapped: str, aad: bytes) -> Key:
        try:
            plain = open_gcm(key, _from_base64(wrapped), aad)
        except AuthenticationError:
            raise AuthenticationError(f"its key does not unwrap with master key {self.master_key_id!r}: a wrong master key") from None
        if len(plain) not in KEY_SIZES:
            raise UnreadableError("its key material does not hold a key")
        return Key(plain)


def parse_material(metadata: bytes, stored: Callable[[str], bytes | None]) -> KeyMaterial | None:
    """The key material that a key metadata holds, or that `stored(reference)` has for it; None where it is no such metadata.

    Raises UnreadableError where it is one and cannot be followed.
    """
    fields = _object(metadata)
    if fields is None or fields.get("keyMaterialType") != _TYPE:
        return None
    if fields.get("internalStorage") is False:
        metadata = stored(_text(fields, "keyReference")) or b""
        fields = _object(metadata)
        if fields is None:
            raise UnreadableError("its key material is missing", hint="it is kept beside the file, as _KEY_MATERIAL_FOR_<file name>.json")
    is_double = fields.get("doubleWrapping") is True
    return KeyMaterial(
        raw=metadata,
        master_key_id=_text(fields, "masterKeyID"),
        wrapped=_text(fields, "wrappedDEK"),
        wrapping_key_id=_text(fields, "keyEncryptionKeyID") if is_double else None,
        wrapped_wrapping_key=_text(fields, "wrappedKEK") if is_double else None,
    )


def parse_material_file(content: bytes) -> dict[str, bytes]:
    """By reference, the key materials of a `_KEY_MATERIAL_FOR_...` file. Raises UnreadableError."""
    fields = _object(content)
    if fields is None or not all(isinstance(value, str) for value in fields.values()):
        raise UnreadableError("not a file of key material")
    return {name: value.encode() for name, value in fields.items()}


def _local_wrap(wrapped: str) -> str:
    fields = _object(wrapped.encode()) if wrapped.startswith("{") else None
    return wrapped if fields is None else _text(fields, "encryptedKey")


def _object(text: bytes) -> dict[str, Any] | None:
    if not text.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableError(f"its key material has no {name}")
    return value


def _from_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise UnreadableError("its key material is not base64") from None
