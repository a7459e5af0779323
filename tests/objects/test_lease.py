"""Credentials that expire: renewed in time, and after a refusal, and never without end."""

from __future__ import annotations

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.objects.lease import Issue, Lease


class Issuer:
    """Hands out numbers as credentials, each of which lives so many seconds."""

    def __init__(self, life: float | None) -> None:
        self.life = life
        self.now = 1000.0
        self.count = 0
        self.error: UnreadableError | None = None

    def issue(self) -> Issue[int]:
        if self.error is not None:
            raise self.error
        self.count += 1
        return Issue(self.count, None if self.life is None else self.now + self.life)

    def lease(self) -> Lease[int]:
        return Lease(self.issue(), self.issue, lambda: self.now)


class ExpiredError(Exception):
    pass


def refusal_of(error: Exception) -> str | None:
    return "expired" if isinstance(error, ExpiredError) else None


def call(lease: Lease[int], *refused: int) -> int:
    """Send a request that is refused with these credentials."""

    def request() -> int:
        if lease.keys in refused:
            raise ExpiredError
        return lease.keys

    return lease.call(request, refusal_of)


@pytest.mark.parametrize(("life", "early"), [(3600, 300), (100, 20), (5, 1)])
def test_credentials_are_renewed_before_they_expire(life, early):
    issuer = Issuer(life)
    lease = issuer.lease()
    issuer.now += life - early - 0.01
    assert call(lease) == 1
    issuer.now += 0.02
    assert [call(lease), call(lease)] == [2, 2]
    assert issuer.count == 2


@pytest.mark.parametrize("life", [None, 0.5, 0, -60])
def test_without_a_usable_time_they_are_renewed_after_a_refusal_alone(life):
    issuer = Issuer(life)
    lease = issuer.lease()
    issuer.now += 1_000_000
    assert [call(lease) for _ in range(100)] == [1] * 100
    assert [call(lease, 1), call(lease, 1)] == [2, 2]
    assert issuer.count == 2


def test_what_never_works_is_renewed_once():
    issuer = Issuer(None)
    lease = issuer.lease()
    for _ in range(100):
        with pytest.raises(ExpiredError):
            call(lease, *range(1000))
    assert issuer.count == 2


def test_what_has_worked_is_renewed_again_and_again():
    issuer = Issuer(None)
    lease = issuer.lease()
    for number in range(1, 50):
        assert call(lease, *range(number)) == number
    assert issuer.count == 49


def test_other_errors_lead_to_no_renewal():
    issuer = Issuer(None)
    lease = issuer.lease()

    def request() -> int:
        raise ValueError("other")

    with pytest.raises(ValueError, match="other"):
        lease.call(request, refusal_of)
    assert issuer.count == 1


def test_credentials_that_still_hold_are_used_if_the_issuer_fails():
    issuer = Issuer(100)
    lease = issuer.lease()
    issuer.error = UnreadableError("the catalog is away")
    issuer.now += 90
    assert call(lease) == 1
    issuer.now += 20
    with pytest.raises(UnreadableError, match=r"have expired, and .*: the catalog is away"):
        call(lease)
    issuer.error = None
    assert call(lease) == 2


def test_a_refusal_with_an_issuer_that_fails_says_both():
    issuer = Issuer(None)
    lease = issuer.lease()
    issuer.error = UnreadableError("the catalog is away")
    with pytest.raises(UnreadableError, match=r"were refused \(expired\), .*: the catalog is away"):
        call(lease, 1)


def test_credentials_have_no_repr():
    assert "hush" not in repr(Issue("hush", 5.0))


def test_credentials_that_expire_again_before_the_request_is_sent():
    issuer = Issuer(None)
    lease = issuer.lease()
    assert call(lease) == 1
    refused = {1}

    def request() -> int:
        if lease.keys in refused:
            # Another request has worked with the new ones meanwhile, and they have expired.
            if lease.keys == 1:
                refused.add(2)
            raise ExpiredError
        return lease.keys

    renew = lease._renew

    def renew_and_use() -> Issue[int]:
        lease._accepted = lease._number + 1
        return renew()

    lease._renew = renew_and_use
    assert lease.call(request, refusal_of) == 3


def test_refusals_without_a_reason_lead_to_few_renewals():
    """They may be of requests that no credentials allow, while others succeed."""
    issuer = Issuer(None)
    lease = issuer.lease()

    def deny() -> int:
        raise ExpiredError

    for _ in range(100):
        assert call(lease) == issuer.count
        with pytest.raises(ExpiredError):
            lease.call(deny, lambda error: "403")
    assert issuer.count <= 6
    assert call(lease, issuer.count) == issuer.count


def test_a_renewal_that_helps_is_followed_by_others():
    lease = Issuer(None).lease()

    def deny() -> int:
        raise ExpiredError

    for _ in range(10):
        with pytest.raises(ExpiredError):
            lease.call(deny, lambda error: "403")
        last = lease.keys

        def request(refused: int = last) -> int:
            if lease.keys == refused:
                raise ExpiredError
            return lease.keys

        assert lease.call(request, lambda error: "403") == last + 1


def test_requests_that_need_two_renewals_are_not_given_up():
    lease = Issuer(None).lease()
    for _ in range(4):
        refused = (lease.keys, lease.keys + 1)

        def request(refused: tuple[int, int] = refused) -> int:
            if lease.keys in refused:
                raise ExpiredError
            return lease.keys

        assert lease.call(request, lambda error: "403") == refused[1] + 1
