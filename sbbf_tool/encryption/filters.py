"""A filter of an encrypted column: header and bitset, each a module of its own (parquet-format Encryption.md, 4.2 and BloomFilter.md).

    bloom_filter_offset -> | module of BloomFilterHeader | module of the bitset |

Both are AES-GCM modules under either algorithm, and `bloom_filter_length` counts both whole. GCM authenticates a module as a whole, so a
whole bitset is read even if only one block of it is needed.
"""

from __future__ import annotations

from collections.abc import Callable

from sbbf_tool.encryption.file_cipher import FileCipher
from sbbf_tool.encryption.modules import GCM_OVERHEAD, LENGTH_BYTES, Bytes, Module
from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.parquet.filters import StoredFilter, parse_header
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace

_MOST_HEADER_BYTES = 64 << 10
"""A header takes 16 bytes, and parquet-java's module of it 132."""
# Other module types that writers use for the two modules; parquet-go uses 6 and 7.
_CONFUSED = (Module.BLOOM_FILTER_BITSET, Module.COLUMN_INDEX, Module.OFFSET_INDEX)


def read_filter(
    read: Callable[[int, int], bytes], end: int, cipher: FileCipher, chunk: ChunkKey, place: FilterPlace, *, explain: bool = True
) -> StoredFilter:
    """Read the filter at this position from its header module, without its bitset. The filter must end by byte `end`.

    Raises AuthenticationError, which says where the module belongs if that can be determined, and UnreadableError.
    """
    length = int.from_bytes(read(place.offset, min(LENGTH_BYTES, max(0, end - place.offset))), "little")
    if length + LENGTH_BYTES < GCM_OVERHEAD or length > _MOST_HEADER_BYTES or place.offset + LENGTH_BYTES + length > end:
        raise AuthenticationError(f"there is no encrypted header at this offset: a module of {length:,} bytes is not valid")
    ciphertext = read(place.offset, LENGTH_BYTES + length)
    try:
        header = parse_header(cipher.decrypt(chunk, Module.BLOOM_FILTER_HEADER, ciphertext))
    except AuthenticationError as error:
        raise AuthenticationError((explain and _where_from(cipher, chunk, ciphertext)) or error.message) from None
    stored_filter = StoredFilter(chunk[0], chunk[1], place, header, encrypted_header_bytes=len(ciphertext))
    if stored_filter.end <= end:
        stated_bytes = int.from_bytes(read(stored_filter.bitset_offset, LENGTH_BYTES), "little") + LENGTH_BYTES
        if stated_bytes != header.num_bytes + GCM_OVERHEAD:
            raise AuthenticationError(
                f"the module of the bitset states {stated_bytes:,} bytes, but the header states {header.num_bytes + GCM_OVERHEAD:,}"
            )
    return stored_filter


def decrypt_bitset(cipher: FileCipher, stored: StoredFilter, ciphertext: Bytes) -> bytes:
    """Decrypt the bitset of a filter from its module. Raises AuthenticationError."""
    try:
        return cipher.decrypt((stored.row_group, stored.column), Module.BLOOM_FILTER_BITSET, ciphertext)
    except AuthenticationError as error:
        raise AuthenticationError(f"the bitset: {error.message}") from None


def encrypt_filter(cipher: FileCipher, chunk: ChunkKey, header: bytes, bitset: Bytes) -> tuple[bytes, bytes]:
    """Encrypt a filter; return its two modules."""
    return cipher.encrypt(chunk, Module.BLOOM_FILTER_HEADER, header), cipher.encrypt(chunk, Module.BLOOM_FILTER_BITSET, bitset)


def end_of_any_filter(read: Callable[[int, int], bytes], start: int, end: int, cipher: FileCipher) -> int | None:
    """Return the byte after the filter at `start`, whichever chunk it belongs to; None if no filter that ends by `end` is there."""
    length = int.from_bytes(read(start, LENGTH_BYTES), "little")
    if start + LENGTH_BYTES + length > end or length > _MOST_HEADER_BYTES:
        return None
    for chunk in cipher.chunks():
        try:
            stop = read_filter(read, end, cipher, chunk, FilterPlace(start, None), explain=False).end
        except UnreadableError:
            continue
        return stop if stop <= end else None
    return None


def _where_from(cipher: FileCipher, chunk: ChunkKey, ciphertext: bytes) -> str | None:
    """Describe the type or place for which a header module that does not authenticate was written with the same key; None if unknown."""
    for module in _CONFUSED:
        try:
            cipher.decrypt(chunk, module, ciphertext)
        except UnreadableError:
            continue
        return f"its header was encrypted as a module of type {int(module)} ({module.words}), not {int(Module.BLOOM_FILTER_HEADER)}"
    for sibling in cipher.chunks_of_same_key(chunk):
        try:
            cipher.decrypt(chunk, Module.BLOOM_FILTER_HEADER, ciphertext, written_for=sibling)
        except UnreadableError:
            continue
        return f"the filter of another chunk is there: column {cipher.columns[sibling[1]].name}, row group {sibling[0]}"
    return None
