"""CRON against the oracle, around every change of the clock; ``make oracle`` takes all zones.

The suite takes some zones, chosen by their names' hash and not by hand, and always those whose
changes are odd: half an hour, at midnight, a day that is missing, twice a year around a fast.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from importlib import resources
from zlib import crc32

import pytest
import tzdata

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by
from tests.property.cron_oracle import changes, instants, milliseconds, walk

ALL = os.environ.get("ORACLE") == "all"
FROM, TO = datetime(2020, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
AROUND = timedelta(hours=27)
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
    "0 30 2,3 * MAR-OCT SUN 2020-2035/2",
    "0 10/20 * L * * 2021,2024",
)
ODD = (
    "Africa/Cairo", "Africa/Casablanca", "America/Havana", "America/Nuuk", "America/Scoresbysund",
    "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza", "Australia/Lord_Howe",
    "Europe/Dublin", "Pacific/Chatham", "Pacific/Easter",
)  # fmt: skip
NAMES = sorted((resources.files(tzdata) / "zones").read_text("utf-8").split())
# Many names are links: the same bytes need one look.
BY_BYTES = {
    resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).read_bytes(): name
    for name in reversed(NAMES)
}
SOME = sorted({*ODD, *(name for name in NAMES if crc32(name.encode()) % 40 == 0)})
# Around chunks of about a year, at whose edges stretches of constant offset are cut.
EDGES = tuple(datetime.fromtimestamp(k << 25, UTC) for k in range(48, 62))


def agrees(name: str, around: datetime, reach: timedelta = AROUND) -> int:
    """Compare all expressions in a zone around an instant; how many instants that were.

    Four hours before the instant the comparison begins: what a change close to the walk's beginning
    brings again, the walk has not seen.
    """
    walked = walk(name, around - reach, around + reach)
    after, until = milliseconds(around - timedelta(hours=4)), milliseconds(walked[-1].utc)
    total = 0
    for text in EXPRESSIONS:
        wanted = [ms for ms in map(milliseconds, instants(text, walked)) if after < ms <= until]
        trigger = trigger_by(Rule("CRON", when=text, timezone=name))
        found, due_ms = [], trigger.after_ms(after)
        while due_ms is not None and due_ms <= until:
            found.append(due_ms)
            due_ms = trigger.after_ms(due_ms)
        assert found == wanted, f"{text} in {name} around {around}"
        latest = (wanted[-1], len(wanted)) if wanted else (after, 0)
        assert trigger.latest_ms(after, until) == latest, f"{text} in {name} around {around}"
        total += len(wanted)
    return total


def places(name: str) -> list[datetime]:
    """Changes of a zone's clock; in the suite two of them, the first and one by the name's hash."""
    found = changes(name, FROM, TO)
    if ALL or len(found) < 3:
        return found
    return [found[crc32(name.encode()) % len(found)], found[-1 - crc32(name.encode()) % 2]]


@pytest.mark.parametrize("name", sorted(BY_BYTES.values()) if ALL else SOME)
def test_every_change_of_the_clock(name: str) -> None:
    assert all(agrees(name, around) for around in places(name))


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
        ("Pacific/Kwajalein", datetime(1993, 8, 21, 12, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2025, 10, 4, 15, 30, tzinfo=UTC)),
        ("Africa/Cairo", datetime(2025, 4, 24, 22, tzinfo=UTC)),
        ("America/Havana", datetime(2025, 11, 2, 5, tzinfo=UTC)),
    ],
)
def test_changes_that_surprise(name: str, around: datetime) -> None:
    assert around in changes(name, around - timedelta(days=3), around + timedelta(days=3))
    assert agrees(name, around, timedelta(hours=60)) > 0


@pytest.mark.parametrize("name", ["Europe/Paris", "UTC", "Asia/Kolkata"])
def test_edges_of_chunks(name: str) -> None:
    for edge in EDGES if ALL else EDGES[5:8]:
        assert agrees(name, edge.replace(second=0)) > 0


def test_the_oracle_sees_a_trigger_that_forgets_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    from belfry.schedules.triggers.clock import Clock, clock

    clock.cache_clear()
    monkeypatch.setattr(Clock, "fires_at_gap", lambda *_: False)
    with pytest.raises(AssertionError, match="30 2"):
        agrees("Europe/Paris", datetime(2026, 3, 29, 1, tzinfo=UTC))
    clock.cache_clear()
