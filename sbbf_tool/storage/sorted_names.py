"""Sorting of the names in a folder, in a few bytes per name: one folder may have millions of files.

Runs of names are sorted and compressed in blocks, and then merged. Names of a folder often have a common beginning, so a name takes some 5
to 20 bytes, where a list of Python strings takes a hundred.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import TypeVar, cast

Name = TypeVar("Name", bound="tuple[str | bool, ...]")

_RUN = 10_000
"""Number of names that are sorted at once."""
_BLOCK = 250
"""Number of names of a run that are in memory while runs are merged."""
_LEVEL = 1


def sort_names(names: Iterable[Name]) -> Iterator[Name]:
    """Return the names in order. Each is a tuple of a string and what is known of the name. All are taken before the first is returned."""
    remaining = iter(names)
    first = sorted(islice(remaining, _RUN))
    if len(first) < _RUN:
        return iter(first)
    runs = [_compress(first)]
    del first
    while run := sorted(islice(remaining, _RUN)):
        runs.append(_compress(run))
    return merge(*map(_decompress, runs))


def _compress(run: list[Name]) -> list[bytes]:
    from zlib import compress

    return [compress(marshal.dumps(run[start : start + _BLOCK]), _LEVEL) for start in range(0, len(run), _BLOCK)]


def _decompress(blocks: list[bytes]) -> Iterator[Name]:
    from zlib import decompress

    for block in blocks:
        # The bytes come from this process.
        yield from cast("list[Name]", marshal.loads(decompress(block)))
