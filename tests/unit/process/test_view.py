"""What a worker shows of its local stores: those that it owns, and those that it stands by for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.host.rocks import StoreFigures
from belfry.process.view import stores

OWNED, STOOD_BY = StoreFigures(1, 2, 3, 4, 5), StoreFigures(6, 7, 8, 9, 10)


def owners(**parts: Any) -> Any:
    given = {"runners": list, "standbys": list, **parts}
    return SimpleNamespace(**given)


def runner(partition: int, figures: StoreFigures | None, *, owned: bool = True) -> Any:
    rows = SimpleNamespace(rows=SimpleNamespace(figures=lambda: figures))
    return SimpleNamespace(partition=partition, owned=rows if owned else None)


def test_stores_of_owned_partitions_and_of_standbys_are_shown() -> None:
    standby = SimpleNamespace(partition=3, store=lambda: STOOD_BY)
    found = stores(owners(runners=lambda: [runner(1, OWNED)], standbys=lambda: [standby]))
    assert found == {1: OWNED._asdict(), 3: STOOD_BY._asdict()}


def test_what_has_no_store_just_now_is_left_out() -> None:
    lost = [runner(1, None), runner(2, OWNED, owned=False)]
    cold = SimpleNamespace(partition=3, store=lambda: None)
    assert stores(owners(runners=lambda: lost, standbys=lambda: [cold])) == {}
