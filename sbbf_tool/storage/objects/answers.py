"""What holds for the libraries of all services: answers that they would read as a whole have a
limit, and calls of sbbf log nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from io import BytesIO
from types import FrameType
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.objects.retries import IN_FLIGHT


class _OthersOnly(logging.NullHandler):
    """A handler that gives the root logger the messages that no call of this package causes.

    Messages of the libraries contain signatures, and URLs with their secrets. An application that
    uses them itself keeps its own log.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith(__name__.rpartition(".")[0]):
                return False
            frame = frame.f_back
        for handler in logging.getLogger().handlers:
            if record.levelno >= handler.level:
                handler.handle(record)
        return True


for _logger in map(logging.getLogger, ("azure", "botocore", "google", "msal", "urllib3")):
    if _logger.propagate:
        _logger.addHandler(_OthersOnly())
        _logger.propagate = False

MOST_ANSWER_BYTES = 16 << 20
"""Length of the longest answer that states no object: a list of the 50,000 blocks of an object
takes at most 10 MB."""


class Body(BytesIO):
    """The body of an answer that is in memory."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.getvalue()


def read_answer(raw: Any, decode_content: bool = False) -> Body:
    """Read an answer of urllib3 as a whole. Raises UnreadableError if it is longer than any that a
    service sends."""
    body = raw.read(MOST_ANSWER_BYTES + 1, decode_content=decode_content)
    if len(body) > MOST_ANSWER_BYTES:
        raw.close()
        raise UnreadableError(f"the service sent more than {MOST_ANSWER_BYTES:,} bytes")
    raw.release_conn()
    return Body(body)


def limited_session(session: Any = None) -> Any:
    """Return a session of requests, which the libraries of Azure and Google use, that reads no
    answer without end and follows no redirect.

    The service of a bucket redirects no request; another host would get what is written.
    """
    import requests

    class Adapter(requests.adapters.HTTPAdapter):
        def send(self, request: Any, *_: Any, **options: Any) -> requests.Response:
            answer = super().send(request, **{**options, "stream": True})
            answer.raw = read_answer(answer.raw, decode_content=True)
            if 300 <= answer.status_code < 400:
                answer.headers.pop("Location", None)
            return answer

    session = session or requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter(pool_maxsize=IN_FLIGHT))
    return session
