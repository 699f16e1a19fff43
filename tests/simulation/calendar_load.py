"""Calendars of the simulated users: today and tomorrow are business days or not, by turns.

A world begins on Friday, 15 January 2027, at 08:00 UTC, which is midnight in Los Angeles.  It lasts
for seconds, so what a calendar takes away comes back only by another change of it.  At the end no
calendar has today as a day off, so what recurs by seconds completes.  What was moved to another day
is cancelled.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.harness.rhythms import Table
from tests.simulation.broker import T0
from tests.simulation.sent import Sent
from tests.simulation.timetable_load import by_seconds

if TYPE_CHECKING:
    from tests.simulation.load import Load

# Mostly one: changes matter where schedules heed it.
CALENDARS: Final = ("office", "office", "office", "works")
ZONES: Final = (None, "UTC", "America/Los_Angeles")
TODAY: Final = datetime.fromtimestamp(T0 / 1000, UTC).date()
TOMORROW: Final = TODAY + timedelta(days=1)
# Which days off a change draws from; what does not matter to the schedules here is among them.
DAYS: Final = ((), (TODAY,), (TOMORROW,), (TODAY, TOMORROW), (TODAY - timedelta(days=3),))
LAST_DAYS: Final = ((), (TOMORROW,))


class CalendarLoad:
    """Draws calendars, changes of them, and schedules that heed them."""

    def __init__(self, load: Load, tenants: tuple[str, ...], random: Random) -> None:
        self._load, self._tenants, self._random = load, tenants, random
        self._heeding: list[Sent] = []
        self._ended = False
        self._there: set[tuple[str, str]] = set()

    def one(self, tenant: str, number: int) -> Sent:
        """A schedule that heeds a calendar, or a change of one."""
        draw, name = self._random.random(), self._random.choice(CALENDARS)
        # A schedule whose calendar is not there is refused, which is soon seen.
        is_first = (tenant, name) not in self._there and self._random.random() < 0.8
        if draw < 0.35 or is_first:
            self._back_soon(tenant, name)
            return self._set(tenant, name, self._random.choice(DAYS))
        if draw < 0.4:
            self._there.discard((tenant, name))
            return Sent(f"c{number}", tenant, name, "CALENDAR_REMOVE", {}, f"id-{number}")
        table = self._table() if draw < 0.55 else None
        fields = self._by_table(table) if table is not None else self._every()
        fields = self._moving() if draw >= 0.75 else fields
        fields["calendar"] = name
        sent = Sent(f"h{number}", tenant, f"cal-{number}", "UPSERT", fields, f"id-{number}")
        sent.table = table
        self._heeding.append(sent)
        return sent

    def _back_soon(self, tenant: str, name: str) -> None:
        """Often a change is followed by another one, before the first of them is read."""
        if self._random.random() < 0.5:
            days, after_ms = self._random.choice(DAYS), self._random.random() * 250
            self._load.broker.stage.later(after_ms, lambda: self._change(tenant, name, days))

    def _change(self, tenant: str, name: str, days: tuple[Any, ...]) -> None:
        """Change a calendar, unless no more requests come."""
        if not self._ended:
            self._send(tenant, name, days)

    def _send(self, tenant: str, name: str, days: tuple[Any, ...]) -> None:
        self._load.send(self._set(tenant, name, days))

    def end(self) -> None:
        """Let today be a business day in each calendar."""
        self._ended = True
        for tenant in self._tenants:
            for name in sorted(set(CALENDARS)):
                self._send(tenant, name, self._random.choice(LAST_DAYS))

    def clear(self) -> None:
        """Cancel all schedules: some are due on another day."""
        for sent in self._heeding:
            number = len(self._load.sent)
            self._load.send(
                Sent(f"q{number}", sent.tenant, sent.schedule_id, "CANCEL", {}, f"id-{number}")
            )

    def _set(self, tenant: str, name: str, days: tuple[Any, ...]) -> Sent:
        number = len(self._load.sent)
        self._there.add((tenant, name))
        fields = {"days_off": json.dumps({"days": [str(day) for day in days]})}
        return Sent(f"c{number}", tenant, name, "CALENDAR", fields, f"id-{number}")

    def _every(self) -> dict[str, Any]:
        return {
            "kind": "EVERY",
            "start_at": self._load.broker.now_ms() + self._random.randint(-2_000, 3_000),
            "interval_ms": self._random.choice((70, 300, 700, 2_000)),
            "max_fires": self._random.randint(2, 7),
            "misfire": "FIRE_ALL",
            "timezone": self._random.choice(ZONES),
        }

    def _table(self) -> Table:
        """Cron or RRULE by seconds: as an interval it completes on any business day."""
        start_ms = self._load.broker.now_ms() + self._random.randint(-2_000, 3_000)
        return by_seconds(self._random, start_ms, self._random.choice(ZONES) or "UTC")

    def _by_table(self, table: Table) -> dict[str, Any]:
        most = self._random.randint(2, 7)
        return {**table.fields, "max_fires": most, "misfire": "FIRE_ALL"}

    def _moving(self) -> dict[str, Any]:
        """Once on one of two days, at a time of day that is soon."""
        at_ms = self._load.broker.now_ms() + self._random.randint(1_000, 20_000)
        at = datetime.fromtimestamp(at_ms // 1_000, UTC)
        day, way = self._random.choice(
            ((TODAY, "NEXT_BUSINESS_DAY"), (TOMORROW, "PREVIOUS_BUSINESS_DAY"))
        )
        return {
            "kind": "CRON",
            "cron": f"{at.second} {at.minute} {at.hour} {day.day} {day.month} *",
            "on_holiday": way,
            "max_fires": 1,
            "misfire": "FIRE_ALL",
        }
