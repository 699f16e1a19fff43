"""What a step's owner is told of a roll-back that belfry's own writer carried out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from belfry.engine.effects import Effects, Letter
from belfry.kafka.outcome import Aborted, TopicGone
from belfry.kafka.step_records import OutputTopics, fired_records, topics_of
from belfry.transactions import errors
from belfry.transactions.asking import Ended
from belfry.transactions.batches import StepBatches
from belfry.transactions.placing import PlacedRecords
from belfry.transactions.producer import DirectProducer
from belfry.transactions.writer import WriterState


@pytest.mark.parametrize(("code", "blocked"), [(errors.BLOCKED, True), (10, False)])
def test_a_right_that_is_missing_is_remembered_where_all_was_rolled_back(
    code: int, blocked: bool
) -> None:
    here: Any = SimpleNamespace(signer=None, _silent=False, _refused=lambda *_: {})
    writer: Any = SimpleNamespace(state=WriterState.READY)
    end = DirectProducer._roll_back(here, writer, Ended(errors.TABLE[code]), Effects())
    assert isinstance(end, Aborted)
    assert (end.topics, end.blocked) == ({}, blocked)


def test_the_topics_of_tenants_are_told_of_those_that_refused() -> None:
    """Events and dead letters; the others are belfry's, and nobody is held for them."""
    here: Any = SimpleNamespace(_non_transactional=SimpleNamespace(refused={}, start_over=list))
    fired: Any = [("f", b"k", None, b"v", [])]
    effects = Effects(fired=fired, letters=[Letter("l", b"k", b"v", [])])
    end = Ended(errors.TABLE[10], {"f": "1", "l": "2", "belfry.rejected": "3"})
    assert DirectProducer._refused(here, end, effects) == {"f": "1", "l": "2"}


@pytest.mark.parametrize("group", [b"g1", b"g2", b"g3", b"g4", b"g5"])
def test_groups_go_where_the_other_writer_would_place_them_while_partitions_are_added(
    group: bytes,
) -> None:
    """The worker has seen seven partitions; the connections of this writer know of three."""
    names = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 7)
    here: Any = SimpleNamespace(_output_topics=names, _failpoint=str)
    brokers: Any = SimpleNamespace(partitions_of=lambda _topic: 3)
    step, loop = StepBatches(0, {}, 0), SimpleNamespace()
    effects = Effects(fired=[("f", b"k", group, b"v", [])])
    placing = PlacedRecords(step, brokers, cast("Any", loop), 1, set)
    DirectProducer._add_outputs(here, placing, effects)
    placed = {(topic, where) for topic, where, *_ in fired_records(effects.fired, names)}
    assert step.places == placed


class _Brokers:
    """Knows no topic until it is asked for."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.looks: list[set[str]] = []

    def partitions_of(self, topic: str) -> int:
        return 2 if topic in self.known else 0

    def know(self, topics: set[str]) -> set[str]:
        self.looks.append(topics)
        self.known |= topics - {"gone"}
        return topics


def _place(brokers: Any, effects: Effects) -> None:
    names = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 2)
    here: Any = SimpleNamespace(_output_topics=names, _failpoint=str)
    loop: Any = SimpleNamespace(run=lambda *_: None)
    step = StepBatches(0, {}, 0)
    placing = PlacedRecords(step, brokers, loop, 1, lambda: topics_of(effects))
    DirectProducer._add_outputs(here, placing, effects)


def test_all_new_topics_of_a_step_are_learned_by_one_look() -> None:
    """One look each would take a step of a thousand tenants many seconds."""
    fired: list[Any] = [(f"f{n % 100}", b"k", None, b"v", []) for n in range(300)]
    letters = [Letter(f"l{n}", b"k", b"v", []) for n in range(50)]
    effects, brokers = Effects(fired=fired, letters=letters), _Brokers()
    brokers.known |= {"f1", "l1"}
    _place(brokers, effects)
    (look,) = brokers.looks
    assert look == topics_of(effects) - {"f1", "l1"}
    _place(brokers, effects)
    assert len(brokers.looks) == 1, "nothing is new any more"


def test_a_topic_that_is_not_there_is_named_though_others_are_learned_with_it() -> None:
    effects = Effects(fired=[(topic, b"k", None, b"v", []) for topic in ("f1", "gone", "f2")])
    brokers = _Brokers()
    with pytest.raises(TopicGone, match="gone"):
        _place(brokers, effects)
    assert len(brokers.looks) == 1, "to miss it takes a second, once"
