"""Progress on standard error while work takes longer than half a second: files, bytes and, on a
terminal, rate and time left.

On a terminal it is a line that is drawn again and again, by a thread. Elsewhere, with `--verbose`,
it is a line every 30 seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import TYPE_CHECKING

from sbbf_tool.cli.output import is_terminal, terminal
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.running.progress import RunProgress

if TYPE_CHECKING:
    from sbbf_tool.cli.output import StatusLine
    from sbbf_tool.cli.screen import ProgressLine
    from sbbf_tool.reports.rows import ListedFile

DELAY = 0.5
"""Seconds before the first line on a terminal."""
PERIOD = 0.1
"""Seconds between lines on a terminal."""
PERIOD_OF_LINES = 30.0
"""Seconds before the first line and between lines elsewhere."""

Listing = Callable[[], "Iterable[ListedFile]"]

_display_in_use: ContextVar[_Display | None] = ContextVar("progress", default=None)


@contextmanager
def show_progress(
    step: str = "", *, has_bytes: bool = False, listing: Listing | None = None
) -> Iterator[RunProgress]:
    """Show progress while the block runs; yield the numbers to set. A block inside another one
    replaces its numbers meanwhile.

    `step` states what is done while there is nothing to count. `listing` lists the files of the run
    without reading them: it is called in another thread if the work takes long, so that their
    number is known early.
    """
    work = _Work(RunProgress(has_bytes, step=step), listing)
    outer = _display_in_use.get()
    if outer is not None:
        outer_work = outer.work
        outer.work = work
        try:
            yield work.progress
        finally:
            outer.work = outer_work
        return
    status_line = getattr(sys.stderr, "status_line", None)
    if status_line is None or not terminal().shows_progress():
        yield work.progress
        return
    display = _Display(work, status_line)
    token = _display_in_use.set(display)
    display.start()
    try:
        yield work.progress
    finally:
        display.stop()
        _display_in_use.reset(token)


class _Work:
    """Work whose progress is shown."""

    def __init__(self, progress: RunProgress, listing: Listing | None) -> None:
        self.progress = progress
        self._listing = listing
        self._line: ProgressLine | None = None

    def draw(self) -> str:
        """Return the line on a terminal."""
        if self._line is None:
            from sbbf_tool.cli.screen import ProgressLine

            width = terminal().width(sys.stderr)
            self._line = ProgressLine(width, has_color=terminal().has_color(sys.stderr))
        return self._line.draw(*measure(self.progress))

    def begin_listing(self, is_stopped: Callable[[], bool]) -> None:
        """Count the files in another thread, unless that has begun."""
        if self._listing is not None:
            arguments = (self._listing, is_stopped)
            Thread(target=self._list, args=arguments, name="sbbf-listing", daemon=True).start()
            self._listing = None

    def _list(self, listing: Listing, is_stopped: Callable[[], bool]) -> None:
        with suppress(Exception):  # the runner reports why files cannot be listed
            self.progress.count_ahead(listing(), is_stopped)


class _Display(Thread):
    def __init__(self, work: _Work, status_line: StatusLine) -> None:
        super().__init__(name="sbbf-progress", daemon=True)
        self.work = work
        self._status_line = status_line
        self._stop_event = Event()
        self._draws = is_terminal(sys.stderr)

    def run(self) -> None:
        seconds = DELAY if self._draws else PERIOD_OF_LINES
        while not self._stop_event.wait(seconds):
            work = self.work
            work.begin_listing(self._stop_event.is_set)
            if self._draws:
                seconds = PERIOD
                self._status_line.draw(work.draw())
            else:
                text, *_ = measure(work.progress)
                self._status_line.print_line(f"sbbf: {text}")

    def stop(self) -> None:
        self._stop_event.set()
        self.join()
        self._status_line.erase()


def measure(progress: RunProgress) -> tuple[str, int, int | None, bool]:
    """Return what is done in words, how much that is and of how much, if that is known, and whether
    these are bytes."""
    files, num_bytes = progress.total or (None, None)
    if files in (None, 1) and not progress.files_done:
        return _measure_step(progress)
    if files is None:
        text = format_count(progress.files_done, "file")
    else:
        text = f"{progress.files_done:,} of {format_count(files, 'file')}"
    has_begun = progress.bytes_done or progress.step_bytes_done
    if not progress.has_bytes or not has_begun:
        return text, progress.files_done, files, False
    open_bytes = progress.open_bytes * progress.step_bytes_done // (progress.step_bytes or 1)
    done = progress.bytes_done + open_bytes
    text += f", {format_size(done)}"
    if not num_bytes:
        return text, done, None, True
    total = max(num_bytes, done)  # a file may have grown since it was listed
    return f"{text} of {format_size(total)}", done, total, True


def _measure_step(progress: RunProgress) -> tuple[str, int, int | None, bool]:
    """Return how far the work on the file in hand is, as `measure` does."""
    text = escape(progress.step)
    done = progress.step_bytes_done
    total = progress.step_bytes
    if not total:
        return text, done, None, True
    return f"{text}: {format_size(done)} of {format_size(total)}", done, total, True
