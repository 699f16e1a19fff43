"""What belfry's headers say of a fired event, as a consumer gets it."""

from __future__ import annotations

import pytest

from belfry.client import Claim, FiredRecord

DIGEST = "5f0c" * 16


def event(*headers: tuple[str, bytes | None]) -> FiredRecord:
    return FiredRecord("belfry.fired.shop", 0, 0, None, None, b"v", list(headers))


def test_its_schedule_is_told() -> None:
    found = event(
        ("belfry-schedule-group", b"g"),
        ("belfry-schedule-type", b"t"),
        ("belfry-schedule-version", b"7"),
        ("belfry-missed", b"3"),
    )
    assert (found.group, found.event_type, found.version, found.missed) == ("g", "t", 7, 3)


def test_an_event_of_an_earlier_release_does_not_say_it() -> None:
    found = event()
    assert (found.group, found.event_type, found.version, found.missed) == (None, None, None, 0)


def test_a_type_of_the_users_own_comes_first() -> None:
    own, schedules = ("event-type", b"own"), ("belfry-schedule-type", b"schedule's")
    assert event(own, schedules).event_type == "own"
    assert event(("ce_type", b"cloud"), own, schedules).event_type == "cloud"


def test_a_claim_leads_to_the_payload() -> None:
    claim = ("claim-check-sha256", DIGEST.encode()), ("claim-check-bytes", b"5")
    assert event(*claim).claim == Claim(DIGEST, 5, None)
    sealed = ("claim-check-encrypted", b"shop/order/1")
    assert event(*claim, sealed).claim == Claim(DIGEST, 5, "shop/order/1")


@pytest.mark.parametrize(
    ("digest", "size"), [(None, b"5"), (b"5f0c", b"5"), (DIGEST.encode(), b"-5"), (b"", b"")]
)
def test_what_is_no_claim_leads_nowhere(digest: bytes | None, size: bytes) -> None:
    assert event(("claim-check-sha256", digest), ("claim-check-bytes", size)).claim is None
    assert event().claim is None


@pytest.mark.parametrize("text", [b"", b"-", b"--5", b"1.5", b"\xd9\xa1", b"9" * 5_000])
def test_what_is_no_number_is_none(text: bytes) -> None:
    found = event(("belfry-occurrence", text), ("belfry-schedule-version", text))
    assert (found.occurrence, found.version) == (None, None)
