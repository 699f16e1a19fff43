"""The quick way to fire means the same as the general one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.tenant import Delivery, Level
from tests.property.mutations import NOW
from tests.unit.engine.driver import HOUR, Driver, request

WHAT: dict[str, Any] = {
    "tenant": st.sampled_from(["demo", "other"]),
    "schedule_id": st.sampled_from(["a", "b", "c", "d"]),
    "group": st.sampled_from([None, "g"]),
    "key": st.sampled_from([None, b"", b"k"]),
    "payload": st.sampled_from([None, b"", b"p"]),
    "headers": st.sampled_from([[], [], [{"name": "h", "value": b"v"}]]),
    "max_lateness_ms": st.sampled_from([None, None, 60_000]),
}
SINGLE = {"at": st.integers(NOW + 1, NOW + 5)}
ENDS: dict[str, Any] = {
    "max_fires": st.sampled_from([None, None, 1, 2, 3]),
    "end_at": st.sampled_from([None, None, NOW + 2 * HOUR]),
}
RULES: dict[str, Any] = {
    "jitter_ms": st.sampled_from([None, None, 3]),
    "misfire": st.sampled_from([None, None, "SKIP", "FIRE_ONCE", "FIRE_ALL"]),
    "overlap": st.sampled_from([None, None, "SKIP", "QUEUE_ONE"]),
    "serial": st.sampled_from([None, None, None, True]),
}
EVERY = {
    "kind": st.just("EVERY"),
    "interval_ms": st.sampled_from([2, HOUR // 2, HOUR, HOUR, 30 * HOUR]),
    "start_at": st.integers(NOW + 1, NOW + 5),
}
CRON = {"kind": st.just("CRON"), "cron": st.sampled_from(["0 * * * *", "* * * * * *", "@daily"])}
REQUESTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({**WHAT, **SINGLE}),
        st.fixed_dictionaries({**ENDS, **EVERY}),
        st.fixed_dictionaries({**WHAT, **ENDS, **CRON}),
        st.fixed_dictionaries({**WHAT, **ENDS, **RULES, **EVERY}),
    ),
    max_size=8,
)
# Some things are due a little late, some an hour, and some for the second time.
STEPS = (NOW, NOW + 3, NOW + HOUR, NOW + HOUR + 2, NOW + 3 * HOUR)


def fired(requests: list[dict[str, Any]], *, quick: bool, level: Level) -> list[Any]:
    driver = Driver(level, Delivery.PAYLOAD)
    if not quick:
        driver.engine._firing._plain.fire = _nothing_is_plain  # type: ignore[method-assign,assignment]
    for fields in requests:
        driver.send(request(**fields))
    did = [driver.step(now_ms).effects for now_ms in STEPS]
    return [*did, dict(driver.rows.scan(b"", b"\xff"))]


def _nothing_is_plain(due: Any, _now_ms: int, _effects: Any) -> Any:
    return (record for _, record in due)


@given(REQUESTS, st.sampled_from(Level))
def test_the_quick_way_fires_the_same(requests: list[dict[str, Any]], level: Level) -> None:
    quick = fired(requests, quick=True, level=level)
    assert quick == fired(requests, quick=False, level=level)


HOURLY: dict[str, Any] = {"kind": "EVERY", "interval_ms": HOUR, "start_at": NOW + 1}
TARGETS = [{"url": "https://example.com/hook"}]


def left_alone(*, zones_change: bool = False, **fields: Any) -> int:
    """How many of one event's fires are left to the general way."""
    driver = Driver(Level.FAILURES, Delivery.PAYLOAD)
    left: list[bytes] = []
    engine: Any = driver.engine
    general = engine._firing._leave_timeline

    def leave(record: bytes, *more: Any) -> bytes:
        left.append(record)
        return bytes(general(record, *more))

    engine._firing._leave_timeline = leave
    driver.send(request(payload=b"p", **fields))
    driver.step(NOW)
    engine._zones.under_way = zones_change
    assert len(driver.step(NOW + 1_000).effects.fired) >= 1
    return len(left)


@pytest.mark.parametrize(
    "when", [{"at": NOW + 1}, HOURLY, {"kind": "CRON", "cron": "* * * * * *"}], ids=str
)
def test_most_events_are_fired_the_quick_way(when: dict[str, Any]) -> None:
    assert left_alone(**when) == 0


@pytest.mark.parametrize(
    "more",
    [
        {"headers": [{"name": "h", "value": b"v"}]},
        {"jitter_ms": 3},
        {"interval_ms": 400},
        {"max_fires": 1},
        {"overlap": "SKIP"},
        {"serial": True, "group": "g"},
        {"http_targets": TARGETS},
        {"max_lateness_ms": 10, "misfire": "FIRE_ONCE"},
        {"zones_change": True},
    ],
    ids=str,
)
def test_what_asks_for_more_is_not(more: dict[str, Any]) -> None:
    assert left_alone(**HOURLY | more) == 1
