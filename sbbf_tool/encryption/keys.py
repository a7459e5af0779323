"""The keys that a caller gives, and the search for a key with the key metadata in a file.

A file never contains a key. It may contain a `key_metadata` for each key, which the key's owner
interprets: an id, a request to a key service, or the key itself, wrapped with another key. In a
file or in the environment, keys have this form:

    {
      "footer_key": KEY,
      "columns": {"ssn": KEY, "address.street": KEY},
      "keys": {"key id": KEY},
      "aad_prefix": "text"
    }

KEY is 16, 24 or 32 bytes in hexadecimal or base64, or an object that states the form: {"hex": ...},
{"base64": ...}, {"text": ...}. All four parts are optional. A key id is the key metadata as text
(0x... if it is not text), or the id of the master key that wraps the file's keys.

parquet-java's key tools, which Spark and Hive use, write this key metadata (`KeyMetadata`,
`KeyMaterial`, `KeyToolkit`):

    {"keyMaterialType": "PKMT1", "internalStorage": true, "isFooterKey": ...,
     "kmsInstanceID": ..., "kmsInstanceURL": ..., "masterKeyID": ..., "wrappedDEK": ...,
     "doubleWrapping": ..., "keyEncryptionKeyID": ..., "wrappedKEK": ...}

The key that encrypts data (DEK) is random and is stored wrapped. The key service wraps it with a
master key or, with double wrapping, it is wrapped with a key (KEK) that the key service wraps. If
storage is not internal, the file contains only a `keyReference`, and the rest is in
`_KEY_MATERIAL_FOR_<file name>.json` beside it, one string per reference.

Wrapping here is AES-GCM, as in parquet-java's local wrapping: nonce (12), ciphertext, tag (16) in
base64, with the id of the wrapping key as AAD. For a key service that only stores master keys
(`LocalWrapKmsClient`), this is a member of an object. Any other key service unwraps its keys
itself.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from sbbf_tool.encryption.modules import KEY_SIZES, Key, decrypt_gcm
from sbbf_tool.errors import (
    AuthenticationError,
    RefusedError,
    SbbfError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.frozen import Frozen, field, replace

KeyService = Callable[[bytes], "bytes | None"]
"""A function that returns the key for key metadata; None if it has none, or denies it to this
caller."""


class KmsClient(Protocol):
    """A key service that unwraps keys, with the interface of pyarrow's and parquet-java's
    `KmsClient`."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes: ...


_PARTS = ("footer_key", "columns", "keys", "aad_prefix")
_SHOWN_CHARACTERS = 40


class Keys(Frozen):
    """Keys by purpose. No repr, error or report shows any part of them."""

    footer: Key | None = None
    columns: Mapping[str, Key] = field(factory=dict)
    """Keys by column name, in the notation of `columns`."""
    by_id: Mapping[str, Key] = field(factory=dict)
    aad_prefix: bytes | None = None
    service: KeyService | KmsClient | None = None
    path: str | None = None
    """Path of the file with the keys, for suggested commands."""

    def __repr__(self) -> str:
        parts = [f"{len(self.columns)} of columns", f"{len(self.by_id)} by id"]
        if self.footer is not None:
            parts.insert(0, "the footer's")
        if self.service is not None:
            parts.append("a key service")
        return f"<Keys: {', '.join(parts)}>"

    @classmethod
    def of(cls, value: Keys | Mapping[str, Any] | KeyService | KmsClient | None) -> Keys | None:
        """Make keys from `Keys`, the object above (its keys may also be bytes), or a key service.
        Raises UsageError for others."""
        if value is None or isinstance(value, Keys):
            return value
        if isinstance(value, Mapping):
            return _from_object(value)
        if callable(value) or hasattr(value, "unwrap_key"):
            return cls(service=value)
        raise UsageError(
            f"keys must be Keys, a dict, a function or a KMS client, not {type(value).__name__}"
        )

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = "keys") -> Keys:
        """Parse the object above. Raises UsageError for other text; the message names the invalid
        part, but no key."""
        problem = "the file of keys is not valid JSON"
        try:
            return _from_object(json.loads(text))
        except json.JSONDecodeError as error:
            raise UsageError(f"{problem} (line {error.lineno})", file=where) from None
        except ValueError:
            raise UsageError(problem, file=where) from None
        except RecursionError:
            raise UsageError("the JSON is nested too deep", file=where) from None
        except UsageError as error:
            raise error.at(file=where) from None

    def find(self, metadata: bytes | None, material: Callable[[str], bytes | None]) -> Key | None:
        """Find the key for a file's key metadata; None if none of these keys matches.

        `material(reference)` returns the key material stored beside the file. Raises
        AuthenticationError (a wrong master key), UnreadableError (damaged key material),
        RefusedError (the key service failed).
        """
        if metadata is None:
            return None
        wrapped = parse_material(metadata, material)
        if wrapped is None:
            key = self.by_id.get(id_of(metadata)) or self.by_id.get(f"0x{metadata.hex()}")
            return key or self._ask(lambda ask: ask(metadata))
        master = self.by_id.get(wrapped.master_key_id)
        if master is not None:
            return wrapped.unwrap_locally(master)
        return self._ask(lambda ask: ask(wrapped.raw), wrapped)

    def _ask(
        self, question: Callable[[KeyService], bytes | None], wrapped: KeyMaterial | None = None
    ) -> Key | None:
        """Get a key from the key service; None if it has none."""
        service = self.service
        try:
            if callable(service):
                return _check_answer(question(service))
            if service is None or wrapped is None:
                return None
            unwrap = service.unwrap_key
            return wrapped.unwrap(lambda key, master: _check_answer(unwrap(key, master)))
        except SbbfError:
            raise
        except (LookupError, PermissionError):
            return None
        except Exception as error:
            # The service's own message may contain secrets.
            raise RefusedError(f"the key service failed ({type(error).__name__})") from error


def _check_answer(key: object) -> Key:
    if key is None:
        raise LookupError
    if not isinstance(key, bytes | bytearray) or len(key) not in KEY_SIZES:
        raise RefusedError("the key service did not return a key of 16, 24 or 32 bytes")
    return Key(bytes(key))


def id_of(metadata: bytes) -> str:
    """Convert key metadata to a key id: its text if it is printable, otherwise hexadecimal digits
    after 0x."""
    with suppress(UnicodeDecodeError):
        text = metadata.decode()
        if text and text.isprintable():
            return text
    return f"0x{metadata.hex()}"


def describe_key(metadata: bytes | None) -> str:
    """Describe a missing key: its id in brackets, if it has one that is short enough to show."""
    if not metadata:
        return ""
    try:
        material = parse_material(metadata, lambda reference: None)
    except UnreadableError:
        return ""
    name = id_of(metadata) if material is None else material.master_key_id
    if len(name) > _SHOWN_CHARACTERS:
        return ""
    return f" (key id {name!r})"


def _from_object(parts: Any) -> Keys:
    if not isinstance(parts, Mapping):
        raise UsageError("keys must be one object", hint=f"its members are {', '.join(_PARTS)}")
    for part in parts:
        if part not in _PARTS:
            raise UsageError(
                "the object has an unknown member", hint=f"the members are {', '.join(_PARTS)}"
            )
    columns = _named_keys(parts, "columns")
    by_id = _named_keys(parts, "keys")
    footer = parts.get("footer_key")
    if footer is not None:
        footer = _key(footer, "footer_key")
    prefix = parts.get("aad_prefix")
    if prefix is not None:
        prefix = _prefix(prefix)
    return Keys(footer=footer, columns=columns, by_id=by_id, aad_prefix=prefix)


def _named_keys(parts: Mapping[str, Any], part: str) -> dict[str, Key]:
    """Parse the keys of the member `part`, an object of names and keys."""
    values = parts.get(part, {})
    if not isinstance(values, Mapping):
        raise UsageError("the value must be an object of names and keys", place=part)
    keys = {}
    for name, value in values.items():
        keys[str(name)] = _key(value, f"{part}, {_hide_key(str(name))}")
    return keys


def _hide_key(name: str) -> str:
    """Return a name, hidden if it may be a key: a caller who swaps names and keys passes keys as
    names."""
    if may_be_keys(name):
        return "a name that may be a key"
    return name


_DIGITS_OF_A_KEY = re.compile("[0-9A-Fa-f]{32}")


def may_be_keys(text: str) -> bool:
    """Return whether text that should be a path or a name may be a key, or contain keys, and must
    not be shown."""
    if _DIGITS_OF_A_KEY.search(text):
        return True
    if text.lstrip().startswith("{"):
        return True
    for form in _FORMS:
        candidate = _decode(text.strip(), form)
        if candidate is not None and len(candidate) in KEY_SIZES:
            return True
    return False


_FORMS: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: b64decode(text, validate=True),
    "text": str.encode,
}


def _key(value: Any, place: str) -> Key:
    """Parse a key. The error says what is wrong, but never shows the key."""
    # 32 hexadecimal digits are also base64 for 24 bytes, but a random key practically never looks
    # like that.
    candidates = [_explicit(value)]
    if isinstance(value, str):
        candidates = [_decode(value, "hex"), _decode(value, "base64")]
    for candidate in candidates:
        if candidate is not None and len(candidate) in KEY_SIZES:
            return Key(candidate)
    raise UsageError(
        "the value is not a key",
        place=place,
        hint="a key is 16, 24 or 32 bytes in hexadecimal or base64",
    )


def _prefix(value: Any) -> bytes:
    prefix = value.encode() if isinstance(value, str) else _explicit(value)
    if prefix is None:
        raise UsageError(
            "the value is not an AAD prefix",
            place="aad_prefix",
            hint='give text, {"hex": ...} or {"base64": ...}',
        )
    return prefix


def _explicit(value: Any) -> bytes | None:
    """Return bytes, either given or decoded from an object of one form and its text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((form, text),) = value.items()
    if not isinstance(text, str) or form not in _FORMS:
        return None
    return _decode(text, form)


def _decode(text: str, form: str) -> bytes | None:
    try:
        return _FORMS[form](text)
    except (ValueError, binascii.Error):
        return None


MOST_BYTES = 64 << 20
"""Maximum length of a file of key material: another user may have planted it. The key of a column
takes some hundred bytes."""
_TYPE = "PKMT1"


class KeyMaterial(Frozen):
    """A wrapped key and its master key's id. The wrapped form is not secret."""

    raw: bytes
    """The whole JSON text, for a key service."""
    master_key_id: str
    wrapped: str
    wrapping_key_id: str | None = None
    """Id of the wrapping key under double wrapping, in base64; None if the master key itself wraps
    the key."""
    wrapped_wrapping_key: str | None = None

    def unwrap(self, by_master: Callable[[str, str], Key]) -> Key:
        """Unwrap the key; `by_master(wrapped, master key's id)` unwraps what the key service
        wrapped. Raises AuthenticationError if the unwrapping key is wrong, and any error of
        `by_master`.
        """
        if self.wrapping_key_id is None:
            return by_master(self.wrapped, self.master_key_id)
        assert self.wrapped_wrapping_key is not None
        wrapping = by_master(self.wrapped_wrapping_key, self.master_key_id)
        return self._unwrap_with(wrapping, self.wrapped, _from_base64(self.wrapping_key_id))

    def unwrap_locally(self, master: Key) -> Key:
        """Unwrap the key with its master key. Raises AuthenticationError for a wrong key, or if the
        key service wraps in another way."""
        return self.unwrap(
            lambda wrapped, name: self._unwrap_with(master, _local_wrap(wrapped), name.encode())
        )

    def _unwrap_with(self, key: Key, wrapped: str, aad: bytes) -> Key:
        try:
            plain = decrypt_gcm(key, _from_base64(wrapped), aad)
        except AuthenticationError:
            raise AuthenticationError(
                f"the key cannot be unwrapped with master key {self.master_key_id!r}: the master "
                "key is wrong"
            ) from None
        if len(plain) not in KEY_SIZES:
            raise UnreadableError("the key material has no key of 16, 24 or 32 bytes")
        return Key(plain)


def parse_material(metadata: bytes, stored: Callable[[str], bytes | None]) -> KeyMaterial | None:
    """Parse the key material in key metadata, or in `stored(reference)`; None if the metadata are
    of another kind.

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
                "the key material of the file is missing",
                hint="it is stored beside the file, as _KEY_MATERIAL_FOR_<file name>.json",
            )
    material = KeyMaterial(
        raw=metadata,
        master_key_id=_text(fields, "masterKeyID"),
        wrapped=_text(fields, "wrappedDEK"),
    )
    if fields.get("doubleWrapping") is not True:
        return material
    return replace(
        material,
        wrapping_key_id=_text(fields, "keyEncryptionKeyID"),
        wrapped_wrapping_key=_text(fields, "wrappedKEK"),
    )


def parse_material_file(content: bytes) -> dict[str, bytes]:
    """Parse a `_KEY_MATERIAL_FOR_...` file into key materials by reference. Raises
    UnreadableError."""
    fields = _object(content) if len(content) <= MOST_BYTES else None
    if fields is None or not all(isinstance(value, str) for value in fields.values()):
        raise UnreadableError("not a file of key material")
    return {name: value.encode() for name, value in fields.items()}


def _local_wrap(wrapped: str) -> str:
    if not wrapped.startswith("{"):
        return wrapped
    fields = _object(wrapped.encode())
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
