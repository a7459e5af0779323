"""The keys that a caller gives, and how what a file says of a key finds it.

A file never holds a key. It may hold a `key_metadata` for each, which means something to whoever keeps the keys: an id, a request to a
key service, or the key itself wrapped in another (`key_material`). The keys' own form, as a file or the environment has it:

    {
      "footer_key": KEY,
      "columns": {"ssn": KEY, "address.street": KEY},
      "keys": {"key id": KEY},
      "aad_prefix": "text"
    }

KEY is 16, 24 or 32 bytes in hexadecimal or base64, or an object that says which: {"hex": ...}, {"base64": ...}, {"text": ...}. All four
parts may be left out. A key id is the key metadata as text, or the id of the master key that wraps the file's keys.
"""

from __future__ import annotations

import binascii
import json
import os
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.parquet.encryption.key_material import parse_material
from sbbf_tool.parquet.encryption.modules import KEY_SIZES, Key

KeyService = Callable[[bytes], "bytes | None"]
"""From a key metadata to the key; None where it has none, or gives it to others."""

KEYS_FILE_VARIABLE, KEYS_VARIABLE = "SBBF_KEYS_FILE", "SBBF_KEYS"

_PARTS = ("footer_key", "columns", "keys", "aad_prefix")
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, repr=False)
class Keys:
    """Keys by what they are for. Nothing of them is shown by repr, by an error, or in a report."""

    footer: Key | None = None
    columns: Mapping[str, Key] = field(default_factory=dict)
    """By column, named as everywhere in this package."""
    by_id: Mapping[str, Key] = field(default_factory=dict)
    aad_prefix: bytes | None = None
    service: KeyService | None = None
    path: str | None = None
    """The file they came from, which a command that is proposed may name."""

    def __repr__(self) -> str:
        parts = [f"{len(self.columns)} of columns", f"{len(self.by_id)} by id"]
        if self.footer is not None:
            parts.insert(0, "the footer's")
        if self.service is not None:
            parts.append("a key service")
        return f"<Keys: {', '.join(parts)}>"

    @classmethod
    def of(cls, given: Keys | Mapping[str, Any] | KeyService | None) -> Keys | None:
        """Keys from what a caller may give: `Keys`, the object above (where keys may be bytes too), or a key service. UsageError."""
        if given is None or isinstance(given, Keys):
            return given
        if isinstance(given, Mapping):
            return _from_object(given)
        if callable(given):
            return cls(service=given)
        raise UsageError(f"keys are given as a {type(given).__name__}", hint="give Keys, a dict or a callable")

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = "keys") -> Keys:
        """UsageError where it is not the object above; the message names the part and no key."""
        try:
            return _from_object(json.loads(text))
        except ValueError as error:
            line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
            raise UsageError(f"not JSON{line}", file=where) from None
        except RecursionError:
            raise UsageError("not JSON that anybody would write", file=where) from None
        except UsageError as error:
            raise error.at(file=where) from None

    @classmethod
    def from_file(cls, path: str) -> Keys:
        try:
            with open(path, "rb") as stream:
                text = stream.read()
        except OSError as error:
            raise UsageError(f"the keys cannot be read: {(error.strerror or 'unreadable').lower()}", file=path) from None
        keys = cls.from_json(text, where=path)
        return cls(keys.footer, keys.columns, keys.by_id, keys.aad_prefix, path=path)

    @classmethod
    def from_environment(cls) -> Keys | None:
        """The keys of the file that SBBF_KEYS_FILE names, else those in SBBF_KEYS; None where neither is set."""
        if path := os.environ.get(KEYS_FILE_VARIABLE):
            return cls.from_file(path)
        text = os.environ.get(KEYS_VARIABLE)
        return cls.from_json(text, where=KEYS_VARIABLE) if text else None

    def find(self, metadata: bytes | None, material: Callable[[str], bytes | None]) -> Key | None:
        """The key that a file's key metadata means; None where it means none of these.

        `material(reference)` is the key material that the file keeps beside itself. Raises AuthenticationError (a wrong master key),
        UnreadableError (key material that is none), RefusedError (the key service failed).
        """
        if metadata is None:
            return None
        described = parse_material(metadata, material)
        if self.service is not None and (key := self._ask(described.raw if described is not None else metadata)) is not None:
            return key
        if described is not None:
            master = self.by_id.get(described.master_key_id)
            return described.unwrap(master) if master is not None else None
        name = name_of(metadata)
        return self.by_id.get(name) if name is not None else None

    def _ask(self, metadata: bytes) -> Key | None:
        assert self.service is not None
        try:
            key = self.service(metadata)
        except (LookupError, PermissionError):
            return None
        except Exception as error:
            # Its words may hold what must not be shown.
            raise RefusedError(f"the key service failed ({type(error).__name__})") from error
        if key is None:
            return None
        if not isinstance(key, bytes | bytearray) or len(key) not in KEY_SIZES:
            raise RefusedError("the key service did not answer with a key of 16, 24 or 32 bytes")
        return Key(key)


def name_of(metadata: bytes | None) -> str | None:
    """A key metadata as the id that it may be; None where it is not text."""
    try:
        text = (metadata or b"").decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and text else None


def described(metadata: bytes | None) -> str:
    """What to tell of a key that is missing: its id in brackets, where it has one that can be shown."""
    try:
        found = parse_material(metadata, lambda reference: None) if metadata is not None else None
    except Exception:
        found = None
    name = found.master_key_id if found is not None else name_of(metadata)
    return f" (key id {name!r})" if name and len(name) <= _SHOWN_CHARACTERS else ""


def _from_object(found: Any) -> Keys:
    if not isinstance(found, Mapping):
        raise UsageError("keys are one object", hint=f"with {', '.join(_PARTS)}")
    for part in found:
        if part not in _PARTS:
            raise UsageError("it has a part that is not known here", hint=f"there are {', '.join(_PARTS)}")
    for part in ("columns", "keys"):
        if not isinstance(found.get(part, {}), Mapping):
            raise UsageError("it takes an object of names and keys", place=part)
    footer, prefix = found.get("footer_key"), found.get("aad_prefix")
    return Keys(
        footer=None if footer is None else _key(footer, "footer_key"),
        columns={str(name): _key(value, f"columns, {name}") for name, value in found.get("columns", {}).items()},
        by_id={str(name): _key(value, f"keys, {name}") for name, value in found.get("keys", {}).items()},
        aad_prefix=None if prefix is None else _prefix(prefix),
    )


_FORMS: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: b64decode(text, validate=True),
    "text": str.encode,
}


def _key(value: Any, place: str) -> Key:
    """Says what is wrong with a key and never what it is."""
    # 32 hexadecimal digits are 24 bytes of base64 too, and nobody's key looks like that by chance.
    for candidate in (_formed(value, "hex"), _formed(value, "base64")) if isinstance(value, str) else (_explicit(value),):
        if candidate is not None and len(candidate) in KEY_SIZES:
            return Key(candidate)
    raise UsageError("not a key", place=place, hint="it takes 16, 24 or 32 bytes in hexadecimal or base64")


def _prefix(value: Any) -> bytes:
    found = value.encode() if isinstance(value, str) else _explicit(value)
    if found is None:
        raise UsageError("not an AAD prefix", place="aad_prefix", hint='it takes text, {"hex": ...} or {"base64": ...}')
    return found


def _explicit(value: Any) -> bytes | None:
    """Bytes, or an object of one form and its text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((form, text),) = value.items()
    return _formed(text, form) if isinstance(text, str) and form in _FORMS else None


def _formed(text: str, form: str) -> bytes | None:
    try:
        return _FORMS[form](text)
    except (ValueError, binascii.Error):
        return None
