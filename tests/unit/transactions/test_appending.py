"""Appending against scripted leaders: what each is sent, how much at once, and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from belfry.transactions import batches as batching
from belfry.transactions import errors
from belfry.transactions.appending import AT_ONCE, Appender
from belfry.transactions.asking import Asker, Ended
from belfry.transactions.batches import ProducedBatch, Where
from belfry.transactions.errors import Meaning
from belfry.transactions.produce import Produce, ProduceAdding, ProduceAnswer
from tests.unit.transactions.conftest import SkippedTime
from tests.unit.transactions.scripted import LOST, Script

pytestmark = pytest.mark.usefixtures("skipped_time")

NOW_S = 1_000.0
DEADLINE_S = NOW_S + 8.0
FIRED, OTHER = ("fired", 0), ("fired", 1)


def appender(script: Any, *, own_epochs: bool = True) -> Appender:
    return Appender(script, Asker(script), "belfry.0", own_epochs=own_epochs)


def batch(where: Where = FIRED, records: int = 3, size: int = 100) -> ProducedBatch:
    return ProducedBatch(where, records, bytes(size))


class Slow(Script):
    """Leaders that take 0.1 s for each request; `most` were under way at once."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        self.under_way: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.begun: list[Any] = []

    async def send(self, node: int, request: Any) -> Any:
        now = self.under_way[node] = self.under_way.get(node, 0) + 1
        self.most[node] = max(now, self.most.get(node, 0))
        self.begun.append(request.batches)
        await asyncio.sleep(0.1)
        self.under_way[node] -= 1
        return await super().send(node, request)


# -- what a leader is sent -------------------------------------------------------------------------


@pytest.mark.parametrize(("own_epochs", "kind"), [(False, Produce), (True, ProduceAdding)])
async def test_a_request_has_the_transactional_id_and_the_time_that_is_left(
    skipped_time: SkippedTime, own_epochs: bool, kind: type
) -> None:
    """A broker that waits for replicas longer than its writer does would answer nobody."""
    script = Script(produce=[20, 20])
    step = [batch()]
    await appender(script, own_epochs=own_epochs).append(step, DEADLINE_S)
    assert [type(request) for request in script.sent] == [kind] * 3
    assert [request._fields[:2] for request in script.sent] == [
        ("belfry.0", left_ms) for left_ms in (8_000, 7_999, 7_997)
    ]


@pytest.mark.parametrize("left_s", [-2.0, 0.0, 0.0004])
async def test_a_broker_has_a_millisecond_at_least(left_s: float) -> None:
    script = Script()
    await appender(script).append([batch()], NOW_S + left_s)
    assert script.sent[0]._fields[1] == 1


async def test_leaders_are_sent_their_shares_at_the_same_time(skipped_time: SkippedTime) -> None:
    script = Slow()
    await appender(script).append([batch(), batch(OTHER)], DEADLINE_S)
    assert sorted(script.asked) == [("produce", 1), ("produce", 2)]
    assert skipped_time.now - NOW_S == pytest.approx(0.1)


@pytest.mark.parametrize(("number", "most", "took_s"), [(1, 1, 0.1), (2, 2, 0.1), (12, 5, 0.3)])
async def test_a_leader_has_five_requests_at_once_at_most_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
    skipped_time: SkippedTime,
    number: int,
    most: int,
    took_s: float,
) -> None:
    """It remembers five batches of a producer in each partition, to know a repeat."""
    monkeypatch.setattr(batching, "REQUEST_BYTES", 150)
    step = [batch((f"t{each}", 0)) for each in range(number)]
    script = Slow()
    await appender(script).append(step, DEADLINE_S)
    assert script.most == {1: most}
    assert most <= AT_ONCE == 5
    assert script.begun == [[each] for each in step]
    assert skipped_time.now - NOW_S == pytest.approx(took_s)
    assert all(each.code == errors.NONE for each in step)


async def test_what_follows_in_a_partition_waits_for_its_first_batch() -> None:
    """A log that knows nothing of a producer takes any sequence."""
    script = Script(produce=[51])
    step = [batch(), batch(OTHER), batch(), batch()]
    script.leaders[OTHER] = 1
    await appender(script).append(step, DEADLINE_S)
    sent = [request.batches for request in script.sent]
    # Neither was taken at first; then both are, and what follows one of them comes behind it.
    assert sent == [[step[0], step[1]], [step[0], step[1]], [step[2]], [step[3]]]
    # What was not sent says what the first one said, which was no reason to look for a leader.
    assert script.looks == 0


@pytest.mark.parametrize("first", [FIRED, OTHER])
async def test_a_gap_in_one_partition_is_none_that_follows_from_another(first: Where) -> None:
    def answer(request: Any) -> ProduceAnswer:
        codes = {FIRED: 51, OTHER: 45}
        return ProduceAnswer([(*b.where, codes[b.where], 100, -1) for b in request.batches], 0)

    script = Script(produce=[answer])
    script.leaders[OTHER] = 1
    step = [batch(first), batch(OTHER if first == FIRED else FIRED)]
    with pytest.raises(Ended) as raised:
        await appender(script).append(step, DEADLINE_S)
    assert raised.value.meaning is Meaning.ABORT


async def test_others_follow_in_partitions_whose_first_batch_was_taken() -> None:
    def refuses_one(request: Any) -> ProduceAnswer:
        codes = {FIRED: 51, OTHER: 0}
        return ProduceAnswer(
            [(*each.where, codes[each.where], 100, -1) for each in request.batches], 0
        )

    script = Script(produce=[refuses_one])
    script.leaders[OTHER] = 1
    step = [batch(), batch(OTHER), batch(), batch(OTHER)]
    await appender(script).append(step, DEADLINE_S)
    sent = [request.batches for request in script.sent]
    assert sent == [[step[0], step[1]], [step[3]], [step[0]], [step[2]]]


# -- what it answers -------------------------------------------------------------------------------


async def test_each_batch_has_the_offset_and_time_of_its_own_partition() -> None:
    places = [("a", 0), ("a", 2), ("b", 0), ("b", 2)]

    def answer(request: Any) -> ProduceAnswer:
        told = [(*w, 0, 10 * n, 70 + n) for n, w in enumerate(places, 1)]
        return ProduceAnswer([*reversed(told)], 0)

    script = Script(produce=[answer])
    script.leaders = dict.fromkeys(places, 1)
    step = [batch(where, records=4) for where in places]
    await appender(script).append(step, DEADLINE_S)
    found = [(each.code, each.offset, each.appended_ms, each.last_offset) for each in step]
    assert found == [(0, 10, 71, 13), (0, 20, 72, 23), (0, 30, 73, 33), (0, 40, 74, 43)]


async def test_only_topics_that_were_not_taken_are_looked_for() -> None:
    looked: list[set[str]] = []

    def moves(request: Any) -> ProduceAnswer:
        codes = {"moved": 6, "gone": 3}
        return ProduceAnswer(
            [(*w, codes.get(w[0], 0), 100, -1) for w in (b.where for b in request.batches)], 0
        )

    async def refresh(topics: Iterable[str] = ()) -> None:
        looked.append({*topics})

    script = Script(produce=[moves])
    script.refresh = refresh  # type: ignore[method-assign]
    step = [batch(("moved", 0)), batch(("gone", 0)), batch(("fine", 0))]
    await appender(script).append(step, DEADLINE_S)
    assert looked == [{"moved", "gone"}]
    assert [each.where[0] for each in script.sent[1].batches] == ["moved", "gone"]


@pytest.mark.parametrize("code", [errors.LOST, 20])
async def test_who_is_only_slow_is_not_looked_for(code: int) -> None:
    script = Script(produce=[LOST if code == errors.LOST else code])
    await appender(script).append([batch()], DEADLINE_S)
    assert script.looks == (code == errors.LOST)


@pytest.mark.parametrize(
    ("known", "code", "waits_s"), [(True, errors.NOBODY, 8.0), (False, errors.UNKNOWN_TOPIC, 1.0)]
)
async def test_a_topic_without_a_leader_is_told_from_one_that_is_gone(
    skipped_time: SkippedTime, known: bool, code: int, waits_s: float
) -> None:
    script = Script()
    script.leaders[FIRED] = None
    script.missing |= set() if known else {"fired"}
    with pytest.raises(Ended) as raised:
        await appender(script).append([batch(), batch(("changelog", 0))], DEADLINE_S)
    assert raised.value.topics == {"fired": errors.sentence(code)}
    assert raised.value.meaning is (Meaning.ABORT if known else Meaning.REFUSED)
    assert waits_s <= skipped_time.now - NOW_S < waits_s + 0.05
    # The other one was appended at once, and is not sent again.
    assert script.kinds == ["produce"]


# -- batches that are too large --------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(errors.TOO_LARGE))
@pytest.mark.parametrize(("size", "limit"), [(101, 50), (3, 1), (2, 1), (1, 1)])
async def test_a_batch_that_is_too_large_is_halved(code: int, size: int, limit: int) -> None:
    script = Script(produce=[code])
    made = appender(script)
    with pytest.raises(Ended) as raised:
        await made.append([batch(records=2, size=size)], DEADLINE_S)
    assert raised.value.topics == {}
    assert made.limits == {"fired": limit}


@pytest.mark.parametrize("code", sorted(errors.TOO_LARGE))
async def test_a_single_record_that_is_too_large_is_its_topics_fault(code: int) -> None:
    script = Script(produce=[code])
    made = appender(script)
    with pytest.raises(Ended) as raised:
        await made.append([batch(records=1)], DEADLINE_S)
    assert raised.value.topics == {"fired": errors.sentence(code)}
    assert made.limits == {}


async def test_what_was_refused_otherwise_is_not_halved() -> None:
    script = Script(produce=[87])
    made = appender(script)
    with pytest.raises(Ended) as raised:
        await made.append([batch()], DEADLINE_S)
    assert raised.value.topics == {"fired": errors.sentence(87)}
    assert made.limits == {}
