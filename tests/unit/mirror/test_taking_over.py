"""A take-over, and one that is said again: what is active stays as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.host import machine
from belfry.mirror import taking_over
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.fencing import TRIES
from belfry.mirror.marks import Activated, MirrorMark
from belfry.mirror.taking_over import abandoned, fenced_late, planned
from belfry.store.layout import keys
from belfry.store.signatures import FILLER

FOLLOWS = MirrorMark("a", "log-a", "log-b", 1, {"changelog": 5, "schedules": 5}, leaving=True)
ACTIVE = FOLLOWS._replace(activated=Activated(1, True, {}))


class Leaving:
    """Lanes that have carried all there is."""

    topics = None

    def __init__(self, *_: object) -> None:
        pass

    def opened(self, partitions: list[int]) -> list[Any]:
        reader = SimpleNamespace(positions={})
        return [
            SimpleNamespace(partition=each, mark=FOLLOWS, reader=reader, writer=None)
            for each in partitions
        ]

    def drain(self, *, fenced: bool) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("marks", "carried"),
    [((FOLLOWS, FOLLOWS), 1), ((ACTIVE, FOLLOWS), 0), ((ACTIVE, ACTIVE), 0)],
    ids=["none active", "interrupted", "done"],
)
def test_a_side_that_is_active_keeps_its_own_policies(
    monkeypatch: pytest.MonkeyPatch, marks: tuple[MirrorMark, ...], carried: int
) -> None:
    source: Any = SimpleNamespace(homes=2, mark=lambda _: None)
    target: Any = SimpleNamespace(homes=2, mark=lambda each: marks[each])

    for name, stand_in in {
        "LeavingLanes": Leaving, "fence": lambda *_: 7, "see_that_it_is_whole": lambda *_: None,
        "_begins": lambda *_: {}, "activate": lambda *_: "well",
    }.items():  # fmt: skip
        monkeypatch.setattr(taking_over, name, stand_in)
    called: list[int] = []

    def policies() -> int:
        called.append(1)
        return 3

    said = [told for _, told in planned(source, target, policies, lambda: 0)]
    assert len(called) == carried
    assert said.count("active here: well") == sum(each is FOLLOWS for each in marks)


def test_a_fence_amid_a_take_over_with_the_source_begins_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is active by then stays so, and the way back misses nothing that it wrote meanwhile."""
    marks, ends, begun = {0: FOLLOWS, 1: FOLLOWS}, iter(range(9)), []
    fences = [KafkaException(KafkaError(KafkaError._FENCED))]

    def activate(_w: object, _t: object, partition: int, _m: object, how: Any, _n: object) -> str:
        if partition == 1 and fences:
            raise fences.pop()
        marks[partition] = ACTIVE
        begun.append((partition, how.begins))
        return "well"

    for name, stand_in in {
        "LeavingLanes": Leaving, "fence": lambda *_: 7, "see_that_it_is_whole": lambda *_: None,
        "_begins": lambda *_: {"lifecycle": next(ends)}, "activate": activate,
    }.items():  # fmt: skip
        monkeypatch.setattr(taking_over, name, stand_in)
    monkeypatch.setattr(machine, "sleep", lambda _: None)
    source: Any = SimpleNamespace(homes=2, mark=lambda _: None)
    target: Any = SimpleNamespace(homes=2, mark=marks.__getitem__)
    said = list(planned(source, target, lambda: 3, lambda: 0))
    assert begun == [(0, {"lifecycle": 0}), (1, {"lifecycle": 1})]
    assert [each for each, told in said if "fenced in" in told] == [0, 1, 1]
    assert sum(each is None and "policies" in told for each, told in said) == 1


@pytest.mark.parametrize(
    "mark",
    [FOLLOWS._replace(whole=True), FOLLOWS._replace(level_ms=1)],
    ids=["amid a first copy", "amid a transaction"],
)
def test_what_was_never_carried_as_a_whole_does_not_take_over(
    monkeypatch: pytest.MonkeyPatch, mark: MirrorMark
) -> None:
    def writer(*_: object) -> Any:
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(taking_over, "ChangelogWriter", writer)
    target: Any = SimpleNamespace(homes=1, mark=lambda _: mark, settings=None, grown_from=0)
    with pytest.raises(CannotMirror, match="never carried as a whole"):
        list(abandoned(target, lambda: 0))


ADDED = FOLLOWS._replace(began_ms=900)


@pytest.mark.parametrize(
    ("mark", "last", "allowed"),
    [
        (ADDED, keys.IDENTITY_KEY, True),
        (ADDED._replace(began_ms=500, level_ms=600), keys.IDENTITY_KEY, True),
        (ADDED._replace(began_ms=500), keys.IDENTITY_KEY, False),
        (ADDED, b"shop/a", False),
        (ADDED._replace(level_ms=950), b"shop/a", False),
    ],
    ids=["lately", "empty", "before, and not read", "in pieces", "level amid a transaction"],
)
def test_a_partition_that_was_added_takes_over_empty_where_it_held_nothing(
    monkeypatch: pytest.MonkeyPatch, mark: MirrorMark, last: bytes, allowed: bool
) -> None:
    def writer(*_: object) -> Any:
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(taking_over, "ChangelogWriter", writer)
    monkeypatch.setattr(taking_over, "activate", lambda *_: "well")
    marks = FOLLOWS._replace(whole=True, level_ms=1, began_ms=500, number=7), mark
    target: Any = SimpleNamespace(
        homes=2, grown_from=1, mark=lambda each: marks[each], settings=None,
        backwards=lambda *_: iter(SimpleNamespace(key=lambda k=k: k) for k in (FILLER, last)),
        last_manifest=lambda _: None,
    )  # fmt: skip
    if allowed:
        assert (1, "active here: well") in list(abandoned(target, lambda: 0))
    else:
        with pytest.raises(CannotMirror, match="partitions 1 were never carried as a whole"):
            list(abandoned(target, lambda: 0))


@pytest.mark.parametrize("given_to", [None, "cluster-a"])
def test_a_side_that_is_active_says_so_unless_the_other_one_took_over_since(
    given_to: str | None,
) -> None:
    told: dict[str, Any] = {"mark": lambda _: ACTIVE, "given_to": lambda _: given_to}
    target: Any = SimpleNamespace(homes=1, grown_from=0, last_manifest=lambda _: None, **told)
    if given_to is None:
        [(_, said)] = abandoned(target, lambda: 0)
        assert said == "active here since 1970-01-01T00:00:00.001Z"
    else:
        with pytest.raises(CannotMirror, match="belongs to cluster cluster-a"):
            list(abandoned(target, lambda: 0))


LATER = ACTIVE._replace(epoch=2)


@pytest.mark.parametrize(
    ("theirs", "mine", "allowed"),
    [
        ((None, None), (ACTIVE, ACTIVE), True),
        # The source took over itself, before this side did, or after it.
        ((ACTIVE, ACTIVE), (LATER, LATER), True),
        ((None, LATER), (ACTIVE, ACTIVE), False),
        ((ACTIVE, ACTIVE), (ACTIVE, ACTIVE), False),
        ((None, None), (ACTIVE, FOLLOWS), False),
        ((None, None), (ACTIVE, None), False),
    ],
    ids=["never", "before", "after", "same", "one follows", "one is alone"],
)
def test_only_a_side_that_took_over_later_fences_the_other(
    monkeypatch: pytest.MonkeyPatch, theirs: Any, mine: Any, allowed: bool
) -> None:
    source: Any = SimpleNamespace(homes=2, mark=lambda each: theirs[each])
    target: Any = SimpleNamespace(homes=2, mark=lambda each: mine[each], grown_from=0)
    fenced: list[int] = []

    def fence(_source: object, _target: object, partition: int) -> int:
        fenced.append(partition)
        return 7

    monkeypatch.setattr(taking_over, "fence", fence)
    if allowed:
        assert len(list(fenced_late(source, target, apply=False))) == 2
        assert fenced == []
        list(fenced_late(source, target, apply=True))
        assert fenced == [0, 1]
    else:
        with pytest.raises(CannotMirror, match="would stop the side that may fire"):
            list(fenced_late(source, target, apply=True))
        # All partitions are looked at before the first one is fenced.
        assert fenced == []


@pytest.mark.parametrize("homes", [2, 3])
def test_a_source_is_fenced_by_a_side_that_has_grown_since(
    monkeypatch: pytest.MonkeyPatch, homes: int
) -> None:
    """The source may have grown as well, and its workers fire there."""
    mine = ACTIVE, ACTIVE, None, None
    source: Any = SimpleNamespace(homes=homes, mark=lambda _: None)
    target: Any = SimpleNamespace(homes=4, mark=lambda each: mine[each], grown_from=2)
    monkeypatch.setattr(taking_over, "fence", lambda *_: 7)
    said = list(fenced_late(source, target, apply=True))
    assert [each for each, _ in said] == list(range(homes))


@pytest.mark.parametrize(
    ("times", "code"),
    [(1, KafkaError._FENCED), (TRIES, KafkaError._FENCED), (1, KafkaError._TIMED_OUT)],
    ids=["once", "again and again", "no broker answers"],
)
def test_a_worker_that_fences_a_partition_meanwhile_does_not_end_a_take_over(
    monkeypatch: pytest.MonkeyPatch, times: int, code: int
) -> None:
    marks = dict.fromkeys(range(2), FOLLOWS._replace(whole=True, level_ms=1, number=7))
    fences = [KafkaException(KafkaError(code))] * times

    def activate(_writer: object, _target: object, partition: int, *_: object) -> str:
        if partition == 1 and fences:
            raise fences.pop()
        marks[partition] = marks[partition]._replace(activated=Activated(1, False, {}))
        return "well"

    def writer(*_: object) -> Any:
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(taking_over, "ChangelogWriter", writer)
    monkeypatch.setattr(taking_over, "activate", activate)
    monkeypatch.setattr(machine, "sleep", lambda _: None)
    target: Any = SimpleNamespace(
        homes=2, grown_from=0, mark=marks.__getitem__, settings=None, given_to=lambda _: None
    )
    if times == TRIES or code == KafkaError._TIMED_OUT:
        with pytest.raises(KafkaException):
            list(abandoned(target, lambda: 0))
    else:
        told = list(abandoned(target, lambda: 0))
        assert [each for each, said in told if "active" in said] == [0, 1]
        assert [said for each, said in told if each is None and "begun again" in said]
