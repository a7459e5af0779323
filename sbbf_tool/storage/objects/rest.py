"""Requests to a REST service by urllib3: connections, tries, and errors in one line. `azure_rest` and `google_rest` add the credentials.

urllib3 is a dependency of botocore. The vendors' own clients for blobs would add up to 30 MB, and their own retries and messages.
"""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote, urlsplit

import urllib3

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.objects.retries import IN_FLIGHT, Budget, Retries, tries_of
from sbbf_tool.storage.objects.store import CONNECT_SECONDS, MOST_ANSWER_BYTES, READ_SECONDS, DeniedError, OtherVersionError

BUDGET = Budget()
"""When a request to write is given up."""
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")


@dataclass(frozen=True)
class RestRequest:
    """A request that is not authorized yet."""

    method: str
    url: str
    """URL without a query; its path is escaped."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def target(self) -> str:
        """The URL with its query, which may be a secret."""
        pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query.items())
        return f"{self.url}?{pairs}" if pairs else self.url


@dataclass(frozen=True)
class Response:
    status: int
    headers: urllib3.HTTPHeaderDict
    """Names are looked up in any case, and iterated in the case in which the service sent them."""
    body: bytes


class StatusError(Exception):
    """The service answered with an error. The text of the answer is not kept, because it may repeat the URL."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"status {status} {code}".rstrip())
        self.status = status
        self.code = code


Authorize = Callable[[RestRequest], RestRequest]
"""Add credentials to a request, before each try. Raises DeniedError."""
FindCode = Callable[[Response], str]
"""Return the service's name of an error; empty if the answer has none."""
Describe = Callable[[StatusError], SbbfError | None]
"""Translate an error that only this service has; None for the errors that all services have."""


@dataclass(frozen=True)
class RestClient:
    """Connections to one bucket or container. Threads may share one."""

    retries: Retries
    authorize: Authorize
    find_code: FindCode
    describe: Describe
    credentials_hint: str

    def send(self, request: RestRequest) -> Response:
        """Send a request, again after errors that may pass. Raises errors of this package that name neither the object nor a secret."""
        return self._answer(lambda: self.retries.call(lambda: self._send_once(request), _is_temporary, _is_unreachable))

    def send_last(self, request: RestRequest) -> Response:
        """Send a request once, also after the run has been interrupted: it removes what the run leaves."""
        return self._answer(lambda: self._send_once(request))

    def _answer(self, send: Callable[[], Response]) -> Response:
        try:
            return send()
        except StatusError as error:
            raise self.describe(error) or self._translate(error) from None
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            name, tries = type(error).__name__.removesuffix("Error"), format_count(tries_of(error), "try", "tries")
            raise UnreadableError(f"the service cannot be reached ({name}, {tries})", hint="check the network and the endpoint") from None

    def _send_once(self, request: RestRequest) -> Response:
        authorized = self.authorize(request)
        answer = connections(os.getpid(), proxy_of(authorized.url)).request(
            authorized.method,
            authorized.target,
            body=authorized.body,
            headers={"User-Agent": "sbbf", "Content-Length": str(len(authorized.body)), **authorized.headers},
            retries=False,
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
        )
        response = Response(answer.status, answer.headers, read_answer(answer))
        if answer.status >= 300:
            code = self.find_code(response)
            raise StatusError(answer.status, code if _CODE.fullmatch(code) else "")
        return response

    def _translate(self, error: StatusError) -> SbbfError:
        code = f" ({error.code})" if error.code else ""
        if error.status == 404:
            return MissingError("no such object")
        if error.status in (401, 403):
            return DeniedError(f"access denied{code}", hint=self.credentials_hint)
        if error.status == 412:
            return OtherVersionError()
        tries = f", {format_count(tries_of(error), 'try', 'tries')}" if error.status in _TRANSIENT else ""
        return UnreadableError(f"the service answered {error.status}{' ' + error.code if error.code else ''}{tries}")


def read_answer(answer: urllib3.BaseHTTPResponse) -> bytes:
    """Read an answer as a whole. Raises UnreadableError if it is longer than any that a service sends."""
    body = answer.read(MOST_ANSWER_BYTES + 1)
    if len(body) > MOST_ANSWER_BYTES:
        answer.close()
        raise UnreadableError(f"the service sent more than {MOST_ANSWER_BYTES:,} bytes")
    answer.release_conn()
    return body


@cache
def connections(process: int, proxy: str | None) -> urllib3.PoolManager:
    """Return the connections of this process. A forked process must not use those of its parent."""
    if proxy is None:
        return urllib3.PoolManager(maxsize=2 * IN_FLIGHT)
    return urllib3.ProxyManager(proxy, maxsize=2 * IN_FLIGHT)


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment (`HTTPS_PROXY`, `NO_PROXY`) states for a URL."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    return None if proxy is None or urllib.request.proxy_bypass(parts.hostname or "") else proxy


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, StatusError):
        return error.status in _TRANSIENT
    return isinstance(error, urllib3.exceptions.HTTPError) and not isinstance(error, urllib3.exceptions.LocationValueError)


def _is_unreachable(error: Exception) -> bool:
    return isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)
