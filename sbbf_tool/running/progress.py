"""How far a run is: numbers that the runner sets as it works, and that another thread may read at
any time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from sbbf_tool.reports.rows import ListedFile


class RunProgress:
    """The files and bytes of a run, and how many are done. Bytes are those of whole files, and stay
    0 where their size is unknown."""

    def __init__(
        self,
        has_bytes: bool = False,
        total: tuple[int, int] | None = None,
        files_done: int = 0,
        bytes_done: int = 0,
        step: str = "",
    ) -> None:
        self.has_bytes = has_bytes
        """Whether the work reads the data of the files, so that their bytes measure it."""
        self.total = total
        """Number of files and bytes of the run, once all are listed."""
        self.files_done = files_done
        self.bytes_done = bytes_done
        self.step = step
        """What is done to the file that this process works on; empty if that is unknown."""
        self.step_bytes_done = self.step_bytes = 0
        """Bytes of the column chunks that the work on this file has read and reads, once for each
        time they are read."""
        self._open_bytes: deque[int] = deque()
        """The sizes of the files that are listed and not done. Rows come in the order of the
        files."""
        self._listing = (0, 0)
        """Number of files that are listed, and their bytes."""

    def count(self, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
        """Yield the files, and remember their sizes; after the last one, `total` is known."""
        for file in files:
            count, num_bytes = self._listing
            file_bytes = file.bytes or 0
            self._open_bytes.append(file_bytes)
            self._listing = (count + 1, num_bytes + file_bytes)
            yield file
        self.total = self._listing

    def expect(self, sizes: Iterable[int]) -> None:
        """Remember the sizes of the files that are done next."""
        self._open_bytes.extend(sizes)

    def count_ahead(self, files: Iterable[ListedFile], is_stopped: Callable[[], bool]) -> None:
        """Set `total` from a listing of its own, because a runner lists files only as it needs
        them; meant for another thread.

        Files that the run has already listed keep the sizes of that time: the run may have changed
        them since.
        """
        files_before, num_bytes = self._listing
        count = 0
        for file in files:
            if is_stopped():
                return
            if file.skipped is None:
                count += 1
                if count > files_before:
                    num_bytes += file.bytes or 0
        if self.total is None:
            self.total = (max(count, files_before), num_bytes)

    def finish_file(self) -> None:
        """Count one more file as done."""
        self.files_done += 1
        if self._open_bytes:
            self.bytes_done += self._open_bytes.popleft()
        self.advance("", 0, 0)

    def advance(self, step: str, done: int, total: int) -> None:
        """Set how many bytes of a file are processed; the `Progress` of a verb on one file."""
        self.step = step
        self.step_bytes_done = done
        self.step_bytes = total

    @property
    def open_bytes(self) -> int:
        """The size of the first file that is not done; 0 if there is none."""
        return self._open_bytes[0] if self._open_bytes else 0
