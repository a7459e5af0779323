"""Servers that take a connection and never answer, and addresses at which nothing listens: one line
within seconds."""

from __future__ import annotations

import socket

import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.spark import session as sessions
from support.tables import each

pytestmark = pytest.mark.engines


@each(
    "scheme, listens, message",
    [
        ("sc", True, "no answer of a Spark Connect server"),
        ("sc", False, "no answer"),
        ("spark", False, "connection refused"),
    ],
)
def test_a_server_that_does_not_answer(scheme, listens, message, monkeypatch):
    monkeypatch.setattr(sessions, "_ANSWER_SECONDS", 1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        address = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"the server cannot be reached: {message}") as caught:
            sessions._ensure_answer(address)
    assert caught.value.place == address
