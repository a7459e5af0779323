"""Progress on standard error while work takes longer than half a second: files, bytes, rate and time left.

On a terminal it is a line that is drawn again and again, by a thread. Elsewhere, with `--verbose`, it is a line every 30 seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import TYPE_CHECKING

from sbbf_tool.cli.terminal import is_terminal, terminal
from sbbf_tool.display import escape
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.running.progress import RunProgress

if TYPE_CHECKING:
    from sbbf_tool.cli.status_line import StatusLine
    from sbbf_tool.reports.rows import ListedFile

DELAY, PERIOD, PERIOD_OF_LINES = 0.5, 0.1, 30.0
"""Seconds before the first line, between lines on a terminal, and between lines elsewhere."""

_LONG = 10.0
"""Seconds after which a smaller share of the work tells its rate."""
_LEAST_SHARE, _LEAST_SHARE_OF_LONG_WORK = 0.01, 0.001
"""Shares of the work before which no time is estimated: the first file may be tiny."""

Listing = Callable[[], "Iterable[ListedFile]"]

_display_in_use: ContextVar[_Display | None] = ContextVar("progress", default=None)


@contextmanager
def show_progress(step: str = "", *, has_bytes: bool = False, listing: Listing | None = None) -> Iterator[RunProgress]:
    """Show progress while the block runs; yield the numbers to set. A block inside another one replaces its numbers meanwhile.

    `step` states what is done while there is nothing to count. `listing` lists the files of the run without reading them: it is called
    in another thread if the work takes long, so that their number is known early.
    """
    work = _Work(RunProgress(has_bytes, step=step), listing)
    outer, status_line = _display_in_use.get(), getattr(sys.stderr, "status_line", None)
    if outer is not None:
        before, outer.work = outer.work, work
        try:
            yield work.progress
        finally:
            outer.work = before
        return
    if status_line is None or not (terminal().shows_progress() or terminal().logs_progress()):
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
        self.started = time.monotonic()
        self._listing = listing

    def begin_listing(self, is_stopped: Callable[[], bool]) -> None:
        """Count the files in another thread, unless that has begun."""
        if self._listing is not None:
            Thread(target=self._list, args=(self._listing, is_stopped), name="sbbf-listing", daemon=True).start()
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
        self._width = terminal().width(sys.stderr)

    def run(self) -> None:
        seconds = DELAY
        while not self._stop_event.wait(seconds):
            work = self.work
            work.begin_listing(self._stop_event.is_set)
            if not self._draws and seconds == DELAY:
                seconds = PERIOD_OF_LINES - DELAY
                continue
            parts = describe(work.progress, time.monotonic() - work.started)
            if self._draws:
                self._status_line.draw(_fit(parts, self._width))
            else:
                self._status_line.print_line(f"sbbf: {', '.join(parts)}")
            seconds = PERIOD if self._draws else PERIOD_OF_LINES

    def stop(self) -> None:
        self._stop_event.set()
        self.join()
        self._status_line.erase()


def describe(progress: RunProgress, seconds: float) -> list[str]:
    """Return the parts of the line after this time, the most important first."""
    files, num_bytes = progress.total or (None, None)
    if progress.step_bytes and files in (None, 1) and not progress.files_done:
        done, total = progress.step_bytes_done, progress.step_bytes
        parts = [f"{escape(progress.step)}: {format_size(done)} of {format_size(total)}"]
        return [*parts, *_rate(done, total, seconds)]
    if not progress.files_done and files in (None, 1):
        return [escape(progress.step), f"{seconds:.0f} s"] if progress.step else [f"{seconds:.0f} s"]
    done_files = format_count(progress.files_done, "file") if files is None else f"{progress.files_done:,} of {format_count(files, 'file')}"
    if not progress.has_bytes or not (progress.bytes_done or progress.step_bytes_done):
        remaining = _estimate_time(progress.files_done, files, seconds)
        return [done_files, *([f"{progress.files_done / seconds:,.0f} files/s"] if progress.files_done > seconds else []), *remaining]
    done = progress.bytes_done
    if progress.step_bytes:
        done += int(progress.open_bytes * progress.step_bytes_done / progress.step_bytes)
    if num_bytes:
        num_bytes = max(num_bytes, done)  # a file may have grown since it was listed
    size = f"{format_size(done)} of {format_size(num_bytes)}" if num_bytes else format_size(done)
    return [done_files, size, *_rate(done, num_bytes, seconds)]


def _rate(done: int, total: int | None, seconds: float) -> list[str]:
    return [f"{format_size(int(done / seconds))}/s", *_estimate_time(done, total, seconds)] if done else []


def _estimate_time(done: int, total: int | None, seconds: float) -> list[str]:
    """Return the time left, if the rate stays as it was; nothing before enough is done to know the rate."""
    share = done / total if total else 0
    if not total or share < (_LEAST_SHARE if seconds < _LONG else _LEAST_SHARE_OF_LONG_WORK):
        return []
    remaining = round(max(total - done, 0) * seconds / done)
    minutes, rest = divmod(remaining, 60)
    hours, minutes = divmod(minutes, 60)
    return [f"{hours} h {minutes} min left" if hours else f"{minutes} min {rest} s left" if minutes else f"{rest} s left"]


def _fit(parts: list[str], width: int | None) -> str:
    """Join the parts that fit in a line."""
    from sbbf_tool.cli.tables import cell_width, shorten

    most = (width or 80) - 1
    while len(parts) > 1 and cell_width(", ".join(parts)) > most:
        parts = parts[:-1]
    return shorten(", ".join(parts), most)
