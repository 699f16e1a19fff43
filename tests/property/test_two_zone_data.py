"""A partition goes back and forth between two owners whose time zone data differ.

    owner with A    ●───────●           ●─ …         each fires at the instants of its own data,
    owner with B            ╎ ●───────● ╎            and none fires what the other has fired
                    handover ╎        ╎ handover

The oracle lists the times on the wall that a rule has, by dates alone, and what each is by either
data. Where these lie further apart than the data do, each fires once, at one of its two instants.
Where they do not, an instant cannot tell which of two times it is; there an owner fires instants of
a rule of its data or of the other's, none twice, and a handover takes or adds at most one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from tests.property.zone_releases import RULES, ZONE, Releases, instant_ms, wall_clock
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import Driver

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
FIRST: Final = "2030a"
OTHERS: Final = tuple(version for version in RULES if version != FIRST)
# The clock changes on 31 March and on 27 October by the first data.
SEASONS: Final = {"spring": date(2030, 3, 5), "autumn": date(2030, 9, 25)}
DAYS: Final = 45
# More schedules than one sweep looks at.
COPIES: Final = 3
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Case(NamedTuple):
    """A rule's fields, and the same in the oracle's words: hours and minutes, and days."""

    fields: dict[str, Any]
    times: tuple[tuple[int, int], ...]
    weekdays: str = "MO TU WE TH FR SA SU"

    def walls(self, begin: date) -> list[datetime]:
        days = [begin + timedelta(days=day) for day in range(DAYS + 10)]
        return [
            datetime.combine(day, time(hour, minute))
            for day in days
            if WEEKDAYS[day.weekday()] in self.weekdays
            for hour, minute in self.times
        ]


def cron(text: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "CRON", "cron": text, **fields}


def rrule(text: str) -> dict[str, Any]:
    return {"kind": "RRULE", "rrule": text, "start_at": parse_instant("2030-01-01T12:00:00Z")}


SPARSE: Final = {
    "daily": Case(cron("0 9 * * *"), ((9, 0),)),
    "in the gap": Case(cron("30 2 * * *"), ((2, 30),)),
    "midnight": Case(cron("0 0 * * *"), ((0, 0),)),
    "four a day": Case(cron("0 3,9,15,21 * * *"), ((3, 0), (9, 0), (15, 0), (21, 0))),
    "weekly": Case(cron("15 7 * * SUN"), ((7, 15),), "SU"),
    "left out": Case(cron("0 9 * * *", except_cron="* * * * SAT"), ((9, 0),), "MO TU WE TH FR SU"),
    "rrule": Case(rrule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"), ((9, 0),)),
    "rrule in the gap": Case(rrule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0"), ((2, 30),)),
    "rrule of two": Case(
        rrule("FREQ=WEEKLY;BYDAY=SU,WE;BYHOUR=6,18;BYMINUTE=0;BYSECOND=0"),
        ((6, 0), (18, 0)),
        "SU WE",
    ),
}
DENSE: Final = {
    "two in a row": Case(cron("0 9,10 * * *"), ((9, 0), (10, 0))),
    "rrule of three": Case(
        rrule("FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0;BYSECOND=0"), ((1, 0), (2, 0), (3, 0))
    ),
}


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Releases]:
    found = Releases(tmp_path, monkeypatch)
    yield found
    monkeypatch.undo()
    found.forget()


class Partition:
    """One partition, its owners one after the other, and all that it has fired."""

    def __init__(self, releases: Releases) -> None:
        self.driver = Driver()
        self.releases = releases
        self.fired: list[LifecycleEvent] = []

    def take_over(self, version: str, now_ms: int, *, replay: bool = False) -> None:
        self.releases.use(version)
        if replay:
            rebuilt(self.driver, now_ms)
        else:
            self.driver.start(self.driver.rows)
        self.driver.engine.claim(None)
        self.driver.end(now_ms)

    def until(self, now_ms: int) -> None:
        """Step from due instant to due instant, as an owner that sleeps until the next one."""
        while (due_ms := self.driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
            told = self.driver.step(max(due_ms, self.reached_ms), take=0).effects.lifecycle
            assert {each.outcome for each in told} <= {Outcome.FIRED, Outcome.COMPLETED}
            self.fired += [whole(each) for each in told if each.outcome is Outcome.FIRED]
        self.reached_ms = now_ms

    reached_ms = 0

    def at(self, schedule_id: str) -> list[int]:
        """The instants at which a schedule fired, each under an id of its own."""
        mine = [each for each in self.fired if each.schedule_id == schedule_id]
        ids = [each.fire_id for each in mine]
        assert len(ids) == len(set(ids)), f"{schedule_id} fired twice under one id"
        found = [each.due_at or 0 for each in mine]
        assert found == sorted(set(found)), f"{schedule_id} went back"
        return found


def begun(releases: Releases, begin: date, cases: dict[str, Case]) -> tuple[Partition, int]:
    """A partition of an owner with the first data that has accepted these rules."""
    releases.use(FIRST)
    partition = Partition(releases)
    # By both data the same times of that day are over.
    now_ms = parse_instant(f"{begin:%Y-%m-%d}T11:00:00Z")
    partition.driver.engine.claim(b"settings")
    partition.driver.end(now_ms)
    for name, case in cases.items():
        for copy in range(COPIES):
            partition.driver.ask(
                now_ms,
                schedule_id=f"{name} {copy}",
                timezone=ZONE,
                misfire="FIRE_ALL",
                **case.fields,
            )
    assert set(partition.driver.step(now_ms).outcomes) == {"ACCEPTED"}
    return partition, now_ms


def back_and_forth(partition: Partition, other: str, now_ms: int, chance: random.Random) -> int:
    """Owners take turns, from minutes to days; how often the partition changed hands."""
    end_ms, handovers = now_ms + DAYS * DAY, 0
    while now_ms < end_ms:
        version = chance.choice((FIRST, other))
        partition.reached_ms = now_ms
        partition.take_over(version, now_ms, replay=chance.random() < 0.3)
        handovers += 1
        # All is looked at, some of it, or nothing before the next owner.
        for _ in range(chance.choice((0, 0, 1, 3))):
            partition.driver.sweep(now_ms, at_most=1)
        turn_ms = chance.choice((HOUR // 4, HOUR // 2, HOUR, 7 * HOUR, DAY, 3 * DAY))
        partition.until(now_ms + chance.randrange(1, turn_ms))
        # Nobody owns it for a while, at times for most of a day.
        now_ms = partition.reached_ms + chance.choice((0, 1, HOUR // 3, HOUR, 20 * HOUR))
    partition.reached_ms = now_ms
    partition.take_over(FIRST, now_ms)
    partition.until(now_ms + HOUR)
    return handovers


@pytest.mark.parametrize("season", SEASONS)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_each_time_on_the_wall_fires_once(
    releases: Releases, season: str, other: str, seed: int
) -> None:
    begin = SEASONS[season]
    partition, begun_ms = begun(releases, begin, SPARSE)
    back_and_forth(partition, other, begun_ms, random.Random(f"{season} {other} {seed}"))
    ours, theirs = wall_clock(FIRST), wall_clock(other)
    for name, case in SPARSE.items():
        due = [{instant_ms(wall, ours), instant_ms(wall, theirs)} for wall in case.walls(begin)]
        due = [each for each in due if min(each) > begun_ms]
        for copy in range(COPIES):
            check_once(partition, f"{name} {copy}", due)


def check_once(partition: Partition, schedule_id: str, due: list[set[int]]) -> None:
    """Each occurrence, which has one instant or two, has fired once; no other has."""
    left = partition.at(schedule_id)
    for either in due:
        found = [each for each in left[:1] if each in either]
        if not found and max(either) > partition.reached_ms:
            break
        assert found, f"{schedule_id}: of {sorted(either)} none fired, and then {left[:1]}"
        left = left[1:]
    assert not left, f"{schedule_id} fired at {left} as well"


@pytest.mark.parametrize("season", SEASONS)
@pytest.mark.parametrize("other", OTHERS)
def test_times_closer_than_the_data_are_apart_fire_at_an_instant_of_a_rule(
    releases: Releases, season: str, other: str
) -> None:
    begin = SEASONS[season]
    partition, begun_ms = begun(releases, begin, DENSE)
    handovers = back_and_forth(partition, other, begun_ms, random.Random(f"{season} {other}"))
    ours, theirs = wall_clock(FIRST), wall_clock(other)
    for name, case in DENSE.items():
        walls = case.walls(begin)
        lists = [[instant_ms(wall, each) for wall in walls] for each in (ours, theirs)]
        for copy in range(COPIES):
            fires = partition.at(f"{name} {copy}")
            assert set(fires) <= set(lists[0]) | set(lists[1])
            due = [begun_ms < each <= partition.reached_ms for each in lists[0]]
            assert abs(len(fires) - sum(due)) <= handovers
            both = {each for each in lists[0] if each in lists[1]}
            assert {each for each in both if begun_ms < each < fires[-1]} <= set(fires)


def test_an_owner_with_the_old_data_looks_at_what_one_with_the_new_has_moved(
    releases: Releases,
) -> None:
    """Moved by an owner that died before it had looked at all, 9 o'clock would fire twice.

    by the old data      ·      ● 08:00
    by the new           ● 07:00          moved there, and then the old owner is back
    """
    partition, now_ms = begun(releases, date(2030, 1, 15), {"a": SPARSE["daily"]})
    partition.take_over("for ever", now_ms)
    partition.driver.ask(now_ms, schedule_id="b", timezone=ZONE, **cron("0 9 * * *"))
    partition.driver.step(now_ms)
    partition.take_over(FIRST, now_ms + 1)
    partition.until(now_ms + DAY)
    assert partition.at("b") == partition.at("a 0") == [parse_instant("2030-01-16T08:00:00Z")]


def test_the_last_occurrence_does_not_become_the_one_that_has_fired(releases: Releases) -> None:
    """By the other data it lies behind `end_at`; the one before has fired an hour ago.

    by the old data      08:00 fired          next day 08:00 ●    ╎ end_at
    by the new                 09:00                              ╎ 09:00
    """
    end_at = parse_instant("2030-07-17T07:30:00Z")
    case = Case(cron("0 9 * * *", end_at=end_at), ())
    partition, now_ms = begun(releases, date(2030, 7, 15), {"a": case})
    fired_ms = parse_instant("2030-07-16T07:00:00Z")
    partition.until(fired_ms + HOUR // 2)
    partition.take_over("abolished", fired_ms + HOUR // 2)
    partition.driver.sweep(fired_ms + HOUR // 2)
    partition.until(now_ms + 4 * DAY)
    assert partition.at("a 0") == [fired_ms, fired_ms + DAY]
