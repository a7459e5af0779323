"""A lease: credentials that an issuer hands out for a while, and that are renewed in time.

before they expire     where their issuer says when, in the last fifth of their life, at most five
                       minutes before its end
after a refusal        where a service refuses them as expired; then the request is sent again

An issuer may hand out what never works, or what has expired already. So after a renewal against a
refusal whose credentials were never accepted, refusals of this kind lead to no other; nor do, after
a few that did not help, refusals that do not say why. A life of less than a second counts as one of
unknown length.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from sbbf_tool import log
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.storage.objects.store import Answer
from sbbf_tool.storage.threads import holding

K = TypeVar("K")

_LAST_SHARE = 0.2
_MOST_EARLY = 300.0
_LEAST_LIFE = 1.0
"""Seconds."""
_TRIES = 2
"""Credentials may expire again while a request waits for its turn."""
_MOST_VAGUE = 3
"""Renewals in succession that do not help against refusals of an unknown kind."""


class Issue(NamedTuple, Generic[K]):
    """Credentials as they were handed out."""

    keys: K
    expiry: float | None
    """When they expire, in seconds since 1970; None if unknown."""

    def __repr__(self) -> str:
        return f"Issue(expiry={self.expiry})"


class Lease(Generic[K]):
    """Credentials, and how to renew them. Threads share one; `clock` counts seconds since 1970."""

    def __init__(
        self,
        issue: Issue[K],
        renew: Callable[[], Issue[K]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._renew = renew
        self._clock = clock
        self._lock = Lock()
        self._futile = Counter[str]()
        """How often in succession a renewal did not help, by the kind of the refusal."""
        self._number = 0
        """How often the credentials were replaced."""
        self._accepted = -1
        """Number of the newest credentials with which a request succeeded."""
        self._set(issue)

    def _set(self, issue: Issue[K]) -> None:
        self.issue = issue
        self._due = self._due_of(issue.expiry)

    def _due_of(self, expiry: float | None) -> float | None:
        """Return when to renew credentials that were just handed out; None for no such time."""
        if expiry is None:
            return None
        life = expiry - self._clock()
        if life < _LEAST_LIFE:
            return None
        return expiry - min(_MOST_EARLY, life * _LAST_SHARE)

    @property
    def keys(self) -> K:
        """The newest credentials."""
        return self.issue.keys

    def replace(self, issue: Issue[K]) -> None:
        """Use credentials that were handed out on another occasion."""
        with holding(self._lock):
            self._number += 1
            self._set(issue)

    def call(
        self, request: Callable[[], Answer], refusal_of: Callable[[Exception], str | None]
    ) -> Answer:
        """Return the answer to a request; send it again with new credentials if it is refused.

        `refusal_of` returns the kind of a refusal that new credentials may avert; None for other
        errors. A number is the status of an answer that does not say why, which may be because the
        credentials do not allow the request.
        """
        self._renew_if_due()
        kind: str | None = None
        renewals = 0
        while True:
            number = self._number
            try:
                answer = request()
            except Exception as error:
                last = kind
                kind = refusal_of(error)
                if kind is None:
                    raise
                if kind == last and (kind.isdigit() or self._accepted < number):
                    self._futile[kind] += 1
                if renewals == _TRIES or not self._renew_after(number, kind):
                    raise
                renewals += 1
            else:
                self._accepted = max(self._accepted, number)
                if kind is not None:
                    del self._futile[kind]
                return answer

    def _is_due(self) -> bool:
        return self._due is not None and self._clock() >= self._due

    def _renew_if_due(self) -> None:
        """Renew credentials whose time is up. Those that still hold are kept if that fails."""
        if not self._is_due():
            return
        with holding(self._lock):
            if not self._is_due():
                return
            try:
                self._fetch()
            except SbbfError as error:
                expiry = self.issue.expiry
                if expiry is None or self._clock() >= expiry:
                    raise _not_renewed("have expired", error) from error
                # The next attempt is made in the last part of what remains.
                self._due = self._due_of(expiry)
                log.info("credentials could not be renewed: %s", error)

    def _renew_after(self, number: int, kind: str) -> bool:
        """Renew credentials that were refused, unless another thread has done so since `number`;
        return whether there are others now."""
        with holding(self._lock):
            if self._number != number:
                return True
            if self._futile[kind] >= (_MOST_VAGUE if kind.isdigit() else 1):
                return False
            try:
                self._fetch()
            except SbbfError as error:
                self._futile[kind] += 1
                raise _not_renewed(f"were refused ({kind})", error) from error
        return True

    def _fetch(self) -> None:
        self._set(self._renew())
        self._number += 1
        log.info("credentials were renewed")


class LeasePart(Generic[K]):
    """The credentials of a lease for one purpose: `choose` returns them, or raises SbbfError if
    they are no longer among the newest ones."""

    def __init__(self, lease: Lease[Any], choose: Callable[[Any], K]) -> None:
        self._lease = lease
        self._choose = choose

    @property
    def keys(self) -> K:
        """The newest credentials."""
        return self._choose(self._lease.keys)

    def call(
        self, request: Callable[[], Answer], refusal_of: Callable[[Exception], str | None]
    ) -> Answer:
        """See `Lease.call`."""
        return self._lease.call(request, refusal_of)


def _not_renewed(state: str, error: SbbfError) -> UnreadableError:
    return UnreadableError(
        f"the credentials of the table {state}, and there are no others: {error.message}",
        hint=error.hint,
    )
