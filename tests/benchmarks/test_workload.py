"""The workload asks for what the benchmarks say they measure."""

from __future__ import annotations

import pytest

from belfry.bench.workload import Workload
from belfry.schedules.checks import RequestChecks
from belfry.schedules.rule import encode_rule, rule_of
from belfry.schedules.triggers import trigger_of
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

DUE_MS = 1_800_000_060_000
DAY_MS = 86_400_000


@pytest.mark.parametrize("kind", ["EVERY", "CRON"])
def test_recurring_schedules_are_due_at_one_instant_and_a_day_later(kind: str) -> None:
    for home, key, value in Workload(5, DUE_MS, tenants=3, kind=kind).requests():
        record: SourceRecord = (0, DUE_MS, key, value, None)
        request = RequestReader().read_whole(record)
        assert isinstance(request, dict)
        assert 0 <= home < 4
        assert RequestChecks().problem(request, DUE_MS - 40_000) is None
        trigger = trigger_of(encode_rule(rule_of(request)))
        assert trigger.first_ms(DUE_MS - 40_000) == DUE_MS
        assert trigger.after_ms(DUE_MS) == DUE_MS + DAY_MS
