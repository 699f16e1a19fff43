"""The quick way to fire means the same as the general one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.tenant import Delivery, Level
from tests.property.mutations import NOW
from tests.unit.engine.driver import HOUR, Driver, request

REQUESTS = st.lists(
    st.fixed_dictionaries(
        {
            "tenant": st.sampled_from(["demo", "other"]),
            "schedule_id": st.sampled_from(["a", "b", "c", "d"]),
            "at": st.integers(NOW + 1, NOW + 5),
            "group": st.sampled_from([None, "g"]),
            "key": st.sampled_from([None, b"", b"k"]),
            "payload": st.sampled_from([None, b"", b"p"]),
            "headers": st.sampled_from([[], [{"name": "h", "value": b"v"}]]),
            "max_lateness_ms": st.sampled_from([None, None, 60_000]),
        }
    ),
    max_size=8,
)


def fired(requests: list[dict[str, Any]], *, quick: bool, level: Level) -> list[Any]:
    driver = Driver(level, Delivery.PAYLOAD)
    if not quick:
        driver.engine._firing._plain.fire = _nothing_is_plain  # type: ignore[method-assign,assignment]
    for fields in requests:
        driver.send(request(**fields))
    did = [driver.step(NOW).effects, driver.step(NOW + HOUR).effects]
    return [*did, dict(driver.rows.scan(b"", b"\xff"))]


def _nothing_is_plain(due: Any, _now_ms: int, _effects: Any) -> Any:
    return (record for _, record in due)


@given(REQUESTS, st.sampled_from(Level))
def test_the_quick_way_fires_the_same(requests: list[dict[str, Any]], level: Level) -> None:
    quick = fired(requests, quick=True, level=level)
    assert quick == fired(requests, quick=False, level=level)


def test_most_events_are_fired_the_quick_way() -> None:
    driver = Driver(Level.FAILURES, Delivery.PAYLOAD)
    left: list[bytes] = []
    driver.engine._firing._leave_timeline = lambda record, *_: left.append(record)  # type: ignore[method-assign,assignment]
    driver.send(request(at=NOW + 1, payload=b"p"))
    driver.step(NOW)
    assert len(driver.step(NOW + 1).effects.fired) == 1
    assert not left
