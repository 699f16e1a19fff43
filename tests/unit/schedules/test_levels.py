"""The priority of a rule at rest is found without the rest of the rule."""

from __future__ import annotations

import pytest

from belfry.schedules.rule import Rule, decode_rule, encode_rule, without_targets
from belfry.schedules.triggers.levels import (
    HIGHEST,
    LOWEST,
    first_to_last,
    level_for,
    level_in,
    priority_at,
)
from belfry.store.readable import why_unreadable_rule

PRIORITIES = [each for each in range(LOWEST, HIGHEST + 1) if each]
RULES = {
    "once": Rule("AT"),
    "late": Rule("AT", misfire="SKIP", max_lateness_ms=0),
    "cron": Rule("CRON", "0 9 * * *", timezone="Europe/Paris", seed=7, except_cron="* 0 * * *"),
    "all": Rule("AFTER", max_wait_ms=1, concurrency=3, targets=b'[{"url":"https://a"}]'),
    "heeding": Rule("EVERY", 60_000, calendar="de", on_holiday="SKIP", packed_days=b"\1\2"),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("priority", PRIORITIES)
def test_a_level_is_read_out_of_any_rule(rule: Rule, priority: int) -> None:
    given = {each: getattr(rule, each) for each in Rule.__dataclass_fields__}
    encoded = encode_rule(Rule(**{**given, "priority": priority}))
    assert level_in(encoded) == level_in(without_targets(encoded)) == level_for(priority)
    assert decode_rule(encoded).priority == priority == priority_at(level_in(encoded)[0])
    assert decode_rule(encoded).when == rule.when
    assert level_in(encode_rule(rule)) == b""


def test_levels_leave_from_the_highest_priority_to_the_lowest() -> None:
    levels = {priority: level_for(priority) for priority in PRIORITIES} | {0: b""}
    ordered = [levels[priority] for priority in range(HIGHEST, LOWEST - 1, -1)]
    assert first_to_last(sorted(levels.values())) == ordered


@pytest.mark.parametrize("byte", [0, 10, 20, 255])
def test_a_level_that_no_release_writes_is_held_back(byte: int) -> None:
    encoded = bytearray(encode_rule(Rule("AT", priority=9)))
    encoded[6] = byte
    assert f"level {byte}" in why_unreadable_rule(bytes(encoded))
