"""The keys of encrypted files, as a caller passes them and as the command line finds them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from sbbf_tool.display import quote_word
from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from sbbf_tool.encryption.keys import Keys as Keys
    from sbbf_tool.encryption.keys import KeyService, KmsClient

    KeysLike: TypeAlias = Keys | Mapping[str, Any] | KeyService | KmsClient | None
    """What `Keys.of` accepts: `Keys`, a mapping as in a keys file (keys may be bytes), a function
    that returns a key, or a KMS client."""

_FILE_VARIABLE = "SBBF_KEYS_FILE"
_JSON_VARIABLE = "SBBF_KEYS"
_MAX_BYTES = 8 << 20


def read_keys(path: str | None) -> Keys | None:
    """Read the keys in this file, or by default those that the environment names or holds; None
    without keys. Raises UsageError."""
    if path is None:
        path = os.environ.get(_FILE_VARIABLE) or None
    if path is not None:
        return _read_file(path)
    text = os.environ.get(_JSON_VARIABLE)
    if not text:
        return None
    from sbbf_tool.encryption.keys import Keys

    return Keys.from_json(text, where=_JSON_VARIABLE)


def exposure_of(path: str) -> str | None:
    """Return which other users may read this keys file, and what to do; None if no other user may,
    or if it is not a regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_mode & stat.S_IROTH:
        readers = "every user"
    elif status.st_mode & stat.S_IRGRP:
        readers = "its group"
    else:
        return None
    mode = stat.S_IMODE(status.st_mode)
    fix = f"run chmod 600 {quote_word(path)}"
    return f"{path}: {readers} can read the keys (mode {mode:04o}); {fix}"


def _read_file(path: str) -> Keys:
    from sbbf_tool.encryption.keys import Keys, may_be_keys

    try:
        with open(path, "rb") as stream:
            text = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if may_be_keys(path):
            message = "keys must be given in a file, not on the command line"
            hint = "replace that key: other users can read a command line"
            raise UsageError(message, hint=hint) from None
        if not isinstance(error, OSError):
            raise UsageError("the keys cannot be read: this is not a valid file name") from None
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"the keys cannot be read: {reason}", file=path) from None
    if len(text) > _MAX_BYTES:
        raise UsageError(f"a keys file must have at most {_MAX_BYTES:,} bytes", file=path)
    keys = Keys.from_json(text, where=path)
    return Keys(keys.footer, keys.columns, keys.by_id, keys.aad_prefix, path=path)
