"""The key ring of one file: the keys that a caller passes, and the key material beside the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sbbf_tool.errors import ErrorPlace
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.encryption.file_cipher import KeyRing
    from sbbf_tool.file.keys import KeysLike


def ring_of(name: str | None, keys: KeysLike) -> KeyRing | None:
    """Return the key ring for the file with this name, or for one without a name; None without
    keys."""
    from sbbf_tool.encryption.file_cipher import KeyRing
    from sbbf_tool.encryption.keys import Keys

    known_keys = Keys.of(keys)
    if known_keys is None:
        return None
    if name is None:
        return KeyRing(known_keys)
    return KeyRing(known_keys, _material_beside(name))


def key_material_path(path: str) -> str:
    """Return the path where parquet-java stores the key material of a file if the material is not
    in the file."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f"_KEY_MATERIAL_FOR_{base}.json")


def _material_beside(path: str) -> Callable[[str], bytes | None]:
    """Return the function that looks up a key material by its reference, which is all that the
    Parquet file has, in the file of key materials that parquet-java stored beside it.

    The first look-up reads that file. Without a local file, nothing is found (None); without one
    at a URL, the look-up raises MissingError, and UnreadableError if the file is something else.
    """
    material_path = key_material_path(path)

    @cache
    def read_materials() -> dict[str, bytes]:
        from sbbf_tool.encryption.keys import MOST_BYTES, parse_material_file

        if not places.is_url(material_path) and not os.path.lexists(material_path):
            return {}
        with places.open_source(material_path) as source, ErrorPlace(material_path):
            # The byte above the limit lets the parser refuse a file that is too long.
            content = source.read_up_to(0, MOST_BYTES + 1)
            return parse_material_file(content)

    return lambda reference: read_materials().get(reference)
