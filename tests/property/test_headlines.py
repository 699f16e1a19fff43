"""The head of a lifecycle event, read by hand, is what was written, and what the long way reads."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from belfry.schedules.outcomes import Outcome
from belfry.wire import lifecycle_heads
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.lifecycle_heads import Headline, attempt_in, headline, kept_head

NAMES = st.text(max_size=80)
MAYBE = st.none() | NAMES
NUMBERS = st.none() | st.integers(0, 2**62)
EVENTS = st.builds(
    LifecycleEvent,
    tenant=NAMES,
    schedule_id=NAMES,
    outcome=st.sampled_from(Outcome),
    request_id=MAYBE,
    fire_id=MAYBE,
    version=NUMBERS,
    at=st.integers(0, 2**62) | st.integers(1_700_000_000_000, 1_900_000_000_000),
    due_at=NUMBERS,
    code=MAYBE,
    reason=MAYBE,
    target=MAYBE,
    attempt=st.none() | st.integers(0, 2**31 - 1),
    source_offset=NUMBERS,
)
BODIES = EVENTS.map(encode_lifecycle)
NOW = 1_800_000_000_000
# As most are: it is taken apart in one call. Its byte 8 says whether there is a fire's id.
PLAIN = encode_lifecycle(
    LifecycleEvent(
        tenant="t",
        schedule_id="a",
        outcome=Outcome.ACCEPTED,
        request_id="r",
        version=1,
        at=NOW,
        due_at=NOW + 5,
    )
)


@given(EVENTS)
def test_it_is_what_was_written(event: LifecycleEvent) -> None:
    found = headline(encode_lifecycle(event))
    names = event.tenant.encode(), event.schedule_id.encode()
    assert found == Headline(*names, event.outcome, event.at, event.due_at)
    assert attempt_in(encode_lifecycle(event)) == event.attempt


@given(EVENTS)
def test_what_is_kept_of_it_is_the_same_but_for_a_due_instant_that_does_not_count(
    event: LifecycleEvent,
) -> None:
    body = encode_lifecycle(event)
    whole, kept = headline(body), kept_head(body)
    assert kept[:4] == whole[:4]
    if event.outcome is Outcome.FIRED or kept.due_ms is not None:
        assert kept == whole


@given(BODIES, st.integers(0, 40), st.integers(0, 255))
@example(PLAIN, 8, 1)
@example(PLAIN, 8, 2)
@example(PLAIN, 5, 4)
@example(
    encode_lifecycle(LifecycleEvent(tenant="", schedule_id="", outcome=Outcome.FIRED, at=0)), 0, 1
)
def test_damaged_ones_are_read_or_refused_as_by_the_long_way(
    body: bytes, at: int, byte: int
) -> None:
    for damaged in (body[:at], body[:at] + bytes([byte]) + body[at + 1 :]):
        expected = found = None
        with suppress(IndexError):
            expected = lifecycle_heads._headline(damaged)
        with suppress(IndexError):
            found = headline(damaged)
        assert found == expected


FAILED = encode_lifecycle(
    LifecycleEvent(tenant="", schedule_id="", outcome=Outcome.FAILED, at=0, due_at=None)
)


@given(BODIES, st.integers(0, 200), st.binary(max_size=12))
@example(FAILED, 9, b"")
@example(FAILED, 11, b"\2" + b"\xff" * 9 + b"\x7f")
def test_damaged_ones_have_an_attempt_that_can_be_counted_or_none(
    body: bytes, at: int, more: bytes
) -> None:
    found = attempt_in(body[:at] + more)
    assert found is None or 0 <= found < 2**31
