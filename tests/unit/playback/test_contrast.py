"""The same requests under two policies, on a virtual clock: what would have been otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.playback.contrast import Contrast, TenantContrast
from belfry.playback.logged import Unplayable
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.playback.virtual import VirtualEvent, VirtualPartition
from belfry.schedules.bulk import BulkSpec
from belfry.store.ordered_map import MemoryMap
from belfry.tenants.policy import TenantPolicy
from belfry.wire.batch import SourceBatch
from belfry.wire.moves import MOVE, MoveRecord, encode_move
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader
from tests.unit.engine.driver import T0, Driver

SECOND = 1_000


def contrasted(
    source: list[SourceRecord], until_ms: int, changes: list[PolicyAt], *always: TenantPolicy
) -> dict[str, TenantContrast]:
    """Play requests as it was, and as it would be."""
    contrast = Contrast()
    sides = []
    for policies, told in (((), contrast.was), (always, contrast.would)):
        treatment = Treatment(changes, "belfry.", always={each.tenant: each for each in policies})
        treatment.begin({"lifecycle": "ALL"})
        place = Driver().place
        side = VirtualPartition(place, MemoryMap(), RequestReader(), treatment, told)
        side.begin_at(0)
        for record in source:
            side.take(SourceBatch(record[0], record[0] + 1, [record]), record[1])
        side.to(until_ms)
        sides.append(side)
    contrast.end(*(each.refused for each in sides))
    return dict(contrast.tenants)


def asked(**more: Any) -> list[SourceRecord]:
    """Twenty events of one tenant in the same second, and one of another."""
    driver = Driver()
    for each in range(20):
        driver.ask(T0 + each, schedule_id=f"a{each}", at=T0 + 10 * SECOND, **more)
    driver.ask(T0 + 30, tenant="other", at=T0 + 10 * SECOND)
    return driver.source


def test_a_lower_rate_lets_events_come_later() -> None:
    slower = TenantPolicy("demo", max_fires_per_second=10)
    found = contrasted(asked(), T0 + 60 * SECOND, [], slower)
    assert not found["other"].differs
    demo = found["demo"]
    assert (demo.fires, demo.would_fire, demo.earlier, demo.missing) == (20, 20, 0, 0)
    assert demo.later == 19
    assert 1_800 <= demo.most_later_ms <= 1_950
    [first, *_] = demo.examples
    assert first.was_ms == T0 + 10 * SECOND
    assert first.would_ms is not None
    assert first.would_ms > first.was_ms


def test_what_waits_at_the_end_is_not_by_then() -> None:
    found = contrasted(asked(), T0 + 11 * SECOND, [], TenantPolicy("demo", paused=True))["demo"]
    assert (found.fires, found.would_fire, found.missing) == (20, 0, 20)
    assert found.examples[0].would_ms is None


def test_a_higher_rate_than_the_one_that_was_lets_events_come_earlier() -> None:
    slow = PolicyAt(T0 - 1, "demo", TenantPolicy("demo", max_fires_per_second=5))
    found = contrasted(asked(), T0 + 60 * SECOND, [slow], TenantPolicy("demo"))["demo"]
    assert (found.earlier, found.later, found.missing, found.new) == (19, 0, 0, 0)


def test_requests_that_would_be_refused_are_counted() -> None:
    found = contrasted(asked(), T0 + 60 * SECOND, [], TenantPolicy("demo", max_pending=5))["demo"]
    assert (found.refused, found.would_refuse) == (0, 15)
    assert found.missing == 15


def test_a_policy_counts_from_when_it_was_written() -> None:
    pause = PolicyAt(T0 + 5 * SECOND, "demo", TenantPolicy("demo", paused=True))
    go_on = PolicyAt(T0 + 20 * SECOND, "demo", None)
    found = contrasted(asked(), T0 + 60 * SECOND, [pause, go_on], TenantPolicy("demo"))["demo"]
    # They were held back for ten seconds, and would not have been.
    assert found.earlier == 20
    assert found.examples[0].was_ms == T0 + 20 * SECOND


def test_an_event_fires_at_its_instant_though_a_policy_has_changed_right_before() -> None:
    """What was looked at in vain is looked at again a millisecond later."""
    fired: list[VirtualEvent] = []
    change = PolicyAt(T0 + 10 * SECOND - 1, "demo", TenantPolicy("demo", priority=3))
    side = VirtualPartition(
        Driver().place, MemoryMap(), RequestReader(), Treatment([change], "belfry."), fired.append
    )
    side.begin_at(0)
    for record in asked():
        side.take(SourceBatch(record[0], record[0] + 1, [record]), record[1])
    side.to(T0 + 60 * SECOND)
    assert [each.fired_ms for each in fired] == [T0 + 10 * SECOND] * 21


def test_the_same_policy_changes_nothing() -> None:
    driver = Driver()
    driver.ask(T0, schedule_id="rule", kind="CRON", cron="*/5 * * * * *", timezone="Europe/Paris")
    driver.ask(T0, schedule_id="all", group="g", serial=True, at=T0 + SECOND, ack_timeout_ms=5_000)
    driver.ask(T0 + 1, schedule_id="next", group="g", serial=True, at=T0 + SECOND)
    spec = BulkSpec(action="CANCEL", prefix="ru", per_second=100).text()
    driver.ask(T0 + 30 * SECOND, schedule_id="job", action="BULK", bulk=spec)
    found = contrasted(driver.source, T0 + 60 * SECOND, [], TenantPolicy("demo", lifecycle="ALL"))
    assert not found["demo"].differs
    # Six of the rule, until the job, and two of the group, the second one after the time-out.
    assert found["demo"].fires == 8


def test_an_event_at_another_instant_of_its_rule_is_the_same_by_its_number() -> None:
    contrast = Contrast()
    for told, shift in ((contrast.was, 0), (contrast.would, 3_600_000)):
        for number in range(3):
            fired_ms = T0 + number * 86_400_000 + shift
            identity = b"%d" % fired_ms
            told(VirtualEvent(identity, "demo", "daily", "…", number, fired_ms))
    extra = VirtualEvent(b"x", "demo", "daily", "…", -1, T0)
    contrast.was(extra)
    contrast.would(extra._replace(identity=b"y"))
    contrast.end({}, {})
    found = contrast.tenants["demo"]
    assert (found.later, found.most_later_ms, found.missing, found.new) == (3, 3_600_000, 1, 1)


def test_a_group_that_moves_among_the_requests_cannot_be_played() -> None:
    move: SourceRecord = (0, T0, None, encode_move(MoveRecord(MOVE, 1, 2)), None)
    said = (
        "A key group was on its way to or from the partition among these requests, and what it"
        " holds comes from another one: choose a range before or behind the move."
    )
    with pytest.raises(Unplayable, match=f"^{said}$"):
        contrasted([move], T0 + SECOND, [])
