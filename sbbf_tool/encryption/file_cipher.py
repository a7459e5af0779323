"""The keys of one file: the key of each chunk, with which its modules are encrypted and decrypted,
and its footer.

A filter of an encrypted column is two modules (parquet-format Encryption.md, 4.2 and
BloomFilter.md):

    bloom_filter_offset -> | module of BloomFilterHeader | module of the bitset |

Both are AES-GCM modules under either algorithm, and `bloom_filter_length` counts both whole. GCM
authenticates a module as a whole, so a whole bitset is read even if only one block of it is needed.
Footers (5.4 and 5.5):

    encrypted    FileCryptoMetaData | module of FileMetaData | u32 LE length of the two | "PARE"
    signed       FileMetaData | nonce (12) | tag (16) | u32 LE length of all three | "PAR1"

A column with a key of its own has its `ColumnMetaData` in a module, field 9 of its `ColumnChunk`;
so does every encrypted column of a signed footer, whose field 3 is then a partial copy.
`parse_footer` makes a `Footer` of either, with full metadata if the keys are given. Its `raw` is
the plaintext struct, and its `cipher` encrypts it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sbbf_tool.encryption import modules
from sbbf_tool.encryption.keys import Keys, describe_key
from sbbf_tool.encryption.modules import (
    GCM_OVERHEAD,
    LENGTH_BYTES,
    SIGNATURE_BYTES,
    Bytes,
    FileAad,
    Key,
    Module,
)
from sbbf_tool.errors import (
    AuthenticationError,
    LockedError,
    RefusedError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import StoredFilter, parse_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, Footer, Leaves
from sbbf_tool.parquet.footer_structs import FooterStructs
from sbbf_tool.parquet.idl.ttypes import (
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionAlgorithm,
    FileCryptoMetaData,
)
from sbbf_tool.parquet.pages import Read
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.parquet.structs import parse_struct

_MOST_HEADER_BYTES = 64 << 10
"""A header takes 16 bytes, and parquet-java's module of it 132."""
# Other module types that writers use for the two modules; parquet-go uses 6 and 7.
_CONFUSED = (Module.BLOOM_FILTER_BITSET, Module.COLUMN_INDEX, Module.OFFSET_INDEX)


class KeyRing(NamedTuple):
    """Arguments of a caller for one file: keys, and a reader of the key material stored beside the
    file."""

    keys: Keys
    material: Callable[[str], bytes | None] = lambda reference: None

    def find(self, metadata: bytes | None) -> Key | None:
        return self.keys.find(metadata, self.material)

    def footer_key(self, metadata: bytes | None) -> Key | None:
        return self.keys.footer or self.find(metadata)


class Algorithm(NamedTuple):
    """An `EncryptionAlgorithm`, with the AAD prefix of the caller."""

    aad: FileAad
    has_ctr_pages: bool
    """Whether the algorithm is AES_GCM_CTR_V1: pages are not authenticated; everything else is, as
    with AES_GCM_V1."""


def algorithm_of(algorithm: EncryptionAlgorithm | None, prefix: bytes | None) -> Algorithm:
    """Combine the stated algorithm with the caller's AAD prefix. Raises RefusedError if the prefix
    that the file was written with is missing or differs.
    """
    form = None
    if algorithm is not None:
        form = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
    if algorithm is None or form is None:
        raise UnreadableError(
            "the file is encrypted with an algorithm that the format does not have"
        )
    if form.aad_file_unique is None:
        # DuckDB 2.0 writes such files: modules without AAD, and columns that are not marked as
        # encrypted.
        raise UnreadableError(
            "the encryption has no aad_file_unique, which the format requires",
            hint="only DuckDB reads such files",
        )
    if prefix is None:
        if form.supply_aad_prefix:
            raise RefusedError(
                "the file was written with an AAD prefix that it does not store",
                hint='give it as "aad_prefix" beside the keys',
            )
    elif form.aad_prefix is not None:
        if form.aad_prefix != prefix:
            raise RefusedError(
                "the AAD prefix of the file differs from the given one",
                hint="this is another file, or one that replaced the expected file",
            )
    elif not form.supply_aad_prefix:
        raise RefusedError(
            "the file was written without an AAD prefix, but one was given",
            hint='remove "aad_prefix" if the file is the expected one',
        )
    aad = FileAad(form.aad_prefix or prefix or b"", form.aad_file_unique)
    return Algorithm(aad, has_ctr_pages=algorithm.AES_GCM_CTR_V1 is not None)


class FileCipher:
    """The cipher of one file's modules. Chunks whose key is missing stay locked; `missing` lists
    them.

    `crypto` holds the bytes before an encrypted footer; None for a signed one.
    """

    def __init__(
        self,
        ring: KeyRing,
        algorithm: Algorithm,
        footer_key: Key | None,
        crypto: bytes | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.footer_key = footer_key
        self.crypto = crypto
        self._ring = ring
        self._keys: dict[ChunkKey, Key] = {}
        self._ordinals: list[int] = []
        self.columns: Sequence[Column] = ()
        self.missing: dict[ChunkKey, str] = {}
        """Description of the missing key, by chunk."""

    def learn(self, footer: FooterStructs, columns: Sequence[Column]) -> None:
        """Find the key of each encrypted chunk. Raises what `Keys.find` raises."""
        self.columns = columns
        keys_by_index = _by_index(self._ring.keys.columns, columns)
        # The key service is called once per key, however many row groups there are.
        keys: dict[tuple[int, bytes | None], Key | None] = {}
        for number in range(footer.num_row_groups):
            ordinal = footer.row_group(number).ordinal
            self._ordinals.append(number if ordinal is None else ordinal)
            for index, column in enumerate(columns):
                crypto = footer.column_chunk(number, index).crypto_metadata
                if crypto is None:
                    continue
                own = crypto.ENCRYPTION_WITH_COLUMN_KEY
                key_metadata = None if own is None else own.key_metadata
                key_id = (index, key_metadata)
                if key_id not in keys:
                    keys[key_id] = self._key_of(crypto, column, keys_by_index)
                key = keys[key_id]
                if key is not None:
                    self._keys[number, index] = key
                elif own is None:
                    self.missing[number, index] = "the footer key"
                else:
                    description = describe_key(key_metadata)
                    self.missing[number, index] = f"a key of its own{description}"

    def _key_of(
        self, crypto: ColumnCryptoMetaData, column: Column, keys_by_index: Mapping[int, Key]
    ) -> Key | None:
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None:
            if crypto.ENCRYPTION_WITH_FOOTER_KEY is None:
                return None
            return self.footer_key
        try:
            return keys_by_index.get(column.index) or self._ring.find(own.key_metadata)
        except (UnreadableError, RefusedError) as error:
            raise error.at(place=f"column {column.name}") from error.__cause__

    def has_key(self, chunk: ChunkKey) -> bool:
        return chunk in self._keys

    def decrypt(
        self,
        chunk: ChunkKey,
        module: Module,
        ciphertext: Bytes,
        page: int | None = None,
        *,
        written_for: ChunkKey | None = None,
    ) -> bytes:
        """Decrypt a GCM module of this chunk, which may have been written for another one. Raises
        AuthenticationError."""
        aad = self._aad(written_for or chunk, module, page)
        return modules.parse_gcm(self._keys[chunk], ciphertext, aad)

    def encrypt(self, chunk: ChunkKey, module: Module, plain: Bytes) -> bytes:
        """Encrypt a GCM module of this chunk, with a new nonce."""
        return modules.build_gcm(self._keys[chunk], plain, self._aad(chunk, module, None))

    def decrypt_metadata(self, chunk: ChunkKey, ciphertext: bytes) -> bytes:
        return self.decrypt(chunk, Module.COLUMN_METADATA, ciphertext)

    def encrypt_metadata(self, chunk: ChunkKey, plain: bytes) -> bytes:
        return self.encrypt(chunk, Module.COLUMN_METADATA, plain)

    @property
    def can_write(self) -> bool:
        return self.footer_key is not None

    def encrypt_footer(self, raw: bytes) -> tuple[bytes, bytes]:
        """Encrypt or sign the footer with a new nonce; return it as stored, and the magic after
        it."""
        key = self.footer_key
        assert key is not None, "callers check first that the footer can be changed"
        aad = self.algorithm.aad.of_footer()
        if self.crypto is None:
            return raw + modules.sign(key, raw, aad), MAGIC
        return self.crypto + modules.build_gcm(key, raw, aad), MAGIC_ENCRYPTED

    def decrypt_page(
        self, chunk: ChunkKey, module: Module, ciphertext: Bytes, page: int | None
    ) -> bytes:
        """Decrypt a page, which may be a CTR module. Raises AuthenticationError with GCM."""
        if self.algorithm.has_ctr_pages:
            return modules.parse_ctr(self._keys[chunk], ciphertext)
        return self.decrypt(chunk, module, ciphertext, page)

    @property
    def page_overhead(self) -> int:
        """Bytes by which a page's module is longer than the page."""
        return modules.CTR_OVERHEAD if self.algorithm.has_ctr_pages else modules.GCM_OVERHEAD

    def _aad(self, chunk: ChunkKey, module: Module, page: int | None) -> bytes:
        return self.algorithm.aad.of(module, self._ordinals[chunk[0]], chunk[1], page)

    def read_filter(
        self, read: Read, end: int, chunk: ChunkKey, place: FilterPlace, *, explain: bool = True
    ) -> StoredFilter:
        """Read the filter at this position from its header module, without its bitset. The filter
        must end by byte `end`.

        Raises AuthenticationError, which says where the module belongs if that can be determined,
        and UnreadableError.
        """
        ciphertext = _read_header_module(read, place.offset, end)
        try:
            header = parse_header(self.decrypt(chunk, Module.BLOOM_FILTER_HEADER, ciphertext))
        except AuthenticationError as error:
            origin = self._where_from(chunk, ciphertext) if explain else None
            raise AuthenticationError(origin or error.message) from None
        row_group, column = chunk
        stored_filter = StoredFilter(
            row_group, column, place, header, encrypted_header_bytes=len(ciphertext)
        )
        if stored_filter.end <= end:
            length = int.from_bytes(read(stored_filter.bitset_offset, LENGTH_BYTES), "little")
            stated_bytes = length + LENGTH_BYTES
            if stated_bytes != header.num_bytes + GCM_OVERHEAD:
                raise AuthenticationError(
                    f"the module of the bitset states {stated_bytes:,} bytes, but the header "
                    f"states {header.num_bytes + GCM_OVERHEAD:,}"
                )
        return stored_filter

    def decrypt_bitset(self, stored: StoredFilter, ciphertext: Bytes) -> bytes:
        """Decrypt the bitset of a filter from its module. Raises AuthenticationError."""
        chunk = (stored.row_group, stored.column)
        try:
            return self.decrypt(chunk, Module.BLOOM_FILTER_BITSET, ciphertext)
        except AuthenticationError as error:
            raise AuthenticationError(f"the bitset: {error.message}") from None

    def encrypt_filter(self, chunk: ChunkKey, header: bytes, bitset: Bytes) -> tuple[bytes, bytes]:
        """Encrypt a filter; return its two modules."""
        header_module = self.encrypt(chunk, Module.BLOOM_FILTER_HEADER, header)
        return header_module, self.encrypt(chunk, Module.BLOOM_FILTER_BITSET, bitset)

    def end_of_any_filter(self, read: Read, start: int, end: int) -> int | None:
        """Return the byte after the filter at `start`, whichever chunk it belongs to; None if no
        filter that ends by `end` is there."""
        length = int.from_bytes(read(start, LENGTH_BYTES), "little")
        if start + LENGTH_BYTES + length > end or length > _MOST_HEADER_BYTES:
            return None
        place = FilterPlace(start, None)
        for chunk in self._keys:
            try:
                stored_filter = self.read_filter(read, end, chunk, place, explain=False)
            except UnreadableError:
                continue
            if stored_filter.end > end:
                return None
            return stored_filter.end
        return None

    def _where_from(self, chunk: ChunkKey, ciphertext: bytes) -> str | None:
        """Describe the type or place for which a header module that does not authenticate was
        written with this key; None if unknown."""
        for module in _CONFUSED:
            try:
                self.decrypt(chunk, module, ciphertext)
            except UnreadableError:
                continue
            return (
                f"its header was encrypted as a module of type {int(module)} "
                f"({module.words}), not {int(Module.BLOOM_FILTER_HEADER)}"
            )
        for sibling, key in self._keys.items():
            if key != self._keys[chunk]:
                continue
            try:
                self.decrypt(chunk, Module.BLOOM_FILTER_HEADER, ciphertext, written_for=sibling)
            except UnreadableError:
                continue
            return (
                "the filter of another chunk is there: column "
                f"{self.columns[sibling[1]].name}, row group {sibling[0]}"
            )
        return None


def _read_header_module(read: Read, offset: int, end: int) -> bytes:
    """Read the module of a filter's header at byte `offset`, which must end by byte `end`. Raises
    AuthenticationError if the length there is not that of a header's module."""
    available = max(0, end - offset)
    length_word = read(offset, min(LENGTH_BYTES, available))
    length = int.from_bytes(length_word, "little")
    module_bytes = LENGTH_BYTES + length
    is_header = module_bytes >= GCM_OVERHEAD and length <= _MOST_HEADER_BYTES
    if not is_header or module_bytes > available:
        raise AuthenticationError(
            f"there is no encrypted header at this offset: a module of {length:,} bytes is "
            "not valid"
        )
    return read(offset, module_bytes)


def _by_index(keys: Mapping[str, Key], columns: Sequence[Column]) -> dict[int, Key]:
    """Map column indexes to keys. Keys of columns that this file does not have are skipped: they
    are for other files."""
    keys_by_index = {}
    for name, key in keys.items():
        try:
            keys_by_index[find_column(columns, name).index] = key
        except UsageError:
            continue
    return keys_by_index


def parse_footer(
    stored: bytes,
    start: int,
    *,
    encrypted: bool,
    ring: KeyRing | None,
    leaves: Leaves,
) -> tuple[Footer, FileCipher | None]:
    """Parse the footer with the bytes `stored`, which begin at byte `start` of the file and end
    before length word and magic.

    Return it and its cipher; None for a plain footer, or without keys: then a plaintext footer is
    read as far as possible. `leaves` is as in `Footer`. Raises LockedError if a key is missing,
    RefusedError if an AAD prefix is, AuthenticationError and UnreadableError.
    """
    if encrypted:
        return _parse_encrypted(stored, start, ring, leaves)
    footer = Footer(stored, start, leaves=leaves)
    algorithm = footer.metadata.encryption_algorithm
    if ring is None:
        return footer, None
    if algorithm is None:
        if any(*footer.numbers("crypto_metadata", presence=True)):
            raise AuthenticationError(
                "the file has encrypted columns, but its footer is neither encrypted nor signed"
            )
        return footer, None
    raw = stored[:-SIGNATURE_BYTES]
    signature = stored[-SIGNATURE_BYTES:]
    key = ring.footer_key(footer.metadata.footer_signing_key_metadata)
    cipher = FileCipher(ring, algorithm_of(algorithm, ring.keys.aad_prefix), key)
    if key is not None:
        modules.ensure_signed(key, raw, signature, cipher.algorithm.aad.of_footer())
    footer = Footer(raw, start, stored_bytes=len(stored), cipher=cipher, leaves=leaves)
    return _open_columns(footer, cipher)


def _parse_encrypted(
    stored: bytes, start: int, ring: KeyRing | None, leaves: Leaves
) -> tuple[Footer, FileCipher]:
    try:
        length = compact.skip(stored, 0, compact.STRUCT)
    except IndexError:
        raise UnreadableError(
            "the footer ends inside its FileCryptoMetaData", place=f"byte {start:,}"
        ) from None
    crypto = parse_struct(FileCryptoMetaData, stored)
    key = None if ring is None else ring.footer_key(crypto.key_metadata)
    if ring is None or key is None:
        description = describe_key(crypto.key_metadata)
        raise LockedError(f"the footer is encrypted{description}", hint="give the footer's key")
    algorithm = algorithm_of(crypto.encryption_algorithm, ring.keys.aad_prefix)
    cipher = FileCipher(ring, algorithm, key, stored[:length])
    try:
        raw = modules.parse_gcm(key, stored[length:], cipher.algorithm.aad.of_footer())
    except AuthenticationError as error:
        raise error.at(place="the footer") from None
    footer = Footer(raw, start, stored_bytes=len(stored), cipher=cipher, leaves=leaves)
    return _open_columns(footer, cipher)


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
                name = footer.columns[index].name
                place = f"the metadata of column {name}, row group {number}"
                raise error.at(place=place) from None
    return footer, cipher
