"""Backfills against brute force: random rules, ranges, budgets, kills and roll-backs.

What a backfill has to fire is computed minute by minute from what the rule says; what it did is
read from the fired records that were committed.  A preview has to count the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from belfry.store.job_lookup import past_preview, wanted_by
from belfry.tenants.effective import Level
from belfry.wire.fired import rfc3339
from tests.property.test_bulk import EVENTS, row
from tests.unit.engine.driver import HOUR, T0, Driver

MINUTE: Final = 60_000
# T0 is a whole minute, so what fires every so many minutes from it does so as well.
BEGIN: Final = T0 - 6 * HOUR


class Recurring(NamedTuple):
    """A schedule by the minutes at which it fires: every so many, from a start on, but for some."""

    every: int
    start: int | None
    only_before: int
    by_cron: bool
    paused: bool

    def fields(self) -> dict[str, Any]:
        kind: dict[str, Any] = {"kind": "EVERY", "interval_ms": self.every * MINUTE}
        if self.by_cron:
            kind = {"kind": "CRON", "cron": f"*/{self.every} * * * *"}
        if self.only_before < 60:
            kind["except_cron"] = f"{self.only_before}-59 * * * *"
        return {**kind, "start_at": self.start}

    def instants(self, from_ms: int, until_ms: int) -> list[int]:
        """Those of the rule in a range, minute by minute."""
        anchor_ms = T0 if self.start is None else self.start
        found = []
        for ms in range(BEGIN, until_ms, MINUTE):
            minute = ms // MINUTE % 60
            fires = minute % self.every == 0
            if not self.by_cron:
                fires = (ms - anchor_ms) % (self.every * MINUTE) == 0
            after_start = self.start is None or ms >= self.start
            if fires and after_start and minute < self.only_before and ms >= from_ms:
                found.append(ms)
        return found


recurring = st.builds(
    Recurring,
    every=st.sampled_from([1, 7, 20, 60]),
    start=st.sampled_from([None, None, BEGIN, T0 - HOUR, T0 - 90 * MINUTE]),
    only_before=st.sampled_from([60, 60, 30]),
    by_cron=st.booleans(),
    paused=st.booleans(),
).filter(lambda each: not (each.by_cron and each.every == 60))


@given(
    st.lists(recurring, min_size=1, max_size=3),
    st.integers(0, 5 * 60),
    st.integers(1, 6 * 60),
    st.lists(st.sampled_from(EVENTS), max_size=12),
    st.integers(1, 60),
)
def test_each_occurrence_of_the_range_fires_once(
    kept: list[Recurring], first: int, length: int, events: list[str], changes: int
) -> None:
    driver = Driver(level=Level.FAILURES)
    for number, each in enumerate(kept):
        driver.ask(schedule_id=f"s{number}", **each.fields())
        if each.paused:
            driver.ask(schedule_id=f"s{number}", action="PAUSE")
    driver.step(T0, fire=False)
    span = BEGIN + first * MINUTE, BEGIN + (first + length) * MINUTE
    expected = Counter(
        (f"s{number}".encode(), rfc3339(ms))
        for number, each in enumerate(kept)
        for ms in each.instants(span[0], min(span[1], T0))
    )
    spec = BulkSpec(action="BACKFILL", range_from=span[0], range_until=span[1], per_second=10_000)
    found = past_preview(driver.rows, wanted_by(b"demo", spec), (span[0], min(span[1], T0)), None)
    assert found.occurrences == expected.total()
    instants = [instant for _, instant in expected]
    if instants:
        assert found.first_ms is not None
        assert found.last_ms is not None
        assert (rfc3339(found.first_ms), rfc3339(found.last_ms)) == (min(instants), max(instants))
    driver.ask(action="BULK", schedule_id="job", bulk=spec.text())
    driver.step(T0, fire=False)
    fired, ids, now_ms = Counter[tuple[bytes, bytes]](), set[bytes](), T0
    while driver.engine.jobs.under_way:
        event = events.pop() if events else "commit"
        now_ms += 1_000
        effects = driver.engine.advance_jobs(now_ms, Budget(100, changes))
        driver.end(now_ms, commit=event == "commit")
        if event == "commit":
            said = [dict(headers) for *_, headers in effects.fired]
            fired.update(
                (each["belfry-schedule-id"] or b"", each["belfry-scheduled-at"] or b"")
                for each in said
            )
            ids |= {each["belfry-fire-id"] or b"" for each in said}
        elif event == "kill":
            driver.start(driver.rows)
    assert fired == expected
    assert len(ids) == expected.total()
    assert row(driver).fired == expected.total()
