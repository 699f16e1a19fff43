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
