"""The context of an operation on files: what a caller or a run determines besides the question, and
besides how files are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.arguments import check_jobs
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.frozen import Frozen, field

if TYPE_CHECKING:
    from sbbf_tool.encryption.file_cipher import KeyRing
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.parallel import Progress


class Context(Frozen):
    """With what files are opened and read. It is in no report; a copy that is sent to another
    process or machine has empty caches."""

    keys: KeysLike = field(default=None, repr=False)
    """Keys of encrypted files; in files that are changed, their columns get encrypted filters."""
    limit: PageLimit = PageLimit()
    """The limit on the decompressed size of a page, as its header states it."""
    strict: bool = True
    """Whether a column that a file lacks is an error."""
    jobs: int | None = None
    """Number of column chunks of a file to process concurrently; one per core if None."""
    progress: Progress | None = None
    """Is called as column chunks are processed."""
    reuse: Reuse = field(factory=Reuse)
    """State that files share, such as whether folders are tables."""
    patience: float = 0.0
    """Seconds to wait for other writers of a file."""

    def ensure_valid(self) -> None:
        check_jobs(self.jobs)

    def ring_of(self, name: str | None) -> KeyRing | None:
        """Return the key ring for the file with this name, or for one without a name; None without
        keys."""
        if self.keys is None:
            return None
        from sbbf_tool.file.key_ring import ring_of  # most files are not encrypted

        return ring_of(name, self.keys)
