"""EVERY: from the start or the acceptance, by whole intervals, never from now."""

from __future__ import annotations

import pytest

from belfry.schedules.rule import Rule, encode_rule
from belfry.schedules.triggers import trigger_by, trigger_of


@pytest.mark.parametrize(
    ("start_at", "accepted_ms", "first_ms"),
    [
        (None, 1_000, 1_030),
        (2_000, 1_000, 2_000),
        (1_000, 1_000, 1_000),
        (970, 1_000, 1_000),
        (980, 1_000, 1_010),
        (999, 1_000, 1_029),
    ],
)
def test_first(start_at: int | None, accepted_ms: int, first_ms: int) -> None:
    assert trigger_by(Rule("EVERY", 30, start_at=start_at)).first_ms(accepted_ms) == first_ms


def test_the_end_is_inclusive() -> None:
    trigger = trigger_by(Rule("EVERY", 30, start_at=1_000, end_at=1_060))
    assert trigger.after_ms(1_000) == 1_030
    assert trigger.after_ms(1_030) == 1_060
    assert trigger.after_ms(1_060) is None
    assert trigger.first_ms(1_060) == 1_060
    assert trigger.first_ms(1_061) is None


@pytest.mark.parametrize(
    ("until_ms", "found"),
    [(1_000, (1_000, 0)), (1_029, (1_000, 0)), (1_030, (1_030, 1)), (1_100, (1_090, 3))],
)
def test_latest(until_ms: int, found: tuple[int, int]) -> None:
    assert trigger_by(Rule("EVERY", 30)).latest_ms(1_000, until_ms) == found


def test_latest_stops_at_the_end() -> None:
    assert trigger_by(Rule("EVERY", 30, end_at=1_070)).latest_ms(1_000, 10**15) == (1_060, 2)


def test_a_trigger_is_shared_by_all_who_have_its_rule() -> None:
    encoded = encode_rule(Rule("EVERY", 30))
    assert trigger_of(encoded) is trigger_of(bytes(bytearray(encoded)))


def test_cadence_is_interval_and_start() -> None:
    trigger = trigger_by(Rule("EVERY", 30, start_at=5, end_at=100))
    assert trigger.same_cadence(trigger_by(Rule("EVERY", 30, start_at=5, max_fires=2)))
    assert not trigger.same_cadence(trigger_by(Rule("EVERY", 31, start_at=5)))
    assert not trigger.same_cadence(trigger_by(Rule("EVERY", 30)))


@pytest.mark.parametrize("encoded", [b"", encode_rule(Rule("AFTER", max_lateness_ms=5))])
def test_nothing_follows_a_one_shot(encoded: bytes) -> None:
    trigger = trigger_of(encoded)
    assert trigger.first_ms(5) is trigger.after_ms(5) is None
    assert trigger.latest_ms(5, 10**15) == (5, 0)
    assert trigger.holds(5)
