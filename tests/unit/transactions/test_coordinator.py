"""What a writer asks its coordinator for, field by field, and whom it asks after an error."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.transactions import errors
from belfry.transactions.asking import Ended
from belfry.transactions.brokers import Lost
from belfry.transactions.errors import Meaning
from belfry.transactions.requests import (
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
)
from belfry.transactions.writer import WriterState
from tests.unit.transactions.scripted import LOST, Script, batches, opened

pytestmark = pytest.mark.usefixtures("skipped_time")

NAME, TIMEOUT_MS, PRODUCER = "belfry.0", 10_000, 7
BUSY, MOVED, BLOCKED = 51, 16, 29


def unsent(_request: Any) -> Any:
    """The connection was gone before the request left."""
    raise Lost("not connected", sent=False)


def asked(script: Script, *kinds: Any) -> list[tuple[Any, ...]]:
    """The fields of such requests, without tags, in order."""
    return [each._fields[:-1] for each in script.sent if isinstance(each, kinds)]


def first_sequences(script: Script) -> list[tuple[int, int]]:
    """Epoch and first sequence of each batch, in the order in which they were sent."""
    heads = [
        each.data[51:57] for request in script.sent for each in getattr(request, "batches", ())
    ]
    return [(int.from_bytes(d[:2], "big"), int.from_bytes(d[2:], "big")) for d in heads]


# -- fields ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
async def test_a_new_owner_fences_whoever_had_the_id(own_epochs: bool) -> None:
    script = Script()
    writer = await opened(script, own_epochs=own_epochs)
    assert asked(script, InitProducerId) == [(NAME, TIMEOUT_MS, -1, -1)]
    assert writer.writer == (PRODUCER, 0)


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("answer", [LOST, unsent, errors.UNTOLD])
async def test_a_fence_without_an_answer_is_repeated(answer: Any, own_epochs: bool) -> None:
    """A later answer only makes the epoch larger, so a repeat does no harm."""
    script = Script(init=[answer, answer])
    writer = await opened(script, own_epochs=own_epochs)
    assert script.kinds == ["init"] * 3
    assert writer.state is WriterState.READY


async def test_v1_takes_the_next_epoch_after_a_roll_back_and_fences_nobody_by_it() -> None:
    """Who asks as the one that it was is refused where another owner has come meanwhile."""
    script = Script(produce=[BLOCKED])
    writer = await opened(script, own_epochs=False)
    with pytest.raises(Ended):
        await writer.write(batches(writer, ("changelog", 0)))
    await writer.end(commit=False)
    assert asked(script, InitProducerId)[1:] == [(NAME, TIMEOUT_MS, PRODUCER, 0)]
    assert writer.writer == (PRODUCER, 1)


async def test_v1_adds_each_partition_once() -> None:
    script = Script()
    writer = await opened(script, own_epochs=False)
    writer.limits["fired"] = 120
    await writer.write(batches(writer, ("fired", 1), ("changelog", 0), ("fired", 0), records=30))
    (request,) = [each for each in script.sent if isinstance(each, AddPartitionsToTxn)]
    assert request._fields[:3] == (NAME, PRODUCER, 0)
    added = [(topic, partitions) for topic, partitions, _ in request._fields[3]]
    assert added == [("changelog", [0]), ("fired", [0, 1])]


@pytest.mark.parametrize(("own_epochs", "kind"), [(False, EndTxn), (True, EndTxnWithEpoch)])
@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_says_whose_and_which(own_epochs: bool, kind: type, commit: bool) -> None:
    script = Script()
    writer = await opened(script, own_epochs=own_epochs)
    await writer.write(batches(writer))
    await writer.end(commit=commit)
    assert asked(script, EndTxn, EndTxnWithEpoch) == [(NAME, PRODUCER, 0, commit)]
    assert [type(each) for each in script.sent if isinstance(each, EndTxn | EndTxnWithEpoch)] == [
        kind
    ]


async def test_v2_goes_on_with_the_producer_that_an_end_gives() -> None:
    """Behind the last epoch of a producer id comes another id."""
    script = Script()
    writer = await opened(script, own_epochs=True)
    await writer.write(batches(writer))

    def exhausted(request: Any) -> Any:
        answer = script._end(request, 0)
        answer.producer_id, answer.producer_epoch = 8, 0
        return answer

    script.answers["end"] = [exhausted]
    await writer.end(commit=True)
    assert writer.writer == (8, 0)
    assert {tuple(each.data[43:51]) for each in batches(writer)} == {(0, 0, 0, 0, 0, 0, 0, 8)}


async def test_v1_counts_on_behind_all_batches_of_a_partition() -> None:
    script = Script()
    writer = await opened(script, own_epochs=False)
    writer.limits["changelog"] = 120
    for _ in range(3):
        await writer.write(batches(writer, ("changelog", 0), records=30))
        await writer.end(commit=True)
    assert first_sequences(script) == [(0, 5 * number) for number in range(18)]


async def test_a_step_that_reached_no_broker_is_not_ended_and_uses_no_sequence() -> None:
    script = Script()
    writer = await opened(script, own_epochs=False)
    await writer.write(batches(writer, ("changelog", 0)))
    await writer.end(commit=True)
    script.answers["add"] = [BLOCKED]
    with pytest.raises(Ended):
        await writer.write(batches(writer, ("changelog", 0)))
    await writer.end(commit=False)
    await writer.write(batches(writer, ("changelog", 0)))
    assert script.kinds == ["init", "add", "produce", "end", "add", "add", "produce"]
    assert first_sequences(script) == [(0, 0), (0, 3)]


# -- whom it asks ----------------------------------------------------------------------------------


async def test_a_coordinator_is_looked_for_once() -> None:
    script = Script()
    writer = await opened(script, own_epochs=True)
    for _ in range(3):
        await writer.write(batches(writer))
        await writer.end(commit=True)
    assert script.asked.count(("find", 0)) == 1
    assert script.looks == 0


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize(
    ("answer", "found_anew", "looks"), [(BUSY, 0, 0), (MOVED, 2, 0), (unsent, 1, 1)]
)
async def test_a_coordinator_that_moved_is_looked_for_anew(
    answer: Any, found_anew: int, looks: int, own_epochs: bool
) -> None:
    """The broker that refused names itself, so another one is asked; leaders are left alone."""
    script = Script()
    writer = await opened(script, own_epochs=own_epochs)
    await writer.write(batches(writer))
    script.answers["end"] = [answer]
    await writer.end(commit=True)
    assert [kind for kind, _ in script.asked].count("find") == 1 + found_anew
    assert script.looks == looks
    assert script.kinds.count("end") == 2
    assert writer.state is WriterState.READY


async def test_v1_repeats_an_end_after_a_look_for_a_coordinator_that_failed() -> None:
    """Nothing was sent: no late end can come of it."""

    async def fails_once(_name: str, informed: int | None = None) -> Any:
        script.coordinator_of = found  # type: ignore[method-assign]
        raise Lost("cut")

    script = Script(end=[MOVED])
    found = script.coordinator_of
    writer = await opened(script, own_epochs=False)
    await writer.write(batches(writer))
    script.coordinator_of = fails_once  # type: ignore[method-assign]
    await writer.end(commit=True)
    assert script.kinds.count("end") == 2
    assert writer.state is WriterState.READY


@pytest.mark.parametrize(
    ("answers", "ends"), [([unsent, BLOCKED], 0), ([LOST, unsent, BLOCKED], 1)]
)
async def test_v1_rolls_back_only_what_may_have_been_added(answers: list[Any], ends: int) -> None:
    script = Script(add=answers)
    writer = await opened(script, own_epochs=False)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer))
    assert raised.value.meaning is Meaning.REFUSED
    await writer.end(commit=False)
    assert script.kinds.count("end") == ends
    assert writer.state is WriterState.READY


async def test_v1_names_a_topic_that_cannot_be_added_because_it_is_gone() -> None:
    script = Script(add=[3] * 999)
    writer = await opened(script, own_epochs=False)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer))
    assert raised.value.meaning is Meaning.REFUSED
    assert set(raised.value.topics) == {"changelog", "fired"}


async def test_a_writer_is_used_in_order() -> None:
    script = Script()
    writer = await opened(script, own_epochs=True)
    with pytest.raises(AssertionError):
        await writer.end(commit=True)
    step = batches(writer)
    await writer.write(step)
    with pytest.raises(AssertionError):
        await writer.write(step)
    script.answers["end"] = [90]
    with pytest.raises(Ended):
        await writer.end(commit=True)
    for call in (writer.write(step), writer.end(commit=False)):
        with pytest.raises(AssertionError):
            await call
    assert script.kinds == ["init", "produce", "produce", "end"]
