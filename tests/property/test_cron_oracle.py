"""CRON against the oracle, around changes of the clock; ``make oracle`` takes all zones.

The suite takes some zones, chosen by their names' hash and not by hand, and always those whose
changes are odd: half an hour, at midnight, a day that is missing, twice a year around a fast.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from zlib import crc32

import pytest

from belfry.schedules.triggers.cron_text import read_cron
from tests.property.cron_edges import (
    AROUND,
    EXPRESSIONS,
    FROM,
    NAMES,
    TO,
    at_change,
    compare,
    compare_with_cronsim,
    edges,
    in_zone,
    window,
)
from tests.property.cron_oracle import changes, read

ALL = os.environ.get("ORACLE") == "all"
ODD = (
    "Africa/Cairo", "Africa/Casablanca", "America/Havana", "America/Nuuk", "America/Scoresbysund",
    "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza", "Australia/Lord_Howe",
    "Europe/Dublin", "Pacific/Chatham", "Pacific/Easter",
)  # fmt: skip
SOME = sorted({*ODD, *(name for name in NAMES if crc32(name.encode()) % 40 == 0)})
# Around chunks of about a year, at whose edges stretches of constant offset are cut.
EDGES = tuple(datetime.fromtimestamp(k << 25, UTC) for k in range(48, 67))


def agrees(name: str, around: datetime, reach: timedelta = AROUND) -> int:
    """Compare all expressions in a zone around an instant; how many instants that were."""
    seen = window(name, around, reach)
    return sum(len(compare(text, seen)) for text in EXPRESSIONS)


def places(name: str) -> list[datetime]:
    """Two changes of a zone's clock: one by the name's hash, and one of the last two."""
    found = changes(name, FROM, TO)
    if len(found) < 3:
        return found
    return [found[crc32(name.encode()) % len(found)], found[-1 - crc32(name.encode()) % 2]]


@pytest.mark.parametrize("name", SOME)
def test_every_edge_of_a_change_of_the_clock(name: str) -> None:
    for change in places(name):
        assert at_change(name, change).instants > 0


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


def test_the_edges_of_a_gap_are_its_ends_its_middle_and_their_neighbours() -> None:
    walls = edges("Europe/Paris", datetime(2026, 3, 29, 1, tzinfo=UTC))
    assert [f"{at:%H:%M}" for at in walls] == [
        "01:59", "02:00", "02:01", "02:30", "02:59", "03:00", "03:01",
    ]  # fmt: skip


def test_cronsim_is_asked_as_well() -> None:
    seen = window("Europe/Paris", datetime(2026, 10, 25, 1, tzinfo=UTC))
    found = compare("30 2 * * *", seen)
    compare_with_cronsim("30 2 * * *", seen, found)
    with pytest.raises(AssertionError, match="differs from cronsim's"):
        compare_with_cronsim("30 2 * * *", seen, found[1:])


def test_a_zone_without_changes_has_nothing_to_compare() -> None:
    assert in_zone("Asia/Kolkata") == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "text", ["0 2-2/1 * * *", "7-7/5 1 * * *", "0 3 5-05/2 * *", "0 3 * MAR-3/4 MON-1/2"]
)
def test_a_range_of_one_number_is_that_number_whatever_its_step(text: str) -> None:
    found, wanted = read_cron(text), read_cron(" ".join(map(without_step, text.split())))
    assert found._replace(fixed=wanted.fixed) == wanted
    assert found.fixed is read(text).fixed


def without_step(part: str) -> str:
    return part.partition("-")[0]
