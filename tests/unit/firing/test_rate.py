"""A rate for each of many names: what is used up by one is there for all others."""

from __future__ import annotations

import pytest

from belfry.firing.rates import Rate

T0 = 1_800_000_000_000.0


def test_each_name_has_a_rate_of_its_own() -> None:
    rate = Rate(1_000)
    rate.take(b"a", 2, T0, 2)
    assert rate.room(b"a", 2, T0) == 0
    assert rate.room(b"b", 2, T0) == 2


def test_what_is_used_up_comes_back_one_by_one() -> None:
    #  T0    + 500   + 1 000   + 9 000
    #  0     1       2         2: no more is saved up than a burst
    rate = Rate(1_000)
    rate.take(b"a", 2, T0, 2)
    assert [rate.room(b"a", 2, T0 + ms) for ms in (0, 499, 500, 999, 1_000, 9_000)] == [
        *(0, 0, 1, 1, 2, 2),
    ]


def test_it_tells_from_when_on_there_is_room() -> None:
    rate = Rate(1_000)
    rate.take(b"a", 2, T0, 3)
    assert rate.ready_ms(b"a", 2) == T0 + 1_000
    assert rate.room(b"a", 2, T0 + 999) == 0
    assert rate.room(b"a", 2, T0 + 1_000) == 1
    assert rate.ready_ms(b"b", 2) == 500
    rate.take(b"a", 2, T0 + 1_000, 1)
    assert rate.ready_ms(b"a", 2) == T0 + 1_500


def test_a_slow_rate_saves_up_one_at_least() -> None:
    """Of one in ten seconds a burst of one second would never be one."""
    rate = Rate(1_000)
    assert rate.room(b"a", 0.1, T0) == 1
    rate.take(b"a", 0.1, T0, 1)
    assert rate.room(b"a", 0.1, T0 + 9_999) == 0
    assert rate.room(b"a", 0.1, T0 + 10_000) == 1
    assert rate.ready_ms(b"a", 0.1) == T0 + 10_000


@pytest.mark.parametrize("none", [0, -1])
def test_a_rate_of_none_never_has_room(none: float) -> None:
    rate = Rate(1_000)
    assert rate.room(b"a", none, T0) == 0
    assert rate.ready_ms(b"a", none) == float("inf")


def test_a_rate_of_one_a_second_is_no_rate_of_none() -> None:
    rate = Rate(1_000)
    assert rate.room(b"a", 1, T0) == 1
    assert rate.ready_ms(b"a", 1) == 1_000


def test_at_the_begin_of_time_a_whole_burst_is_there() -> None:
    assert Rate(1_000).room(b"a", 1_000, 1_000.0) == 1_000


def test_a_caller_can_take_back_what_was_used_up() -> None:
    """A step that is rolled back has used nothing up."""
    used_up: dict[bytes, float] = {}
    rate = Rate(1_000, used_up)
    rate.take(b"a", 2, T0, 2)
    assert used_up == {b"a": T0}
    assert rate.room(b"a", 2, T0) == 0
    used_up.clear()
    assert rate.room(b"a", 2, T0) == 2
