"""Lists of objects in pages: a list that does not go on is an error, and a key counts once.

Services list keys in the order of their bytes, so a key that is greater than all before it is new.
Only a store that lists in another order, or lists a key twice, costs a set of the keys: such stores
walk the folders of a file system, or begin a page with the key that the page before ended with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.objects.store import Version

Listed = tuple[str, Version]
"""The key of an object, and its version as far as a listing states it."""

MOST_EMPTY_PAGES = 100
"""Number of consecutive pages without a key after which a list is given up; a service sends such
pages where many objects were removed."""


def list_once(list_pages: Callable[[], Iterable[Sequence[Listed]]]) -> Iterator[Listed]:
    """Yield each object of the pages once, in their order.

    `list_pages` lists again from the beginning if the keys are not in order. Raises UnreadableError
    if the pages go on without bringing a key.
    """
    greatest = ""
    count = 0
    seen: set[str] | None = None
    repeats = False
    empty_pages = 0
    for page in list_pages():
        if repeats or empty_pages > MOST_EMPTY_PAGES:
            raise endless_error("the service lists the same objects again and again")
        is_new = False
        for key, version in page:
            if seen is None and key <= greatest and count:
                seen = _first_keys(list_pages(), count)
            if seen is None:
                greatest = key
            elif key in seen:
                continue
            else:
                seen.add(key)
            count += 1
            is_new = True
            yield key, version
        repeats = bool(page) and not is_new
        empty_pages = 0 if page else empty_pages + 1


def _first_keys(pages: Iterable[Sequence[Listed]], count: int) -> set[str]:
    return {key for key, _ in islice(chain.from_iterable(pages), count)}


def endless_error(problem: str) -> UnreadableError:
    """Return the error for a list of which no page is the last."""
    return UnreadableError(problem, hint="check the endpoint")
