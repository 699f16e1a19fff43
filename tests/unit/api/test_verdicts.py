"""A verdict belongs to the request that was written, not to another of the same id."""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from belfry.api.workers import verdicts
from belfry.api.workers.verdicts import AwaitedVerdict, VerdictReader
from belfry.client.verdict import Verdict
from belfry.kafka.fetch_position import Fetched
from belfry.schedules.outcomes import Outcome
from belfry.settings import Settings
from belfry.wire import framing
from belfry.wire.accepted import PlainAccepted, Told
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle


def verdict(outcome: Outcome, offset: int) -> Verdict:
    return Verdict("t", "a", outcome, "r", source_partition=1, source_offset=offset)


FIRST, OURS = verdict(Outcome.ACCEPTED, 7), verdict(Outcome.UNCHANGED, 8)
OTHERS_REPEAT = Verdict(
    "t", "a", Outcome.DUPLICATE, "r", code="ACCEPTED", source_partition=1, source_offset=9
)
REPEAT = Verdict("t", "a", Outcome.DUPLICATE, "r", code="ACCEPTED")


def test_the_verdict_on_the_same_request_at_another_worker_is_not_ours() -> None:
    async def hear(early: list[Verdict], late: list[Verdict]) -> Verdict | None:
        awaited = AwaitedVerdict(asyncio.get_running_loop().create_future())
        for each in early:
            awaited.heard(each)
        assert not awaited.answer.done(), "nobody knows yet where the request lies"
        awaited.written(1, 8)
        for each in late:
            awaited.heard(each)
        return awaited.answer.result() if awaited.answer.done() else None

    for early, late, found in (
        ([FIRST], [OURS], OURS),
        ([FIRST, OURS], [], OURS),
        ([], [FIRST, OURS], OURS),
        ([FIRST], [REPEAT], REPEAT),
        ([OTHERS_REPEAT], [OURS], OURS),
        ([FIRST], [], None),
    ):
        assert asyncio.run(hear(early, late)) == found


def event(
    outcome: Outcome, *, request_id: str | None = "r", schedule_id: str = "a"
) -> LifecycleEvent:
    return LifecycleEvent(
        tenant="t", schedule_id=schedule_id, outcome=outcome, request_id=request_id, at=5,
        source_partition=1, source_offset=8,
    )  # fmt: skip


def test_what_is_committed_here_is_told_at_once_to_whom_it_concerns() -> None:
    reader = VerdictReader(Settings(), b"")

    async def hear(*events: Told) -> Verdict | None:
        awaited = AwaitedVerdict(asyncio.get_running_loop().create_future())
        awaited.written(1, 8)
        reader.expect((b"t", b"a", b"r"), awaited)
        await asyncio.to_thread(reader.committed, events)
        await asyncio.sleep(0)
        reader.forget((b"t", b"a", b"r"))
        return awaited.answer.result() if awaited.answer.done() else None

    others = [
        event(Outcome.FIRED),
        event(Outcome.CANCELLED, request_id=None),
        # Whoever commits is not to stumble over a name that is no text.
        event(Outcome.REJECTED, schedule_id="\udcff"),
    ]
    assert asyncio.run(hear(*others)) is None
    found = asyncio.run(hear(*others, event(Outcome.CONFLICT)))
    assert found is not None
    assert (found.outcome, found.at_ms) == (Outcome.CONFLICT, 5)
    # Nobody waits any more.
    reader.committed([event(Outcome.ACCEPTED)])


def test_a_plain_verdict_of_this_worker_is_told_to_whom_it_concerns() -> None:
    reader = VerdictReader(Settings(), b"")

    def plain(schedule_id: bytes, request_id: bytes) -> PlainAccepted:
        asked = b"t", schedule_id, request_id
        return PlainAccepted(b"t/" + schedule_id, asked, 9, 6, 5, ("belfry.schedules", 1), 8)

    async def hear(*events: Told) -> Verdict | None:
        awaited = AwaitedVerdict(asyncio.get_running_loop().create_future())
        awaited.written(1, 8)
        reader.expect((b"t", b"a", b"r"), awaited)
        await asyncio.to_thread(reader.committed, events)
        await asyncio.sleep(0)
        return awaited.answer.result() if awaited.answer.done() else None

    others = [plain(b"b", b"r"), plain(b"a", b"s")]
    assert asyncio.run(hear(*others)) is None
    found = asyncio.run(hear(*others, plain(b"a", b"r")))
    assert found is not None
    assert (found.outcome, found.at_ms, found.generation) == (Outcome.ACCEPTED, 5, 7)


HEAD = framing.single_object("LifecycleEvent")


class Topic:
    """A followed topic whose one partition brings batches; `read` are those that were opened."""

    name = "belfry.lifecycle"

    def __init__(self) -> None:
        self.coming: SimpleQueue[Fetched] = SimpleQueue()
        self.opened: list[int] = []
        self.passed: list[int] = []

    def partitions(self) -> list[int]:
        return [1]

    def ends(self, partitions: list[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, 5)

    def follow(self, positions: dict[int, int]) -> None:
        assert positions == {1: 5}

    def take(self, wait_s: float) -> Fetched | None:
        try:
            found = self.coming.get(wait_s > 0, wait_s)
        except Empty:
            return None
        self.passed.append(found.offset)
        return found

    def close(self) -> None:
        pass

    def records(self, fetched: Fetched, _most: int) -> list[Any]:
        self.opened.append(fetched.offset)
        value = HEAD + encode_lifecycle(event(Outcome.UPDATED))
        return [([(fetched.offset, 0, None, value, None)], fetched.behind)]


def test_the_tail_is_opened_only_while_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    monkeypatch.setattr(verdicts, "FollowedTopic", lambda *_: topic)
    monkeypatch.setattr(verdicts, "portions", topic.records)
    monkeypatch.setattr(verdicts, "UNASKED_S", 60.0)
    reader = VerdictReader(Settings(), HEAD)

    async def hear() -> Verdict:
        awaited = AwaitedVerdict(asyncio.get_running_loop().create_future())
        awaited.written(1, 8)
        reader.expect((b"t", b"a", b"r"), awaited)
        topic.coming.put(Fetched(("belfry.lifecycle", 1), 6, 7, b"packed"))
        async with asyncio.timeout(20):
            return await awaited.answer

    reader._topic.follow({1: 5})
    reader._read = {1: 5}
    # A turn that has begun before anybody waits.
    reader._expects.set()
    topic.coming.put(Fetched(("belfry.lifecycle", 1), 5, 6, b"packed"))
    reader._turn()
    assert (topic.passed, topic.opened) == ([5], [])
    reader.start()
    assert asyncio.run(hear()).outcome == Outcome.UPDATED
    assert (topic.passed, topic.opened) == ([5, 6], [6])
    reader.stop()


def test_partitions_that_are_added_are_read_from_their_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A brokers' failure in between is no end of it, nor of what is read already."""
    topic, followed = Topic(), list[dict[int, int]]()
    topic.follow = lambda positions: followed.append(dict(positions))  # type: ignore[method-assign]
    monkeypatch.setattr(verdicts, "FollowedTopic", lambda *_: topic)
    monkeypatch.setattr(verdicts, "LOOK_S", -1.0)
    monkeypatch.setattr(verdicts, "POLL_S", 0.0)
    monkeypatch.setattr(verdicts, "UNASKED_S", 0.0)
    reader = VerdictReader(Settings(), HEAD)
    reader._read = {1: 5}
    topic.coming.put(Fetched(("belfry.lifecycle", 1), 5, 9, b"packed"))

    def away() -> list[int]:
        raise ConnectionError("away")

    with monkeypatch.context() as patch:
        patch.setattr(topic, "partitions", away)
        reader._turn()
    assert followed == []
    monkeypatch.setattr(topic, "partitions", lambda: [1, 2])
    reader._turn()
    reader._turn()
    assert followed == [{1: 9, 2: 0}]
