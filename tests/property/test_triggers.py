"""Whatever the rule: instants increase, stay within their window, and none is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.rule import Rule, decode_rule, encode_rule
from belfry.schedules.triggers import Trigger, trigger_by, trigger_of

NOW = 1_780_000_000_000
DAY = 86_400_000
INSTANTS = st.integers(NOW - 400 * DAY, NOW + 400 * DAY)
ZONES = st.sampled_from(
    ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]
)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.sampled_from(["*", str(low), f"{low}-{high}"]), st.integers(1, high))
    items = st.one_of(numbers.map(str), ranges, steps.map(lambda each: f"{each[0]}/{each[1]}"))
    return st.one_of(st.just("*"), st.lists(items, min_size=1, max_size=3).map(",".join))


CRONS = st.tuples(
    st.one_of(st.just(""), st.sampled_from(["0", "*", "*/7", "5,59"])),
    field(0, 59), field(0, 23), st.one_of(st.just("*"), field(1, 28), st.just("L"), st.just("LW")),
    st.one_of(st.just("*"), field(1, 12)), st.one_of(st.just("*"), field(0, 7), st.just("5L")),
).map(" ".join)  # fmt: skip
LEFT_OUT = ("* 0-5 * * *", "*/2 * * * *", "* * * * SAT,SUN", "10-50/3 8-20 1-15 * MON", "* * * 5 *")
BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "start_at": INSTANTS,
        "end_at": INSTANTS,
        "max_fires": st.integers(1, 9),
        "except_cron": st.sampled_from(LEFT_OUT),
    },
)
RULES = st.one_of(
    st.builds(
        lambda interval, zone, bounds: Rule("EVERY", when=interval, timezone=zone, **bounds),
        st.integers(1, 40 * DAY),
        ZONES,
        BOUNDS,
    ),
    st.builds(
        lambda cron, zone, bounds: Rule("CRON", when=cron, timezone=zone, **bounds),
        CRONS,
        ZONES,
        BOUNDS,
    ),
)


def walked(trigger: Trigger, accepted_ms: int, most: int = 40) -> list[int]:
    found: list[int] = []
    due_ms = trigger.first_ms(accepted_ms)
    while due_ms is not None and len(found) < most:
        found.append(due_ms)
        due_ms = trigger.after_ms(due_ms)
    return found


@given(RULES, INSTANTS)
def test_instants_increase_within_their_window(rule: Rule, accepted_ms: int) -> None:
    found = walked(trigger_by(rule), accepted_ms)
    assert all(before < after for before, after in pairwise(found))
    assert all(each >= accepted_ms for each in found)
    assert all(rule.start_at is None or each >= rule.start_at for each in found)
    assert all(rule.end_at is None or each <= rule.end_at for each in found)


@given(RULES, INSTANTS, st.integers(0, 60))
def test_none_is_lost(rule: Rule, accepted_ms: int, skip: int) -> None:
    """`latest_ms` passes over exactly what `after_ms` would have met one by one."""
    trigger = trigger_by(rule)
    found = walked(trigger, accepted_ms, 42)
    for place, after_ms in enumerate(found[:-2]):
        last = min(place + skip, len(found) - 2)
        until_ms = (found[last] + found[last + 1] - 1) // 2
        expected = (found[last], last - place) if last > place else (after_ms, 0)
        assert trigger.latest_ms(after_ms, max(until_ms, after_ms)) == expected


@given(RULES, INSTANTS)
def test_what_is_pending_holds_as_long_as_the_zones_do(rule: Rule, accepted_ms: int) -> None:
    trigger = trigger_by(rule)
    for nominal_ms in walked(trigger, accepted_ms, 5):
        assert trigger.holds(nominal_ms)
        assert trigger.rederived_ms(nominal_ms, accepted_ms - 1, accepted_ms - 1) == nominal_ms


@given(RULES, INSTANTS)
def test_a_rule_at_rest_is_the_same_rule(rule: Rule, accepted_ms: int) -> None:
    encoded = encode_rule(rule)
    assert decode_rule(encoded) == rule
    assert trigger_of(encoded).first_ms(accepted_ms) == trigger_by(rule).first_ms(accepted_ms)
