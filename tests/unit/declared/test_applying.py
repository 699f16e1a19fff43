"""One apply after the other, on policies and schedules in memory: what is written, and recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from belfry.declared.applying import (
    Applying,
    Done,
    NotRecorded,
    record_id,
    record_in,
)
from belfry.declared.calendar_entries import DeclaredCalendar
from belfry.declared.declaration import declaration
from belfry.declared.difference import Found, alterations, removals
from belfry.declared.set_record import SetRecord
from belfry.declared.ways import ScheduleWrite
from belfry.tenants.policy import TenantPolicy

HEAD = "set: s\nkept_in: t\ntenants:\n  t:\n"
A = "      a: {every: 1m, payload: x}\n"
B = "      b: {at: 2060-01-01T00:00:00Z, http_targets: ['https://u.example/?token=1']}\n"
FULL = f"{HEAD}    policy: {{max_pending: 7}}\n    schedules:\n{A}{B}"
CALENDAR = "    calendars:\n      de: {days: [2026-12-25], weekend: [SUN, SAT]}\n"
HEEDS = "      c: {cron: '0 9 * * *', calendar: de}\n"


STANDS = {"state": "PENDING", "version": 1}


class Died(Exception):
    """The end of the process that applies."""


class World:
    """Policies and schedules in memory; it may die before the n-th write, and refuse names."""

    def __init__(self) -> None:
        self.policies: dict[str, TenantPolicy] = {}
        self.schedules: dict[tuple[str, str], dict[str, Any]] = {}
        self.calendars: dict[tuple[str, str], dict[str, Any]] = {}
        self.log: list[str] = []
        self.dies_at: int | None = None
        self.refused: set[str] = set()

    def look(self, tenant: str, schedule_id: str) -> Mapping[str, Any] | None:
        return self.schedules.get((tenant, schedule_id))

    def put(self, policies: Sequence[TenantPolicy]) -> list[str | None]:
        for each in policies:
            self._note(f"put {each.tenant}")
            self.policies[each.tenant] = each
        return [None] * len(policies)

    def remove(self, policy: TenantPolicy) -> str | None:
        self._note(f"remove {policy.tenant}")
        del self.policies[policy.tenant]
        return None

    def set_calendar(self, calendar: DeclaredCalendar) -> str | None:
        self._note(f"calendar {calendar.name}")
        if calendar.name in self.refused:
            return "REFUSED"
        self.calendars[calendar.tenant, calendar.name] = {**calendar.body, "changed_at": "now"}
        return None

    def remove_calendar(self, calendar: DeclaredCalendar) -> str | None:
        self._note(f"forget {calendar.name}")
        if calendar.name in self.refused:
            return "REFUSED"
        del self.calendars[calendar.tenant, calendar.name]
        return None

    def write(self, writes: Sequence[ScheduleWrite]) -> Iterator[str | None]:
        for each in writes:
            yield self._write(each)

    def _write(self, each: ScheduleWrite) -> str | None:
        self._note(f"{each.action} {each.name[1]}")
        stands = self.schedules.get(each.name)
        if each.name[1] in self.refused:
            return "REFUSED"
        if (stands is not None) == (each.action == "CREATE"):
            return "CONFLICT"
        if each.action == "CANCEL":
            del self.schedules[each.name]
            return None
        version = 1 if stands is None else stands["version"] + 1
        self.schedules[each.name] = {**each.json, "state": "PENDING", "version": version}
        return None

    def _note(self, text: str) -> None:
        if self.dies_at == len(self.log):
            raise Died
        self.log.append(text)

    def apply(self, text: str, *, prune: bool = False) -> list[Done]:
        declared = declaration([("a.yaml", text)])
        record = record_in(self.look(declared.kept_in, record_id(declared)))
        standing = dict(self.calendars)
        found = Found(self.policies, dict(self.schedules), frozenset(), record, standing)
        self.log.clear()
        altered = alterations(declared, found)
        gone = removals(declared, found) if prune else []
        applying = Applying(declared, found, self, "me", lambda _: None)
        return list(applying.run(altered, gone))

    @property
    def record(self) -> SetRecord:
        return record_in(self.look("t", "belfry/sets/s"))


def test_twice_writes_nothing() -> None:
    world = World()
    assert {done.altered.alteration for done in world.apply(FULL)} == {"create"}
    assert world.log == [
        *("put t", "CREATE belfry/sets/s", "CREATE a", "CREATE b", "UPSERT belfry/sets/s"),
    ]
    assert {done.altered.alteration for done in world.apply(FULL)} == {"unchanged"}
    assert world.log == []


def test_a_calendar_is_set_before_what_heeds_it_and_once() -> None:
    world = World()
    text = f"{HEAD}{CALENDAR}    schedules:\n{HEEDS}"
    names = [done.altered.name for done in world.apply(text)]
    assert names == ["calendar t/de", "schedule t/c"]
    assert world.log.index("calendar de") < world.log.index("CREATE c")
    assert world.calendars["t", "de"]["weekend"] == ["SAT", "SUN"]
    assert {done.altered.alteration for done in world.apply(text)} == {"unchanged"}
    assert world.log == []
    (changed, _) = world.apply(text.replace("[2026-12-25]", '["2026-12-24", 2026-12-25]'))
    assert (changed.altered.alteration, world.log) == ("update", ["calendar de"])
    (days,) = changed.altered.fields
    assert (days.name, days.before) == ("days", ["2026-12-25"])
    assert days.after == ["2026-12-24", "2026-12-25"]


def test_a_calendar_that_is_refused_is_told_and_tried_again() -> None:
    world = World()
    world.refused.add("de")
    (done,) = world.apply(HEAD + CALENDAR)
    assert done.problem == "REFUSED"
    world.refused.clear()
    (done,) = world.apply(HEAD + CALENDAR)
    assert done.problem is None


def test_a_calendar_that_the_set_has_made_is_pruned_behind_what_heeds_it() -> None:
    world = World()
    world.apply(f"{HEAD}    policy: {{}}\n{CALENDAR}    schedules:\n{HEEDS}")
    assert world.record.made_calendars == {("t", "de")}
    world.apply("set: s\nkept_in: t\n")
    assert ("t", "de") in world.calendars
    assert world.record.made_calendars == {("t", "de")}
    world.refused.add("de")
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert world.record.made_calendars == {("t", "de")}
    world.refused.clear()
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert world.log == ["forget de", "UPSERT belfry/sets/s"]
    assert (world.calendars, world.record) == ({}, SetRecord())


def test_what_a_set_removes_goes_in_the_order_of_what_needs_it() -> None:
    world = World()
    world.apply(f"{HEAD}    policy: {{}}\n{CALENDAR}    schedules:\n{HEEDS}")
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert world.log == ["CANCEL c", "forget de", "remove t", "UPSERT belfry/sets/s"]


def test_a_calendar_that_was_there_before_is_changed_and_never_removed() -> None:
    world = World()
    world.calendars["t", "de"] = {"days": [], "weekend": ["SUN"], "source": ""}
    (done,) = world.apply(HEAD + CALENDAR)
    assert str(done.altered.alteration) == "update"
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert ("t", "de") in world.calendars


def test_a_calendar_that_others_have_removed_is_none_of_the_set_any_more() -> None:
    world = World()
    world.apply(HEAD + CALENDAR)
    del world.calendars["t", "de"]
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert world.record == SetRecord()


def test_what_is_declared_no_longer_is_removed_when_asked() -> None:
    world = World()
    world.apply(FULL)
    less = f"{HEAD}    schedules:\n{A}"
    world.apply(less)
    assert ("t", "b") in world.schedules
    world.apply(less, prune=True)
    assert world.log == ["CANCEL b", "remove t", "UPSERT belfry/sets/s"]
    assert (world.record.made, world.record.made_policies) == ({("t", "a")}, set())
    world.apply(less, prune=True)
    assert world.log == []


def test_what_was_there_before_is_changed_and_never_removed() -> None:
    world = World()
    world.policies["t"] = TenantPolicy("t")
    world.schedules["t", "a"] = {"kind": "EVERY", "interval_ms": 5} | STANDS
    kinds = {done.altered.name: str(done.altered.alteration) for done in world.apply(FULL)}
    assert kinds == {"policy t": "update", "schedule t/a": "update", "schedule t/b": "create"}
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert ("t", "a") in world.schedules
    assert ("t", "b") not in world.schedules
    assert "t" in world.policies


@pytest.mark.parametrize("write", range(1, 6))
def test_after_a_death_at_any_write_nothing_is_left_that_pruning_does_not_know(write: int) -> None:
    world = World()
    world.dies_at = write
    with pytest.raises(Died):
        world.apply(FULL.replace("    schedules:", f"{CALENDAR}    schedules:"))
    world.dies_at = None
    world.apply("set: s\nkept_in: t\n", prune=True)
    assert world.schedules.keys() <= {("t", "belfry/sets/s")}
    assert world.calendars == {}
    assert world.record == SetRecord()


def test_what_has_ended_by_itself_is_not_made_again_until_it_is_asked_otherwise() -> None:
    world = World()
    world.apply(FULL)
    del world.schedules["t", "b"]
    del world.schedules["t", "a"]
    kinds = {done.altered.schedule_id: str(done.altered.alteration) for done in world.apply(FULL)}
    assert kinds == {None: "unchanged", "a": "create", "b": "over"}
    world.apply(FULL.replace("2060", "2061"))
    assert ("t", "b") in world.schedules


def test_the_same_delay_is_no_change_and_another_is() -> None:
    world = World()
    text = f"{HEAD}    schedules: {{a: {{in: 5m}}}}\n"
    world.apply(text)
    # As it is shown once it runs.
    world.schedules["t", "a"] |= {"kind": "AFTER", "scheduled_at": "2030-01-01T00:00:00Z"}
    world.apply(text)
    assert world.log == []
    world.apply(text.replace("5m", "6m"))
    assert world.log == ["UPSERT a", "UPSERT belfry/sets/s"]


def test_a_failure_is_told_and_tried_again() -> None:
    world = World()
    world.refused = {"a"}
    problems = {done.altered.schedule_id: done.problem for done in world.apply(FULL)}
    assert problems == {None: None, "a": "REFUSED", "b": None}
    world.refused = set()
    world.apply(FULL)
    assert world.log == ["CREATE a", "UPSERT belfry/sets/s"]


def test_of_two_applies_at_a_time_the_second_changes_no_schedule() -> None:
    world = World()
    declared = declaration([("a.yaml", FULL)])
    found = Found({}, {})
    second = Applying(declared, found, world, "me", lambda _: None)
    altered = alterations(declared, found)
    world.apply(FULL)
    world.log.clear()
    with pytest.raises(NotRecorded, match="another apply of this set"):
        list(second.run(altered, []))
    assert world.log == ["put t"]


def test_credentials_are_compared_where_they_are_shown_and_never_told() -> None:
    world = World()
    world.apply(FULL)
    shown = {"url": "https://u.example/?***"}
    world.schedules["t", "b"] |= {"http_targets": [shown]}
    world.apply(FULL)
    assert world.log == []
    world.schedules["t", "b"] |= {"http_targets": ["https://u.example/?token=2"]}
    (done,) = [each for each in world.apply(FULL) if each.altered.changes]
    assert done.altered.schedule_id == "b"
    assert "token" not in str(done.altered.fields)
