"""Signals that end a command, SIGINT and SIGTERM, while it writes what must be written whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Handle a signal that arrives in this block when the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        # Python handles signals in the main thread only.
        yield
        return
    received: list[tuple[int, Any]] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
    for signal_number, frame in received:
        handler = handlers[signal.Signals(signal_number)]
        if callable(handler):
            handler(signal_number, frame)
