"""Lists of objects: servers that answer in the first version of the protocol, whose pages overlap
or never end, or that say that there is more and not how to go on. A list is whole, or an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import sbbf_tool
from objects import google_server
from objects.large_files import large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import WriteError
from sbbf_tool.storage.objects import s3_bucket
from support.buckets import environment, forget_clients
from support.http_site import serve
from support.tables import each

pytestmark = pytest.mark.slow

KEYS = tuple(f"folder/{name}.parquet" for name in "abcde")
PAGE = 2


@dataclass
class Listing:
    """How a server lists its keys; the answer to a request is a page and what it states about the
    next one."""

    keys: tuple[str, ...] = KEYS
    starts: tuple[str, ...] = ("marker",)
    """The arguments that the server honours."""
    fields: tuple[str, ...] = ()
    """What it states: `count` (KeyCount), `token`."""
    inclusive: bool = False
    """Whether a page begins with the key after which it should begin."""
    repeats: int = 1
    empty_first: int = 0
    """Number of pages without a key before the first one with keys."""
    endless: bool = False
    numbers: Iterator[int] = field(default_factory=count)

    def answer(self, query: dict[str, str]) -> str:
        number = next(self.numbers)
        token = query.get("continuation-token", "")
        if self.endless or number < self.empty_first:
            keys = self.keys[: 0 if self.empty_first else PAGE]
            return self._page(keys, f"{number} ")
        mark = next((query[name] for name in self.starts if query.get(name)), "")
        place = token.partition(" ")[2]
        if place and "token" in self.fields:
            begin = int(place)
        elif mark:
            begin = next((n for n, key in enumerate(self.keys) if key > mark), len(self.keys))
            begin -= self.inclusive
        else:
            begin = 0
        end = begin + PAGE
        return self._page(self.keys[begin:end], f"{number} {end}" if end < len(self.keys) else "")

    def _page(self, keys: tuple[str, ...], token: str) -> str:
        parts = [f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>"]
        if "count" in self.fields:
            parts.append(f"<KeyCount>{len(keys)}</KeyCount>")
        if "token" in self.fields and token:
            parts.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        for key in keys:
            entry = (
                f"<Contents><Key>{key}</Key><LastModified>2025-01-01T00:00:00Z</LastModified>"
                f"<ETag>&quot;tag&quot;</ETag><Size>{len(small())}</Size></Contents>"
            )
            parts += [entry] * self.repeats
        return f'<?xml version="1.0"?><ListBucketResult>{"".join(parts)}</ListBucketResult>'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    listing: Listing

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix("/bucket").lstrip("/")
        if not key:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            keys = [key for key in KEYS if key.startswith(query.get("prefix", ""))]
            data = self.listing.answer(query) if keys else Listing(()).answer({})
            self._answer(200, data.encode(), {})
            return
        data = small()
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first else len(data)
        self._answer(
            206, data[start:end], {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        )

    def do_HEAD(self) -> None:
        self._answer(404, b"", {})

    def _answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        headers |= {"ETag": '"tag"', "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}
        headers |= {"Content-Length": str(len(data)), "x-goog-generation": "1"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Handler]]:
    """The class of a server to which the settings of S3 and Google lead."""
    handler = type("Handler", (_Handler,), {})
    with serve(handler) as server:
        handler.url = server.url
        account = str(google_server.write_account(tmp_path, server.url))
        for name, value in {
            **environment(server.url),
            "GOOGLE_SERVICE_ACCOUNT": account,
        }.items():
            monkeypatch.setenv(name, value)
        forget_clients()
        yield handler
        forget_clients()


WHOLE: dict[str, Callable[[], Listing]] = {
    "first version": lambda: Listing(),
    "first version, which begins with the marker": lambda: Listing(inclusive=True),
    "second version without a token": lambda: Listing(starts=("start-after",), fields=("count",)),
    "second version that knows only the marker": lambda: Listing(fields=("count",)),
    "first version that knows only start-after": lambda: Listing(starts=("start-after",)),
    "each key twice": lambda: Listing(fields=("count", "token"), repeats=2),
    "each key twice in the first version": lambda: Listing(repeats=2),
    "another order, and each key twice": lambda: Listing(
        KEYS[::-1], fields=("count", "token"), repeats=2
    ),
    "pages that overlap": lambda: Listing(KEYS[:2] + KEYS[1:], fields=("count", "token")),
    "pages without a key": lambda: Listing(fields=("count", "token"), empty_first=30),
}
ENDLESS: dict[str, tuple[Callable[[], Listing], str]] = {
    "ignores both": (lambda: Listing(starts=()), "the server {url} states that its list goes on"),
    "ignores both, second version": (
        lambda: Listing(starts=(), fields=("count",)),
        "the server {url} states that its list goes on",
    ),
    "says more without a key": (
        lambda: Listing(endless=True, empty_first=1),
        "the server {url} states that its list goes on",
    ),
    "the same page with new tokens": (
        lambda: Listing(endless=True, fields=("count", "token")),
        "lists the same objects again and again",
    ),
    "no key with new tokens": (
        lambda: Listing(endless=True, empty_first=1, fields=("count", "token")),
        "lists the same objects again and again",
    ),
}


@each("listing", WHOLE, every=2)
def test_a_list_is_whole_and_each_key_counts_once(listing, server, capfd):
    server.listing = listing()
    assert run(["inspect", "s3://bucket/folder/", "--quick"]) == 0
    output, errors = capfd.readouterr()
    assert "5 files: 5 done" in output, errors


@each("listing, message", ENDLESS, every=2)
def test_a_list_that_does_not_go_on_is_an_error(listing, message, server, capfd):
    server.listing = listing()
    assert run(["inspect", "s3://bucket/folder/", "--quick"]) == 3
    errors = capfd.readouterr().err
    assert message.format(url=server.url) in errors.splitlines()[-1]


@each(
    "listing",
    [
        lambda: Listing(starts=("start-after",)),
        lambda: Listing(starts=("start-after",), repeats=2),
        lambda: Listing(fields=("token",), repeats=2),
    ],
)
def test_a_list_of_google_is_whole(listing, server, capfd):
    server.listing = listing()
    assert run(["inspect", "gs://bucket/folder/", "--quick"]) == 0
    assert "5 files: 5 done" in capfd.readouterr().out


@each("states_next", [True, False])
def test_parts_are_listed_page_by_page(states_next, moto_bucket):
    """The server lists one part per page, with or without a place where the next page begins."""
    url = moto_bucket.put("large.parquet", large())
    events = s3_bucket.client(os.getpid()).meta.events
    events.register(
        "provide-client-params.s3.ListParts", lambda params, **_: {**params, "MaxParts": 1}
    )
    if not states_next:
        events.register(
            "after-call.s3.ListParts", lambda parsed, **_: parsed.pop("NextPartNumberMarker", None)
        )
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert moto_bucket.proxy.count("ListParts") == 2
    assert sbbf_tool.verify(url).is_sound


def test_parts_that_are_listed_again_and_again_are_an_error(moto_bucket):
    url = moto_bucket.put("large.parquet", large())
    s3_bucket.client(os.getpid()).meta.events.register(
        "after-call.s3.ListParts", lambda parsed, **_: parsed.update(IsTruncated=True)
    )
    with pytest.raises(WriteError, match="list of parts goes on, but brings no other part"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert moto_bucket.get("large.parquet") == large()
    assert moto_bucket.unfinished() == []
