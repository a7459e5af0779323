"""Puffin files of deletion vectors (Puffin specification, "Footer structure", "deletion-vector-v1
blob type"). One file may have the vectors of many data files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import Vector
from sbbf_tool.records import optional, parse_object, required
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.storage.source import Source

_MAGIC = b"PFA1"
_END_BYTES = 12
"""Bytes of the length of the footer, of flags, and of the magic."""
_MAX_FOOTER = 16 << 20
MOST_VECTORS = 2000
"""Number of vectors of a file to build, so that its footer stays below this limit."""
_NO_FLAGS = bytes(4)
_FRAME_BYTES = 8
"""Bytes of the length and the checksum of a vector."""
_ROW_POSITION_ID = 2147483645


class NewVector(NamedTuple):
    """A deletion vector of a file to build."""

    data_file: str
    """Location of the data file."""
    num_rows: int
    """Number of deleted rows."""
    data: bytes
    """The vector, without length and checksum."""


class PuffinVector(Vector):
    """The deletion vector of a data file, as the table's metadata describe it."""

    data_file: str = ""
    """Location of the data file."""
    length: int | None = None
    """Bytes of the vector in the file, with those of its frame."""

    def ensure_carried(self) -> None:
        assert self.path is not None
        for _ in read_vectors(self.path, [self]):
            pass


class BlobPlace(NamedTuple):
    """Where a Puffin file has a deletion vector."""

    offset: int
    length: int
    """With those of the frame, in bytes."""


def read_vectors(path: str, vectors: Iterable[PuffinVector]) -> Iterator[NewVector]:
    """Read these deletion vectors, all of which are in one file.

    Raises UnreadableError if a vector is damaged, or if it is another one by the footer of the
    file: some readers find it there, others by the table's metadata.
    """
    with places.open_source(path) as source, ErrorPlace(source.name):
        blobs = _read_footer(source)
        for vector in vectors:
            with ErrorPlace(None, f"deletion vector at byte {vector.offset:,}"):
                read = NewVector(vector.data_file, vector.count, vector.read(source))
                described = _describe(read, vector.offset)
                is_same = vector.length == described["length"]
                if not (is_same and _is_described(described, blobs)):
                    raise UnreadableError("the table, or the footer, describes another one")
            yield read


def _read_footer(source: Source) -> Mapping[int, Mapping[str, Any]]:
    """Return the blobs of a file, as the footer describes them, by offset."""
    end = source.read(source.size - _END_BYTES, _END_BYTES)
    length = int.from_bytes(end[:4], "little")
    if end[8:] != _MAGIC or end[4:8] != _NO_FLAGS or length > _MAX_FOOTER:
        raise UnreadableError("the file has no footer of Puffin, or a compressed one")
    data = source.read(source.size - _END_BYTES - length, length)
    tree = parse_object(data, "the footer of the Puffin file")
    blobs: dict[int, Mapping[str, Any]] = {}
    for blob in required(tree, "blobs", list):
        if not isinstance(blob, dict):
            raise UnreadableError("the footer of the Puffin file has a blob that is no object")
        blobs[required(blob, "offset", int)] = blob
    return blobs


def _describe(vector: NewVector, offset: int) -> dict[str, Any]:
    """Return how a footer describes a deletion vector."""
    return {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION_ID],
        "offset": offset,
        "length": len(vector.data) + _FRAME_BYTES,
        "properties": {
            "referenced-data-file": vector.data_file,
            "cardinality": str(vector.num_rows),
        },
    }


def _is_described(vector: Mapping[str, Any], blobs: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether the blobs of a footer have this vector, without compression."""
    blob = blobs.get(vector["offset"], {})
    properties = optional(blob, "properties", dict) or {}
    expected = {**vector, "properties": {**properties, **vector["properties"]}}
    return expected.items() <= blob.items() and blob.get("compression-codec") is None


def build_puffin(vectors: Iterable[NewVector]) -> tuple[bytes, list[BlobPlace]]:
    """Build a file of deletion vectors; return it, and where each vector is."""
    data = bytearray(_MAGIC)
    blobs = []
    for vector in vectors:
        inherited = {"snapshot-id": -1, "sequence-number": -1}
        blobs.append({**_describe(vector, len(data)), **inherited})
        data += len(vector.data).to_bytes(4, "big")
        data += vector.data
        data += zlib.crc32(vector.data).to_bytes(4, "big")
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "sbbf"}}).encode()
    data += _MAGIC + footer + len(footer).to_bytes(4, "little") + _NO_FLAGS + _MAGIC
    return bytes(data), [BlobPlace(blob["offset"], blob["length"]) for blob in blobs]
