"""What the writing halves of Azure and Google share: requests by the services' libraries, their repetition, and errors in one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError, WriteError
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.objects.conditional import Upload, publish
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.retries import TEMPORARY_STATUSES, Retries, tries_of, unreachable_error
from sbbf_tool.storage.objects.store import Answer, DeniedError, OtherVersionError
from sbbf_tool.storage.source import Piece, Source

AZURE_HINT = "check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and the like"
GOOGLE_HINT = "check GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login"
_PARSING_ERRORS = (ValueError, TypeError, AttributeError, LookupError)
"""The libraries raise them for an answer that the service would not give."""
_NO_SERVICE = "the answer is not that of such a service"
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")


@contextmanager
def understanding_answers() -> Iterator[None]:
    """Raise WriteError for an answer that a library parses only when a part of it is used."""
    try:
        yield
    except _PARSING_ERRORS as error:
        raise WriteError(_NO_SERVICE, hint="check the endpoint, and verify the object") from error


class CloudWriter:
    """The writing half of an `ObjectStore`."""

    upload: type[Upload]
    hint: str
    """The settings of credentials."""
    errors: tuple[type[Exception], ...]
    """The errors of the library."""
    connection_errors: tuple[type[Exception], ...]
    """Those that mean that the service has not answered, or that its answer broke off."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries

    def ensure_replaceable(self, key: str) -> None:
        """Raise RefusedError if the object is of a kind that cannot be replaced."""
        raise NotImplementedError

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Piece, ...]) -> list[str]:
        """See `ObjectStore.replace`."""
        with understanding_answers():
            return publish(self.upload, self, source, target, keep, pieces)

    def status_of(self, error: Any) -> tuple[int, str]:
        """Return the status of an answer that an error of the library describes, or 0, and the service's name of the error."""
        raise NotImplementedError

    def send(self, request: Callable[[], Answer], once: bool = False) -> Answer:
        """Return the answer to a request by the library, which is repeated while its errors are temporary.

        A request that removes what a run leaves is sent once, also after an interrupt. Raises errors of this package without secrets.
        """
        try:
            return request() if once else self._retries.call(request, self._is_temporary, self._is_unreachable)
        except (*self.errors, *self.connection_errors, *_PARSING_ERRORS) as error:  # type: ignore[misc]
            raise self.describe(error) from None

    def describe(self, error: Exception) -> SbbfError:
        """Translate an error of the library. The service's text is not repeated, because it may contain the URL."""
        status, code = self.status_of(error)
        code = f" {code}" if _CODE.fullmatch(code) else ""
        if isinstance(error, _PARSING_ERRORS):
            return UnreadableError(_NO_SERVICE, hint="check the endpoint")
        if self._is_unreachable(error):
            return unreachable_error(error, "check the network and the endpoint")
        if not status:
            return DeniedError(f"no usable credentials ({type(error).__name__})", hint=self.hint)
        if status == 404:
            return MissingError("no such object")
        if status in (401, 403):
            return DeniedError(f"access denied{code and f' ({code[1:]})'}", hint=self.hint)
        if status == 412:
            return OtherVersionError()
        tries = f", {format_count(tries_of(error), 'try', 'tries')}" if status in TEMPORARY_STATUSES else ""
        return UnreadableError(f"the service answered {status}{code}{tries}")

    def _is_temporary(self, error: Exception) -> bool:
        return self._is_unreachable(error) or self.status_of(error)[0] in TEMPORARY_STATUSES

    def _is_unreachable(self, error: Exception) -> bool:
        return isinstance(error, self.connection_errors) and not isinstance(error, ValueError)  # of JSON, in requests
