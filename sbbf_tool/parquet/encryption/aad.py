"""Additional authenticated data: what binds a module to its place (parquet-format Encryption.md, 4.4).

    AAD = prefix | aad_file_unique | module type (1 byte) | row group (i16 LE) | column (i16 LE) | page (i16 LE)

The footer's ends after the module type; only data pages and their headers have a page. So a module that was moved to another file,
row group, column or page does not authenticate there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from sbbf_tool.errors import UnreadableError

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
    """The part that all modules of a file share."""

    prefix: bytes
    """The name that the writer gave the file, stored in it or not; empty where it gave none."""
    unique: bytes

    def of_footer(self) -> bytes:
        return self.prefix + self.unique + bytes([Module.FOOTER])

    def of(self, module: Module, row_group: int, column: int, page: int | None = None) -> bytes:
        """`row_group` is the ordinal that the footer states, `column` the leaf's position. UnreadableError past what 16 bits hold."""
        ordinals = (row_group, column) if page is None else (row_group, column, page)
        if max(ordinals) > MOST_ORDINAL or min(ordinals) < 0:
            raise UnreadableError(f"an encrypted file has no ordinals past {MOST_ORDINAL:,}")
        return self.prefix + self.unique + bytes([module]) + b"".join(number.to_bytes(2, "little") for number in ordinals)
