"""One fire: what a tenant wants told, or how its events are enveloped, changes nothing else.

Every row goes the same way, and the route of its tenant says what is added.  So the same schedules
fire at the same instants under the same ids, and the store holds the same rows afterwards, whatever
the tenant's policy says of form and reports.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.rule import OVERLAPS
from belfry.tenants.effective import Delivery, Level
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
    "overlap": st.sampled_from([None, None, *OVERLAPS[2:]]),
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


def fired(requests: list[dict[str, Any]], level: Level, delivery: Delivery) -> list[Any]:
    """What fires in each step, without its form; and what the store holds in the end."""
    driver = Driver(level, delivery)
    for name in ("demo", "other"):
        driver.note(name, envelope_head=b"head")
    for fields in requests:
        driver.send(request(**fields))
    did: list[Any] = []
    for now_ms in STEPS:
        effects = driver.step(now_ms).effects
        shots = [(topic, key, group, headers) for topic, key, group, _, headers in effects.fired]
        did.append((shots, effects.fire_ids, effects.lateness_ms, effects.outcomes, effects.rows))
        told = [each for each in effects.lifecycle if each.outcome == "FIRED"]
        assert len(told) == (len(shots) if level is Level.ALL else 0)
    return [*did, dict(driver.rows.scan(b"", b"\xff"))]


@given(REQUESTS, st.sampled_from(Level), st.sampled_from(Delivery))
def test_what_is_told_and_how_it_is_dressed_changes_nothing_else(
    requests: list[dict[str, Any]], level: Level, delivery: Delivery
) -> None:
    plain = fired(requests, Level.FAILURES, Delivery.PAYLOAD)
    assert fired(requests, level, delivery) == plain
