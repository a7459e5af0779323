"""The limit `max_page_bytes` as a value: the largest uncompressed size that a page of a file may
state.

Valid pages grow by a factor of less than 1,000 when they are decompressed, and few are larger than
a megabyte. A page that states more bytes than the limit is not decompressed.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from sbbf_tool.errors import OversizedPageError, UsageError
from sbbf_tool.frozen import Frozen
from sbbf_tool.storage.system_calls import memory_bytes

_USUAL_BYTES = 256 << 20
_USUAL_RATIO = 1000
_SHARE_OF_MEMORY = 4
_ALWAYS_READ = 2 << 20
"""More than the usual size of a page, or of a dictionary; every machine has enough memory for
one."""


class PageLimit(Frozen):
    """The limit with which an operation opens files; it can be sent to other processes and
    machines. Raises UsageError below 1."""

    max_page_bytes: int | None = None
    """Bytes; None stands for 256 MiB or 1,000 times the compressed size, whichever is larger, but
    at most a worker's share of memory."""
    jobs: int | None = None
    """Workers that share the memory of the machine; None stands for the cores of the machine that
    reads."""

    def ensure_valid(self) -> None:
        if self.max_page_bytes is None:
            return
        if not isinstance(self.max_page_bytes, int):
            raise UsageError(
                f"the limit of bytes of a page must be an integer, not {self.max_page_bytes!r}"
            )
        if self.max_page_bytes < 1:
            raise UsageError(
                f"the limit of bytes of a page must be above 0, not {self.max_page_bytes}"
            )

    @classmethod
    def of(cls, value: MaxPageBytes, jobs: int | None = None) -> PageLimit:
        """Return the limit for a caller's `max_page_bytes`."""
        return value if isinstance(value, PageLimit) else cls(value, jobs)

    def bytes_of(self, stored: int) -> int:
        """Return the bytes that a page of `stored` compressed bytes may decompress to, on this
        machine."""
        if self.max_page_bytes is not None:
            return self.max_page_bytes
        jobs = max(1, self.jobs or os.cpu_count() or 1)
        share = memory_bytes() // _SHARE_OF_MEMORY // jobs
        usual = max(_USUAL_BYTES, _USUAL_RATIO * stored)
        return max(_ALWAYS_READ, min(usual, share))

    def ensure(self, stored: int, plain: int) -> None:
        """Check a page with these numbers of compressed and uncompressed bytes. Raises
        OversizedPageError."""
        larger = max(stored, plain)
        if larger <= _ALWAYS_READ and self.max_page_bytes is None:
            return
        limit = self.bytes_of(stored)
        if larger > limit:
            raise OversizedPageError(
                f"its page of {stored:,} bytes states {plain:,} uncompressed bytes; the limit is "
                f"{limit:,}",
                hint=f"if you trust the file, allow pages of {larger:,} bytes",
            )


MaxPageBytes: TypeAlias = int | PageLimit | None
"""Type of `max_page_bytes`: a number of bytes, or a whole `PageLimit`."""
