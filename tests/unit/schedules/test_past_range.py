"""The past part of a range, to the millisecond: its end is not in it."""

from __future__ import annotations

import pytest

from belfry.schedules.backfill import past_range
from belfry.schedules.instants import parse_instant
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by

NINE = parse_instant("2026-03-02T09:00:00Z")
DAY = 86_400_000


@pytest.mark.parametrize("rule", [Rule("CRON", "0 9 * * *"), Rule("EVERY", DAY, start_at=NINE)])
@pytest.mark.parametrize(("beside", "number"), [(-1, 3), (0, 3), (1, 4)])
def test_an_instant_at_the_end_of_a_range_is_none_of_it(
    rule: Rule, beside: int, number: int
) -> None:
    found = past_range(trigger_by(rule), NINE + 9 * DAY, NINE, NINE + 3 * DAY + beside)
    instants = [NINE + each * DAY for each in range(number)]
    assert [*found.instants()] == instants
    assert found.number(100) == number
    assert found.last_ms() == instants[-1]
