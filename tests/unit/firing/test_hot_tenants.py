"""Hot tenants are found by a sample of offsets, each of which counts once."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.firing import hot_tenants
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


def test_the_sample_goes_by_offsets_however_requests_are_cut_into_batches() -> None:
    count = -(-HOT_FROM // EVERY)
    for cut in (1, 7, EVERY, 10 * EVERY + 1):
        hot, found = HotTenants(), list[int]()
        for start in range(0, count * EVERY, cut):
            if hot.found_in([REQUEST] * min(cut, count * EVERY - start), start):
                found.append(start)
        last = (count - 1) * EVERY
        assert found[0] == last - last % cut, "with the request that makes it hot"


def test_what_is_no_request_of_the_fast_path_is_passed_over() -> None:
    hot = HotTenants()
    requests = [None if at % (2 * EVERY) == 0 else REQUEST for at in range(2 * HOT_FROM)]
    assert hot.found_in(requests, 0) == {b"h"}
    requests = [None if at % EVERY == 0 else REQUEST for at in range(2 * HOT_FROM)]
    assert HotTenants().found_in(requests, 0) == set()


def test_of_too_many_minutes_those_with_one_event_are_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hot_tenants, "MOST_REMEMBERED", 2)

    def others(*names: bytes) -> list[tuple[bytes, bytes, int]]:
        return [each for name in names for each in [(name, b"a", 0)] + [REQUEST] * (EVERY - 1)]

    many, hot = HOT_FROM // EVERY, HotTenants()
    assert hot.found_in([REQUEST] * (many * EVERY), 0) == set()
    hot.found_in(others(b"x", b"y"), many * EVERY)
    assert hot.found_in([REQUEST], (many + 2) * EVERY) == {b"h"}, "it is remembered"
    # Where that does not help, all are.
    hot.found_in(others(b"x", b"x", b"y", b"y"), (many + 3) * EVERY)
    assert hot.found_in([REQUEST], (many + 7) * EVERY) == set()


def test_all_instants_of_a_minute_count_together_and_no_other() -> None:
    """A crowd is seldom due at one millisecond."""
    count = -(-HOT_FROM // EVERY)
    for first_ms, found in ((7 * MINUTE_MS, {b"h"}), (7 * MINUTE_MS - 1, set())):
        last_ms = 8 * MINUTE_MS - 1
        instants = [first_ms, *range(last_ms - count + 2, last_ms + 1)]
        hot, told = HotTenants(), set[bytes]()
        for number, due_ms in enumerate(instants):
            told |= hot.found_in([(b"h", b"a", due_ms)], EVERY * number)
        assert len(instants) == count
        assert told == found
