"""Hot tenants are found by a sample of offsets, each of which counts once."""

from __future__ import annotations

from typing import Final

from belfry.firing.hot_tenants import EVERY, HOT_FROM, MINUTE_MS, HotTenants

REQUEST: Final = (b"h", b"a", 7 * MINUTE_MS)


def test_a_step_that_is_done_again_counts_its_requests_once() -> None:
    hot = HotTenants()
    few = HOT_FROM // EVERY // 2
    for _ in range(5):
        assert hot.found_in([REQUEST] * (EVERY * few), 0) == set()
    assert hot.found_in([REQUEST] * (EVERY * 2 * few), EVERY * few) == {b"h"}
    # Done again, it is found again.
    assert hot.found_in([REQUEST] * (EVERY * 2 * few), EVERY * few) == {b"h"}


def test_minutes_that_have_passed_are_forgotten_and_the_present_one_is_not() -> None:
    half = [REQUEST] * (HOT_FROM - EVERY)
    for now_ms, found in (
        (7 * MINUTE_MS + MINUTE_MS - 1, {b"h"}),
        (8 * MINUTE_MS, set()),
    ):
        hot = HotTenants()
        assert hot.found_in(half, 0) == set()
        hot.forget(now_ms)
        assert hot.found_in([REQUEST] * (2 * EVERY), len(half)) == found
