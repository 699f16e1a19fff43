"""Schedules that heed a calendar, through changes that arrive late: no fire is told of twice.

A run draws three schedules, steps that fire some and are rolled back at times, and changes that
arrived hours before they are read.  So a change may free a day on which a schedule has fired.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.schedules.instants import parse_instant
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import Driver

# A Tuesday.
NOW: Final = parse_instant("2026-12-22T08:00:00Z")
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
WAYS: Final = (None, "NEXT_BUSINESS_DAY", "PREVIOUS_BUSINESS_DAY")
CRONS: Final = ("0 */3 * * *", "0 9 * * *", "30 8,20 * * *")
STEPS: Final = 60
CHANGES: Final = 3
DAYS: Final = range(20, 32)


class Run:
    """One run of a seed; `fired` counts what fired, by fire id and by schedule and instant."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.driver = Driver()
        self.fired: Counter[Any] = Counter()

    def change(self, arrived_ms: int) -> None:
        """A change of the calendar, which arrived then."""
        chosen = self.random.sample(DAYS, self.random.randrange(6))
        weekend = self.random.choice([(), ("SAT", "SUN")])
        said = {"days": [f"2026-12-{day}" for day in chosen], "weekend": weekend}
        self.driver.ask(arrived_ms, action="CALENDAR", schedule_id="de", days_off=json.dumps(said))

    def fields(self) -> dict[str, Any]:
        """What all schedules of the run have."""
        choice = self.random.choice
        found: dict[str, Any] = {
            "calendar": "de",
            "on_holiday": choice(WAYS),
            "group": choice([None, "g"]),
        }
        misfire = choice([None, "FIRE_ALL", "SKIP"])
        if misfire:
            found |= {"misfire": misfire, "max_lateness_ms": 30 * MINUTE}
        return found | {"jitter_ms": choice([None, 20 * MINUTE])}

    def begin(self) -> None:
        """Set the calendar, and define the schedules."""
        self.change(NOW)
        self.driver.step(NOW, fire=False)
        fields, ask = self.fields(), self.driver.ask
        for name in ("s0", "s1"):
            ask(NOW, schedule_id=name, kind="CRON", cron=self.random.choice(CRONS), **fields)
        rhythm = {"interval_ms": 5 * HOUR, "start_at": NOW + HOUR}
        ask(NOW, schedule_id="s2", kind="EVERY", **rhythm, **fields)
        self.driver.step(NOW, fire=False)

    def go(self) -> None:
        """Go through the steps."""
        choice, chance, driver = self.random.choice, self.random.random, self.driver
        now_ms, last_ms, left = NOW, NOW, CHANGES
        for _ in range(STEPS):
            now_ms += choice([1000, 20 * MINUTE, HOUR, 3 * HOUR, 13 * HOUR])
            if left and chance() < 0.3:
                last_ms = max(last_ms, now_ms - choice([HOUR, 12 * HOUR, 24 * HOUR]))
                self.change(last_ms)
                left -= 1
            if chance() < 0.2:
                driver.step(now_ms, commit=False)
            for shot in driver.step(now_ms, choice([1, 2, 1000])).shots:
                self.fired[shot.header("belfry-fire-id")] += 1
                self.fired[shot.id, shot.header("belfry-scheduled-at")] += 1
            if chance() < 0.7:
                self.walk(now_ms, Budget(choice([1, 10]), choice([1, 10])))
            if chance() < 0.1:
                rebuilt(driver, now_ms)

    def walk(self, now_ms: int, budget: Budget) -> None:
        """Let some schedules follow the calendar."""
        if not self.driver.engine.advance_jobs(now_ms, budget).empty:
            self.driver.end(now_ms)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nothing_fires_twice_however_late_a_change_is_read(first: int) -> None:
    fires = 0
    for seed in range(first, first + 20):
        run = Run(seed)
        run.begin()
        run.go()
        fires += len(run.fired)
        assert [each for each, times in run.fired.items() if times > 1] == [], f"seed {seed}"
    assert fires > 500, "runs in which little fires show little"
