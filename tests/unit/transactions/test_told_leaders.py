"""A broker that leads a partition no more says who does: the batch goes there, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belfry.kafka import moved_leaders
from belfry.transactions.asking import Ended, Pauses
from belfry.transactions.brokers import Lost
from belfry.transactions.errors import Meaning
from belfry.transactions.produce import ProduceAnswer
from tests.unit.transactions.conftest import SkippedTime
from tests.unit.transactions.scripted import LOST, Script, batches, opened, told

WHERE = ("fired", 0)
NOT_LEADER = 6


def says(leader: int, epoch: int) -> Callable[[Any], Any]:
    """A refusal with a word on who leads."""
    return lambda request: ProduceAnswer(
        [(*each.where, NOT_LEADER, -1, -1) for each in request.batches],
        0,
        {each.where: (leader, epoch) for each in request.batches},
    )


def nodes(script: Script) -> list[int]:
    """The brokers that were asked to append, in order."""
    return [node for kind, node in script.asked if kind == "produce"]


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[Meaning]:
    """Each pause, by what it was for."""
    found: list[Meaning] = []
    wait = Pauses.wait

    async def noted(self: Pauses, meaning: Meaning) -> bool:
        found.append(meaning)
        return await wait(self, meaning)

    monkeypatch.setattr(Pauses, "wait", noted)
    return found


async def test_the_leader_that_was_told_is_asked_at_once(paused: list[Meaning]) -> None:
    script = Script(produce=[says(3, 8)])
    writer = await opened(script, own_epochs=True)
    step = batches(writer, WHERE)
    await writer.write(step)
    assert (nodes(script), script.looks, paused) == ([1, 3], 0, [])
    first, second = (request.batches[0] for request in script.sent[-2:])
    assert first is second is step[0]


async def test_a_leader_that_does_not_know_it_yet_is_asked_again_soon(
    paused: list[Meaning],
) -> None:
    script = Script(produce=[says(3, 8), says(1, 7), says(1, 7)])
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    assert nodes(script) == [1, 3, 3, 3]
    assert (script.looks, paused) == (0, [Meaning.BUSY] * 2)


async def test_the_next_step_knows_it_too() -> None:
    script = Script(produce=[says(3, 8)])
    writer = await opened(script, own_epochs=True)
    for _ in range(2):
        await writer.write(batches(writer, WHERE))
        await writer.end(commit=True)
    assert nodes(script) == [1, 3, 3]


async def test_a_leader_that_gives_no_answer_is_looked_for(paused: list[Meaning]) -> None:
    script = Script(produce=[says(3, 8), LOST])
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    assert nodes(script) == [1, 3, 1]
    assert (script.looks, paused) == (1, [Meaning.MOVED])


@pytest.mark.parametrize("code", [3, NOT_LEADER, 56])
async def test_a_leader_that_refuses_and_names_nobody_is_looked_for(
    paused: list[Meaning], code: int
) -> None:
    """Its disk is lost, or it has the topic no more: it would say so for as long as it is asked."""
    script = Script(produce=[says(3, 8), code])
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    assert nodes(script) == [1, 3, 1]
    assert (script.looks, paused) == (1, [Meaning.MOVED])


async def test_a_leader_that_was_told_outlasts_a_lost_answer_of_the_former_one() -> None:
    """Another writer was told of it while this one's request was under way."""
    script = Script()

    def lost(_: Any) -> Any:
        script.tell_leader(WHERE, 3, 8)
        raise Lost("cut")

    script.answers["produce"] = [lost]
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    assert nodes(script) == [1, 3]


async def test_ever_newer_words_end_with_the_step(
    monkeypatch: pytest.MonkeyPatch, skipped_time: SkippedTime
) -> None:
    monkeypatch.setattr("belfry.transactions.writer.WRITE_S", 0.3)
    script = Script()

    def answers(request: Any) -> Any:
        script.answers["produce"].append(answers)
        skipped_time.now += 0.01
        assert len(nodes(script)) < 99, "it never ends"
        return says(2 + len(nodes(script)) % 2, len(nodes(script)))(request)

    script.answers["produce"] = [answers]
    writer = await opened(script, own_epochs=True)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, WHERE))
    assert raised.value.meaning is Meaning.ABORT
    assert len(nodes(script)) < 40


async def test_a_wrong_word_is_followed_for_a_while_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moved_leaders, "COUNTS_S", 0.2)
    script = Script()

    def answers(request: Any) -> Any:
        # Broker 1 refuses once, with a word that is wrong. Broker 3 does not lead, and says so.
        script.answers["produce"].append(answers)
        if nodes(script)[-1] == 3:
            return says(1, 0)(request)
        return (says(3, 8) if len(nodes(script)) == 1 else told({}))(request)

    script.answers["produce"] = [answers]
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    assert (nodes(script)[0], set(nodes(script)[1:-1]), nodes(script)[-1]) == (1, {3}, 1)


async def test_words_that_go_in_a_circle_end_with_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("belfry.transactions.writer.WRITE_S", 0.3)
    script = Script(produce=[says(3 - n % 2, 8) for n in range(9_999)])
    writer = await opened(script, own_epochs=True)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, WHERE))
    assert raised.value.meaning is Meaning.ABORT
    assert len(nodes(script)) < 60


async def test_only_what_moved_is_sent_again() -> None:
    def half(request: Any) -> Any:
        gone = request.batches[0].where
        return ProduceAnswer(
            [
                (*each.where, NOT_LEADER if each.where == gone else 0, 7, -1)
                for each in request.batches
            ],
            0,
            {gone: (3, 8)},
        )

    script = Script(produce=[half])
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, ("a", 0), ("b", 0)))
    assert [[each.where[0] for each in request.batches] for request in script.sent[-2:]] == [
        ["a", "b"],
        ["a"],
    ]


@pytest.mark.parametrize(("code", "looks"), [(15, 0), (16, 0), (LOST, 1)])
async def test_a_coordinator_that_moves_needs_no_look_at_all_topics(code: Any, looks: int) -> None:
    script = Script(end=[code])
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer, WHERE))
    await writer.end(commit=True)
    assert script.asked[-2:] == [("find", 0), ("end", 1)]
    assert script.looks == looks
