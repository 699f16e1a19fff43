"""Headers that put a record back, by somebody who would have it come elsewhere, or for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.record import Headers
from tests.attack.family import Attack, judge
from tests.attack.records import TAKEN, Engines, Record
from tests.unit.engine.driver import HOUR, T0, Driver

RETRY: Final = ("belfry-retry", b"first=1s attempts=3")
FIRE: Final = ("belfry-fire-id", b"0f" * 16)
FIRED: Final[Headers] = [FIRE, ("belfry-schedule-tenant", b"victim")]
OWN: Final = ("belfry-origin-tenant", b"own")
# Headers that could be taken for a destination.
PLACES: Final = ("topic", "retry-topic", "output-topic", "dead-letters", "target", "to", "reply-to")


def rules() -> Iterator[Attack[Record]]:
    """Rules that cannot be meant."""
    for name in ("first", "factor", "most", "attempts", "jitter"):
        for value in ("", "0x1", "-1", "nan", "inf", "1e9", "9" * 60, "\u0661", "1;1", "1=1", "\0"):
            text = f"{name}={value}"
            yield Attack(f"rule {text!r}", by_headers(text.encode()), "bad_header")
    for text in (
        *("=", "==", "first==1s", "first:1s", "{}", '{"first": "1s"}', "first=1s&most=1h"),
        *("FIRST=1s", "attempts=8 attempts=8", "attempts=201", "factor=100.001", "most=367d"),
        *("first=366d", "jitter=10", "jitter=1000%", "x" * 201, "first=1s" + " " * 200),
    ):
        yield Attack(f"rule {text[:40]!r}", by_headers(text.encode()), "bad_header")
    for count in (b"", b"-1", b"0x1", b"1.5", b"1e3", b"9" * 10, b"9" * 400_000, b"\xff", b" 1"):
        given = by_headers(b"", ("retry-attempt", count))
        yield Attack(f"count {count[:20]!r} {len(count)}", given, "bad_header")
    given = by_headers(b"", ("retry-attempt", b"9" * 9))
    yield Attack("tried very often", given, "retries_exhausted")


def places() -> Iterator[Attack[Record]]:
    """Headers that would lead to a topic of somebody else."""
    for name in PLACES:
        given = by_headers(b"", (f"belfry-{name}", b"belfry.fired.victim"))
        yield Attack(f"belfry-{name}", given, "unknown_header")


def by_headers(rule: bytes, *more: tuple[str, bytes | None]) -> Record:
    """A record that is put back for tenant `demo`."""
    return Record(b"v", b"k", [FIRE, ("belfry-tenant", b"demo"), ("belfry-retry", rule), *more])


def test_rules_that_cannot_be_meant_are_refused() -> None:
    judge(rules(), Engines(), 70)


def test_no_header_leads_to_another_topic() -> None:
    judge(places(), Engines(), len(PLACES))


def topics(*headers: tuple[str, bytes | None]) -> tuple[set[str], list[str]]:
    """On which topics a record comes out that is put back so, and why it does not."""
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("victim", signing_secret_ref="env:X")))
    driver.send(b"v", b"k", list(headers))
    codes = driver.step(T0).codes
    return {shot.topic for shot in driver.step(T0 + HOUR).shots}, codes


def test_nobody_puts_a_record_back_onto_the_topic_of_another_tenant() -> None:
    # A tenant that signs: the name that a fired record shows is a claim like any other.
    assert topics(*FIRED, RETRY) == (set(), ["unsigned"])
    assert topics(*FIRED, RETRY, ("belfry-signature", b"00")) == (set(), ["bad_signature"])
    # What comes in on a tenant's own topic is that tenant's.
    own: Headers = [("belfry-tenant", b"victim"), *FIRED, RETRY, OWN]
    assert topics(*own) == ({"belfry.fired.own"}, [])
    assert topics(*FIRED, RETRY, OWN) == ({"belfry.fired.own"}, [])
    # Who says whose it is goes first, and the event says whose it was.
    mine = [("belfry-tenant", b"mine"), *FIRED, RETRY]
    assert topics(*mine) == ({"belfry.fired.mine"}, [])


def test_a_name_out_of_a_fire_is_judged_as_any_other() -> None:
    for fire, right in (
        (b"x" * 250, "bad_schedule_id"),
        (b"\n", "bad_schedule_id"),
        (b"../../etc", TAKEN),
    ):
        record = Record(b"v", None, [("belfry-fire-id", fire), ("belfry-tenant", b"demo"), RETRY])
        assert Engines()(record) == right
    bad = Record(b"v", None, [FIRE, ("belfry-schedule-tenant", b"a/b"), RETRY])
    assert Engines()(bad) == "bad_tenant"


def test_what_a_sender_says_of_the_fire_is_not_on_the_event() -> None:
    driver = Driver()
    lies: Headers = [
        FIRE,
        ("belfry-schedule-id", b"lie"),
        ("belfry-schedule-version", b"99"),
        ("belfry-occurrence", b"7"),
        ("belfry-source", b"lie/0/0"),
    ]
    driver.send(b"v", None, [("belfry-tenant", b"demo"), *lies, RETRY])
    driver.step(T0)
    (shot,) = driver.step(T0 + HOUR).shots
    said = [(name, given) for name, given in shot.headers if name.startswith("belfry-")]
    assert set(said).isdisjoint(lies)
    assert len(dict(said)) == len(said)
