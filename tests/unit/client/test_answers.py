"""A client takes the verdict on its own record, not that of somebody with the same request id."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import Message

from belfry.client.answers import MANY, Answers, VerdictWait
from belfry.client.decoding import Decoder
from belfry.client.errors import Unavailable
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire.framing import single_object
from belfry.wire.lifecycle import GENERATION, LifecycleEvent, encode_lifecycle

NOW = 1_796_000_000_000

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


def answers_of(*records: dict[str, Any]) -> tuple[Answers, MagicMock]:
    """Answers that read without a thread, and a decoder that makes these records in turn."""
    decoder = MagicMock()
    decoder.own_body.return_value = None
    decoder.record.side_effect = [{**RECORD, **each} for each in records]
    answers = Answers(MagicMock(), "belfry.lifecycle", "g", decoder)
    answers._reading = True
    return answers, decoder


RECORD = {
    **asdict(Verdict("t", "a", None, "r", source_partition=1, source_offset=8)),
    "outcome": "ACCEPTED",
    "at": 5,
    "due_at": None,
}


def test_a_record_without_an_id_that_is_waited_for_is_not_decoded() -> None:
    answers, decoder = answers_of({})
    with answers.expecting("r") as awaited:
        answers._take([Message(value=b"of a d one")])
        assert decoder.record.call_count == 0
        answers._take([Message(value=b"..r..")])
        found = awaited.within(0, SENT)
    assert found is not None
    assert found.outcome is Outcome.ACCEPTED


def test_while_many_wait_each_record_is_decoded_and_goes_to_its_own_wait() -> None:
    answers, decoder = answers_of({"request_id": "stranger"}, {"request_id": f"id-{MANY}"})
    with ExitStack() as stack:
        ids = [f"id-{n}" for n in range(MANY + 1)]
        waits = stack.enter_context(answers.expecting_all(ids))
        answers._take([Message(value=b"of a stranger"), Message(value=b"of the last one")])
        assert decoder.record.call_count == 2
        found = [each.within(0, SENT) for each in waits]
    assert found[:-1] == [None] * MANY
    assert found[-1] is not None
    assert found[-1].request_id == f"id-{MANY}"
    assert not answers._waiting


def test_what_comes_with_a_record_is_taken_with_it() -> None:
    answers, _ = answers_of({}, {"request_id": "q"})
    consumer = MagicMock()
    consumer.poll.side_effect = [None, Message(value=b"..r.."), None]
    consumer.consume.return_value = [Message(value=b"..q..")]

    with answers.expecting_all(["r", "q"]) as waits:
        answers._wanted = MagicMock(side_effect=[True, True, True, False])  # type: ignore[method-assign]
        answers._run(consumer)
        assert all(each.within(0, SENT) for each in waits)


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.CONFLICT, Outcome.FIRED])
@pytest.mark.parametrize("code", [None, "exists"])
def test_verdicts_are_the_same_by_hand_and_by_the_decoder(
    outcome: Outcome, code: str | None
) -> None:
    event = LifecycleEvent(
        tenant="t", schedule_id="a", outcome=outcome, request_id="r", version=3, at=NOW,
        due_at=NOW + 5, code=code, source_topic="s", source_partition=1, source_offset=8,
    )  # fmt: skip
    value = single_object("LifecycleEvent") + encode_lifecycle(event)
    decoder = Decoder("LifecycleEvent", only=True)
    answers = Answers(MagicMock(), "belfry.lifecycle", "g", decoder)
    found = answers._verdict(value, Message(value=value, headers=[(GENERATION, b"7")]))
    if outcome is Outcome.FIRED:
        assert found is None
        return
    record = decoder.record(value)
    assert record is not None
    assert found == Verdict.from_record(record, 7)
    assert (found.outcome, found.code, found.due_ms) == (outcome, code, NOW + 5)
