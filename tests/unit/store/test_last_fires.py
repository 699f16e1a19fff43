"""How the occurrences of a schedule went, as shares of them."""

from __future__ import annotations

from belfry.store.last_fires import FireCounts, LastFire, fires_of_marker
from belfry.store.layout.records import ENDED_CANCELLED, ENDED_FIRED, Marker


def test_shares_are_of_what_fired_and_of_what_came_due() -> None:
    counts = FireCounts(fired=7, over_1s=2, missed=2, latest_ms=9)
    assert (counts.success_rate, counts.share_within_1s) == (0.777778, 0.714286)
    assert FireCounts(3, 0, 0, 0).success_rate == FireCounts(3, 0, 0, 0).share_within_1s == 1


def test_where_nothing_came_due_or_fired_there_is_no_share() -> None:
    assert (FireCounts(0, 0, 0, 0).success_rate, FireCounts(0, 0, 0, 0).share_within_1s) == (
        *(None, None),
    )
    assert (FireCounts(0, 0, 3, 0).success_rate, FireCounts(0, 0, 3, 0).share_within_1s) == (
        *(0, None),
    )


def test_a_marker_tells_of_the_fire_of_a_one_shot() -> None:
    fired = Marker(ENDED_FIRED, ended_ms=1_007, due_ms=1_000, life=5, version=3, occurrence=0)
    (found,) = fires_of_marker(fired)
    assert found == LastFire(None, None, due_ms=1_000, fired_ms=1_007, missed=0)
    assert found.late_ms == 7
    assert fires_of_marker(fired._replace(how=ENDED_CANCELLED)) == []
