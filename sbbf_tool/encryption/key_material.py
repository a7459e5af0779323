"""Key metadata of parquet-java's key tools, which Spark and Hive use (parquet-java `KeyMetadata`, `KeyMaterial`, `KeyToolkit`).

    {"keyMaterialType": "PKMT1", "internalStorage": true, "isFooterKey": ..., "kmsInstanceID": ..., "kmsInstanceURL": ...,
     "masterKeyID": ..., "wrappedDEK": ..., "doubleWrapping": ..., "keyEncryptionKeyID": ..., "wrappedKEK": ...}

The key that encrypts data (DEK) is random and is stored wrapped. The key service wraps it with a master key or, with double wrapping, it
is wrapped with a key (KEK) that the key service wraps. If storage is not internal, the file contains only a `keyReference`, and the rest is
in `_KEY_MATERIAL_FOR_<file name>.json` beside it, one string per reference.

Wrapping here is AES-GCM, as in parquet-java's local wrapping: nonce (12), ciphertext, tag (16) in base64, with the id of the wrapping key
as AAD. For a key service that only stores master keys (`LocalWrapKmsClient`), this is a member of an object. Any other key service unwraps
its keys itself.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from sbbf_tool.encryption.modules import KEY_SIZES, Key, decrypt_gcm
from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.frozen import Frozen

MOST_BYTES = 64 << 20
"""Maximum length of a file of key material: another user may have planted it. The key of a column takes some hundred bytes."""
_TYPE = "PKMT1"


class KeyMaterial(Frozen):
    """A wrapped key and its master key's id. The wrapped form is not secret."""

    raw: bytes
    """The whole JSON text, for a key service."""
    master_key_id: str
    wrapped: str
    wrapping_key_id: str | None
    """Id of the wrapping key under double wrapping, in base64; None if the master key itself wraps the key."""
    wrapped_wrapping_key: str | None

    def unwrap(self, by_master: Callable[[str, str], Key]) -> Key:
        """Unwrap the key; `by_master(wrapped, master key's id)` unwraps what the key service wrapped. Raises AuthenticationError if the
        unwrapping key is wrong, and any error of `by_master`.
        """
        if self.wrapping_key_id is None:
            return by_master(self.wrapped, self.master_key_id)
        assert self.wrapped_wrapping_key is not None
        wrapping = by_master(self.wrapped_wrapping_key, self.master_key_id)
        return self._unwrap_with(wrapping, self.wrapped, _from_base64(self.wrapping_key_id))

    def unwrap_locally(self, master: Key) -> Key:
        """Unwrap the key with its master key. Raises AuthenticationError for a wrong key, or if the key service wraps in another way."""
        return self.unwrap(lambda wrapped, name: self._unwrap_with(master, _local_wrap(wrapped), name.encode()))

    def _unwrap_with(self, key: Key, wrapped: str, aad: bytes) -> Key:
        try:
            plain = decrypt_gcm(key, _from_base64(wrapped), aad)
        except AuthenticationError:
            raise AuthenticationError(
                f"the key cannot be unwrapped with master key {self.master_key_id!r}: the master key is wrong"
            ) from None
        if len(plain) not in KEY_SIZES:
            raise UnreadableError("the key material has no key of 16, 24 or 32 bytes")
        return Key(plain)


def parse_material(metadata: bytes, stored: Callable[[str], bytes | None]) -> KeyMaterial | None:
    """Parse the key material in key metadata, or in `stored(reference)`; None if the metadata are of another kind.

    Raises UnreadableError if they are of this kind but damaged.
    """
    fields = _object(metadata)
    if fields is None or fields.get("keyMaterialType") != _TYPE:
        return None
    if fields.get("internalStorage") is False:
        metadata = stored(_text(fields, "keyReference")) or b""
        fields = _object(metadata)
        if fields is None:
            raise UnreadableError(
                "the key material of the file is missing", hint="it is stored beside the file, as _KEY_MATERIAL_FOR_<file name>.json"
            )
    is_double = fields.get("doubleWrapping") is True
    return KeyMaterial(
        raw=metadata,
        master_key_id=_text(fields, "masterKeyID"),
        wrapped=_text(fields, "wrappedDEK"),
        wrapping_key_id=_text(fields, "keyEncryptionKeyID") if is_double else None,
        wrapped_wrapping_key=_text(fields, "wrappedKEK") if is_double else None,
    )


def parse_material_file(content: bytes) -> dict[str, bytes]:
    """Parse a `_KEY_MATERIAL_FOR_...` file into key materials by reference. Raises UnreadableError."""
    fields = _object(content) if len(content) <= MOST_BYTES else None
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
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableError(f"the key material has no {name}")
    return value


def _from_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise UnreadableError("the key material is not base64") from None
