"""What it takes to give a belfry more partitions, and what may not be."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.kafka.growth import CannotGrow, growth_of
from belfry.settings.cluster import ClusterSettings

CLUSTER: Final = ClusterSettings(partitions=4)


def counts(**of: int) -> dict[str, int]:
    return {f"belfry.{name}": count for name, count in of.items()}


@pytest.mark.parametrize(
    ("there", "wanted", "left"),
    [
        # In the order in which they are done, from nothing to all of it.
        ({"changelog": 4, "schedules": 4}, 16, ["homes", "changelog", "schedules"]),
        ({"changelog": 4, "schedules": 4, "homes": 4}, 16, ["changelog", "schedules"]),
        ({"changelog": 16, "schedules": 4, "homes": 4}, 16, ["schedules"]),
        ({"changelog": 16, "schedules": 16, "homes": 4}, 16, []),
        # Once more, and from partitions that only sent requests on.
        ({"changelog": 16, "schedules": 16, "homes": 4}, 32, ["changelog", "schedules"]),
        ({"changelog": 4, "schedules": 6}, 6, ["homes", "changelog"]),
        ({"changelog": 4, "schedules": 4}, 4, []),
    ],
)
def test_what_is_left_to_do(there: dict[str, int], wanted: int, left: list[str]) -> None:
    growth = growth_of(CLUSTER, counts(**there), wanted)
    assert [kind for kind, _, _ in growth.steps] == left
    assert growth.homes == 4
    now = {kind: was for kind, was, _ in growth.steps}
    assert now == {kind: there.get(kind, 0) for kind in left}


@pytest.mark.parametrize(
    ("there", "wanted", "code"),
    [
        ({"schedules": 4}, 16, "no_topics"),
        ({"changelog": 4}, 16, "no_topics"),
        ({"changelog": 16, "schedules": 16}, 4, "fewer_partitions"),
        ({"changelog": 4, "schedules": 8}, 6, "fewer_partitions"),
        ({"changelog": 16, "schedules": 4, "homes": 4}, 8, "fewer_partitions"),
        ({"changelog": 4, "schedules": 4, "homes": 8}, 16, "wrong_homes"),
        ({"changelog": 16, "schedules": 4}, 16, "uneven_topics"),
    ],
)
def test_what_may_not_be(there: dict[str, int], wanted: int, code: str) -> None:
    with pytest.raises(CannotGrow) as refused:
        growth_of(CLUSTER, counts(**there), wanted)
    assert refused.value.code == code
