"""Cron at the edges of every change of every zone's clock, compared with two oracles.

For each change expressions are made of the times on the wall between which the clock jumps, and of
the minutes next to them: fixed ones, cadences, and some of that date and of that weekday alone.

    29 March 2026, Europe/Paris     01:59 │ 02:00  02:01   02:30   02:59 │ 03:00  03:01
                                     wall │ ◄──── does not exist ─────►  │ wall

The walk of `cron_oracle` judges all of them.  cronsim judges those that name one time of the day:
of cadences, of several times in one gap and of seconds its rule is another one (docs/schedules.md).

``python -m tests.property.cron_edges`` takes all zones and prints what was compared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib import resources
from time import monotonic
from typing import NamedTuple

import tzdata
from cronsim import CronSim

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by
from tests.property.cron_oracle import (
    MINUTE,
    Step,
    changes,
    judged,
    milliseconds,
    steps,
    walk,
    wall_clock,
)

FROM, TO = datetime(2020, 1, 1, tzinfo=UTC), datetime(2041, 1, 1, tzinfo=UTC)
AROUND = timedelta(hours=27)
# What a change close to the walk's beginning brings again, the walk has not seen.
BEFORE = timedelta(hours=4)
EXPRESSIONS = (
    "30 2 * * *",
    "0,15,45 0-3 * * *",
    "0 0 * * *",
    "5 1,2,23 * * 0,5-6",
    "59 23 31 * 5",
    "* * * * *",
    "*/20 * * * *",
    "30 * * * *",
    "0 */2 * * *",
    "15 1-23/2 * * *",
    "*/30 2 * * *",
    "*/15 0 * * *",
    "40/10 1,2 */2 * *",
    "0 2/22 * * *",
    "0-59 2 1-15 * 1",
    "30 2 15W,L-2,LW * *",
    "0 0 L-1W,31W * FRIL,SUN#1",
    "45 1,2 * mar-may,sep-nov SUNL,6#5,SUN#2",
    "0 30 2,3 * MAR-OCT SUN 2020-2040/2",
    "0 10/20 * L * * 2021,2024,2037",
)
NAMES = sorted((resources.files(tzdata) / "zones").read_text("utf-8").split())
# Many names are links: the same bytes need one look.
BY_BYTES = {
    resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).read_bytes(): name
    for name in reversed(NAMES)
}


class Compared(NamedTuple):
    """How much was compared: changes, expressions at them, their instants, those of cronsim."""

    changes: int = 0
    expressions: int = 0
    instants: int = 0
    by_cronsim: int = 0

    def plus(self, other: Compared) -> Compared:
        """Both together."""
        return Compared._make(one + two for one, two in zip(self, other, strict=True))


class Window(NamedTuple):
    """Minutes around an instant in a zone, and the range (epoch ms) that is compared."""

    name: str
    walked: list[Step]
    after_ms: int
    until_ms: int


def window(name: str, around: datetime, reach: timedelta = AROUND) -> Window:
    """The minutes around an instant; the comparison begins shortly before it."""
    walked = steps(walk(name, around - reach, around + reach))
    return Window(name, walked, milliseconds(around - BEFORE), milliseconds(walked[-1].utc))


def compare(text: str, seen: Window) -> list[int]:
    """The instants of an expression in a window, which are those of the walk."""
    name, walked, after, until = seen
    wanted = [ms for ms in map(milliseconds, judged(text, walked)) if after < ms <= until]
    trigger = trigger_by(Rule("CRON", when=text, timezone=name))
    found, due_ms = [], trigger.after_ms(after)
    while due_ms is not None and due_ms <= until:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    where = f"{text} in {name} after {datetime.fromtimestamp(after // 1000, UTC)}"
    assert found == wanted, where
    assert trigger.latest_ms(after, until) == (
        (wanted[-1], len(wanted)) if wanted else (after, 0)
    ), where
    return found


def compare_with_cronsim(text: str, seen: Window, found: list[int]) -> None:
    """The same of cronsim, for an expression that names one time of the day."""
    start = datetime.fromtimestamp(seen.after_ms // 1000, wall_clock(seen.name))
    wanted = []
    for at in CronSim(text, start):
        due_ms = milliseconds(at.astimezone(UTC))
        if due_ms > seen.until_ms:
            break
        wanted.append(due_ms)
    assert found == wanted, f"{text} in {seen.name} after {start} differs from cronsim's"


def edges(name: str, change: datetime) -> list[datetime]:
    """Times on the wall at both ends of what a change skips or repeats, and in its middle."""
    zone = wall_clock(name)
    after = change.astimezone(zone).replace(tzinfo=None)
    before = (change - MINUTE).astimezone(zone).replace(tzinfo=None) + MINUTE
    low, high = sorted((before, after))
    middle = low + (high - low) // MINUTE // 2 * MINUTE
    near = [edge + n * MINUTE for edge in (low, high) for n in (-1, 0, 1)]
    return sorted({*near, middle})


def one_time(at: datetime) -> Iterator[str]:
    """Expressions that name one time of the day: every day, on its date, on its weekday."""
    yield f"{at.minute} {at.hour} * * *"
    yield f"{at.minute} {at.hour} {at.day} {at.month} *"
    yield f"{at.minute} {at.hour} * * {at.isoweekday()}"


def several_times(walls: list[datetime]) -> Iterator[str]:
    """Fixed expressions of two times, and cadences."""
    for one, other in zip(walls, walls[2:], strict=False):
        yield f"{one.minute},{other.minute} {one.hour},{other.hour} * * *"
    for at in walls:
        yield f"{at.minute} {at.hour}-{at.hour}/1 * * *"
        yield f"{at.minute}-{at.minute}/1 {at.hour} {at.day} {at.month} *"
        yield f"*/7 {at.hour} * * *"
        yield f"{at.minute} * * * *"


def at_change(name: str, change: datetime) -> Compared:
    """Compare all expressions around a change; AssertionError for one that differs."""
    seen, walls = window(name, change), edges(name, change)
    singles = {text for at in walls for text in one_time(at)}
    others = {*several_times(walls), *EXPRESSIONS} - singles
    total = sum(len(compare(text, seen)) for text in others)
    for text in singles:
        found = compare(text, seen)
        compare_with_cronsim(text, seen, found)
        total += len(found)
    return Compared(1, len(singles) + len(others), total, len(singles))


def in_zone(name: str) -> Compared:
    """Compare around every change of a zone."""
    found = Compared()
    for change in changes(name, FROM, TO):
        found = found.plus(at_change(name, change))
    return found


def main() -> None:
    """Take all zones, on as many processors as PROCESSES says."""
    began, found = monotonic(), Compared()
    names = sorted(BY_BYTES.values())
    with ProcessPoolExecutor(int(os.environ.get("PROCESSES", os.cpu_count() or 1))) as pool:
        for each in pool.map(in_zone, names, chunksize=1):
            found = found.plus(each)
    sys.stdout.write(
        f"tzdata {tzdata.IANA_VERSION}: {len(NAMES)} names, {len(names)} different zones,"
        f" {found.changes:,} changes of the clock from {FROM.year} to {TO.year - 1}:"
        f" {found.expressions:,} comparisons with the walk, {found.by_cronsim:,} of them with"
        f" cronsim too, {found.instants:,} instants, none differs;"
        f" {monotonic() - began:.0f} s\n"
    )


if __name__ == "__main__":
    main()
