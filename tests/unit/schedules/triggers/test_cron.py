"""CRON over changed clocks, in vectors that anybody can check with a calendar."""

from __future__ import annotations

from datetime import timedelta, timezone
from itertools import islice
from typing import Any

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.rule import Rule, encode_rule, rule_of
from belfry.schedules.triggers import trigger_by, trigger_of
from belfry.schedules.triggers.clock import Clock
from belfry.schedules.triggers.cron import Cron
from belfry.schedules.triggers.cron_spelling import normalized, seed_of
from belfry.schedules.triggers.cron_text import interval_of, read_cron
from belfry.schedules.triggers.expression import expression
from belfry.schedules.triggers.trigger import Trigger
from belfry.schedules.triggers.zones import Zone

PARIS = "Europe/Paris"  # forward on 2026-03-29 at 02:00, back on 2026-10-25 at 03:00


def cron(text: str, zone: str | None = None, **more: int) -> Trigger:
    return trigger_by(Rule("CRON", when=text, timezone=zone, **more))  # type: ignore[arg-type]


def dues(text: str, zone: str, start: str, count: int) -> list[str]:
    """The first instants from `start` on, without their seconds where these are 0."""
    trigger = cron(text, zone, start_at=parse_instant(start))

    def walk() -> list[int]:
        found = trigger.first_ms(0)
        instants = []
        while found is not None:
            instants.append(found)
            if len(instants) == count:
                break
            found = trigger.after_ms(found)
        return instants

    return [format_instant(each).removesuffix(":00.000Z") for each in islice(walk(), count)]


@pytest.mark.parametrize(
    ("text", "zone", "start", "found"),
    [
        # Fixed: once right after the gap, and once in an hour that comes twice.
        ("30 2 * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0,30 2,3 * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T01:00", "2026-03-29T01:30"]),
        ("30 2 * * *", PARIS, "2026-10-24T22:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        # The same with a field of seconds, in which a * makes no cadence.
        ("0 30 2 * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("* 30 2 * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("*/30 30 2 * * *", PARIS, "2026-10-25T00:30:01Z", ["2026-10-25T00:30:30.000Z",
                                                            "2026-10-26T01:30"]),
        # A cadence goes on: nothing is made up for, and each hour counts.
        ("*/30 * * * *", PARIS, "2026-03-29T00:30Z", ["2026-03-29T00:30", "2026-03-29T01:00",
                                                      "2026-03-29T01:30"]),
        ("15 * * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T00:15", "2026-03-29T01:15"]),
        ("15 * * * *", PARIS, "2026-10-25T00:00Z", ["2026-10-25T00:15", "2026-10-25T01:15",
                                                    "2026-10-25T02:15"]),
        ("0 */2 * * *", PARIS, "2026-03-28T23:00Z", ["2026-03-28T23:00", "2026-03-29T02:00"]),
        ("*/30 2 * * *", PARIS, "2026-10-25T00:00Z", ["2026-10-25T00:00", "2026-10-25T00:30",
                                                      "2026-10-25T01:00", "2026-10-25T01:30",
                                                      "2026-10-26T01:00"]),
        # But no day is lost: all of this one's times are in the gap.
        ("*/30 2 * * *", PARIS, "2026-03-28T01:30Z", ["2026-03-28T01:30", "2026-03-29T01:00",
                                                      "2026-03-30T00:00"]),
        ("*/30 1,2 * * *", PARIS, "2026-03-29T00:00Z", ["2026-03-29T00:00", "2026-03-29T00:30",
                                                        "2026-03-29T23:00"]),
        # Half an hour (Lord Howe, forward on 2025-10-05 at 02:00).
        ("15 2 * * *", "Australia/Lord_Howe", "2025-10-04T00:00Z", ["2025-10-04T15:30",
                                                                    "2025-10-05T15:15"]),
        ("*/10 2 * * *", "Australia/Lord_Howe", "2025-10-04T15:00Z", ["2025-10-04T15:30",
                                                                      "2025-10-04T15:40"]),
        # Midnight that does not exist (Cairo, 2025-04-25) or comes twice (Havana, 2025-11-02).
        ("0 0 * * *", "Africa/Cairo", "2025-04-24T12:00Z", ["2025-04-24T22:00",
                                                            "2025-04-25T21:00"]),
        ("0 0 * * FRI", "Africa/Cairo", "2025-04-24T12:00Z", ["2025-04-24T22:00",
                                                              "2025-05-01T21:00"]),
        ("0 0 * * *", "America/Havana", "2025-11-01T12:00Z", ["2025-11-02T04:00",
                                                              "2025-11-03T05:00"]),
        ("30 0 * * *", "America/Havana", "2025-11-02T04:00Z", ["2025-11-02T04:30",
                                                               "2025-11-03T05:30"]),
        # A day that never was: 2011-12-30 in Apia.
        ("30 2 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", ["2011-12-30T10:00",
                                                               "2012-12-29T12:30"]),
        ("30 2 * * *", "Pacific/Apia", "2011-12-29T12:00Z", ["2011-12-29T12:30",
                                                             "2011-12-30T10:00",
                                                             "2011-12-30T12:30"]),
        ("30 * * * *", "Pacific/Apia", "2011-12-30T09:00Z", ["2011-12-30T09:30",
                                                             "2011-12-30T10:30"]),
        # What cronsim knows of days.
        ("0 0 L * *", "UTC", "2027-02-01T00:00Z", ["2027-02-28T00:00", "2027-03-31T00:00"]),
        ("0 0 LW * *", "UTC", "2027-01-01T00:00Z", ["2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 * * MON#2", "UTC", "2027-01-01T00:00Z", ["2027-01-11T00:00", "2027-02-08T00:00"]),
        ("0 0 * * 5L", "UTC", "2027-01-01T00:00Z", ["2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 13 * FRI", "UTC", "2027-01-01T00:00Z", ["2027-01-01T00:00", "2027-01-08T00:00",
                                                      "2027-01-13T00:00"]),
        ("0 0 29 2 *", "UTC", "2027-01-01T00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 * feb sun#5", "UTC", "2027-01-01T00:00Z", ["2032-02-29T00:00", "2060-02-29T00:00"]),
        ("@Weekly", "UTC", "2027-01-01T00:00Z", ["2027-01-03T00:00", "2027-01-10T00:00"]),
        # Nearest days from Monday to Friday: never in another month, never a day that is not there.
        ("0 0 15W * *", "UTC", "2027-05-01T00:00Z", ["2027-05-14T00:00", "2027-06-15T00:00",
                                                     "2027-07-15T00:00", "2027-08-16T00:00"]),
        ("0 0 1W * *", "UTC", "2027-05-01T00:00Z", ["2027-05-03T00:00", "2027-06-01T00:00"]),
        ("0 0 31W * *", "UTC", "2027-07-01T00:00Z", ["2027-07-30T00:00", "2027-08-31T00:00",
                                                     "2027-10-29T00:00"]),
        ("0 0 28W 2 *", "UTC", "2027-01-01T00:00Z", ["2027-02-26T00:00", "2028-02-28T00:00"]),
        ("0 0 L-2 * *", "UTC", "2028-01-30T00:00Z", ["2028-02-27T00:00", "2028-03-29T00:00"]),
        ("0 0 L-30 * *", "UTC", "2027-02-01T00:00Z", ["2027-03-01T00:00", "2027-05-01T00:00"]),
        ("0 0 L-1W * *", "UTC", "2027-01-01T00:00Z", ["2027-01-29T00:00", "2027-02-26T00:00",
                                                      "2027-03-30T00:00"]),
        ("0 0 l-2,10w * *", "UTC", "2027-01-01T00:00Z", ["2027-01-11T00:00", "2027-01-29T00:00",
                                                         "2027-02-10T00:00", "2027-02-26T00:00"]),
        ("0 0 * * fril", "UTC", "2027-01-01T00:00Z", ["2027-01-29T00:00", "2027-02-26T00:00"]),
        ("0 0 * * MON#1,7L", "UTC", "2027-01-01T00:00Z", ["2027-01-04T00:00", "2027-01-31T00:00"]),
        # Seven fields: years at the end; they need not be soon.
        ("0 0 0 1 1 * 2040-2050/5", "UTC", "2027-01-01T00:00Z", [
            "2040-01-01T00:00", "2045-01-01T00:00", "2050-01-01T00:00"]),
        ("0 0 0 1 1 * */5", "UTC", "2027-01-01T00:00Z", ["2030-01-01T00:00", "2035-01-01T00:00"]),
        ("30 0 0 29 2 * 2101-2199", "UTC", "2027-01-01T00:00Z", ["2104-02-29T00:00:30.000Z"]),
        ("0 0 12 * * * *", "UTC", "2027-01-01T00:00Z", ["2027-01-01T12:00", "2027-01-02T12:00"]),
        ("0 30 2 * * * 2027", PARIS, "2027-03-28T00:00Z", ["2027-03-28T01:00",
                                                           "2027-03-29T00:30"]),
    ],
)  # fmt: skip
def test_vectors(text: str, zone: str, start: str, found: list[str]) -> None:
    assert dues(text, zone, start, len(found)) == found


def test_first_is_after_the_acceptance_and_from_the_start_on() -> None:
    nine = parse_instant("2026-12-01T09:00:00Z")
    day = 86_400_000
    assert cron("0 9 * * *").first_ms(nine - 1) == nine
    assert cron("0 9 * * *").first_ms(nine) == nine + day
    assert cron("0 9 * * *", start_at=nine + day).first_ms(nine) == nine + day
    assert cron("0 9 * * *", start_at=nine + 1).first_ms(nine - 5) == nine + day
    assert cron("0 9 * * *", start_at=nine - 9 * day).first_ms(nine) == nine + day


def test_the_end_is_inclusive() -> None:
    nine = parse_instant("2026-12-01T09:00:00Z")
    assert cron("0 9 * * *", end_at=nine).first_ms(nine - 1) == nine
    assert cron("0 9 * * *", end_at=nine - 1).first_ms(nine - 1) is None
    assert cron("0 9 * * *", end_at=nine).after_ms(nine) is None


def test_years_end_a_schedule() -> None:
    new_year = parse_instant("2040-01-01T00:00:00Z")
    assert cron("0 0 0 1 1 * 2040").first_ms(0) == new_year
    assert cron("0 0 0 1 1 * 2040").after_ms(new_year) is None
    assert cron("0 0 0 1 1 * 2040").latest_ms(0, new_year + 10**12) == (new_year, 1)
    assert cron("0 0 0 29 2 * 2041-2043").first_ms(0) is None


def test_h_is_a_number_that_follows_from_the_schedule_alone() -> None:
    """Frozen: another number would move schedules that are at rest."""
    seed = seed_of("demo", "report")
    assert seed == 41009361406919553
    assert normalized("h h * * *", seed) == "23 17 * * *"
    assert normalized("H/15 * * * *", seed) == "8-59/15 * * * *"
    assert normalized("H(0-29)/10,H(30-59) h(1-5) * jan THU", seed) == ("3-29/10,53 1 * JAN THU")
    assert normalized("H H H H H H *", seed) == "23 23 17 17 7 6 *"
    assert normalized("@hourly") == "0 * * * *"


def test_steps_of_h_stay_in_its_range() -> None:
    """A first step that is the range's last number is the only one."""
    for number in range(200):
        minutes = read_cron(normalized("H(0-29)/30 * * * *", seed_of("demo", str(number)))).minutes
        assert len(minutes) == 1
        assert max(minutes) <= 29


@pytest.mark.parametrize("text", ["H H H H H", "H(58-59) H/23 H(28-28) H/12 H/7", "H H H H H H *"])
def test_h_stays_in_its_range_and_spreads(text: str) -> None:
    found = {normalized(text, seed_of("demo", f"id-{number}")) for number in range(300)}
    assert all(read_cron(each) for each in found)
    assert len(found) > 100 or "(" in text


def test_a_schedule_keeps_its_number_and_shares_its_clock() -> None:
    def ruled(schedule_id: str, text: str) -> Rule:
        asked: Any = {**EMPTY, "tenant": "demo", "schedule_id": schedule_id, "kind": "CRON"}
        return rule_of(asked | {"cron": text})

    rule = ruled("report", "H * * * *")
    assert trigger_of(encode_rule(rule)).first_ms(0) == 23 * 60_000
    assert trigger_by(rule).same_cadence(cron("23 * * * *"))
    assert not trigger_by(rule).same_cadence(trigger_by(ruled("other", "H * * * *")))
    assert ruled("report", "0 0 * MAR THU").seed is None


def test_an_interval_has_the_rhythm_of_every() -> None:
    found = trigger_by(Rule("CRON", when="@Every 1m30s", start_at=5))
    assert found.same_cadence(trigger_by(Rule("EVERY", 90_000, start_at=5)))
    assert found.first_ms(0) == 5
    assert found.after_ms(5) == 90_005
    assert interval_of("@every PT5M") == 300_000
    assert interval_of("@hourly") is None


def test_what_never_comes() -> None:
    assert cron("0 0 * 2 MON#5", end_at=1).first_ms(0) is None
    assert cron("0 0 30 2,4 THU#5").first_ms(0) is not None
    assert cron("0 0 L 2 *").after_ms(parse_instant("9995-01-01T00:00:00Z")) is not None
    assert cron("0 0 L 2 *", PARIS).after_ms(parse_instant("9998-06-01T00:00:00Z")) is None


@pytest.mark.parametrize(
    ("until", "found"),
    [
        ("2026-03-28T01:29:59.999Z", ("2026-03-27T01:30", 0)),
        ("2026-03-28T01:30:00Z", ("2026-03-28T01:30", 1)),
        ("2026-03-29T00:59:59.999Z", ("2026-03-28T01:30", 1)),
        ("2026-03-29T01:00:00Z", ("2026-03-29T01:00", 2)),
        ("2027-03-27T12:00:00Z", ("2027-03-27T01:30", 365)),
    ],
)
def test_latest(until: str, found: tuple[str, int]) -> None:
    after_ms = parse_instant("2026-03-27T01:30:00Z")
    latest_ms, count = cron("30 2 * * *", PARIS).latest_ms(after_ms, parse_instant(until))
    assert (format_instant(latest_ms).removesuffix(":00.000Z"), count) == found


def test_cadence_is_expression_zone_and_start() -> None:
    trigger = cron("0 9 * * mon", PARIS, end_at=10**13)
    assert trigger.same_cadence(cron(" 0  9 * * MON", PARIS, max_fires=5))
    assert not trigger.same_cadence(cron("0 9 * * TUE", PARIS))
    assert not trigger.same_cadence(cron("0 9 * * MON"))
    assert not trigger.same_cadence(trigger_by(Rule("EVERY", 5)))
    assert cron("@daily").same_cadence(cron("0 0 * * *", "UTC"))


class Moved(Cron):
    """A trigger whose zone has become another by a new version of the data."""

    def __init__(self, text: str, hours: float) -> None:
        super().__init__(Rule("CRON", when=text))
        self.clock = Clock(expression(text), Zone(timezone(timedelta(hours=hours))))
        self._memo = self.clock.memo


@pytest.mark.parametrize(
    ("text", "hours", "pending", "derived"),
    [
        # A zone that was UTC: the same time on the wall comes earlier in the east.
        ("0 9 * * *", 1, "2026-12-01T09:00", "2026-12-01T08:00"),
        ("0 9 * * *", -1, "2026-12-01T09:00", "2026-12-01T10:00"),
        ("0 9 * * *", 0, "2026-12-01T09:00", "2026-12-01T09:00"),
        ("0 9 1 * *", 2, "2026-12-01T09:00", "2026-12-01T07:00"),
        ("0 0 * * MON", 5.5, "2026-12-07T00:00", "2026-12-06T18:30"),
        # A cadence that still fits stays as it is; where it is as near either way, it comes later.
        ("0 * * * *", 1, "2026-12-01T09:00", "2026-12-01T09:00"),
        ("0 * * * *", 0.5, "2026-12-01T09:00", "2026-12-01T09:30"),
    ],
)
def test_new_data_moves_what_is_pending(
    text: str, hours: float, pending: str, derived: str
) -> None:
    trigger = Moved(text, hours)
    nominal_ms, wanted_ms = parse_instant(f"{pending}:00Z"), parse_instant(f"{derived}:00Z")
    assert trigger.holds(nominal_ms) == (pending == derived)
    before_ms = nominal_ms - 3 * 86_400_000
    assert trigger.rederived_ms(nominal_ms, before_ms, before_ms) == wanted_ms
    if wanted_ms < nominal_ms:
        # It is over, and may have fired as the one before.
        assert trigger.rederived_ms(nominal_ms, before_ms, wanted_ms) == nominal_ms
        assert trigger.rederived_ms(nominal_ms, before_ms, wanted_ms - 1) == wanted_ms


def test_what_is_derived_anew_lies_after_the_acceptance() -> None:
    nine = parse_instant("2026-12-01T09:00:00Z")
    found = Moved("0 9 * * *", 1).rederived_ms(nine, nine - 3_600_000, 0)
    assert found == parse_instant("2026-12-02T08:00:00Z")
