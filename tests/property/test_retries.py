"""Records that are put back: each try at its instant, in any rule, over steps that fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from belfry.client import Backoff
from belfry.schedules.retry_rule import (
    MOST_ATTEMPTS,
    RetryRule,
    parse_retry_rule,
)
from belfry.wire.record import Headers
from tests.unit.engine.driver import T0, Driver

WAITS: Final = st.integers(1, 10**7)
FACTORS: Final = st.integers(1_000, 100_000).map(lambda each: Fraction(each, 1_000))
RULES: Final = st.builds(
    lambda first, factor, more, attempts, share: RetryRule(
        first, factor, first + more, attempts, share
    ),
    *(WAITS, FACTORS, st.integers(0, 10**8), st.integers(1, 6), st.integers(0, 100)),
)


def text_of(rule: RetryRule) -> str:
    """A rule as a header says it."""
    return (
        f"first={rule.first_ms} factor={float(rule.factor):.3f} most={rule.most_ms}ms"
        f" attempts={rule.attempts} jitter={rule.jitter_percent}%"
    )


def waits(rule: RetryRule) -> list[int]:
    """The waits of a rule, one by one: another way than the rule's own."""
    found: list[int] = []
    wait = Fraction(rule.first_ms)
    for _ in range(rule.attempts - 1):
        found.append(int(min(wait, Fraction(rule.most_ms))))
        wait *= rule.factor
    return found


@given(RULES)
def test_a_rule_is_read_as_it_is_written(rule: RetryRule) -> None:
    assert parse_retry_rule(text_of(rule)) == rule
    assert [rule.wait_ms(failed) for failed in range(1, rule.attempts)] == waits(rule)
    assert rule.wait_ms(rule.attempts) is None


@given(RULES, st.integers(1, MOST_ATTEMPTS))
def test_the_clients_wait_as_long(rule: RetryRule, failed: int) -> None:
    """They compute with floats, which may be off by a millisecond."""
    backoff = Backoff(rule.first_ms, float(rule.factor), rule.most_ms, rule.attempts)
    ours, theirs = rule.wait_ms(failed), backoff.delay_ms(failed)
    if ours is None or theirs is None:
        assert ours is theirs is None
    else:
        assert abs(ours - theirs) <= 1


@given(RULES, st.lists(st.booleans(), max_size=4), st.integers(1, 3))
def test_each_try_comes_when_its_wait_is_over(
    rule: RetryRule, fails: list[bool], copies: int
) -> None:
    """Each copy is one of the record that a consumer sends again, for it died amid its work."""
    driver, retry = Driver(), ("belfry-retry", text_of(rule).encode())
    names: Headers = [("belfry-tenant", b"demo"), ("belfry-id", b"topic/0/1")]
    value, key, headers, now_ms = b"v", b"k", [*names, ("mine", b"1")], T0
    for failed, wait_ms in enumerate(waits(rule), 1):
        for _ in range(copies if failed > 1 else 1):
            driver.send(value, key, [*headers, retry], now_ms)
        for _ in fails:
            driver.step(now_ms, commit=False)
        told = driver.step(now_ms).effects.lifecycle
        assert [str(each.outcome) for each in told][1:] == ["DUPLICATE"] * (len(told) - 1)
        due_ms = told[0].due_at or 0
        early = due_ms - now_ms - wait_ms
        assert 0 <= early <= wait_ms * rule.jitter_percent // 100
        assert driver.step(due_ms - 1).shots == []
        (shot,) = driver.step(due_ms).shots
        assert shot.headers[:2] == [("mine", b"1"), ("retry-attempt", b"%d" % failed)]
        assert (shot.topic, shot.value, shot.key) == ("belfry.fired.demo", b"v", b"k")
        headers, now_ms = shot.headers, due_ms
    driver.tenants.topics.letters = {"belfry.dead-letters.demo": 10**6}
    for _ in range(copies):
        driver.send(value, key, [*headers, *([] if rule.attempts > 1 else names), retry], now_ms)
    for _ in fails:
        driver.step(now_ms, commit=False)
    step = driver.step(now_ms)
    # A record that belfry has never fired has no id by which a copy could be told.
    letters = 1 if rule.attempts > 1 else copies
    assert step.codes == ["retries_exhausted"] * letters
    assert step.outcomes == ["REJECTED"] * letters + ["DUPLICATE"] * (copies - letters)
    counts = {dict(each.headers)["retry-attempt"] for each in step.effects.letters}
    assert (len(step.effects.letters), counts) == (letters, {b"%d" % rule.attempts})
    assert driver.step(now_ms + 10**12).shots == []
