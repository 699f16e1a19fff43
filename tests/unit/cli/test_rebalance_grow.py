"""`belfry rebalance grow`: what it refuses, what it does, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.cli import rebalance_grow
from belfry.cli.failures import CommandError
from belfry.cli.rebalance_grow import GrowthRefused, grow
from belfry.kafka import growth as topics
from belfry.settings.cluster import ClusterSettings

HOMES, GROWN = 4, 16
WELL: Final = {
    "homes": HOMES,
    "partitions": HOMES,
    "refusing": [],
    "releases": ["1.0"],
    "silent": [],
    "missing": [],
}


class World:
    """A cluster and a worker; what is done to topics lies in `done`, with what was known then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **says: Any) -> None:
        self.counts = {"belfry.changelog": HOMES, "belfry.schedules": HOMES}
        self.says: dict[str, Any] = {**WELL, **says}
        self.done: list[tuple[str, int]] = []
        self.told: list[Any] = []
        self.hears = True
        monkeypatch.setattr(topics, "topic_counts", lambda _admin: dict(self.counts))
        monkeypatch.setattr(topics, "keep_homes", self._keep)
        monkeypatch.setattr(topics, "add_partitions", self._add)
        monkeypatch.setattr(rebalance_grow, "Remote", lambda _session: self)
        monkeypatch.setattr(rebalance_grow, "sleep", lambda _pause_s: None)

    def _keep(self, _admin: object, _cluster: object, homes: int) -> None:
        self.done.append(("belfry.homes", homes))
        self.counts["belfry.homes"] = homes

    def _add(self, _admin: object, topic: str, partitions: int) -> None:
        self.done.append((topic, partitions))
        self.counts[topic] = partitions

    def get(self, _path: str) -> dict[str, Any]:
        """What a worker says: it has seen the changelog, and owns what the input has."""
        if self.hears:
            self.says["partitions"] = self.counts["belfry.changelog"]
        owned = min(self.counts["belfry.schedules"], self.says["partitions"])
        missing = [*range(owned, self.says["partitions"])]
        return {**self.says, "missing": self.says["missing"] or missing}

    def grow(self, to: int = GROWN, *, dry: bool = False) -> None:
        printer = SimpleNamespace(note=lambda _: None, one=lambda told, _: self.told.append(told))
        settings = SimpleNamespace(
            cluster=ClusterSettings(partitions=HOMES), topic=lambda name: f"belfry.{name}"
        )
        session: Any = SimpleNamespace(
            settings=settings, printer=printer, admin=lambda: (None, None)
        )
        grow(session, to=to, limit=0.0, yes=True, dry=dry)


def test_state_gets_a_place_before_requests_do(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.grow()
    assert world.done == [
        ("belfry.homes", HOMES), ("belfry.changelog", GROWN), ("belfry.schedules", GROWN)
    ]  # fmt: skip
    assert (world.told[0]["homes"], world.told[0]["done"]) == (HOMES, True)
    world.grow()
    assert len(world.done) == 3
    assert world.told[1]["steps"] == []


def test_a_dry_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.grow(dry=True)
    assert world.done == []
    assert [each["to"] for each in world.told[0]["steps"]] == [HOMES, GROWN, GROWN]


def test_nobody_gets_requests_who_knows_of_no_place_for_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    world.hears = False
    with pytest.raises(CommandError, match="a worker knows of 4 partitions"):
        world.grow()
    assert world.done == [("belfry.homes", HOMES), ("belfry.changelog", GROWN)]
    # Given again, it goes on from there.
    world.hears = True
    world.grow()
    assert world.done[2:] == [("belfry.schedules", GROWN)]


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"refusing": ["w2"]}, "moves_not_allowed"),
        ({"releases": ["1.0", "1.1"]}, "mixed_releases"),
        # A release that knows of no growth says nothing of homes.
        ({"homes": 0}, "mixed_releases"),
        ({"homes": 8}, "other_belfry"),
        ({"silent": ["w2"]}, "workers_silent"),
        ({"missing": [2]}, "workers_silent"),
    ],
)
def test_what_stands_against_it_is_said_first(
    monkeypatch: pytest.MonkeyPatch, says: dict[str, Any], code: str
) -> None:
    world = World(monkeypatch, **says)
    with pytest.raises(GrowthRefused) as refused:
        world.grow()
    assert refused.value.code == code
    assert str(refused.value).startswith(f"{code}: ")
    assert world.done == []


def test_partitions_cannot_become_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    with pytest.raises(GrowthRefused, match="fewer_partitions"):
        world.grow(to=3)
    assert world.done == []
