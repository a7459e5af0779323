"""Encrypted files (parquet-format Encryption.md): both algorithms, encrypted and signed footers,
the footer's key and keys of columns.

The keys are in the corpus, and nonces are computed from the name of the file, so that every corpus
has the same bytes. Never encrypt data like this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from sbbf_tool.display import to_json
from sbbf_tool.encryption.modules import (
    NONCE_BYTES,
    TAG_BYTES,
    FileAad,
    Key,
    Module,
    ensure_cryptography,
)
from sbbf_tool.extensions.conformance.corpus import CANNOT_SAY
from sbbf_tool.extensions.conformance.corpus_file import CorpusFile, FileMaker, make_file
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BY_NAME
from sbbf_tool.extensions.conformance.parquet_writer import ChunkKey, Encrypter, StoredBytes
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, build_tail
from sbbf_tool.parquet.idl import ttypes
from sbbf_tool.parquet.structs import build_struct

KEYS_FILE = "encrypted/keys.json"
_FOOTER_KEY = b"0123456789012345"
_COLUMN_KEY = b"1234567890123450"
_KIND = BY_NAME["string"]
_PADDING = 100


def build_keys() -> bytes:
    """Build the file of keys, in the form that `keys` reads."""
    keys = {
        "footer_key": {"text": _FOOTER_KEY.decode()},
        "columns": {_KIND.column.name: {"text": _COLUMN_KEY.decode()}},
    }
    return (to_json(keys, indent=1) + "\n").encode()


@dataclass
class _FileEncryption:
    """How one file is encrypted."""

    name: str
    is_footer_plain: bool = False
    is_ctr: bool = False
    has_column_key: bool = False
    aad_prefix: bytes = b""
    nonces: int = 0
    aad: FileAad = field(init=False)

    def __post_init__(self) -> None:
        self.aad = FileAad(self.aad_prefix, hashlib.sha256(self.name.encode()).digest()[:8])

    @property
    def encrypter(self) -> Encrypter:
        magic = MAGIC if self.is_footer_plain else MAGIC_ENCRYPTED
        return Encrypter(self.encrypt, self._finish, self._tail, magic)

    def encrypt(
        self, module: Module, chunk: ChunkKey, plain: bytes, page: int | None = None
    ) -> bytes:
        """Encrypt a module of a chunk."""
        key = Key(_COLUMN_KEY if self.has_column_key else _FOOTER_KEY)
        if self.is_ctr and module is Module.DATA_PAGE:
            nonce = self._next_nonce()
            return _build_module(nonce, key.ctr(nonce, plain))
        return self._build_gcm(key, plain, self.aad.of(module, *chunk, page))

    def encrypt_filter(
        self,
        chunk: ChunkKey,
        bitset: bytes,
        header_place: ChunkKey | None = None,
        *,
        padding: int = 0,
    ) -> StoredBytes:
        """Encrypt a filter; its header may be padded with zeros, as by parquet-java, or encrypted
        for another place."""
        header = build_header(len(bitset)).ljust(padding, b"\0")
        modules = self.encrypt(Module.BLOOM_FILTER_HEADER, header_place or chunk, header)
        return StoredBytes(modules + self.encrypt(Module.BLOOM_FILTER_BITSET, chunk, bitset))

    def _next_nonce(self) -> bytes:
        self.nonces += 1
        return hashlib.sha256(f"{self.name} {self.nonces}".encode()).digest()[:NONCE_BYTES]

    def _build_gcm(self, key: Key, plain: bytes, aad: bytes) -> bytes:
        nonce = self._next_nonce()
        return _build_module(nonce, key.gcm.encrypt(nonce, plain, aad))

    def _finish(self, metadata: ttypes.FileMetaData) -> None:
        for number, row_group in enumerate(metadata.row_groups):
            for index, chunk in enumerate(row_group.columns):
                self._encrypt_metadata(chunk, (number, index))

    def _encrypt_metadata(self, chunk: ttypes.ColumnChunk, key: ChunkKey) -> None:
        meta = chunk.meta_data
        chunk.crypto_metadata = ttypes.ColumnCryptoMetaData()
        if self.has_column_key:
            own_key = ttypes.EncryptionWithColumnKey(path_in_schema=meta.path_in_schema)
            chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY = own_key
        else:
            footer_key = ttypes.EncryptionWithFooterKey()
            chunk.crypto_metadata.ENCRYPTION_WITH_FOOTER_KEY = footer_key
        if self.has_column_key or self.is_footer_plain:
            module = self.encrypt(Module.COLUMN_METADATA, key, build_struct(meta))
            chunk.encrypted_column_metadata = module
            meta.statistics = None
        if self.has_column_key and not self.is_footer_plain:
            chunk.meta_data = None

    def _algorithm(self) -> ttypes.EncryptionAlgorithm:
        prefix = self.aad_prefix or None
        unique = self.aad.unique
        if self.is_ctr:
            ctr = ttypes.AesGcmCtrV1(aad_prefix=prefix, aad_file_unique=unique)
            return ttypes.EncryptionAlgorithm(AES_GCM_CTR_V1=ctr)
        gcm = ttypes.AesGcmV1(aad_prefix=prefix, aad_file_unique=unique)
        return ttypes.EncryptionAlgorithm(AES_GCM_V1=gcm)

    def _tail(self, metadata: ttypes.FileMetaData) -> bytes:
        key = Key(_FOOTER_KEY)
        algorithm = self._algorithm()
        if self.is_footer_plain:
            metadata.encryption_algorithm = algorithm
            raw = build_struct(metadata)
            nonce = self._next_nonce()
            signed = raw + nonce + key.gcm.encrypt(nonce, raw, self.aad.of_footer())[-TAG_BYTES:]
            return signed + build_tail(signed)
        stored = build_struct(ttypes.FileCryptoMetaData(encryption_algorithm=algorithm))
        stored += self._build_gcm(key, build_struct(metadata), self.aad.of_footer())
        return stored + build_tail(stored, MAGIC_ENCRYPTED)


def _build_module(nonce: bytes, ciphertext: bytes) -> bytes:
    return (NONCE_BYTES + len(ciphertext)).to_bytes(4, "little") + nonce + ciphertext


def make_encrypted() -> Iterator[CorpusFile]:
    """Make files with encrypted filters. Raises RefusedError without the package cryptography."""
    ensure_cryptography()
    for about, encryption in (
        (
            "AES_GCM_V1, encrypted footer, the footer's key for the column",
            _FileEncryption("footer-key"),
        ),
        (
            "AES_GCM_V1, encrypted footer, a key of the column's own",
            _FileEncryption("column-key", has_column_key=True),
        ),
        (
            "AES_GCM_V1, signed footer in plaintext",
            _FileEncryption("signed-footer", is_footer_plain=True),
        ),
        (
            "AES_GCM_V1, signed footer in plaintext, a key of the column's own",
            _FileEncryption("signed-footer-column-key", is_footer_plain=True, has_column_key=True),
        ),
        (
            "AES_GCM_CTR_V1: pages are CTR modules, filters GCM modules as ever",
            _FileEncryption("ctr", is_ctr=True),
        ),
        (
            "AES_GCM_V1 with an AAD prefix that the file stores",
            _FileEncryption("aad-prefix", aad_prefix=b"corpus"),
        ),
    ):
        yield _make(encryption, about)
    yield from _make_unusual()


def _make(encryption: _FileEncryption, about: str, *, padding: int = 0) -> CorpusFile:
    """Make a file with a sound filter in each row group, its header padded to `padding` bytes."""
    maker = FileMaker(_KIND, encrypter=encryption.encrypter)
    filters = {}
    for number, bitset in maker.bitsets().items():
        filters[number] = encryption.encrypt_filter((number, 0), bitset, padding=padding)
    name = f"encrypted/{encryption.name}.parquet"
    return make_file(name, about, replace(maker, filters=filters), keys=KEYS_FILE)


def _make_unusual() -> Iterator[CorpusFile]:
    about = (
        f"the plaintext of the header has {_PADDING} bytes, zeros at the end, as "
        "parquet-java encrypts it"
    )
    yield _make(_FileEncryption("padded-header"), about, padding=_PADDING)
    swapped = _FileEncryption("swapped")
    filters = {}
    for number in (0, 1):
        other = (1 - number, 0)
        filters[number] = swapped.encrypt_filter((number, 0), bytes(BITSET_BYTES), other)
    about = (
        "each header was encrypted for the other row group, and does not authenticate: "
        "no reader may use the filters"
    )
    maker = FileMaker(_KIND, filters=filters, encrypter=swapped.encrypter)
    yield make_file("encrypted/swapped.parquet", about, maker, CANNOT_SAY, keys=KEYS_FILE)
    leaked = _FileEncryption("plaintext-filter")
    plain = StoredBytes(build_header(BITSET_BYTES) + bytes(BITSET_BYTES))
    about = (
        "a filter in plaintext on an encrypted column, as arrow-rs writes it: no reader may use it"
    )
    maker = FileMaker(_KIND, filters={0: plain, 1: plain}, encrypter=leaked.encrypter)
    yield make_file("encrypted/plaintext-filter.parquet", about, maker, CANNOT_SAY, keys=KEYS_FILE)
