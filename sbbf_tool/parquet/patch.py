"""The parts of a new version of a file: kept bytes of the old version, then new bytes.

A patch never moves a page. It keeps the first `keep` bytes of the old file, including its old
footer if possible, and appends. So a reader that remembers the old length still finds the old,
valid file, and truncating the new one to that length undoes the patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace, set_filters

Bytes = bytes | bytearray | memoryview


class StoredPiece(Protocol):
    """Bytes outside memory, whose length a patch knows."""

    def __len__(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes: ...


Piece = Bytes | StoredPiece


class Patch(Frozen):
    """A change to a file: keep the first `keep` bytes, append `pieces` in order. `footer` is the
    new footer (the plaintext struct)."""

    keep: int
    pieces: tuple[Piece, ...]
    footer: bytes
    places: Mapping[ChunkKey, FilterPlace]
    """The filters that this patch writes."""

    @property
    def size(self) -> int:
        """Bytes of the new file."""
        return self.keep + sum(len(piece) for piece in self.pieces)


def plan_append(
    footer: Footer,
    keep: int,
    filters: Mapping[ChunkKey, tuple[Piece, ...]],
    drop: Iterable[ChunkKey] = (),
    correct: Mapping[ChunkKey, FilterPlace] | None = None,
) -> Patch:
    """Build the patch that appends these filters (header and bitset of each, as stored) after the
    first `keep` bytes, row group by row group in the schema's order, and then the footer. In it,
    the positions of these filters are set, those of `drop` removed, and those in `correct`
    replaced.
    """
    pieces: list[Piece] = []
    places = {}
    position = keep
    for key in sorted(filters):
        length = sum(len(piece) for piece in filters[key])
        places[key] = FilterPlace(position, length)
        pieces += filters[key]
        position += length
    raw = set_filters(
        footer.raw,
        {**dict.fromkeys(drop), **(correct or {}), **places},
        footer.cipher,
        index=footer.index,
    )
    return Patch(keep, (*pieces, *footer.stored(raw)), raw, places)
