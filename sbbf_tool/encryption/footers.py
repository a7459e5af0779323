"""Encrypted and signed footers (parquet-format Encryption.md, 5.4 and 5.5).

    encrypted    FileCryptoMetaData | module of FileMetaData | u32 LE length of the two | "PARE"
    signed       FileMetaData | nonce (12) | tag (16) | u32 LE length of all three | "PAR1"

A column with a key of its own has its `ColumnMetaData` in a module, field 9 of its `ColumnChunk`; so does every encrypted column of a
signed footer, whose field 3 is then a partial copy. This module makes a `Footer` of either, with full metadata if the keys are given.
Its `raw` is the plaintext struct, and its `cipher` encrypts it again.
"""

from __future__ import annotations

from sbbf_tool.encryption import modules
from sbbf_tool.encryption.file_cipher import FileCipher, KeyRing, algorithm_of
from sbbf_tool.encryption.keys import describe_key
from sbbf_tool.encryption.modules import SIGNATURE_BYTES
from sbbf_tool.errors import AuthenticationError, LockedError, UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.columns import leaf_columns
from sbbf_tool.parquet.footer import Footer, Leaves
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, FileCryptoMetaData
from sbbf_tool.parquet.structs import parse_struct


def parse_footer(
    stored: bytes, start: int, *, encrypted: bool, ring: KeyRing | None, leaves: Leaves = leaf_columns
) -> tuple[Footer, FileCipher | None]:
    """Parse the footer with the bytes `stored`, which begin at byte `start` of the file and end before length word and magic.

    Return it and its cipher; None for a plain footer, or without keys: then a plaintext footer is read as far as possible. `leaves` is
    as in `Footer`. Raises LockedError if a key is missing, RefusedError if an AAD prefix is, AuthenticationError and UnreadableError.
    """
    if encrypted:
        return _parse_encrypted(stored, start, ring, leaves)
    footer = Footer(stored, start, leaves=leaves)
    algorithm = footer.metadata.encryption_algorithm
    if ring is None:
        return footer, None
    if algorithm is None:
        if any(*footer.numbers("crypto_metadata", presence=True)):
            raise AuthenticationError("the file has encrypted columns, but its footer is neither encrypted nor signed")
        return footer, None
    raw, signature = stored[:-SIGNATURE_BYTES], stored[-SIGNATURE_BYTES:]
    key = ring.footer_key(footer.metadata.footer_signing_key_metadata)
    cipher = FileCipher(ring, algorithm_of(algorithm, ring.keys.aad_prefix), key)
    if key is not None:
        modules.ensure_signed(key, raw, signature, cipher.algorithm.aad.of_footer())
    return _open_columns(Footer(raw, start, stored_bytes=len(stored), cipher=cipher, leaves=leaves), cipher)


def _parse_encrypted(stored: bytes, start: int, ring: KeyRing | None, leaves: Leaves) -> tuple[Footer, FileCipher]:
    try:
        length = compact.skip(stored, 0, compact.STRUCT)
    except IndexError:
        raise UnreadableError("the footer ends inside its FileCryptoMetaData", place=f"byte {start:,}") from None
    crypto = parse_struct(FileCryptoMetaData, stored)
    key = ring.footer_key(crypto.key_metadata) if ring is not None else None
    if ring is None or key is None:
        raise LockedError(f"the footer is encrypted{describe_key(crypto.key_metadata)}", hint="give the footer's key")
    cipher = FileCipher(ring, algorithm_of(crypto.encryption_algorithm, ring.keys.aad_prefix), key, stored[:length])
    try:
        raw = modules.parse_gcm(key, stored[length:], cipher.algorithm.aad.of_footer())
    except AuthenticationError as error:
        raise error.at(place="the footer") from None
    return _open_columns(Footer(raw, start, stored_bytes=len(stored), cipher=cipher, leaves=leaves), cipher)


def _open_columns(footer: Footer, cipher: FileCipher) -> tuple[Footer, FileCipher]:
    """Replace the plaintext metadata of each chunk whose key is known with the full metadata."""
    cipher.learn(footer, footer.columns)
    for number in range(footer.num_row_groups):
        for index in range(len(footer.columns)):
            chunk = footer.column_chunk(number, index)
            if chunk.encrypted_column_metadata is None or not cipher.has_key((number, index)):
                continue
            try:
                plain = cipher.decrypt_metadata((number, index), chunk.encrypted_column_metadata)
                chunk.meta_data = parse_struct(ColumnMetaData, plain)
            except UnreadableError as error:
                raise error.at(place=f"the metadata of column {footer.columns[index].name}, row group {number}") from None
    return footer, cipher
