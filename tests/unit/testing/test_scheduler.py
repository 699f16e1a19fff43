"""The scheduler in memory answers and fires as a worker does, and time stands still meanwhile."""

from __future__ import annotations

import pytest

from belfry.client import Conflict, FiredRecord, Handlers, NotFound, Rejected, TooLate, retry_later
from belfry.client.backoff import Backoff, attempt_of
from belfry.client.errors import Exhausted
from belfry.client.scheduled import FiresSoFar
from belfry.testing import MemoryScheduler

NOON = "2026-12-01T12:00:00Z"


@pytest.fixture
def belfry() -> MemoryScheduler:
    return MemoryScheduler(NOON)


def test_nothing_fires_before_its_instant(belfry: MemoryScheduler) -> None:
    assert belfry.schedule("shop", "a", in_="5m", payload="x").outcome == "ACCEPTED"
    assert belfry.advance(299_999) == []
    (event,) = belfry.advance(1)
    assert (event.schedule_id, event.payload, event.occurrence) == ("a", b"x", 0)
    assert event.timestamp_ms == belfry.clock.now_ms
    assert event.tenant == "shop"


def test_events_fire_in_due_order_at_their_own_instants(belfry: MemoryScheduler) -> None:
    for minutes in (3, 1, 2):
        belfry.schedule("shop", f"m{minutes}", in_=f"{minutes}m")
    fired = belfry.advance("1h")
    assert [event.schedule_id for event in fired] == ["m1", "m2", "m3"]
    start = belfry.clock.now_ms - 3_600_000
    assert [(event.timestamp_ms or 0) - start for event in fired] == [60_000, 120_000, 180_000]
    assert belfry.events("shop") == fired


def test_verdicts_are_the_workers(belfry: MemoryScheduler) -> None:
    first = belfry.schedule("shop", "a", in_="5m", payload="x", request_id="one")
    assert first.due_ms == belfry.clock.now_ms + 300_000
    repeated = belfry.schedule("shop", "a", in_="5m", payload="x", request_id="one")
    assert (repeated.outcome, repeated.code) == ("DUPLICATE", "ACCEPTED")
    with pytest.raises(Conflict, match="request_id_reused"):
        belfry.cancel("shop", "a", request_id="one")
    assert belfry.schedule("shop", "a", at=first.due_ms, payload="y").outcome == "UPDATED"
    with pytest.raises(Conflict):
        belfry.schedule("shop", "a", in_="1m", action="CREATE")
    with pytest.raises(Rejected, match="instant_in_seconds"):
        belfry.schedule("shop", "b", at=1_798_000_000)
    assert belfry.cancel("shop", "a").outcome == "CANCELLED"
    with pytest.raises(NotFound):
        belfry.cancel("shop", "a")
    belfry.schedule("shop", "c", in_="1m")
    belfry.advance("2m")
    with pytest.raises(TooLate):
        belfry.cancel("shop", "c")


def test_an_etag_is_that_of_one_schedule_and_of_none_after_it(belfry: MemoryScheduler) -> None:
    first = belfry.schedule("shop", "a", in_="5m")
    assert belfry.get("shop", "a").etag == first.etag
    belfry.cancel("shop", "a", expected_version=first.etag or "")
    second = belfry.schedule("shop", "a", in_="5m")
    with pytest.raises(Conflict, match="wrong_generation"):
        belfry.cancel("shop", "a", expected_version=first.etag or "")
    (listed,) = belfry.list("shop")
    assert listed.etag == second.etag
    with pytest.raises(ValueError, match="is no version"):
        belfry.cancel("shop", "a", expected_version="1.")
    belfry.cancel("shop", "a", expected_version=1)


def test_get_and_list(belfry: MemoryScheduler) -> None:
    belfry.schedule("shop", "order/1", in_="5m", payload="x", key="k", headers={"h": "v"})
    belfry.schedule("shop", "order/2", in_="6m", group="g")
    belfry.schedule("shop", "price/1", in_="7m", event_type="price")
    belfry.schedule("other", "order/3", in_="8m")
    found = belfry.get("shop", "order/1")
    assert (found.state, found.payload, found.key) == ("PENDING", b"x", b"k")
    assert (found.headers, found.kind, found.version) == ([("h", b"v")], "AFTER", 1)
    assert [each.schedule_id for each in belfry.list("shop", prefix="order/")] == [
        "order/1",
        "order/2",
    ]
    assert [each.schedule_id for each in belfry.list("shop", event_type="price")] == ["price/1"]
    assert [each.schedule_id for each in belfry.list("shop", group="g")] == ["order/2"]
    until = belfry.clock.now_ms + 360_000
    assert [each.schedule_id for each in belfry.list("shop", due_until=until)] == ["order/1"]
    belfry.pause("shop", "order/2")
    assert belfry.get("shop", "order/2").state == "PAUSED"
    belfry.advance("5m")
    assert belfry.get("shop", "order/1").state == "FIRED"
    with pytest.raises(NotFound):
        belfry.get("shop", "nothing")


def test_an_envelope_shows_its_payload() -> None:
    belfry = MemoryScheduler(NOON, delivery="ENVELOPE")
    belfry.schedule("shop", "a", in_="1m", payload="x", event_type="order.expired")
    (event,) = belfry.advance("1m")
    assert (event.payload, event.event_type, event.tenant) == (b"x", "order.expired", "shop")
    assert event.event is not None
    assert event.event["scheduled_at"] == belfry.clock.now_ms


def test_handlers_schedule_while_time_passes(belfry: MemoryScheduler) -> None:
    handlers = Handlers()
    seen: list[str | None] = []

    @handlers.on("ping.*")
    def ping(event: FiredRecord) -> None:
        seen.append(event.schedule_id)
        if len(seen) < 3:
            belfry.schedule("shop", f"ping{len(seen)}", in_="10m", event_type="ping.again")

    belfry.schedule("shop", "ping0", in_="10m", event_type="ping.first")
    belfry.advance("29m", handlers)
    assert seen == ["ping0", "ping1"]
    belfry.advance("1m", handlers)
    assert seen == ["ping0", "ping1", "ping2"]


def test_a_retry_waits_longer_each_time_and_ends(belfry: MemoryScheduler) -> None:
    handlers = Handlers()
    attempts: list[tuple[int, int]] = []
    given_up: list[FiredRecord] = []
    start = belfry.clock.now_ms

    @handlers.on("charge")
    def charge(event: FiredRecord) -> None:
        attempts.append((attempt_of(event), belfry.clock.now_ms - start))
        assert event.payload == b"card"
        assert event.key == b"4711"
        assert ("mine", b"kept") in event.headers
        assert len(event.headers) == 7 + len({"mine", "event-type"}) + bool(attempt_of(event))
        try:
            retry_later(belfry, event, Backoff(first="1m", factor=3, most="5m", attempts=4))
        except Exhausted as error:
            given_up.append(error.event)

    belfry.schedule(
        "shop", "a", in_=0, payload="card", key="4711", event_type="charge",
        headers={"mine": "kept"},
    )  # fmt: skip
    belfry.advance("1h", handlers)
    minutes = [(attempt, at / 60_000) for attempt, at in attempts]
    assert minutes == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert [attempt_of(event) for event in given_up] == [3]


def test_a_retry_that_is_asked_for_twice_fires_once(belfry: MemoryScheduler) -> None:
    belfry.schedule("shop", "a", in_=0, payload="x")
    (event,) = belfry.advance(0)
    assert retry_later(belfry, event).outcome == "ACCEPTED"
    assert retry_later(belfry, event).outcome == "DUPLICATE"
    other = retry_later(belfry, event, Backoff(first="9m"))
    assert (other.outcome, other.code) == ("CONFLICT", "request_id_reused")
    assert len(belfry.advance("1h")) == 1


def test_the_clock_never_goes_back(belfry: MemoryScheduler) -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        belfry.advance_to("2026-12-01T11:59:59Z")


def test_a_serial_group_waits_for_the_acknowledgement(belfry: MemoryScheduler) -> None:
    for name in ("a", "b"):
        belfry.schedule("shop", name, in_="1s", group="g", serial=True, ack_timeout="1h")
    (first,) = belfry.advance("1m")
    assert belfry.ack("shop", "a", first.fire_id or "").outcome == "UPDATED"
    assert belfry.ack("shop", "a", first.fire_id or "").outcome == "UNCHANGED"
    (second,) = belfry.advance(0)
    assert second.schedule_id == "b"
    with pytest.raises(Rejected, match="bad_fire_id"):
        belfry.ack("shop", "b", "the last one")
    assert belfry.advance("2h") == []
    assert belfry.ack("shop", "b", second.fire_id or "").outcome == "UNCHANGED"


def test_the_last_fires_are_told_to_who_asks_for_them(belfry: MemoryScheduler) -> None:
    belfry.schedule("shop", "tick", every="1h")
    belfry.schedule("shop", "once", in_="1m")
    events = [event for event in belfry.advance("12h") if event.schedule_id == "tick"]
    found = belfry.get("shop", "tick", last=3).last_fires
    assert [each.fire_id for each in found] == [event.fire_id for event in events[-3:]]
    assert [each.late_ms for each in found] == [0, 0, 0]
    assert len(belfry.get("shop", "tick", last=10).last_fires) == 10
    assert belfry.get("shop", "tick").last_fires == ()
    counted = belfry.get("shop", "tick", last=1).fires
    assert counted == FiresSoFar(12, 0, 0, 0, 1.0, 1.0)
    assert belfry.get("shop", "tick").fires is None
    (once,) = belfry.get("shop", "once", last=10).last_fires
    assert (once.fire_id, once.late_ms, once.missed) == (None, 0, 0)
