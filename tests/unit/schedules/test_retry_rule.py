"""Waits between the tries of a record: the same ones as in every client, exact, and bounded."""

from __future__ import annotations

import json
from fractions import Fraction
from time import process_time_ns

import pytest

from belfry.client import Backoff
from belfry.schedules.instant_bounds import YEAR_MS
from belfry.schedules.retry_rule import (
    EXAMPLE,
    MOST_ATTEMPTS,
    RetryRule,
    parse_retry_rule,
)
from tests.architecture.tree import ROOT

WAITS = json.loads((ROOT / "clients" / "vectors.json").read_text("utf-8"))["waits"]


def waits(text: str) -> list[int | None]:
    """The waits after the first failure, the second one, and so on, up to the end."""
    rule = parse_retry_rule(text)
    return [rule.wait_ms(failed) for failed in range(1, rule.attempts + 1)]


@pytest.mark.parametrize("vector", WAITS)
def test_the_waits_are_those_of_the_clients(vector: dict[str, float | None]) -> None:
    first_ms, most_ms, attempts, failed = (
        int(vector[name] or 0) for name in ("first_ms", "most_ms", "attempts", "failed")
    )
    rule = RetryRule(first_ms, Fraction(str(vector["factor"])), most_ms, attempts)
    assert rule.wait_ms(failed) == vector["delay_ms"]


def test_the_defaults_are_those_of_the_clients() -> None:
    rule, backoff = parse_retry_rule(""), Backoff()
    assert [rule.wait_ms(n) for n in range(1, 10)] == [backoff.delay_ms(n) for n in range(1, 10)]
    assert rule == RetryRule()


def test_waits_grow_up_to_the_longest_and_end() -> None:
    assert waits("first=5s factor=2 most=30s attempts=6") == [
        *(n * 1_000 for n in (5, 10, 20, 30, 30)),
        None,
    ]
    assert waits("first=1s factor=1.5 attempts=4") == [1_000, 1_500, 2_250, None]
    assert waits("first=1m factor=1 attempts=3") == [60_000, 60_000, None]
    assert waits("attempts=1") == [None]


def test_a_wait_is_exact_where_floats_are_not() -> None:
    """1.1 to the power of 3 is a little more than 1.331 as a float, and 1.005 a little less."""
    rule = parse_retry_rule("first=1000s factor=1.005 most=1d attempts=9")
    assert [rule.wait_ms(failed) for failed in (1, 2, 3)] == [1_000_000, 1_005_000, 1_010_025]
    assert waits("first=1s factor=1.1 attempts=5") == [1_000, 1_100, 1_210, 1_331, None]


def test_parts_stand_in_any_order_and_may_be_parted_by_commas() -> None:
    whole = RetryRule(5_000, Fraction(3, 2), 60_000, 4, 10)
    for text in (
        "first=5s factor=1.5 most=1m attempts=4 jitter=10%",
        " jitter=10%,attempts=4, most=PT1M;factor=1.500  first=5000 ",
    ):
        assert parse_retry_rule(text) == whole
    assert parse_retry_rule(EXAMPLE).jitter_ms(5_000) == 500
    # The share is whole milliseconds.
    assert repr(RetryRule(jitter_percent=10).jitter_ms(5_009)) == "500"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("frist=5s", "'frist=5s' is none of its parts; did you mean first? Known are first, fact"),
        ("FIRST=5s", "did you mean first?"),
        ("max=1h", "is none of its parts"),
        ("5s", "'5s' is none of its parts. Known are"),
        ("first", "first: '' is no duration"),
        ("first=5 parsecs", "is none of its parts"),
        ("first=0", "first: '0' is not 1ms to 366d."),
        ("most=367d", "most: '367d' is not 1ms to 366d."),
        ("first=1mo", "months and years have no fixed length"),
        ("factor=0.9", "factor: '0.9' is not 1 to 100, with three decimals at most."),
        ("factor=1.0001", "factor: '1.0001' is not"),
        ("factor=101", "factor: '101' is not"),
        ("factor=1e2", "factor: '1e2' is not"),
        ("factor=\u0661", "factor: '\u0661' is not"),
        ("attempts=0", f"attempts: '0' is not 1 to {MOST_ATTEMPTS} tries, the first one too."),
        ("attempts=201", "attempts: '201' is not"),
        ("attempts=many", f"attempts: 'many' is not 1 to {MOST_ATTEMPTS} tries"),
        ("attempts=-1", "attempts: '-1' is not"),
        ("jitter=101%", "jitter: '101%' is not 0% to 100% of each wait"),
        ("jitter=5s", "one of a fixed length is the header belfry-jitter."),
        ("first=1s first=1s", "first is given twice: keep one."),
        (
            "first=2h",
            "than most 1h, which no wait exceeds: give a shorter first, or a longer most.",
        ),
        ("first=1s " * 50, "450 characters are too many: at most 200."),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # its words are looked at
        parse_retry_rule(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("first=1ms most=1ms", RetryRule(1, most_ms=1)),
        ("first=366d most=366d", RetryRule(YEAR_MS, most_ms=YEAR_MS)),
        ("factor=1", RetryRule(factor=Fraction(1))),
        ("factor=100", RetryRule(factor=Fraction(100))),
        (f"attempts={MOST_ATTEMPTS}", RetryRule(attempts=MOST_ATTEMPTS)),
        ("jitter=100%".ljust(200), RetryRule(jitter_percent=100)),
    ],
)
def test_a_rule_at_its_bounds_is_allowed(text: str, rule: RetryRule) -> None:
    assert parse_retry_rule(text) == rule


def test_the_costliest_rule_costs_little() -> None:
    rule = RetryRule(YEAR_MS, Fraction("99.999"), YEAR_MS, MOST_ATTEMPTS)
    begin = process_time_ns()
    for _ in range(100):
        rule.wait_ms(MOST_ATTEMPTS - 1)
    assert process_time_ns() - begin < 100 * 1_000_000
