"""A verdict belongs to the request that was written, not to another of the same id."""

from __future__ import annotations

import asyncio

from belfry.api.workers.verdicts import AwaitedVerdict, VerdictReader
from belfry.client.kafka import Cluster
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.settings import Settings
from belfry.wire.lifecycle import LifecycleEvent


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
    reader = VerdictReader(Cluster("127.0.0.1:1", {}), Settings(), b"")

    async def hear(*events: LifecycleEvent) -> Verdict | None:
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
