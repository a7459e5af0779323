"""The line on standard error that shows progress. It is erased before anything else is printed, on either stream, and drawn again later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TextIO

_ERASE = "\r\x1b[K"


class StatusLine:
    """A line on a terminal. Several threads may use it. `print_line` also works if the stream is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = RLock()
        self._owner = os.getpid()
        self._is_used = False
        self._is_drawn = False
        self._is_line_complete = True

    def draw(self, text: str) -> None:
        """Replace the line, unless other output has begun a line and not ended it."""
        with self._lock:
            if self._is_line_complete:
                self._is_used = self._is_drawn = True
                self._send(_ERASE + text)

    def erase(self) -> None:
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._send(_ERASE)

    def print_line(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._send(f"{text}\n")

    @contextmanager
    def hidden(self, text: str = "") -> Iterator[None]:
        """Erase the line, and draw nothing while the block prints `text`."""
        if os.getpid() != self._owner:
            # A forked process cannot know whether its parent has drawn the line, or whether a thread of the parent holds the lock.
            if self._is_used and text:
                self._send(_ERASE)
            yield
            return
        with self._lock:
            self.erase()
            yield
            self._is_line_complete = not text or text.endswith("\n")

    def _send(self, text: str) -> None:
        # Python's buffers have locks that a process would inherit if it were forked while another thread writes.
        try:
            data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            descriptor = self._stream.fileno()
        except (OSError, ValueError):
            self._stream.write(text)
            return
        with suppress(OSError):
            os.write(descriptor, data)
