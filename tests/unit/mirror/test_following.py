"""A mirror goes on where one of its partitions fails, and says how far behind it is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from belfry.host import machine
from belfry.mirror import following
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.following import MirrorFollower
from belfry.mirror.marks import Activated, MirrorMark
from belfry.telemetry.mirror_metrics import MirrorMetrics
from belfry.telemetry.process_families import OF_MIRROR

BEGAN_MS = 1_800_000_000_000


class FakeLane:
    """A lane that carries one record a turn, and fails when it is told to."""

    opened: list[int]
    fails: dict[int, Exception]

    wants_growth = is_held = False

    def __init__(
        self, _source: object, _target: object, partition: int, _now_ms: int, _together: object
    ) -> None:
        self.partition = partition
        self.mark = SimpleNamespace(level_ms=BEGAN_MS - 1_000 * partition)
        self.opened.append(partition)
        self.turns = 0

    def turn(self, _wait_s: float, _now_ms: int) -> int:
        if self.partition in self.fails:
            raise self.fails.pop(self.partition)
        self.turns += 1
        return 1

    def behind(self) -> int:
        return 5

    @property
    def level_ms(self) -> int:
        return BEGAN_MS if self.turns >= 3 else BEGAN_MS - 1

    def close(self) -> None:
        pass


class FakeTopics:
    """The topics of a source that has as many partitions as it had."""

    count = 2

    def __init__(self, _source: object) -> None:
        pass

    def partitions(self) -> int:
        return self.count

    def close(self) -> None:
        pass


class Stopped(Exception):
    """The test has seen enough."""


def made(monkeypatch: pytest.MonkeyPatch, **fails: Exception) -> tuple[Any, Any, list[str]]:
    """A mirror of two partitions, its metrics, and its notes."""
    monkeypatch.setattr(FakeLane, "opened", [], raising=False)
    monkeypatch.setattr(
        FakeLane, "fails", {int(key[1:]): each for key, each in fails.items()}, raising=False
    )
    monkeypatch.setattr(following, "Lane", FakeLane)
    monkeypatch.setattr(following, "carry_policies", lambda *_: 0)
    monkeypatch.setattr(following, "SourceTopics", FakeTopics)
    monkeypatch.setattr(machine, "sleep", lambda _: None)
    registry, told = CollectorRegistry(), list[str]()
    sides: Any = [SimpleNamespace(homes=2, mark=lambda _: None) for _ in range(2)]
    policies: Any = (None, None)
    metrics = MirrorMetrics(registry, BEGAN_MS / 1000)
    follower = MirrorFollower(tuple(sides), policies, metrics, told.append)
    return follower, registry, told


def run(monkeypatch: pytest.MonkeyPatch, rounds: int, **fails: Exception) -> tuple[Any, list[str]]:
    """The same after some rounds, with a second for each look at the clock."""
    follower, registry, told = made(monkeypatch, **fails)
    clock = iter(range(BEGAN_MS, BEGAN_MS + 1_000 * rounds, 1_000))

    def now_ms() -> int:
        for at in clock:
            return at
        raise Stopped

    with pytest.raises(Stopped):
        follower.run(once=False, now_ms=now_ms)
    return registry, told


def test_one_that_fails_is_opened_again_and_the_other_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry, told = run(monkeypatch, 20, p1=ConnectionError("broker b is away"))
    assert FakeLane.opened == [0, 1, 1]
    assert told == ["partition 1 is carried on in a moment: broker b is away"]
    assert registry.get_sample_value("belfry_mirror_failures_total") == 1
    assert registry.get_sample_value("belfry_mirror_carried_records_total") > 8


def test_it_says_how_far_behind_the_last_of_its_partitions_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry, _ = run(monkeypatch, 5)
    assert registry.get_sample_value("belfry_mirror_behind_records") == 10
    looked_s = registry.get_sample_value("belfry_mirror_last_look_timestamp_seconds")
    behind_s = registry.get_sample_value("belfry_mirror_behind_seconds")
    assert behind_s == pytest.approx(looked_s - (BEGAN_MS / 1000 - 1))
    shown = {name for each in registry.collect() for name in (each.name, f"{each.name}_total")}
    assert {family.name for family in OF_MIRROR} <= shown


def test_what_somebody_has_to_decide_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotMirror, match="taken over"):
        run(monkeypatch, 20, p0=CannotMirror("it was taken over"))


def test_one_that_carries_once_ends_where_the_source_ended_at_its_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower, registry, _ = made(monkeypatch)
    follower.run(once=True, now_ms=lambda: BEGAN_MS)
    assert registry.get_sample_value("belfry_mirror_carried_records_total") == 6


def test_one_that_carries_once_tells_of_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    follower, _, _ = made(monkeypatch, p1=ConnectionError("broker b is away"))
    with pytest.raises(ConnectionError, match="broker b"):
        follower.run(once=True, now_ms=lambda: BEGAN_MS)


def test_policies_are_left_alone_as_soon_as_a_take_over_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower, _, _ = made(monkeypatch)
    mark = MirrorMark("a", "log-a", "log-b", 1, {}, leaving=True)
    follower._sides[1].mark = lambda each: mark if each == 1 else None
    written: list[object] = []

    def carry(_source: object, _target: object, check: Callable[[], None]) -> int:
        check()
        written.append("policies")
        return 1

    monkeypatch.setattr(following, "carry_policies", carry)
    with pytest.raises(CannotMirror, match="take-over of partition 1"):
        follower.run(once=False, now_ms=lambda: BEGAN_MS)
    assert not written
    # It is done, and this side is the active one.
    mark = mark._replace(activated=Activated(BEGAN_MS, True, {}))
    later_ms = BEGAN_MS + 60_000
    with pytest.raises(CannotMirror, match="is the active one"):
        follower.run(once=False, now_ms=lambda: later_ms)
    assert not written
    # The other side took over in its turn, and this one follows again.
    follower._sides[0].mark = lambda _: mark._replace(epoch=2)
    follower.run(once=True, now_ms=lambda: BEGAN_MS)
    assert written


def test_partitions_that_are_added_get_lanes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    follower, _, told = made(monkeypatch)
    monkeypatch.setattr(FakeTopics, "count", 3)
    grown: Any = SimpleNamespace(homes=3, mark=lambda _: None)
    asked: list[int] = []

    def together(_source: object, _target: object, now_ms: int) -> tuple[Any, Any]:
        asked.append(now_ms)
        if len(asked) == 1:
            raise ConnectionError("the target does not answer")
        return grown, grown

    monkeypatch.setattr(following, "grown_together", together)
    clock = iter(range(BEGAN_MS, BEGAN_MS + 60_000, 1_000))
    with pytest.raises((StopIteration, RuntimeError)):
        follower.run(once=False, now_ms=lambda: next(clock))
    assert FakeLane.opened == [0, 1, 2]
    assert told == [
        "partitions that were added are followed later: the target does not answer",
        "the source has grown from 2 partitions to 3, as this side",
    ]
