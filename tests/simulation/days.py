"""Calendars: what a schedule fires by, and that nothing is left out but for a reason (I29).

    taken in    calendar, v0      change v1, read in step 7       change v2, read in step 9
    in force    v0 ─────────────► v1 from step 8 on ────────────► v2 from step 10 on
    instants    up to the arrival of the newest change: by it, or by what was in force before
                behind that: by the newest alone

An instant between two fires that did not fire was a day off by one of the calendars in force
meanwhile, or had been passed when a change was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from tests.simulation.acks import nominal_ms
from tests.simulation.broker import T0
from tests.simulation.taking import CHANGED, Seen, Taken

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.trail import Step

DAY_MS: Final = 86_400_000
# Days around that of an instant that may move to it.
REACH: Final = 8


@dataclass(frozen=True, slots=True)
class Version:
    """The days off of a calendar from one step on: `index` is that of the step that read them."""

    off: frozenset[date]
    changed_ms: int
    index: int
    read_ms: int
    place: int


def check_days(seen: Seen) -> list[str]:
    """All that is wrong with what heeds a calendar."""
    versions: dict[tuple[str, str], list[Version]] = {}
    known: set[tuple[str, str]] = set()
    cleared: dict[tuple[str, str], Taken] = {}
    problems: list[str] = []
    heeding: list[tuple[Taken, bool]] = []
    for taken in seen.taken:
        sent = taken.sent
        name = (sent.tenant, sent.schedule_id)
        if sent.action == "CALENDAR" and taken.outcome != "DUPLICATE":
            problems += _set(taken, name in known, versions.setdefault(name, []))
            known.add(name)
        elif sent.action == "CALENDAR_REMOVE" and taken.outcome != "DUPLICATE":
            if (taken.outcome == "CANCELLED") is not (name in known):
                problems.append(f"I29 {sent.name} (remove) ended in {taken.outcome}")
            known.discard(name)
        elif "calendar" in sent.fields and taken.outcome != "DUPLICATE":
            heeding.append((taken, (sent.tenant, sent.fields["calendar"]) in known))
        elif sent.action == "CANCEL":
            cleared[name] = taken
    for taken, there in heeding:
        sent = taken.sent
        if (taken.outcome == "REJECTED") is there:
            problems.append(f"I29 {sent.name} ended in {taken.outcome}; its calendar: {there}")
        definition = seen.definitions.get(sent.name)
        if definition is not None and taken.outcome in CHANGED:
            mine = versions[sent.tenant, sent.fields["calendar"]]
            row = _Row(taken, definition, mine, cleared.get((sent.tenant, sent.schedule_id)))
            problems += [f"I29 {sent.name} {what}" for what in row.problems()]
    return problems


def _set(taken: Taken, known: bool, versions: list[Version]) -> list[str]:
    """Note a change of a calendar; what is wrong with its outcome."""
    sent, step = taken.sent, taken.step
    said = json.loads(sent.fields["days_off"])["days"]
    off = frozenset(date.fromisoformat(day) for day in said)
    same = known and versions[-1].off == off
    wanted = "UNCHANGED" if same else "UPDATED" if known else "ACCEPTED"
    if not same:
        read_ms = step.rows[-1].timestamp_ms
        versions.append(Version(off, sent.appended_ms, step.index, read_ms, taken.place))
    if taken.outcome == wanted:
        return []
    return [f"I29 {sent.name} (calendar) ended in {taken.outcome}, and not in {wanted}"]


class _Row:
    """One schedule that heeds a calendar, with what it fired."""

    def __init__(
        self, taken: Taken, definition: Definition, versions: list[Version], end: Taken | None
    ) -> None:
        self._taken, self._sent, self._end = taken, taken.sent, end
        first = [at for at, each in enumerate(versions) if each.place < taken.place][-1]
        self._versions = versions[first:]
        self._fired = sorted(
            ((nominal_ms(entry), step, entry) for step, entry in definition.fired_in),
            key=lambda each: each[0],
        )

    @property
    def _moves(self) -> bool:
        """Whether its instant moves to another day where it is on a day off."""
        return "on_holiday" in self._sent.fields

    def problems(self) -> Iterator[str]:
        """What is wrong with its fires, and with what lies between them."""
        most = self._sent.fields["max_fires"]
        if len(self._fired) > most:
            yield f"fired {len(self._fired)} times, and {most} were asked for"
        # One that was refused and sent again late may be cancelled amid its fires.
        amid = self._end is not None and self._end.outcome == "CANCELLED"
        if not self._moves and len(self._fired) < most and not amid:
            yield f"fired {len(self._fired)} times of {most}"
        for at_ms, step, entry in self._fired:
            if at_ms > entry.timestamp_ms:
                yield f"fired {at_ms - entry.timestamp_ms} ms early"
            if not self._may_fire(at_ms, step):
                yield f"fired for {at_ms}, which its calendar leaves out"
        begin = (self._sent.appended_ms - 1, self._taken.step)
        marks = [begin, *((at_ms, step) for at_ms, step, _ in self._fired)]
        if self._end is not None and len(self._fired) < most:
            marks.append((self._end.sent.appended_ms - SLACK_MS, self._end.step))
        for (from_ms, one), (until_ms, other) in pairwise(marks):
            for at_ms in self._candidates(from_ms, until_ms):
                if not self._left_out(at_ms, one, other):
                    yield f"left {at_ms} out, which is on a business day"

    def _may_fire(self, at_ms: int, step: Step) -> bool:
        in_force = [each for each in self._versions if each.index < step.index]
        if not in_force:
            # Read in the step of the schedule itself.
            in_force = self._versions[:1]
        if at_ms > in_force[-1].changed_ms or len(in_force) == 1:
            return self._allowed(at_ms, in_force[-1])
        return any(self._allowed(at_ms, each) for each in in_force)

    def _left_out(self, at_ms: int, one: Step, other: Step) -> bool:
        """Whether an instant between two fires was left out for a reason."""
        for number, each in enumerate(self._versions):
            if each.index >= other.index:
                break
            following = self._versions[number + 1 : number + 2]
            # What lies behind the reading of a change goes by that alone.
            over = any(
                then.index < one.index or (then.index < other.index and then.read_ms < at_ms)
                for then in following
            )
            if not over and not self._allowed(at_ms, each):
                return True
            if number and each.index >= one.index and at_ms <= each.read_ms:
                return True
        return False

    # -- instants ----------------------------------------------------------------------------------

    def _candidates(self, after_ms: int, until_ms: int) -> Iterator[int]:
        """Instants between two, as if there were no day off, on any day that they may move to."""
        if self._sent.table is not None:
            begin_ms = max(after_ms, self._sent.appended_ms)
            yield from self._sent.table.instants(begin_ms, until_ms - 1)
            return
        if not self._moves:
            yield from self._sent.between(after_ms + 1, until_ms)
            return
        second, minute, hour, day, month, _ = self._sent.fields["cron"].split()
        year = datetime.fromtimestamp(T0 / 1000, UTC).year
        said = datetime(year, int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
        for days in range(-REACH, REACH + 1):
            at_ms = round((said + timedelta(days=days)).timestamp() * 1000)
            if after_ms < at_ms < until_ms:
                yield at_ms

    def _allowed(self, at_ms: int, version: Version) -> bool:
        """Whether an instant is one, by these days off."""
        fields = self._sent.fields
        if not self._moves:
            zone = ZoneInfo(fields["timezone"] or "UTC")
            table = self._sent.table
            if table is not None:
                grid = bool(table.instants(at_ms - 1, at_ms))
            else:
                grid = (at_ms - fields["start_at"]) % fields["interval_ms"] == 0
            return grid and datetime.fromtimestamp(at_ms / 1000, zone).date() not in version.off
        day = datetime.fromtimestamp(at_ms / 1000, UTC).date()
        return self._moved_to(version) == day and self._time_of_day(at_ms)

    def _moved_to(self, version: Version) -> date:
        """The day on which its only instant is, by these days off."""
        _, _, _, day, month, _ = self._sent.fields["cron"].split()
        found = date(datetime.fromtimestamp(T0 / 1000, UTC).year, int(month), int(day))
        way = 1 if self._sent.fields["on_holiday"] == "NEXT_BUSINESS_DAY" else -1
        while found in version.off:
            found += timedelta(days=way)
        return found

    def _time_of_day(self, at_ms: int) -> bool:
        second, minute, hour, *_ = self._sent.fields["cron"].split()
        at: Any = datetime.fromtimestamp(at_ms / 1000, UTC)
        return (at.second, at.minute, at.hour) == (int(second), int(minute), int(hour))


# What was due so short before the end was perhaps not fired yet.
SLACK_MS: Final = 1_500
