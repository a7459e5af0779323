"""Access to object stores that belongs to a table: with credentials that its catalog hands out, in
place of those of the environment.

A URL says where an object is, and not by whose leave it is read. So the work on a table runs in a
block `through` the access of the table, and `stores.store_of` asks that access first. Threads that
such work starts have it too; work on other tables, at the same time or later, has not.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.errors import SbbfError

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.store import Location, ObjectStore

T = TypeVar("T")


class Access:
    """Access to the objects of a table; this class has the credentials of the environment. It can
    be sent to other processes, and its repr shows no secret."""

    def find_store(self, location: Location) -> ObjectStore | None:
        """Return the store with the credentials for this location; None if there are none, so that
        those of the environment are used. Raises RefusedError and UsageError."""
        return None

    def explain(self, error: SbbfError) -> None:
        """Say in the hint of an error whose credentials were used, if they were not accepted."""

    @contextmanager
    def through(self) -> Iterator[None]:
        """Open objects through this access in the block."""
        token = _ACCESS.set(self)
        try:
            yield
        except SbbfError as error:
            self.explain(error)
            raise
        finally:
            _ACCESS.reset(token)

    def each_through(self, items: Generator[T, None, None]) -> Generator[T, None, None]:
        """Yield the items of a generator, none of which is None. Its work is `through` this access;
        that of the caller, between two items, is not."""
        # A generator leaves its blocks in the context in which it has entered them.
        context = copy_context()

        def step() -> T | None:
            with self.through():
                return next(items, None)

        try:
            while (item := context.run(step)) is not None:
                yield item
        finally:
            context.run(items.close)


_ACCESS: ContextVar[Access | None] = ContextVar("access", default=None)


def find_store(location: Location) -> ObjectStore | None:
    """Return the store that the access of the present work has for a location; None for the store
    of the environment."""
    access = _ACCESS.get()
    if access is None:
        return None
    return access.find_store(location)
