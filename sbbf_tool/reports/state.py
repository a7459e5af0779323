"""Row of the state of a run: which version of a file a command has worked on, and with what outcome."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateRow:
    """The outcome of one command on one version of a file."""

    path: str
    """Absolute path, or URL without passwords and signatures."""
    command: str
    bytes: int | None
    """Size of the file; like the other fields of the version, None if unknown."""
    modified: float | None
    """Time of the last modification (mtime), in seconds since 1970."""
    change_time: float | None
    """Time of the last change of the file or its attributes (ctime), in seconds since 1970."""
    inode: int | None
    etag: str | None
    """ETag of an object."""
    fingerprint: str | None
    """Fingerprint of length and footer."""
    request: str
    """Hash of everything that determines the outcome besides the file: columns, sizes, rules and the version of this package."""
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None
    exit_code: int
    report: str | None
    """The report as JSON, without the name of the file."""

    @property
    def version(self) -> tuple[object, ...]:
        """What changes with the content of the file."""
        return self.bytes, self.modified, self.change_time, self.inode, self.etag
