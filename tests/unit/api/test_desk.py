"""A verdict belongs to the request that was written, not to another of the same id."""

from __future__ import annotations

import asyncio

from belfry.api.desk import Awaited
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome


def verdict(outcome: Outcome, offset: int) -> Verdict:
    return Verdict("t", "a", outcome, "r", source_partition=1, source_offset=offset)


FIRST, OURS = verdict(Outcome.ACCEPTED, 7), verdict(Outcome.UNCHANGED, 8)
REPEAT = Verdict("t", "a", Outcome.DUPLICATE, "r", code="ACCEPTED")


def test_the_verdict_on_the_same_request_at_another_worker_is_not_ours() -> None:
    async def hear(early: list[Verdict], late: list[Verdict]) -> Verdict | None:
        awaited = Awaited(asyncio.get_running_loop().create_future())
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
        ([FIRST], [], None),
    ):
        assert asyncio.run(hear(early, late)) == found
