"""Access to the files of a table with the credentials that its catalog hands out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.extensions.tables.iceberg.credentials import Grants
from sbbf_tool.extensions.tables.iceberg.source import identity
from sbbf_tool.storage.access import Access
from sbbf_tool.storage.names import is_url
from sbbf_tool.storage.objects.lease import Issue, Lease, LeasePart
from sbbf_tool.storage.objects.store import (
    DeniedError,
    Location,
    naming_the_extra,
    parse_location,
)
from sbbf_tool.storage.objects.stores import open_store

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.store import ObjectStore

_ENVIRONMENT = (
    "the catalog hands out no credentials for this location, so those of the environment were used"
)
_OF_CATALOG = "the credentials are those of the catalog for {}"


class TableAccess(Access):
    """Access to the objects of a table with these credentials."""

    def __init__(
        self,
        table: str,
        grants: Grants,
        renew: Callable[[], Grants],
        load: Callable[[str], Grants],
        number: str = "",
    ) -> None:
        """`table` is the table as the user named it, and `renew` asks its catalog for others. In
        another process, `load` does that: a function of a module. Objects of one number are one
        access, which was sent to other processes."""
        self._table = table
        self._renew = renew
        self._load = load
        self._number = number or secrets.token_hex(8)
        self._lease = Lease(Issue(grants, grants.expiry), self._issue)
        self._stores: dict[tuple[object, ...], ObjectStore] = {}

    def __repr__(self) -> str:
        return f"TableAccess({self._table!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._number, self._table, self._lease.keys, self._load)

    def replace(self, grants: Grants) -> None:
        """Use credentials that the catalog has handed out since."""
        self._lease.replace(Issue(grants, grants.expiry))

    def _issue(self) -> Issue[Grants]:
        grants = self._renew()
        return Issue(grants, grants.expiry)

    def find_store(self, location: Location) -> ObjectStore | None:
        grants = self._lease.keys
        prefix = grants.find_prefix(identity(location.url))
        with naming_the_extra(location.service):
            if grants.keys(prefix, location) is None:
                return None
            # A forked process must not use its parent's connections.
            key = (os.getpid(), prefix, location.root)
            if key not in self._stores:
                self._stores.setdefault(key, open_store(location, self._part(prefix, location)))
        return self._stores[key]

    def _part(self, prefix: str, location: Location) -> LeasePart[Any]:
        """Return the part of the lease that is for a location."""

        def choose(grants: Grants) -> Any:
            keys = grants.keys(prefix, location)
            if keys is None:
                raise UnreadableError(f"the catalog hands out no credentials for {prefix} any more")
            return keys

        return LeasePart(self._lease, choose)

    def explain(self, error: SbbfError) -> None:
        is_denied = isinstance(error, DeniedError) or isinstance(error.__cause__, DeniedError)
        if not is_denied or error.file is None or not is_url(error.file):
            return
        hint = f"{_ENVIRONMENT}: {error.hint}"
        location = parse_location(error.file)
        if self.find_store(location) is not None:
            prefix = self._lease.keys.find_prefix(identity(location.url))
            hint = _OF_CATALOG.format(prefix or self._table)
        if error.hint is None or not error.hint.startswith(_ENVIRONMENT):
            error.hint = hint


def _restore(number: str, table: str, grants: Grants, load: Callable[[str], Grants]) -> TableAccess:
    """Return the access that was sent here: its clients and newest credentials stay for the next
    task of this process."""
    with _RESTORING:
        found = _RESTORED.get(number)
        if found is None:
            found = _RESTORED[number] = TableAccess(
                table, grants, partial(load, table), load, number
            )
            while len(_RESTORED) > _MOST_RESTORED:
                del _RESTORED[next(iter(_RESTORED))]
    return found


_RESTORED: dict[str, TableAccess] = {}
_RESTORING = Lock()
_MOST_RESTORED = 16
