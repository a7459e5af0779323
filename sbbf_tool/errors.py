"""Every way `sbbf` says no, in one tree.

    SbbfError                      exit
    |-- UsageError                  2    the question is wrong: no such column, a value the column cannot take
    |-- UnreadableError             3    the input is wrong: missing, not Parquet, bytes that contradict the format
    |   `-- AuthenticationError     3    encrypted bytes are not what their writer wrote, where it wrote them, or the key is a wrong one
    |-- RefusedError                4    it could be done and must not be, as asked; the message says what would make it safe
    |   |-- NothingToDoError             the file has nothing of what is to be changed
    |   |-- OversizedPageError           a page states more uncompressed bytes than may be decompressed
    |   `-- ChangedError                 another process is changing the file, or has changed it since it was opened
    |-- WriteError                  5    the system did not let us write (disk full, input/output error); the old file is whole

An error is one line: file, place, what is wrong, what to do. `place` is a column, a row group or a byte offset, whichever
leads a reader to the spot soonest. Anything that is *not* in this tree and reaches a user is a bug of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.display import redact, redact_text
from sbbf_tool.hints import Hint, join

if TYPE_CHECKING:
    from collections.abc import Callable


class SbbfError(Exception):
    """The root. Shown as ``file: place: message; hint`` with the parts that are known.

    `exit_code` is what the command line ends with when this error ends a command. Passwords and signatures of URLs are left out of all
    parts; other text is exact, and is escaped where it is shown.
    """

    exit_code = 3

    def __init__(self, message: str, *, file: str | None = None, place: str | None = None, hint: str | None = None) -> None:
        self.message = redact_text(message)
        self.file = None if file is None else redact(file)
        self.place = place
        self.hint = hint if hint is None or isinstance(hint, Hint) else redact_text(hint)
        super().__init__(self.message)

    def at(self, *, file: str | None = None, place: str | None = None) -> SbbfError:
        """This error, told where it happened; what is known already is kept. For rooms that see bytes and not their file."""
        self.file = self.file or (None if file is None else redact(file))
        self.place = self.place or place
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without calling `__init__` again, since those of subclasses take other arguments."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

    def __str__(self) -> str:
        """Return the whole error as text: a `Hint` where its hint or message is one, so that the command line can spell it."""
        parts = [text for part in (self.file, self.place, self.message) if part for text in (": ", part)]
        return join(*parts[1:], *(("; ", self.hint) if self.hint else ()))


class UsageError(SbbfError):
    """The request cannot mean anything here; nothing was read or written that matters. Exit 2."""

    exit_code = 2


class UnreadableError(SbbfError):
    """The input is missing, cannot be opened, or its bytes contradict its format. Exit 3."""

    exit_code = 3


class AuthenticationError(UnreadableError):
    """An encrypted module, or a signature, does not fit key, place and bytes: one of the three is not the writer's. Exit 3."""


class RefusedError(SbbfError):
    """Possible, but unsafe or outside what was allowed; the old file is untouched. Exit 4."""

    exit_code = 4


class ChangedError(RefusedError):
    """Another process is at work on the file, or changed it after it was opened: to look again, and to start over, may help."""

    @classmethod
    def since_opened(cls, file: str) -> ChangedError:
        """The error of a file that is not what it was when it was opened."""
        return cls("the file changed while it was worked on", file=file, hint="run the command again")


class NothingToDoError(RefusedError):
    """The file has nothing of what is to be changed, such as filters to remove: a run over many files skips it."""


class OversizedPageError(RefusedError):
    """A page states that it decompresses to more bytes than the limit for pages allows; it was not decompressed."""


class WriteError(SbbfError):
    """The operating system failed a write. What was there before is whole. Exit 5."""

    exit_code = 5


class ErrorPlace:
    """A block in which errors of this package are told which file and place they are about; what they know already is kept.

    A class, since every file of a lake enters several, and a place is put into words only when it is needed.
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
    """Describe in one line an error outside this tree: a broken installation, too little memory, or a defect of this package. Exit 70."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, ImportError) and error.name and not error.name.startswith("sbbf_tool"):
        package = error.name.partition(".")[0]
        problem = "is not installed" if error.name == package and isinstance(error, ModuleNotFoundError) else "cannot be imported"
        return f"the Python package {package} {problem} ({_one_line(error)}); install sbbf-tool and its dependencies again"
    return f"internal error: {type(error).__name__}: {_one_line(error)}; please report it"


def _one_line(error: BaseException) -> str:
    try:
        return " ".join(redact_text(str(error)).split())
    except Exception:
        return "without a message"
