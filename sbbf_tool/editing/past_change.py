"""What a report says of the change of one file, so that the change can be recognised, and undone, later.

A change that only appended bytes is undone by truncating the file to its old length. The lengths, and the hashes of the footers before
and after the change, show whether the file still is what the change made of it, and whether its old end is still there. The last bytes
alone would not show it: footers of the same writer end alike, and filters of other columns can have the same length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sbbf_tool.errors import ChangedError, NothingToDoError, RefusedError
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, TAIL_BYTES
from sbbf_tool.records import required
from sbbf_tool.storage.source import Source

_LEAST_BYTES = 64
_HASH_BYTES = 16
_WINDOW = 1 << 20


def hash_end(source: Source, end: int) -> str:
    """Hash the footer that ends at `end`, with its length word, and at least the last 64 bytes, as far as there are so many."""
    tail = source.read(max(0, end - TAIL_BYTES), min(end, TAIL_BYTES))
    has_footer = len(tail) == TAIL_BYTES and tail[-len(MAGIC) :] in (MAGIC, MAGIC_ENCRYPTED)
    length = int.from_bytes(tail[: -len(MAGIC)], "little") + TAIL_BYTES if has_footer else 0
    start = max(0, end - max(_LEAST_BYTES, length if length <= end else 0))
    digest = blake2b(digest_size=_HASH_BYTES)
    for offset in range(start, end, _WINDOW):
        digest.update(source.read(offset, min(_WINDOW, end - offset)))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class PastChange:
    """The file before and after a change that a run has reported."""

    old_bytes: int
    new_bytes: int
    old_end_hash: str
    new_end_hash: str

    @classmethod
    def of_report(cls, report: Mapping[str, Any]) -> PastChange:
        """Take the fields from a report that was read back. Raises UnreadableError."""
        old_bytes, new_bytes = required(report, "old_bytes", int), required(report, "new_bytes", int)
        return cls(old_bytes, new_bytes, required(report, "old_end_hash", str), required(report, "new_end_hash", str))

    def ensure_result(self, source: Source) -> None:
        """Ensure that a file is what the change made of it, and that truncating the file to its old length restores it.

        Raises NothingToDoError if the file is as it was before the change, ChangedError if it is another file, and RefusedError if the
        change has not kept its old bytes.
        """
        size = source.size
        if size == self.old_bytes and hash_end(source, size) == self.old_end_hash:
            raise NothingToDoError("the file is as it was before the change", file=source.name)
        if size != self.new_bytes or hash_end(source, size) != self.new_end_hash:
            raise ChangedError("the file changed after the report was written", file=source.name, hint="it is left as it is")
        if not 0 < self.old_bytes < size or hash_end(source, self.old_bytes) != self.old_end_hash:
            message = "the change did not keep the end of the old file, so it cannot be undone"
            raise RefusedError(message, file=source.name, hint="remove its filters instead")
