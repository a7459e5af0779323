"""The pages of an encrypted column chunk in decrypted form (parquet-format Encryption.md, 4.2 and 5.3).

    stored    | module of page header | module of page | module of page header | ...
    decrypted | page header           | page           | page header           | ...

The headers determine the layout of the decrypted chunk, so all of them are decrypted first; a page is decrypted when bytes of it are read,
and only the last page is kept. `compressed_page_size`, which is the size of the module in the file, becomes the size of the page. Page
indexes are neither needed nor read.

Arrow C++ encrypts a whole data page v2, as the format requires; parquet-java leaves the levels at its start unencrypted.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.encryption.file_cipher import FileCipher
from sbbf_tool.encryption.modules import GCM_OVERHEAD, LENGTH_BYTES, Module
from sbbf_tool.errors import AuthenticationError, SbbfError, UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.footer import MAGIC, ChunkKey
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, PageHeader, PageType
from sbbf_tool.parquet.pages import ChunkPages, ReadStream, count_of, page_range
from sbbf_tool.parquet.structs import parse_prefix

if TYPE_CHECKING:
    from pyarrow import NativeFile

# Field ids in parquet.thrift's PageHeader. The checksum is removed: it covers the stored bytes, and GCM detects more.
_COMPRESSED_PAGE_SIZE, _CRC = 3, 4


class _Page(NamedTuple):
    start: int
    """First byte of the header in the decrypted chunk."""
    header: bytes
    offset: int
    """First byte of the page's module in the file, or of the levels before it."""
    stored_bytes: int
    size: int
    """Bytes of the decrypted page."""
    module: Module
    ordinal: int | None
    level_bytes: int

    @property
    def end(self) -> int:
        return self.start + len(self.header) + self.size


class DecryptedPages:
    """The decrypted pages of one chunk; threads must not share it."""

    def __init__(self, read: Callable[[int, int], bytes], cipher: FileCipher, chunk: ChunkKey, meta: ColumnMetaData) -> None:
        """Decrypt the page headers. Raises AuthenticationError, and UnreadableError if the chain of headers is broken."""
        self._read = read
        self._cipher = cipher
        self._chunk = chunk
        self._pages: list[_Page] = []
        self._last: tuple[int, bytes] | None = None
        self._follow(*page_range(meta))
        self._starts = [page.start for page in self._pages]
        self._end = self._pages[-1].end if self._pages else len(MAGIC)
        self.meta = copy.copy(meta)
        has_dictionary = bool(self._pages) and self._pages[0].module is Module.DICTIONARY_PAGE
        self.meta.dictionary_page_offset = len(MAGIC) if has_dictionary else None
        self.meta.data_page_offset = self._pages[0].end if has_dictionary else len(MAGIC)
        self.meta.index_page_offset = None
        self.meta.total_compressed_size = self._end - len(MAGIC)

    def as_pages(self) -> ChunkPages:
        return ChunkPages(self.meta, self._read_header_or_page, self.open_arrow)

    def _read_header_or_page(self, offset: int, length: int) -> bytes:
        """Read as `read` does, but only to the end of a header if `offset` is in one, so that a walk over headers decrypts no page."""
        at = bisect_right(self._starts, offset) - 1
        header_bytes = self._pages[at].start + len(self._pages[at].header) - offset if at >= 0 else 0
        return self.read(offset, min(length, header_bytes) if header_bytes > 0 else length)

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes of the decrypted chunk, which begins after a file's magic; fewer at its end. Raises AuthenticationError."""
        parts = []
        position, end = offset, min(offset + length, self._end)
        while position < end:
            if position < len(MAGIC):
                part = MAGIC[position:]
            else:
                at = bisect_right(self._starts, position) - 1
                page = self._pages[at]
                inside = position - page.start
                header = len(page.header)
                part = page.header[inside:] if inside < header else self._body(at)[inside - header :]
            part = part[: end - position]
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def open_arrow(self) -> NativeFile:
        """Open a pyarrow stream of the decrypted chunk."""
        import pyarrow

        return pyarrow.PythonFile(ReadStream(self.read, self._end), mode="r")

    def _follow(self, position: int, end: int) -> None:
        start, ordinal = len(MAGIC), 0
        while position < end:
            place = f"page header at byte {position:,}"
            ciphertext = self._module_at(position, end, place)
            header, module = self._decrypt_header(ciphertext, ordinal, place)
            position += len(ciphertext)
            page = self._page(header, module, ordinal, start, position, place)
            if position + page.stored_bytes > end:
                raise UnreadableError("the page extends past the end of its column chunk", place=place)
            self._pages.append(page)
            position += page.stored_bytes
            start = page.end
            ordinal += module is Module.DATA_PAGE

    def _module_at(self, position: int, end: int, place: str) -> bytes:
        length = int.from_bytes(self._read(position, LENGTH_BYTES), "little") + LENGTH_BYTES
        if length < GCM_OVERHEAD or position + length > end:
            raise AuthenticationError("the stated length is not the length of a module in this column chunk", place=place)
        return self._read(position, length)

    def _decrypt_header(self, ciphertext: bytes, ordinal: int, place: str) -> tuple[bytes, Module]:
        """Decrypt a header; return it and the type of its page. Only the first page may be a dictionary page, which has no ordinal."""
        if not self._pages:
            try:
                return self._cipher.decrypt(self._chunk, Module.DICTIONARY_PAGE_HEADER, ciphertext), Module.DICTIONARY_PAGE
            except AuthenticationError:
                pass
        try:
            return self._cipher.decrypt(self._chunk, Module.DATA_PAGE_HEADER, ciphertext, ordinal), Module.DATA_PAGE
        except SbbfError as error:
            raise error.at(place=place) from None

    def _page(self, plain: bytes, module: Module, ordinal: int, start: int, offset: int, place: str) -> _Page:
        header, length = parse_prefix(PageHeader, plain)
        stored = header.compressed_page_size
        if stored is None or stored < self._cipher.page_overhead:
            raise UnreadableError("the header does not state the size of a module", place=place)
        if (header.type == PageType.DICTIONARY_PAGE) != (module is Module.DICTIONARY_PAGE):
            raise UnreadableError("the header was encrypted as that of another kind of page", place=place)
        v2 = header.data_page_header_v2 if header.type == PageType.DATA_PAGE_V2 else None
        levels = count_of(v2.repetition_levels_byte_length) + count_of(v2.definition_levels_byte_length) if v2 is not None else 0
        size = stored - self._cipher.page_overhead
        changes = {_COMPRESSED_PAGE_SIZE: (compact.I32, compact.build_int(size)), _CRC: (compact.I32, None)}
        # The bytes after the struct are padding, which could not be distinguished from the page.
        struct = plain[:length]
        rewritten = compact.apply(struct, [compact.set_fields(struct, 0, changes)])
        return _Page(start, rewritten, offset, stored, size, module, ordinal if module is Module.DATA_PAGE else None, levels)

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
                raise UnreadableError("the page does not have the size that its header states", place=place)
            self._last = at, body
        return self._last[1]

    def _decrypt_page(self, page: _Page, stored: bytes) -> bytes:
        is_whole = int.from_bytes(stored[:LENGTH_BYTES], "little") == len(stored) - LENGTH_BYTES
        if not page.level_bytes or is_whole:
            try:
                return self._cipher.decrypt_page(self._chunk, page.module, stored, page.ordinal)
            except AuthenticationError:
                # Levels that look like a length word are improbable, but possible.
                if not page.level_bytes:
                    raise
        levels, ciphertext = stored[: page.level_bytes], stored[page.level_bytes :]
        return levels + self._cipher.decrypt_page(self._chunk, page.module, ciphertext, page.ordinal)
