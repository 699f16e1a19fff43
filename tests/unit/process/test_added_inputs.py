"""The group hears of partitions that were added, also where a look of its client is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.process.self_check import LOOKS, SelfCheck


def test_the_group_looks_some_times_for_partitions_that_were_added() -> None:
    looked: list[int] = []
    identities = SimpleNamespace(partitions=(2, 2))
    opener: Any = SimpleNamespace(
        identities=identities,
        counted=SimpleNamespace(grown=lambda _: False),
        settings=SimpleNamespace(unfit_limit_ms=0, data_dir="."),
    )
    group: Any = SimpleNamespace(look_again=lambda: looked.append(1))
    nothing: Any = None
    check = SelfCheck(opener, nothing, nothing, group)
    for _ in range(3):
        check._count()
    assert looked == []
    identities.partitions = (4, 4)
    for _ in range(LOOKS + 5):
        check._count()
    assert len(looked) == LOOKS
