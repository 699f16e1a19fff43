"""A target gets the partitions of its source in an order in which nobody takes one for its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka import librdkafka
from belfry.mirror import growth
from belfry.mirror.beginnings import CannotMirror, Ends
from belfry.mirror.growth import grown_together, see_that_it_is_whole
from belfry.mirror.marks import MirrorMark, decode_mark
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys

NOW_MS = 1_800_000_000_000


def side(name: str, homes: int, grown_from: int, ends: dict[int, Ends] | None = None) -> Any:
    settings = SimpleNamespace(
        topic=lambda kind: f"belfry.{kind}", kafka_properties=dict, cluster=f"cluster of {name}"
    )
    here = Identity(f"cluster-{name}", f"log-{name}", f"in-{name}")
    held = ends or {}
    return SimpleNamespace(
        name=name, settings=settings, homes=homes, grown_from=grown_from, here=here,
        mark=lambda _: None, ends=lambda each: held.get(each, Ends(True, 0)),
    )  # fmt: skip


class Done:
    """What was done at the target, in its order, and the marks that were written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, source: Any, after: Any) -> None:
        self.steps: list[Any] = []
        self.marks: list[MirrorMark] = []
        told = self

        class FakeWriter:
            def __init__(self, _settings: object, partition: int, _ms: int) -> None:
                self.partition = partition

            def begin(self, _topic_id: str) -> None:
                pass

            def row(self, key: bytes, value: bytes) -> None:
                told.steps.append((self.partition, key, value))

            def beside(self, topic: str, _key: bytes, value: bytes) -> None:
                assert topic == "belfry.mirror"
                told.marks.append(decode_mark(value))

            def commit(self) -> None:
                pass

            def close(self) -> None:
                pass

        sides = {source.name: source, after.name: after}
        for name, stand_in in {
            "opened": lambda name, _: sides[name],
            "with_marks": lambda each: each,
            "keep_homes": lambda _, cluster, homes: self.steps.append(("homes", homes)),
            "add_partitions": lambda _, topic, count: self.steps.append((topic, count)),
            "ChangelogWriter": FakeWriter,
        }.items():
            monkeypatch.setattr(growth, name, stand_in)
        monkeypatch.setattr(librdkafka, "AdminClient", lambda _: None)


def test_each_partition_says_whose_it_is_before_it_takes_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, after = side("a", 4, 2), side("b", 4, 2)
    done = Done(monkeypatch, source, after)
    assert grown_together(source, side("b", 2, 0), NOW_MS) == (source, after)
    whose = keys.IDENTITY_KEY, encode_identity(source.here)
    assert done.steps == [
        ("homes", 2),
        ("belfry.mirror", 4),
        ("belfry.changelog", 4),
        (2, *whose),
        (3, *whose),
        ("belfry.schedules", 4),
    ]
    [mark, other] = done.marks
    assert mark == other
    assert (mark.source, mark.changelog, mark.into, mark.epoch) == (
        "cluster-a",
        "log-a",
        "log-b",
        1,
    )
    assert (mark.positions, mark.whole, mark.began_ms) == ({}, False, NOW_MS)


def test_what_was_done_before_is_not_done_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    source, after = side("a", 4, 2), side("b", 4, 2)
    done = Done(monkeypatch, source, after)
    # Interrupted when one of two partitions had said whose it is.
    grown_together(source, side("b", 2, 2, {2: Ends(False, 2)}), NOW_MS)
    assert [each[0] for each in done.steps] == [
        "belfry.mirror",
        "belfry.changelog",
        3,
        "belfry.schedules",
    ]
    done.steps.clear()
    assert grown_together(source, after, NOW_MS) == (source, after)
    assert not done.steps


def test_a_take_over_is_said_again_where_the_source_grew_meanwhile() -> None:
    topics: Any = SimpleNamespace(partitions=lambda: 3)
    see_that_it_is_whole(topics, 3)
    with pytest.raises(CannotMirror, match="Say the same once more"):
        see_that_it_is_whole(topics, 2)
