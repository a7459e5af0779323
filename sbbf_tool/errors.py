"""All errors of `sbbf`, in one tree.

    SbbfError                   exit
    |-- UsageError                2  the request is wrong: no such column, a value that the
    |   |                            column cannot hold
    |   `-- NoColumnError            the file has no column with this name
    |       `-- NotApplicableError   one of many files has none of the columns; the run skips it
    |-- UnreadableError           3  the input is wrong: missing, not Parquet, bytes that
    |   |                            contradict the format
    |   |-- MissingError             there is no such file or object
    |   |-- ArchivedError            the object is in an archive; a change of it in place is
    |   |                            refused (RefusedError)
    |   |-- NotParquetError          the file is empty, or is not Parquet
    |   `-- AuthenticationError   3  encrypted bytes or their place differ from what their writer
    |                                wrote, or the key is wrong
    |-- RefusedError              4  possible but unsafe as requested; the message says how to make
    |   |                            it safe
    |   |-- LockedError              a key is missing
    |   |-- NothingToDoError         the file has nothing to change, such as no filter to remove
    |   |-- OversizedPageError       a page states more uncompressed bytes than may be decompressed
    |   `-- ChangedError             another process is changing the file, or has changed it since
    |                                it was opened
    `-- WriteError                5  a write failed (disk full, input/output error); the old file
        |                            stays intact
        `-- UncertainWriteError   5  a request to write was sent, and it is unknown whether it
                                     succeeded

An error is one line: file, place, what is wrong, what to do. `place` is the column, row group or
byte offset that locates the problem most exactly. Any error outside this tree that reaches a user
is a defect of this package.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from sbbf_tool.display import redact, redact_text

if TYPE_CHECKING:
    from collections.abc import Callable


INTERNAL_ERROR = 70
"""Exit code of a defect of this package."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class SbbfError(Exception):
    """The root of the tree. It is printed as ``file: place: message; hint``, with the parts that
    are known.

    `exit_code` is the exit code of a command that ends with this error. Passwords and signatures of
    URLs are redacted in all parts; other text is exact, and is escaped when it is printed.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        place: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = redact_text(message)
        self.file = None if file is None else redact(file)
        self.place = place
        self.hint = None if hint is None else redact_text(hint)
        super().__init__(self.message)

    def at(self, *, file: str | None = None, place: str | None = None) -> SbbfError:
        """Add file and place to this error unless it has them, and return it. The code that reads
        bytes often does not know their file."""
        self.file = self.file or (None if file is None else redact(file))
        self.place = self.place or place
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without calling `__init__` again, since subclasses may have other parameters."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

    @property
    def with_place(self) -> str:
        """The message after the place, without the file and the hint."""
        return f"{self.place}: {self.message}" if self.place else self.message

    def __str__(self) -> str:
        """Return the whole error as text."""
        text = ": ".join(part for part in (self.file, self.place, self.message) if part)
        return f"{text}; {self.hint}" if self.hint else text


class UsageError(SbbfError):
    """The request makes no sense for this input; no file was changed. Exit 2."""

    exit_code = 2


class NoColumnError(UsageError):
    """The file has no column with this name."""


class NotApplicableError(NoColumnError):
    """A file has none of the columns that a request over many files names. The run skips the
    file."""


class UnreadableError(SbbfError):
    """The input is missing or cannot be opened, or its bytes contradict its format. Exit 3."""

    exit_code = 3


class MissingError(UnreadableError):
    """There is no such file or object."""


class ArchivedError(UnreadableError):
    """The object is in an archive, from which it must be restored before it can be read."""


class NotParquetError(UnreadableError):
    """The file is empty, or is not Parquet."""


class AuthenticationError(UnreadableError):
    """The key, place or bytes of an encrypted module or a signature differ from those of its
    writer. Exit 3."""


class RefusedError(SbbfError):
    """The request is possible but unsafe or not allowed; the old file is unchanged. Exit 4."""

    exit_code = 4


class LockedError(RefusedError):
    """The file or its column is encrypted, and the key was not given."""


class ChangedError(RefusedError):
    """Another process is changing the file, or changed it after it was opened; a second attempt may
    succeed."""

    @classmethod
    def after_open(cls, file: str) -> ChangedError:
        """Make the error of a file that changed after it was opened."""
        return cls(
            "the file changed while it was worked on", file=file, hint="run the command again"
        )


class NothingToDoError(RefusedError):
    """The file has nothing to change, such as no filter to remove. A run over many files skips such
    a file."""


class OversizedPageError(RefusedError):
    """A page states more uncompressed bytes than the limit for pages, and is not decompressed."""


class WriteError(SbbfError):
    """A write failed in the operating system. The old file stays intact. Exit 5."""

    exit_code = 5


class UncertainWriteError(WriteError):
    """It is unknown whether a write succeeded, such as a commit whose response was lost. Exit 5."""


class ErrorPlace:
    """A `with` block that adds file and place to errors of this package.

    It is a class for speed: every file of a lake enters several such blocks. The text of a place is
    made only for an error.
    """

    __slots__ = ("_file", "_place")

    def __init__(self, file: str | None, place: str | Callable[[], str] | None = None) -> None:
        self._file = file
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, SbbfError):
            place = self._place() if callable(self._place) else self._place
            if place and error.place and not error.place.startswith(place):
                error.place = f"{place}, {error.place}"
            error.at(file=self._file, place=place)


def describe_unexpected(error: BaseException) -> str:
    """Describe an error outside this tree in one line: a broken installation, too little memory, or
    a defect of this package. `exit_code_of` returns its exit code."""
    if is_lack_of_memory(error):
        return "there is not enough memory for this file; give the process more"
    extension = missing_extension(error)
    if extension:
        return (
            f"the extension {extension} of sbbf-tool is needed for this, and not "
            "installed; install sbbf-tool again"
        )
    if isinstance(error, ImportError) and error.name and not error.name.startswith("sbbf_tool"):
        package = error.name.partition(".")[0]
        problem = "cannot be imported"
        if error.name == package and isinstance(error, ModuleNotFoundError):
            problem = "is not installed"
        return (
            f"the Python package {package} {problem} ({_one_line(error)}); install "
            "sbbf-tool and its dependencies again"
        )
    return f"internal error: {type(error).__name__}: {_one_line(error)}; please report it"


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether memory could not be had, also for a library that was to be loaded."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return os.strerror(errno.ENOMEM) in str(error)
    return isinstance(error, MemoryError)


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of an error outside this tree: 3 without memory for the input, 2 for an
    extension that is not installed, and 70 for a defect."""
    if is_lack_of_memory(error):
        return UnreadableError.exit_code
    return UsageError.exit_code if missing_extension(error) else INTERNAL_ERROR


def missing_extension(error: BaseException) -> str | None:
    """Return the extension of this package that is needed and not installed, which is an error of
    usage (exit 2); None for other errors."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    if not error.name.startswith("sbbf_tool.extensions."):
        return None
    return error.name.split(".")[2]


def _one_line(error: BaseException) -> str:
    try:
        return " ".join(redact_text(str(error)).split())
    except Exception:
        return "without a message"


def exists_error(target: str | None = None, noun: str = "target") -> RefusedError:
    hint = "name another, or remove it first"
    return RefusedError(f"the {noun} exists", file=target, hint=hint)
