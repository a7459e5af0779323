"""One encrypted module, its plaintext, and the data that bind it to its place (parquet-format
Encryption.md, 4.4 and 5.1).

    AES-GCM    u32 LE length | nonce (12) | ciphertext | tag (16)
    AES-CTR    u32 LE length | nonce (12) | ciphertext

Only pages under AES_GCM_CTR_V1 are AES-CTR modules. The length counts the bytes after it. A
plaintext may be longer than the struct in it: parquet-java encrypts whole buffers, such as 100
bytes for the 16 of a filter's header, with zeros at the end. A parser reads the struct at the
beginning and ignores the rest.

Additional authenticated data bind a module to its place (4.4):

    AAD = prefix | aad_file_unique | module type (1 byte)
          | row group (i16 LE) | column (i16 LE) | page (i16 LE)

The AAD of the footer ends after the module type; only data pages and their headers have a page. So
a module that was moved to another file, row group, column or page does not authenticate there.
"""

from __future__ import annotations

import os
from enum import IntEnum
from hmac import compare_digest
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import AuthenticationError, RefusedError, UnreadableError
from sbbf_tool.hints import install_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Bytes = bytes | bytearray | memoryview

LENGTH_BYTES = 4
NONCE_BYTES = 12
TAG_BYTES = 16
GCM_OVERHEAD = LENGTH_BYTES + NONCE_BYTES + TAG_BYTES
CTR_OVERHEAD = LENGTH_BYTES + NONCE_BYTES
SIGNATURE_BYTES = NONCE_BYTES + TAG_BYTES
KEY_SIZES = (16, 24, 32)
MOST_ORDINAL = 0x7FFF


class Module(IntEnum):
    """Kinds of modules; the number is the byte in the AAD."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


class FileAad(NamedTuple):
    """The part of the AAD that all modules of a file share."""

    prefix: bytes
    """The writer's name for the file, which may be stored in the file; empty if the writer gave
    none."""
    unique: bytes

    def of_footer(self) -> bytes:
        return self.prefix + self.unique + bytes([Module.FOOTER])

    def of(self, module: Module, row_group: int, column: int, page: int | None = None) -> bytes:
        """Build the AAD; `row_group` is the ordinal that the footer states, `column` the leaf's.
        Raises UnreadableError above 32,767."""
        ordinals = (row_group, column) if page is None else (row_group, column, page)
        if max(ordinals) > MOST_ORDINAL or min(ordinals) < 0:
            raise UnreadableError(
                f"ordinal {max(ordinals):,} is out of range: in encrypted files, row groups, "
                f"columns and pages are numbered from 0 to {MOST_ORDINAL:,}"
            )
        place = b"".join(number.to_bytes(2, "little") for number in ordinals)
        return self.prefix + self.unique + bytes([module]) + place


class Key:
    """An AES key of 128, 192 or 256 bits. Neither its repr nor any error shows its bytes."""

    __slots__ = ("_bytes", "_gcm")

    def __init__(self, key: bytes) -> None:
        if len(key) not in KEY_SIZES:
            raise UnreadableError(f"an AES key has 16, 24 or 32 bytes, not {len(key)}")
        self._bytes = bytes(key)
        self._gcm: AESGCM | None = None

    def __repr__(self) -> str:
        return f"<Key of {len(self._bytes) * 8} bits>"

    def __reduce__(self) -> tuple[type[Key], tuple[bytes]]:
        return Key, (self._bytes,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @property
    def gcm(self) -> AESGCM:
        if self._gcm is None:
            ensure_cryptography()
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._gcm = AESGCM(self._bytes)
        return self._gcm

    def ctr(self, nonce: bytes, data: Bytes) -> bytes:
        """Encrypt or decrypt with AES-CTR. The counter starts at 1, as in GCM."""
        ensure_cryptography()
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        cipher = Cipher(algorithms.AES(self._bytes), modes.CTR(nonce + b"\0\0\0\1"))
        return cipher.encryptor().update(data)


def ensure_cryptography() -> None:
    """Ensure that the package cryptography is installed. Raises RefusedError."""
    try:
        import_module("cryptography")
    except ImportError:
        raise RefusedError(
            "the file is encrypted, and the package cryptography is not installed",
            hint=install_extra("encryption"),
        ) from None


def parse_gcm(key: Key, module: Bytes, aad: bytes) -> bytes:
    """Decrypt a whole module, its length word included. Raises AuthenticationError if key, place or
    bytes are not the writer's."""
    view = memoryview(module)
    if len(view) < GCM_OVERHEAD or not _states_its_length(view):
        raise AuthenticationError("the stated length is not the length of a module")
    return decrypt_gcm(key, view[LENGTH_BYTES:], aad)


def build_gcm(key: Key, plain: Bytes, aad: bytes) -> bytes:
    """Build the module of a plaintext, with a new random nonce."""
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = key.gcm.encrypt(nonce, plain, aad)
    length = (NONCE_BYTES + len(ciphertext)).to_bytes(LENGTH_BYTES, "little")
    return b"".join((length, nonce, ciphertext))


def decrypt_gcm(key: Key, ciphertext: Bytes, aad: bytes) -> bytes:
    """Decrypt a module that consists of nonce, ciphertext and tag, without its length word."""
    view = memoryview(ciphertext)
    if len(view) < NONCE_BYTES + TAG_BYTES:
        raise AuthenticationError("the module is shorter than nonce and tag")
    gcm = key.gcm
    from cryptography.exceptions import InvalidTag

    try:
        return gcm.decrypt(bytes(view[:NONCE_BYTES]), view[NONCE_BYTES:], aad)
    except InvalidTag:
        raise AuthenticationError(
            "the module does not authenticate: the key is wrong, the AAD prefix differs, or the "
            "bytes were changed"
        ) from None


def parse_ctr(key: Key, module: Bytes) -> bytes:
    """Decrypt a CTR module, whose bytes are not authenticated."""
    view = memoryview(module)
    if len(view) < CTR_OVERHEAD or not _states_its_length(view):
        raise UnreadableError("the stated length is not the length of a module")
    return key.ctr(bytes(view[LENGTH_BYTES:CTR_OVERHEAD]), view[CTR_OVERHEAD:])


def _states_its_length(module: memoryview) -> bool:
    """Return whether the length word of a module counts exactly the bytes after it."""
    return int.from_bytes(module[:LENGTH_BYTES], "little") == len(module) - LENGTH_BYTES


def sign(key: Key, plain: bytes, aad: bytes) -> bytes:
    """Sign a plaintext footer; return the signature: a new nonce, and the tag that GCM computes for
    the footer (5.5)."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + _tag_of(key, nonce, plain, aad)


def _tag_of(key: Key, nonce: bytes, plain: bytes, aad: bytes) -> bytes:
    return key.gcm.encrypt(nonce, plain, aad)[-TAG_BYTES:]


def ensure_signed(key: Key, plain: bytes, signature: bytes, aad: bytes) -> None:
    """Ensure that the signature is that of these bytes. Raises AuthenticationError."""
    nonce = signature[:NONCE_BYTES]
    tag = signature[NONCE_BYTES:]
    if len(tag) != TAG_BYTES or not compare_digest(_tag_of(key, nonce, plain, aad), tag):
        raise AuthenticationError(
            "the signature of the footer does not match: the key is wrong, the AAD prefix "
            "differs, or the bytes were changed"
        )
