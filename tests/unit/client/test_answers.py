"""A client takes the verdict on its own record, not that of somebody with the same request id."""

from __future__ import annotations

import pytest

from belfry.client.answers import VerdictWait
from belfry.client.errors import Unavailable
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome

SENT = Verdict("t", "a", None, "r", source_partition=1, source_offset=8)


def verdict(outcome: Outcome, schedule_id: str = "a", offset: int | None = 8) -> Verdict:
    partition = None if offset is None else 1
    return Verdict("t", schedule_id, outcome, "r", source_partition=partition, source_offset=offset)


@pytest.mark.parametrize(
    "others",
    [
        verdict(Outcome.ACCEPTED, offset=7),
        verdict(Outcome.DUPLICATE, offset=7),
        verdict(Outcome.ACCEPTED, "b", 8),
        verdict(Outcome.DUPLICATE, "b", None),
    ],
)
def test_a_verdict_on_another_record_is_not_ours(others: Verdict) -> None:
    awaited, ours = VerdictWait(), verdict(Outcome.CONFLICT)
    awaited.put(others)
    assert awaited.within(0, SENT) is None
    awaited.put(others)
    awaited.put(ours)
    assert awaited.within(0, SENT) is ours


def test_a_duplicate_of_an_older_release_names_no_record() -> None:
    awaited, repeat = VerdictWait(), verdict(Outcome.DUPLICATE, offset=None)
    awaited.put(repeat)
    assert awaited.within(0, SENT) is repeat


def test_what_ended_the_reading_is_raised() -> None:
    awaited = VerdictWait()
    awaited.put(verdict(Outcome.ACCEPTED, offset=7))
    awaited.put(Unavailable("the cluster is away"))
    with pytest.raises(Unavailable, match="away"):
        awaited.within(0, SENT)
