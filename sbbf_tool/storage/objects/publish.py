"""Publication of a new version of an object: verified before any byte is sent, assembled by the store in one step, and read back.

An unfinished upload cannot be read, so the plan is verified: the old bytes, pinned to the version that was read, and the new bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from sbbf_tool.errors import ChangedError, ErrorPlace, SbbfError, WriteError
from sbbf_tool.storage.objects.location import parse_location
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import OtherVersionError
from sbbf_tool.storage.objects.stores import open_object, store_of
from sbbf_tool.storage.source import Piece, PlannedSource, Source

_COMPARED_BYTES = 64 << 10
_BLOCK_BYTES = 8 << 20


def ensure_writable(target: str, in_place: bool) -> None:
    """Raise RefusedError if the target cannot be written, as far as this can be checked in advance."""
    location = parse_location(target)
    with ErrorPlace(location.name):
        store_of(location).ensure_writable(location, in_place)


def ensure_replaceable(source: Source) -> None:
    """Raise RefusedError if the open version of an object is of a kind that cannot be replaced."""
    if isinstance(source, ObjectSource):
        with ErrorPlace(source.name):
            source.store.ensure_replaceable(source.version)


def replace(source: Source, target: str, keep: int, pieces: tuple[Piece, ...], verify: Callable[[Source], None]) -> list[str]:
    """Replace an object: see `places.replace`. Warnings do not name the object, so that those with one cause are equal."""
    location = parse_location(target)
    with PlannedSource(location.name, source, keep, pieces) as planned_source:
        verify(planned_source)
        # Read in advance: once the object is replaced, its old version can no longer be read.
        samples = [_sample(planned_source, 0, 8), _sample(planned_source, keep - _COMPARED_BYTES, keep)]
        try:
            with ErrorPlace(location.name):
                warnings = store_of(location).replace(source, location, keep, pieces)
        except OtherVersionError as error:
            raise ChangedError(error.message, file=location.name, hint=error.hint) from error
        _read_back(target, planned_source, samples)
    return warnings


def _sample(planned_source: PlannedSource, start: int, end: int) -> tuple[int, bytes]:
    start, end = max(0, start), min(end, planned_source.size)
    return start, planned_source.read(start, end - start)


def _read_back(target: str, planned_source: PlannedSource, samples: list[tuple[int, bytes]]) -> None:
    """Compare the store's object with the plan: length, first bytes, last old bytes, all new bytes."""
    try:
        with open_object(target) as new_object:
            new = (
                _sample(planned_source, start, start + _BLOCK_BYTES)
                for start in range(planned_source.keep, planned_source.size, _BLOCK_BYTES)
            )
            is_same = new_object.size == planned_source.size and all(
                new_object.read(start, len(data)) == data for start, data in chain(samples, new)
            )
    except SbbfError as error:
        hint = "it was verified before it was written; verify it again"
        raise WriteError(f"the new object could not be read back ({error.message})", file=planned_source.name, hint=hint) from error
    if not is_same:
        hint = "another process may have written it at the same time; verify it"
        raise WriteError("the object does not have the bytes that were written to it", file=planned_source.name, hint=hint)
