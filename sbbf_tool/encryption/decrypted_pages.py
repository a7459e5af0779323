"""The pages of an encrypted column chunk in decrypted form (parquet-format Encryption.md, 4.2 and
5.3).

    stored    | module of page header | module of page | module of page header | ...
    decrypted | page header           | page           | page header           | ...

The headers determine the layout of the decrypted chunk, so all of them are decrypted first; a page
is decrypted when bytes of it are read, and only the last page is kept. `compressed_page_size`,
which is the size of the module in the file, becomes the size of the page. Page indexes are neither
needed nor read.

Arrow C++ encrypts a whole data page v2, as the format requires; parquet-java leaves the levels at
its start unencrypted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sbbf_tool.encryption.file_cipher import FileCipher
from sbbf_tool.encryption.modules import GCM_OVERHEAD, LENGTH_BYTES, Module
from sbbf_tool.errors import AuthenticationError, SbbfError, UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, PageHeader, PageType
from sbbf_tool.parquet.pages import ChunkPages, Read, count_of, page_range
from sbbf_tool.parquet.rewritten_pages import NewPages
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.parquet.structs import parse_prefix

# Field ids in parquet.thrift's PageHeader. The checksum is removed: it covers the stored bytes, and
# GCM detects more.
_COMPRESSED_PAGE_SIZE = 3
_CRC = 4


class _DecryptedPage(NamedTuple):
    header: bytes
    offset: int
    """First byte of the page's module in the file, or of the levels before it."""
    stored_bytes: int
    size: int
    """Bytes of the decrypted page."""
    module: Module
    ordinal: int | None
    level_bytes: int


class DecryptedPages(NewPages):
    """The decrypted pages of one chunk."""

    def __init__(
        self, read: Read, cipher: FileCipher, chunk: ChunkKey, meta: ColumnMetaData
    ) -> None:
        """Decrypt the page headers. Raises AuthenticationError, and UnreadableError if the chain of
        headers is broken."""
        self._read = read
        self._cipher = cipher
        self._chunk = chunk
        self._pages = list(self._follow(*page_range(meta)))
        self._last: tuple[int, bytes] | None = None
        has_dictionary = bool(self._pages) and self._pages[0].module is Module.DICTIONARY_PAGE
        sizes = (len(page.header) + page.size for page in self._pages)
        super().__init__(meta, sizes, has_dictionary=has_dictionary)

    def as_pages(self) -> ChunkPages:
        """Return access to the pages, in which a walk over headers decrypts no page."""
        return ChunkPages(self.meta, self.read_part, self.open_arrow)

    def content(self, at: int, start: int) -> bytes:
        """Return a header, or a page, from byte `start` on; the last page is kept."""
        header = self._pages[at].header
        if start < len(header):
            return header[start:]
        return self._body(at)[start - len(header) :]

    def _follow(self, position: int, end: int) -> Iterator[_DecryptedPage]:
        ordinal = 0
        is_first = True
        while position < end:
            place = f"page header at byte {position:,}"
            ciphertext = self._module_at(position, end, place)
            header, module = self._decrypt_header(ciphertext, ordinal, place, is_first)
            position += len(ciphertext)
            page = self._page(header, module, ordinal, position, place)
            if position + page.stored_bytes > end:
                raise UnreadableError(
                    "the page extends past the end of its column chunk", place=place
                )
            yield page
            position += page.stored_bytes
            ordinal += module is Module.DATA_PAGE
            is_first = False

    def _module_at(self, position: int, end: int, place: str) -> bytes:
        length = int.from_bytes(self._read(position, LENGTH_BYTES), "little") + LENGTH_BYTES
        if length < GCM_OVERHEAD or position + length > end:
            raise AuthenticationError(
                "the stated length is not the length of a module in this column chunk", place=place
            )
        return self._read(position, length)

    def _decrypt_header(
        self, ciphertext: bytes, ordinal: int, place: str, is_first: bool
    ) -> tuple[bytes, Module]:
        """Decrypt a header; return it and the type of its page. Only the first page may be a
        dictionary page, which has no ordinal."""
        if is_first:
            kind = Module.DICTIONARY_PAGE_HEADER
            try:
                header = self._cipher.decrypt(self._chunk, kind, ciphertext)
                return header, Module.DICTIONARY_PAGE
            except AuthenticationError:
                pass
        kind = Module.DATA_PAGE_HEADER
        try:
            header = self._cipher.decrypt(self._chunk, kind, ciphertext, ordinal)
        except SbbfError as error:
            raise error.at(place=place) from None
        return header, Module.DATA_PAGE

    def _page(
        self, plain: bytes, module: Module, ordinal: int, offset: int, place: str
    ) -> _DecryptedPage:
        header, length = parse_prefix(PageHeader, plain)
        stored = header.compressed_page_size
        if stored is None or stored < self._cipher.page_overhead:
            raise UnreadableError("the header does not state the size of a module", place=place)
        if (header.type == PageType.DICTIONARY_PAGE) != (module is Module.DICTIONARY_PAGE):
            raise UnreadableError(
                "the header was encrypted as that of another kind of page", place=place
            )
        size = stored - self._cipher.page_overhead
        page_ordinal = None if module is Module.DICTIONARY_PAGE else ordinal
        # The bytes after the struct are padding, which could not be distinguished from the page.
        return _DecryptedPage(
            header=_set_size(plain[:length], size),
            offset=offset,
            stored_bytes=stored,
            size=size,
            module=module,
            ordinal=page_ordinal,
            level_bytes=_count_level_bytes(header),
        )

    def _body(self, at: int) -> bytes:
        if self._last is None or self._last[0] != at:
            page = self._pages[at]
            place = f"page at byte {page.offset:,}"
            stored = self._read(page.offset, page.stored_bytes)
            if len(stored) < page.stored_bytes:
                raise UnreadableError("the page is truncated", place=place)
            try:
                body = self._decrypt_page(page, stored)
            except SbbfError as error:
                raise error.at(place=place) from None
            if len(body) != page.size:
                raise UnreadableError(
                    "the page does not have the size that its header states", place=place
                )
            self._last = at, body
        return self._last[1]

    def _decrypt_page(self, page: _DecryptedPage, stored: bytes) -> bytes:
        is_whole = int.from_bytes(stored[:LENGTH_BYTES], "little") == len(stored) - LENGTH_BYTES
        if not page.level_bytes or is_whole:
            try:
                return self._cipher.decrypt_page(self._chunk, page.module, stored, page.ordinal)
            except AuthenticationError:
                # Levels that look like a length word are improbable, but possible.
                if not page.level_bytes:
                    raise
        levels = stored[: page.level_bytes]
        ciphertext = stored[page.level_bytes :]
        body = self._cipher.decrypt_page(self._chunk, page.module, ciphertext, page.ordinal)
        return levels + body


def _count_level_bytes(header: PageHeader) -> int:
    """Return the bytes of levels that parquet-java leaves unencrypted before a data page v2."""
    v2 = header.data_page_header_v2
    if header.type != PageType.DATA_PAGE_V2 or v2 is None:
        return 0
    repetition_bytes = count_of(v2.repetition_levels_byte_length)
    return repetition_bytes + count_of(v2.definition_levels_byte_length)


def _set_size(header: bytes, size: int) -> bytes:
    """Rewrite a header for a page of `size` bytes, without its checksum."""
    changes = {
        _COMPRESSED_PAGE_SIZE: (compact.I32, compact.build_int(size)),
        _CRC: (compact.I32, None),
    }
    return compact.apply(header, [compact.set_fields(header, 0, changes)])
