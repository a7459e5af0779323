"""Reads of Google Cloud Storage, Azure and HTTP servers, through obstore (the Rust crate
object_store), and the logs of tables.

`azure` and `google` replace objects, by the services' own libraries: obstore has no block lists and
composes nothing.

obstore finds credentials: `GOOGLE_APPLICATION_CREDENTIALS`, application default credentials and the
machine's service account; `AZURE_STORAGE_*` and `AZURE_*`, managed and workload identity. An HTTP
server must support ranges (RFC 9110, section 14) and distinguish versions by ETag or modification
time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Any
from urllib.parse import urljoin

import obstore
from obstore import exceptions
from obstore.store import HTTPStore, from_url

from sbbf_tool.errors import MissingError, SbbfError, UnreadableError, UsageError
from sbbf_tool.storage.objects.cloud_keys import NewestCredentials
from sbbf_tool.storage.objects.conditional import (
    AZURE_HINT,
    GOOGLE_HINT,
    CloudWriter,
    call_to_write,
    create,
    ensure_free,
    remove,
    understanding_answers,
)
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.paging import Listed, list_once
from sbbf_tool.storage.objects.retries import (
    LIST_SECONDS,
    TEMPORARY_STATUSES,
    Budget,
    Retries,
    retries_of,
    tries_of,
    unreachable_error,
    within,
)
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Answer,
    DeniedError,
    Location,
    ObjectStore,
    OtherVersionError,
    Version,
    naming_the_extra,
    with_text_of,
)
from sbbf_tool.storage.source import PlannedSource, Source
from sbbf_tool.storage.threads import DaemonThreads, waiting

BUDGET = Budget()
"""When a request to Azure or Google is given up."""
_HTTP_BUDGET = Budget.of_tries(3)
_MOST_REDIRECTS = 10
_NAMES = {"gs": "Google Cloud Storage", "azure": "Azure", "http": "an HTTP server"}
_HINTS = {"gs": GOOGLE_HINT, "azure": AZURE_HINT, "http": "a signed URL may have expired"}


class CloudStore(ObjectStore):
    """An `ObjectStore` that uses obstore. A store for HTTP is for one URL, with its `path` and
    `secret`."""

    _lease: LeasePart[Any] | None = None

    def __init__(
        self,
        service: str,
        root: str,
        path: str,
        secret: str,
        lease: LeasePart[Any] | None,
    ) -> None:
        """Without a lease of `AzureKeys` or `GoogleKeys`, the credentials are those of the
        environment."""
        self._service = service
        self._lease = lease
        self.service_name = _NAMES[service]
        budget = _HTTP_BUDGET if service == "http" else BUDGET
        self._retries = retries_of(os.getpid(), service, root, budget)
        if lease is not None:
            self._retries = Retries(budget)
        clients: Any = {
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
            "timeout": timedelta(seconds=READ_SECONDS),
            "allow_http": True,
            "user_agent": "sbbf",
        }
        if service == "gs" and (project := os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT")):
            clients["default_headers"] = {"x-goog-user-project": project}
        # `self._retries` repeats requests.
        retries: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=READ_SECONDS)}
        url = root
        if service == "http":
            url = f"{root}/{path}"
            if secret:
                url = _follow_redirects(f"{url}?{secret}")
        if service == "azure" and not os.environ.get("AZURE_STORAGE_TOKEN", "").isprintable():
            # obstore would panic.
            raise DeniedError(
                "AZURE_STORAGE_TOKEN has a control character, such as a line break at its end",
                hint=AZURE_HINT,
            )
        open_store: Any = HTTPStore if service == "http" else from_url
        options: dict[str, Any] = {"client_options": clients, "retry_config": retries}
        if lease is not None:
            options["credential_provider"] = NewestCredentials(lease)
            options["config"] = lease.keys.settings()
        try:
            self._store: Any = open_store(url, **options)
        except (exceptions.BaseError, ValueError) as error:
            raise self._translate_error(error) from None

    @cached_property
    def writer(self) -> CloudWriter:
        """The writing half, whose library only writes load. Raises RefusedError for HTTP,
        DeniedError and UsageError."""
        # The libraries of the vendors.
        with naming_the_extra(self._service):
            if self._service == "azure":
                from sbbf_tool.storage.objects.azure import AzureWriter

                return AzureWriter(self._retries, self._store.config, self._lease)
            from sbbf_tool.storage.objects.google import GoogleWriter

            return GoogleWriter(self._retries, self._store.config, self._lease)

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        if self._service == "http":
            super().ensure_writable(target, in_place)
        ensure_free(self, target, in_place)
        if in_place:
            with understanding_answers():
                self.writer.ensure_object_replaceable(target.key)

    def replace(self, source: Source, target: Location, planned_source: PlannedSource) -> list[str]:
        writer = call_to_write(lambda: self.writer)
        with understanding_answers():
            return writer.upload(writer, source, target, planned_source).publish()

    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        def request() -> tuple[bytes, Version]:
            if self._service == "azure":
                return self._tail_by_length(key, length)
            return self._get(key, {"range": {"suffix": length}})

        return self._call(request)

    def _tail_by_length(self, key: str, length: int) -> tuple[bytes, Version]:
        """Read the last bytes of an object of Azure, which does not support ranges counted from the
        end."""
        meta = obstore.head(self._store, self._path(key))
        version = self._version(meta)
        if not version.size:
            return b"", version
        window = (max(0, version.size - length), version.size)
        data, current = self._get(key, {"range": window})
        # The range ends where another version goes on.
        if current != version:
            raise OtherVersionError
        return data, version

    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        options: dict[str, Any] = {"range": (offset, offset + length)}
        if version.strong_tag is not None:
            options["if_match"] = version.strong_tag
        data, current = self._call(lambda: self._get(key, options))
        if current != version:
            raise OtherVersionError
        return data

    def version(self, key: str) -> Version | None:
        try:
            return self._version(self._call(lambda: obstore.head(self._store, self._path(key))))
        except MissingError:
            return None

    def objects(
        self, prefix: str, limit: int | None = None, after: str = ""
    ) -> Iterator[tuple[str, Version]]:
        if self._service == "http":
            raise UsageError("an HTTP server does not list its files", hint="name its files")
        if limit == 1 and prefix and not prefix.endswith("/"):
            version = self.version(prefix)
            if version is not None:
                # It sorts first, and obstore would request a page of 1,000 keys.
                yield prefix, version
                return
        # obstore accepts only whole segments of a key as a prefix; the rest is compared here.
        folder = prefix[: prefix.rfind("/") + 1]
        listed = list_once(lambda: self._pages(folder, after))
        yield from islice((pair for pair in listed if pair[0].startswith(prefix)), limit)

    def create(self, key: str, data: bytes) -> None:
        if self._service == "http":
            super().create(key, data)
        create(lambda: self._call(lambda: obstore.put(self._store, key, data, mode="create")), key)

    def remove(self, key: str) -> None:
        if self._service == "http":
            super().remove(key)
        remove(lambda: self._call(lambda: obstore.delete(self._store, key)))

    def _pages(self, prefix: str, after: str) -> Iterator[list[Listed]]:
        """Yield a listing. After an error it begins again after the last key: obstore would end it
        as if it were complete.

        obstore also ends the list of Google's that states that it goes on and no token: such a list
        is whole if nothing comes after its last key.
        """
        pages: Any = None
        last = after

        def request() -> Any:
            nonlocal pages
            listing = pages
            pages = None
            if listing is None:
                stream = obstore.list(self._store, prefix=prefix or None, offset=last or None)
                listing = iter(stream)
            # It may go on for ever without an object.
            page = within(LIST_SECONDS, lambda: next(listing, None))
            pages = listing
            return page

        start = after
        while True:
            page = self._call(request)
            if page is None:
                if self._service != "gs" or last == start:
                    return
                start = last
                pages = None
                continue
            # Emulators begin with the first key, whatever key the list is to begin after.
            listed = [(meta["path"], self._version(meta)) for meta in page if meta["path"] > start]
            if not listed and start != after:
                return
            last = max((last, *(key for key, _ in listed)))
            yield listed

    def _path(self, key: str) -> str:
        return "" if self._service == "http" else key

    def _get(self, key: str, options: Any) -> tuple[bytes, Version]:
        response = obstore.get(self._store, self._path(key), options=options)
        version = self._version(response.meta)
        if version.tag is None and version.modified is None:
            raise UnreadableError(
                "the server sends neither ETag nor Last-Modified, so sbbf could not detect a "
                "change",
                hint="download the file",
            )
        start, end = response.range
        # A body may go on for ever, whatever its headers say.
        data = bytes(next(iter(response.stream(min_chunk_size=end - start + 1)), b""))
        if len(data) > end - start:
            raise UnreadableError(
                f"the server sent more than the {end - start:,} bytes that it states"
            )
        return data, version

    def _version(self, meta: Any) -> Version:
        instant = meta["last_modified"]
        text = None
        seconds = None
        # obstore reports 1970 if the server sent no time.
        if isinstance(instant, datetime) and instant.timestamp() > 0:
            text = instant.isoformat()
            seconds = instant.timestamp()
        generation = meta["version"] if self._service == "gs" else None
        return Version(meta["size"], meta["e_tag"], text, generation, seconds)

    def _call(self, request: Callable[[], Answer]) -> Answer:
        """Return the service's answer; convert its errors to errors of this package. obstore's
        messages contain whole URLs."""
        repeat = partial(self._retries.call, request, _is_temporary, _is_unreachable)
        if self._lease is not None:
            repeat = partial(self._lease.call, repeat, _refusal_of)
        try:
            return repeat()
        except FileNotFoundError:
            raise MissingError("no such object") from None
        except (exceptions.BaseError, ValueError, OSError, TypeError) as error:
            raise with_text_of(self._translate_error(error), error) from None

    def _translate_error(self, error: Exception) -> SbbfError:
        if isinstance(error, _OTHER_VERSION):
            return OtherVersionError()
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            return DeniedError("access denied", hint=_HINTS[self._service])
        if isinstance(error, exceptions.NotSupportedError):
            return UnreadableError(
                "the server does not support range requests: it sent the whole file",
                hint="download the file",
            )
        if isinstance(error, exceptions.InvalidPathError):
            return _path_error(error)
        return self._translate_text(error)

    def _translate_text(self, error: Exception) -> SbbfError:
        """Translate an error that only its text describes."""
        text = str(error)
        status = _STATUS.search(text)
        if status:
            return _status_error(error, int(status[1]))
        if self._service != "http" and any(word in text for word in _OF_CREDENTIALS):
            return DeniedError("no usable credentials", hint=_HINTS[self._service])
        if not ("HTTP error: " in text or _is_unreachable(error)):
            return UnreadableError(
                "the answer is cut off or not that of such a service",
                hint="check the endpoint, or try again",
            )
        return unreachable_error(error, "check the network and the name")


def _path_error(error: Exception) -> SbbfError:
    """Return the error for a name that obstore cannot open: that of the URL, or of an object in a
    list."""
    name = _LISTED.search(str(error))
    if name is None:
        return UsageError("the URL cannot be the name of an object")
    return UnreadableError(
        "an object below cannot be opened: a part of its name is empty, . or .., or has a control "
        f"character: {name[1]}"
    )


def _status_error(error: Exception, status: int) -> UnreadableError:
    if status == 416:
        return UnreadableError(
            "the server does not have the requested range: the object is empty or was truncated"
        )
    tries = f" after {tries_of(error)} tries" if status in TEMPORARY_STATUSES else ""
    return UnreadableError(f"the server answered {status}{tries}")


def _follow_redirects(url: str) -> str:
    """Return the URL to which a server redirects a URL that may have a signature.

    obstore follows redirects too, but sends the whole URL to the other host, as `Referer`.
    """
    # Only signed URLs need them.
    import urllib.request as http
    from http.client import HTTPException

    opener = http.OpenerDirector()
    for handler in (http.ProxyHandler(), http.HTTPHandler(), http.HTTPSHandler()):
        opener.add_handler(handler)
    for _ in range(_MOST_REDIRECTS):
        request = http.Request(url, headers={"Range": "bytes=-1", "User-Agent": "sbbf"})
        try:
            # In a thread: a header may go on for ever.
            thread = DaemonThreads(1, "sbbf-redirect")
            future = thread.submit(opener.open, request, None, CONNECT_SECONDS)
            thread.close(0)
            with waiting(), future.result(READ_SECONDS) as answer:
                target = url
                if 300 <= answer.status < 400:
                    target = urljoin(url, answer.headers.get("Location") or "")
        except (OSError, ValueError, HTTPException):
            # obstore finds out what is wrong.
            return url
        if target == url or not target.startswith(("http://", "https://")):
            return url
        url = target
    raise UnreadableError("the server redirects the URL again and again", hint="check the URL")


_LISTED = re.compile(r'Encountered object with invalid path: .*?"(.*?)"', re.DOTALL)
_STATUS = re.compile(r"status code: (\d{3})\b")
_OF_CREDENTIALS = ("redential", "metadata endpoint", "Account", "Access Key", "oken")
"""Parts of the texts of errors about credentials."""
_OTHER_VERSION = (
    exceptions.PreconditionError,
    exceptions.NotModifiedError,
    exceptions.AlreadyExistsError,
    FileExistsError,
)


def _refusal_of(error: Exception) -> str | None:
    """Return the kind of an error if other credentials may avert it. The answer to a HEAD request
    does not say why."""
    if isinstance(error, exceptions.UnauthenticatedError):
        return "401"
    if not isinstance(error, exceptions.PermissionDeniedError):
        return None
    return "AuthenticationFailed" if "AuthenticationFailed" in str(error) else "403"


def _is_temporary(error: Exception) -> bool:
    """Return whether the same request of obstore may succeed later."""
    if not isinstance(error, exceptions.GenericError):
        return False
    text = str(error)
    status = _STATUS.search(text)
    if status:
        return int(status[1]) in TEMPORARY_STATUSES
    return "HTTP error: " in text


def _is_unreachable(error: Exception) -> bool:
    return "error sending request" in str(error)
