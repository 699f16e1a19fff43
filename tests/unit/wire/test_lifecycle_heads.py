"""Heads of lifecycle events, read by hand: each shape that they have, and each that is damaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.wire import lifecycle_heads
from belfry.wire.lifecycle import LifecycleEvent, avro_long, encode_lifecycle
from belfry.wire.lifecycle_heads import Headline, asked_in, attempt_in, headline, kept_head

NOW = 1_800_000_000_000
PLAIN = LifecycleEvent(
    tenant="t",
    schedule_id="ab",
    outcome=Outcome.ACCEPTED,
    request_id="r1",
    version=1,
    at=NOW,
    due_at=NOW + 5,
)
FIRED = replace(PLAIN, outcome=Outcome.FIRED, request_id=None, fire_id="f" * 32)
NAMES = ["", "a", "b" * 63, "c" * 64, "d" * 255]
# Instants of one byte, and of the most and the fewest bytes around those that most have.
INSTANTS = [0, 63, 2**34 - 1, 2**34, NOW, 2**41 - 1, 2**41, 2**62]


def of(event: LifecycleEvent) -> Headline:
    names = event.tenant.encode(), event.schedule_id.encode()
    return Headline(*names, event.outcome, event.at, event.due_at)


def reads(event: LifecycleEvent) -> None:
    body, whole = encode_lifecycle(event), of(event)
    assert headline(body) == whole
    assert kept_head(body) in (whole, whole._replace(due_ms=None))
    if event.outcome is Outcome.FIRED:
        assert kept_head(body) == whole


@pytest.mark.parametrize("event", [PLAIN, FIRED])
def test_names_of_any_size_are_read(event: LifecycleEvent) -> None:
    for tenant, schedule_id, asked in product(NAMES, repeat=3):
        named = replace(event, tenant=tenant, schedule_id=schedule_id)
        if event is FIRED:
            named.fire_id = asked
        else:
            named.request_id = asked
        reads(named)
        found = asked_in(b"frame" + encode_lifecycle(named), 5)
        names = tenant.encode(), schedule_id.encode(), asked.encode()
        assert found == (None if event is FIRED else names)


@pytest.mark.parametrize("event", [PLAIN, FIRED])
def test_instants_and_versions_of_any_size_are_read(event: LifecycleEvent) -> None:
    for at, due_at, version in product(INSTANTS, [None, *INSTANTS], [None, 1, 63, 64, 2**40]):
        reads(replace(event, at=at, due_at=due_at, version=version))


def test_events_with_both_ids_or_none_are_read() -> None:
    for asked, fired, outcome in product([None, "r", "s" * 64], [None, "f"], Outcome):
        reads(replace(PLAIN, request_id=asked, fire_id=fired, outcome=outcome))


def test_a_due_instant_is_kept_of_what_has_fired_alone() -> None:
    assert kept_head(encode_lifecycle(FIRED)) == of(FIRED)
    assert kept_head(encode_lifecycle(PLAIN)) == of(PLAIN)._replace(due_ms=None)
    missed = replace(FIRED, outcome=Outcome.MISSED)
    assert kept_head(encode_lifecycle(missed)) == of(missed)._replace(due_ms=None)


@pytest.mark.parametrize("read", [headline, kept_head, asked_in])
def test_a_head_that_ends_too_soon_is_an_error(read: Callable[[bytes], object]) -> None:
    body = encode_lifecycle(replace(PLAIN, tenant="t" * 70, request_id="r" * 70))
    for size in (0, 1, 2, 60, 73, 74, 75, 76, 77):
        with pytest.raises(IndexError):
            read(body[:size])


def test_more_shapes_than_are_remembered_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle_heads, "_MOST_KEPT", 3)
    for _ in range(2):
        for size in range(10):
            reads(replace(PLAIN, tenant="t" * size))
            assert len(lifecycle_heads._shapes) <= 3


def test_a_number_takes_ten_bytes_at_most() -> None:
    longest = b"\xff" * 9
    assert asked_in(b"\2t\2a\2" + longest + b"\0" + b"\2r") == (b"t", b"a", b"r")
    with pytest.raises(IndexError):
        asked_in(b"\2t\2a\2" + longest + b"\x80\0" + b"\2r")


DELIVERED = LifecycleEvent(
    tenant="t", schedule_id="ab", outcome=Outcome.DELIVERED, at=NOW, attempt=3
)


def test_attempts_are_found_behind_whatever_else_is_told() -> None:
    long = "x" * 200
    for asked, fire, version, at, due, words in product(
        [None, "", long], [None, long], [None, 1, 2**40], [1, NOW], [None, 1, NOW], [None, long]
    ):
        about = replace(DELIVERED, request_id=asked, fire_id=fire, version=version)
        about.at, about.due_at = at, due
        for told in (
            about,
            replace(about, code=words),
            replace(about, reason=words),
            replace(about, target=words),
        ):
            assert attempt_in(encode_lifecycle(told)) == 3
            assert attempt_in(encode_lifecycle(replace(told, attempt=None))) is None


@pytest.mark.parametrize("attempt", [0, 1, 2**31 - 1])
def test_any_attempt_that_can_be_counted_is_one(attempt: int) -> None:
    assert attempt_in(encode_lifecycle(replace(DELIVERED, attempt=attempt))) == attempt


def test_what_is_no_attempt_is_none() -> None:
    body = encode_lifecycle(replace(DELIVERED, attempt=None))
    # The attempt, and topic, partition and offset of the source.
    assert body[-4:] == b"\0\0\0\0"
    assert attempt_in(body[:-4] + b"\2" + avro_long(2**31)) is None
    assert attempt_in(body[:-4] + b"\2" + avro_long(2**31 - 1)) == 2**31 - 1
    for size in range(len(body) - 3):
        assert attempt_in(body[:size]) is None
