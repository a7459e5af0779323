"""The keys that a caller gives, and the search for a key with the key metadata in a file.

A file never contains a key. It may contain a `key_metadata` for each key, which the key's owner interprets: an id, a request to a key
service, or the key itself, wrapped with another key (`key_material`). In a file or in the environment, keys have this form:

    {
      "footer_key": KEY,
      "columns": {"ssn": KEY, "address.street": KEY},
      "keys": {"key id": KEY},
      "aad_prefix": "text"
    }

KEY is 16, 24 or 32 bytes in hexadecimal or base64, or an object that states the form: {"hex": ...}, {"base64": ...}, {"text": ...}. All
four parts are optional. A key id is the key metadata as text (0x... if it is not text), or the id of the master key that wraps the
file's keys.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sbbf_tool.encryption.key_material import KeyMaterial, parse_material
from sbbf_tool.encryption.modules import KEY_SIZES, Key
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.frozen import Frozen, field

KeyService = Callable[[bytes], "bytes | None"]
"""A function that returns the key for key metadata; None if it has none, or denies it to this caller."""


class KmsClient(Protocol):
    """A key service that unwraps keys, with the interface of pyarrow's and parquet-java's `KmsClient`."""

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
        """Make keys from `Keys`, the object above (its keys may also be bytes), or a key service. Raises UsageError for others."""
        if value is None or isinstance(value, Keys):
            return value
        if isinstance(value, Mapping):
            return _from_object(value)
        if callable(value) or hasattr(value, "unwrap_key"):
            return cls(service=value)
        raise UsageError(f"keys must be Keys, a dict, a function or a KMS client, not {type(value).__name__}")

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = "keys") -> Keys:
        """Parse the object above. Raises UsageError for other text; the message names the invalid part, but no key."""
        try:
            return _from_object(json.loads(text))
        except ValueError as error:
            line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
            raise UsageError(f"the file of keys is not valid JSON{line}", file=where) from None
        except RecursionError:
            raise UsageError("the JSON is nested too deep", file=where) from None
        except UsageError as error:
            raise error.at(file=where) from None

    def find(self, metadata: bytes | None, material: Callable[[str], bytes | None]) -> Key | None:
        """Find the key for a file's key metadata; None if none of these keys matches.

        `material(reference)` returns the key material stored beside the file. Raises AuthenticationError (a wrong master key),
        UnreadableError (damaged key material), RefusedError (the key service failed).
        """
        if metadata is None:
            return None
        wrapped = parse_material(metadata, material)
        if wrapped is None:
            key = self.by_id.get(id_of(metadata)) or self.by_id.get(f"0x{metadata.hex()}")
            return key or self._ask(lambda ask: ask(metadata))
        master = self.by_id.get(wrapped.master_key_id)
        return wrapped.unwrap_locally(master) if master is not None else self._ask(lambda ask: ask(wrapped.raw), wrapped)

    def _ask(self, question: Callable[[KeyService], bytes | None], wrapped: KeyMaterial | None = None) -> Key | None:
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
    """Convert key metadata to a key id: its text if it is printable, otherwise hexadecimal digits after 0x."""
    try:
        text = metadata.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else f"0x{metadata.hex()}"


def describe_key(metadata: bytes | None) -> str:
    """Describe a missing key: its id in brackets, if it has one that is short enough to show."""
    if not metadata:
        return ""
    try:
        material = parse_material(metadata, lambda reference: None)
    except UnreadableError:
        return ""
    name = material.master_key_id if material is not None else id_of(metadata)
    return f" (key id {name!r})" if len(name) <= _SHOWN_CHARACTERS else ""


def _from_object(parts: Any) -> Keys:
    if not isinstance(parts, Mapping):
        raise UsageError("keys must be one object", hint=f"its members are {', '.join(_PARTS)}")
    for part in parts:
        if part not in _PARTS:
            raise UsageError("the object has an unknown member", hint=f"the members are {', '.join(_PARTS)}")
    for part in ("columns", "keys"):
        if not isinstance(parts.get(part, {}), Mapping):
            raise UsageError("the value must be an object of names and keys", place=part)
    footer, prefix = parts.get("footer_key"), parts.get("aad_prefix")
    return Keys(
        footer=None if footer is None else _key(footer, "footer_key"),
        columns={str(name): _key(value, f"columns, {_hide_key(str(name))}") for name, value in parts.get("columns", {}).items()},
        by_id={str(name): _key(value, f"keys, {_hide_key(str(name))}") for name, value in parts.get("keys", {}).items()},
        aad_prefix=None if prefix is None else _prefix(prefix),
    )


def _hide_key(name: str) -> str:
    """Return a name, hidden if it may be a key: a caller who swaps names and keys passes keys as names."""
    return "a name that may be a key" if may_be_keys(name) else name


_DIGITS_OF_A_KEY = re.compile("[0-9A-Fa-f]{32}")


def may_be_keys(text: str) -> bool:
    """Return whether text that should be a path or a name may be a key, or contain keys, and must not be shown."""
    if _DIGITS_OF_A_KEY.search(text):
        return True
    forms = (_decode(text.strip(), form) for form in _FORMS)
    return text.lstrip().startswith("{") or any(candidate is not None and len(candidate) in KEY_SIZES for candidate in forms)


_FORMS: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: b64decode(text, validate=True),
    "text": str.encode,
}


def _key(value: Any, place: str) -> Key:
    """Parse a key. The error says what is wrong, but never shows the key."""
    # 32 hexadecimal digits are also base64 for 24 bytes, but a random key practically never looks like that.
    for candidate in (_decode(value, "hex"), _decode(value, "base64")) if isinstance(value, str) else (_explicit(value),):
        if candidate is not None and len(candidate) in KEY_SIZES:
            return Key(candidate)
    raise UsageError("the value is not a key", place=place, hint="a key is 16, 24 or 32 bytes in hexadecimal or base64")


def _prefix(value: Any) -> bytes:
    prefix = value.encode() if isinstance(value, str) else _explicit(value)
    if prefix is None:
        raise UsageError("the value is not an AAD prefix", place="aad_prefix", hint='give text, {"hex": ...} or {"base64": ...}')
    return prefix


def _explicit(value: Any) -> bytes | None:
    """Return bytes, either given or decoded from an object of one form and its text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((form, text),) = value.items()
    return _decode(text, form) if isinstance(text, str) and form in _FORMS else None


def _decode(text: str, form: str) -> bytes | None:
    try:
        return _FORMS[form](text)
    except (ValueError, binascii.Error):
        return None
