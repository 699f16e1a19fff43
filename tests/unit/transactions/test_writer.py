"""A writer against a scripted broker: each error has its end, and nothing is sent too often."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import Any

import pytest

from belfry.transactions import asking, errors
from belfry.transactions.asking import Ended
from belfry.transactions.errors import Meaning
from belfry.transactions.writer import BEGIN_S, TransactionWriter, WriterState
from tests.unit.transactions.conftest import SkippedTime
from tests.unit.transactions.scripted import LOST, Script, batches, opened, told

V1, V2 = False, True
pytestmark = pytest.mark.usefixtures("skipped_time")

BOTH = pytest.mark.parametrize("own_epochs", [V1, V2], ids=["v1", "v2"])
BY_MEANING = {
    meaning: [code for code, line in errors.TABLE.items() if line.meaning is meaning]
    for meaning in Meaning
}


def sequences(request: Any) -> dict[Any, tuple[int, int]]:
    """Epoch and first sequence of each batch of a Produce."""
    return {each.where: struct.unpack_from(">hi", each.data, 51) for each in request.batches}


async def one_step(writer: TransactionWriter) -> None:
    await writer.write(batches(writer, ("changelog", 0)))
    await writer.end(commit=True)


def codes_of(meaning: Meaning) -> list[int]:
    """The protocol's errors that have a meaning."""
    return [code for code in BY_MEANING[meaning] if code not in (errors.LOST, errors.NOBODY)]


# -- what a transaction asks -----------------------------------------------------------------------


async def test_v1_adds_partitions_and_keeps_its_epoch() -> None:
    script = Script()
    writer = await opened(script, own_epochs=V1)
    for _ in range(2):
        await writer.write(batches(writer))
        await writer.end(commit=True)
    step = ["add", "produce", "produce", "end"]
    assert script.kinds == ["init", *step, *step]
    produced = [sequences(each) for each in script.sent if hasattr(each, "batches")]
    assert produced == [
        {("changelog", 0): (0, 0)}, {("fired", 1): (0, 0)},
        {("changelog", 0): (0, 3)}, {("fired", 1): (0, 3)},
    ]  # fmt: skip


async def test_v2_has_an_epoch_for_each_transaction() -> None:
    script = Script()
    writer = await opened(script, own_epochs=V2)
    for _ in range(2):
        await writer.write(batches(writer, ("changelog", 0), ("fired", 0)))
        await writer.end(commit=True)
    assert script.kinds == ["init", "produce", "end", "produce", "end"]
    produced = [sequences(each) for each in script.sent if hasattr(each, "batches")]
    assert produced == [
        {("changelog", 0): (epoch, 0), ("fired", 0): (epoch, 0)} for epoch in (0, 1)
    ]


async def test_each_leader_gets_one_request_with_all_its_partitions() -> None:
    script = Script()
    writer = await opened(script, own_epochs=V2)
    await writer.write(batches(writer, *((f"t{n}", n % 2) for n in range(100))))
    assert sorted(node for kind, node in script.asked if kind == "produce") == [1, 2]


# -- errors of partitions --------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("code", [*codes_of(Meaning.BUSY), *codes_of(Meaning.MOVED), LOST])
async def test_what_passes_is_sent_again_with_its_sequence(code: Any, own_epochs: bool) -> None:
    script = Script(produce=[code, code])
    writer = await opened(script, own_epochs=own_epochs)
    step = batches(writer, ("changelog", 0))
    await writer.write(step)
    produced = [sequences(each) for each in script.sent if hasattr(each, "batches")]
    assert produced == [{("changelog", 0): (0, 0)}] * 3
    assert step[0].last_offset == 102
    moved = code == LOST or errors.TABLE[code].meaning is Meaning.MOVED
    assert (script.looks > 0) == moved


@BOTH
@pytest.mark.parametrize("code", codes_of(Meaning.REFUSED))
async def test_a_topic_that_refuses_is_named(code: int, own_epochs: bool) -> None:
    script = Script(produce=[told({"bad": code})])
    writer = await opened(script, own_epochs=own_epochs)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, ("changelog", 0), ("bad", 0), records=1))
    assert raised.value.topics == {"bad": errors.sentence(code)}
    await writer.end(commit=False)
    assert writer.state is WriterState.READY
    await writer.write(batches(writer))
    assert all(epoch == 1 for epoch, _ in sequences(script.sent[-1]).values())


@BOTH
@pytest.mark.parametrize("code", codes_of(Meaning.ABORT))
async def test_what_cannot_be_committed_is_rolled_back(code: int, own_epochs: bool) -> None:
    script = Script(produce=[code])
    writer = await opened(script, own_epochs=own_epochs)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, ("changelog", 0)))
    assert raised.value.meaning is Meaning.ABORT
    assert not raised.value.topics
    await writer.end(commit=False)
    await writer.write(batches(writer, ("changelog", 0)))
    # From 0 in the next epoch: nobody knows which sequences the last one has used.
    assert sequences(script.sent[-1]) == {("changelog", 0): (1, 0)}


@BOTH
@pytest.mark.parametrize("meaning", [Meaning.FENCED, Meaning.UNKNOWN])
@pytest.mark.parametrize("request_kind", ["produce", "end", "init"])
async def test_what_is_over_is_over(request_kind: str, meaning: Meaning, own_epochs: bool) -> None:
    for code in codes_of(meaning):
        script = Script()
        writer = await opened(script, own_epochs=own_epochs)
        script.answers[request_kind] = [code]
        with pytest.raises(Ended) as raised:
            await (writer.begin() if request_kind == "init" else one_step(writer))
        assert raised.value.meaning is meaning, code
        if request_kind != "init":
            assert writer.state is WriterState.OVER


async def test_what_came_behind_a_batch_that_was_not_taken_is_no_disorder() -> None:
    script = Script(produce=[51, 0, 51, 45, 45, 45, 45])
    writer = await opened(script, own_epochs=V2)
    writer.limits["changelog"] = 120
    step = batches(writer, ("changelog", 0), records=30)
    assert len(step) == 6
    await writer.write(step)
    assert all(batch.code == 0 for batch in step)
    produced = [each.batches for each in script.sent if hasattr(each, "batches")]
    # The others are not sent before the first one was taken, and then in their order.
    assert [each[0] for each in produced] == [step[0], *step, *step[1:]]


@BOTH
@pytest.mark.parametrize("answer", [LOST, 14, 16, 51], ids=str)
async def test_a_broker_or_coordinator_that_is_away_for_too_long_is_no_topics_fault(
    own_epochs: bool, answer: Any
) -> None:
    """Who holds a topic back for it holds back a tenant whose events could go out."""
    script = Script(produce=[answer] * 999)
    writer = await opened(script, own_epochs=own_epochs)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, ("fired", 0)))
    assert raised.value.meaning is Meaning.ABORT
    assert raised.value.topics == {}


@BOTH
async def test_a_partition_without_a_leader_is_blamed(own_epochs: bool) -> None:
    script = Script()
    script.leaders[("fired", 1)] = None
    writer = await opened(script, own_epochs=own_epochs)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer))
    assert list(raised.value.topics) == ["fired"]


@BOTH
async def test_a_topic_that_is_gone_is_blamed_soon(own_epochs: bool) -> None:
    script = Script()
    script.leaders[("fired", 1)] = None
    script.missing.add("fired")
    writer = await opened(script, own_epochs=own_epochs)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer))
    assert raised.value.meaning is Meaning.REFUSED
    assert list(raised.value.topics) == ["fired"]


@pytest.mark.parametrize("records", [2, 40])
async def test_a_batch_that_can_be_divided_blames_nobody_and_is_divided(records: int) -> None:
    script = Script(produce=[10])
    writer = await opened(script, own_epochs=V2)
    first = batches(writer, ("fired", 0), records=records)
    with pytest.raises(Ended) as raised:
        await writer.write(first)
    assert raised.value.topics == {}
    assert writer.limits == {"fired": len(first[0].data) // 2}
    await writer.end(commit=False)
    second = batches(writer, ("fired", 0), records=records)
    assert len(second) > len(first)
    assert all(len(batch.data) <= len(first[0].data) // 2 for batch in second if batch.records > 1)


async def test_a_partition_moves_to_its_new_leader() -> None:
    script = Script(produce=[6])
    writer = await opened(script, own_epochs=V2)
    step = batches(writer, ("fired", 0))
    script.leaders[("fired", 0)] = 1

    async def moves(topics: Iterable[str] = ()) -> None:
        script.leaders[("fired", 0)] = 2

    script.refresh = moves  # type: ignore[method-assign]
    await writer.write(step)
    assert [node for kind, node in script.asked if kind == "produce"] == [1, 2]


# -- errors of the coordinator ---------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("code", [*codes_of(Meaning.BUSY), *codes_of(Meaning.MOVED)])
@pytest.mark.parametrize("kind", ["init", "end", "find"])
async def test_a_coordinator_is_asked_again(kind: str, code: int, own_epochs: bool) -> None:
    asked_twice: Any = {kind: [code, code]}
    script = Script(**asked_twice)
    writer = await opened(script, own_epochs=own_epochs)
    await writer.write(batches(writer))
    await writer.end(commit=True)
    assert writer.state is WriterState.READY
    if errors.TABLE[code].meaning is Meaning.MOVED:
        assert ("find", 0) in script.asked[1:]


async def test_a_look_for_a_coordinator_ends_with_the_time_of_a_fence(
    skipped_time: SkippedTime,
) -> None:
    async def never(_name: str, informed: int | None = None) -> Any:
        await asyncio.sleep(3_600)

    script = Script()
    script.coordinator_of = never  # type: ignore[method-assign]
    begun = skipped_time.now
    with pytest.raises(Ended, match="not in time"):
        await opened(script, own_epochs=V2)
    assert skipped_time.now - begun == pytest.approx(BEGIN_S)


@pytest.mark.parametrize("answer", [LOST, errors.UNTOLD])
async def test_v2_repeats_an_end_of_which_nobody_knows(answer: Any) -> None:
    script = Script(end=[answer, answer])
    writer = await opened(script, own_epochs=V2)
    await writer.write(batches(writer))
    await writer.end(commit=True)
    assert script.kinds.count("end") == 3
    assert writer.state is WriterState.READY


async def test_v1_never_repeats_an_end_of_which_the_coordinator_does_not_know() -> None:
    script = Script(end=[errors.UNTOLD])
    writer = await opened(script, own_epochs=V1)
    await writer.write(batches(writer))
    with pytest.raises(Ended):
        await writer.end(commit=True)
    assert script.kinds.count("end") == 1


async def test_v1_never_repeats_an_end_without_an_answer() -> None:
    script = Script(end=[LOST])
    writer = await opened(script, own_epochs=V1)
    await writer.write(batches(writer))
    with pytest.raises(Ended) as raised:
        await writer.end(commit=True)
    assert raised.value.meaning is Meaning.UNKNOWN
    assert script.kinds.count("end") == 1
    assert writer.state is WriterState.OVER


@BOTH
@pytest.mark.parametrize("code", [*codes_of(Meaning.ABORT), *codes_of(Meaning.REFUSED), 999])
@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_that_is_refused_is_unknown(code: int, commit: bool, own_epochs: bool) -> None:
    # What the coordinator itself does not know is asked again in v2, until the time is up.
    script = Script(end=[code] * 999)
    writer = await opened(script, own_epochs=own_epochs)
    await writer.write(batches(writer))
    with pytest.raises(Ended) as raised:
        await writer.end(commit=commit)
    assert raised.value.meaning is Meaning.UNKNOWN
    assert writer.state is WriterState.OVER


@BOTH
async def test_a_commit_that_stays_busy_is_unknown(own_epochs: bool) -> None:
    script = Script(end=[51] * 999)
    writer = await opened(script, own_epochs=own_epochs)
    await writer.write(batches(writer))
    with pytest.raises(Ended) as raised:
        await writer.end(commit=True)
    assert raised.value.meaning is Meaning.UNKNOWN


@pytest.mark.parametrize("code", codes_of(Meaning.REFUSED))
async def test_v1_names_who_refuses_to_be_added_and_has_nothing_to_roll_back(code: int) -> None:
    def answer(request: Any) -> Any:
        found = script._add(request, errors.NOT_ATTEMPTED)
        found.topics = [
            (name, [(p, code if name == "bad" else c, {}) for p, c, _ in parts], {})
            for name, parts, _ in found.topics
        ]
        return found

    script = Script(add=[answer])
    writer = await opened(script, own_epochs=V1)
    with pytest.raises(Ended) as raised:
        await writer.write(batches(writer, ("changelog", 0), ("bad", 0)))
    assert raised.value.topics == {"bad": errors.sentence(code)}
    await writer.end(commit=False)
    assert script.kinds == ["init", "add"]
    await writer.write(batches(writer))


async def test_v1_rolls_back_what_may_have_been_added() -> None:
    script = Script(add=[LOST, 29])
    writer = await opened(script, own_epochs=V1)
    with pytest.raises(Ended):
        await writer.write(batches(writer))
    await writer.end(commit=False)
    assert script.kinds == ["init", "add", "add", "end", "init"]


@pytest.mark.parametrize("code", [*codes_of(Meaning.BUSY), *codes_of(Meaning.MOVED), LOST])
async def test_v1_adds_again_what_was_not_added(code: Any) -> None:
    script = Script(add=[code, code])
    writer = await opened(script, own_epochs=V1)
    await writer.write(batches(writer))
    assert script.kinds == ["init", "add", "add", "add", "produce", "produce"]


async def test_a_broker_that_asks_for_a_rest_gets_it() -> None:
    script = Script()
    writer = await opened(script, own_epochs=V2)
    script.throttle_ms = 120
    await writer.write(batches(writer, ("changelog", 0)))
    begun = asking.now()
    await writer.end(commit=True)
    assert asking.now() - begun >= 0.1


def test_each_error_has_a_reason() -> None:
    assert all(line.name and line.why for line in errors.TABLE.values())
    assert errors.of_partition(12345).meaning is Meaning.REFUSED
    assert errors.of_coordinator(12345).meaning is Meaning.UNKNOWN
