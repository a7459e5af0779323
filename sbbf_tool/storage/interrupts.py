"""An interrupt of this process by a signal, for work that goes on although it was raised.

Python drops an exception that the handler of a signal raises while a callback runs, such as that of
a lock of the import system, of a weak reference or of `__del__`. So a handler also remembers the
interrupt, and loops ask for it before they begin something more. What undoes work does not ask: the
interrupt that ended the work is remembered until the run has ended.
"""

from __future__ import annotations

import signal
import threading
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
"""The signals that end a run early; of several that mean the same, the last one counts."""
_SAME_EVENT_SECONDS = 0.5
"""One event may send several signals, to a process and to its group: those that follow the first
one at once must not end the work that undoes things."""


class _Memory:
    received: BaseException | None = None
    at: float = 0.0


def interrupt(error: BaseException) -> None:
    """Remember an interrupt, and raise it: for the handler of a signal. Signals that belong to the
    event of the last one are ignored."""
    now = time.monotonic()
    if _Memory.received is not None and now - _Memory.at < _SAME_EVENT_SECONDS:
        return
    _Memory.received = error
    _Memory.at = now
    raise error


def ensure_uninterrupted() -> None:
    """Raise the interrupt that a signal handler raised before, if this is the main thread."""
    error = _Memory.received
    if error is not None and threading.current_thread() is threading.main_thread():
        raise error


def forget_interrupt() -> None:
    """Forget the interrupt of a run that has ended, or of another process."""
    _Memory.received = None
