"""The log of the package, `logging.getLogger("sbbf_tool")`: silent unless the caller configures
logging.

INFO    what a user follows: files opened, filters built, files published, requests repeated
DEBUG   details: ranges read from a server, versions pinned

Messages contain no keys, and names of files only without passwords and signatures. To import
`logging` takes as long as a look-up in a file, so it is not imported here: before the caller has
imported it, no handler can exist.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sbbf_tool.display import escape

NAME = "sbbf_tool"
DEBUG = 10
INFO = 20
"""Levels of `logging`."""
_CALLER = 3


def info(message: str, *values: object) -> None:
    """Log what a user follows; `values` replace the `%s` of the message if it is shown."""
    _log(INFO, message, values)


def debug(message: str, *values: object) -> None:
    """Log a detail."""
    _log(DEBUG, message, values)


def shows_info() -> bool:
    """Return whether `info` logs anything."""
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    return get_logger is not None and bool(get_logger(NAME).isEnabledFor(INFO))


def _log(level: int, message: str, values: tuple[object, ...]) -> None:
    # Another thread may be in the middle of the import.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    if get_logger is None:
        return
    logger = get_logger(NAME)
    if not logger.handlers:
        logger.addHandler(sys.modules["logging"].NullHandler())
    if logger.isEnabledFor(level):
        logger.log(level, message, *values, stacklevel=_CALLER)


@contextmanager
def show_log(write: Callable[[str], Any]) -> Iterator[None]:
    """Pass each message of INFO and above to `write`, as one printable line, while the block
    runs."""
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                write(escape(record.getMessage()))
            except Exception:
                self.handleError(record)

    logger = logging.getLogger(NAME)
    handler = Lines()
    level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level_before)
