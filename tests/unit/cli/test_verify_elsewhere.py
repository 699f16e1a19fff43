"""`belfry verify` and what it cannot see: marks of a mirror, and payloads that no key opens."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # its own

from belfry.cli import verify_elsewhere, verify_outputs, verify_service
from belfry.cli.verify_cluster import PassTerms
from belfry.cli.verify_elsewhere import SLACK_MS, FiredElsewhere, fired_elsewhere
from belfry.cli.verify_outputs import OutputFeed
from belfry.cli.verify_service import OpenedVerifier
from belfry.client.errors import Unavailable
from belfry.mirror.marks import GOES_ON, decode_mark
from belfry.verification.findings import CheckCounts, Spot
from belfry.verification.outputs import OutputVerifier

TOPIC = "belfry.mirror"


class Session:
    """A session whose broker answers a question for one topic as it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.notes: list[str] = []
        self.printer = SimpleNamespace(note=self.notes.append)
        self.settings = SimpleNamespace(
            topic="belfry.{}".format,
            bootstrap_servers="b:9092",
            kafka_properties=lambda: {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "auditor",
            },
        )

    def admin(self) -> tuple[Any, Any]:
        return None, self

    def told(self, error: Exception) -> Unavailable:
        return Unavailable(str(error))

    def describe_topics(self, _names: Any, **_: Any) -> dict[str, Future[Any]]:
        found: Future[Any] = Future()
        if isinstance(self.answer, int):
            found.set_exception(KafkaException(KafkaError(self.answer)))
        else:
            found.set_result(SimpleNamespace(partitions=[0, 1], authorized_operations=self.answer))
        return {TOPIC: found}


def seen(answer: Any) -> FiredElsewhere:
    session: Any = Session(answer)
    return fired_elsewhere(session)


def test_without_the_topic_all_is_this_clusters_own() -> None:
    assert seen(KafkaError.UNKNOWN_TOPIC_OR_PART) == FiredElsewhere()


@pytest.mark.parametrize(
    ("answer", "operation"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Describe"),
        ([AclOperation.DESCRIBE], "Read"),
    ],
)
def test_marks_that_may_not_be_read_name_the_right(answer: Any, operation: str) -> None:
    found = seen(answer)
    assert found[:2] == FiredElsewhere()[:2]
    assert f"User:auditor may not {operation} topic {TOPIC}. Grant it: " in found.unread


def test_a_mark_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other partitions carried is left out all the same."""
    mark = SimpleNamespace(carried=((0, 812),), activated=None)

    def read(_: Any, partition: int) -> Any:
        return mark if partition else decode_mark(b"nonsense")

    monkeypatch.setattr(verify_elsewhere, "_mark", read)
    found = seen([AclOperation.DESCRIBE, AclOperation.READ])
    assert found == FiredElsewhere({1: ((0, 812),)}, GOES_ON, unread=found.unread)
    assert "belfry.mirror, partition 0: the last mark" in found.unread


def test_a_broker_that_fails_is_an_error() -> None:
    with pytest.raises(Unavailable):
        seen(KafkaError.LEADER_NOT_AVAILABLE)


@pytest.mark.parametrize("planned", [True, False])
def test_marks_that_are_there_are_read(monkeypatch: pytest.MonkeyPatch, planned: bool) -> None:
    activated = SimpleNamespace(at_ms=77, planned=planned)
    mark = SimpleNamespace(carried=((0, 812),), activated=activated, level_ms=70, began_ms=3)
    monkeypatch.setattr(
        verify_elsewhere, "_mark", lambda _session, partition: None if partition else mark
    )
    for allowed in ([AclOperation.DESCRIBE, AclOperation.READ], None):
        anew_ms = (0, 0, -1) if planned else (70 - SLACK_MS, 77, 77)
        assert seen(allowed) == FiredElsewhere({0: ((0, 812),)}, 77, anew_ms)


def test_a_pass_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged all the same is counted, since nobody knows where it fired."""
    hidden = FiredElsewhere(unread="User:auditor may not Describe topic belfry.mirror.")
    monkeypatch.setattr(verify_service, "fired_elsewhere", lambda _session: hidden)
    policies = SimpleNamespace(all=dict)
    monkeypatch.setattr(verify_service, "kafka_policies", lambda _session: policies)
    session: Any = Session(None)
    ran: list[FiredElsewhere] = []

    def run(_terms: PassTerms) -> list[Any]:
        ran.append(verifier.elsewhere)
        return []

    verifier: Any = SimpleNamespace(run=run)
    topics: Any = SimpleNamespace(follow=lambda _policies: None)
    OpenedVerifier(session, verifier, topics).look(PassTerms(0.0, 1, 1))
    assert ran == [hidden]
    (note,) = session.notes
    assert note.endswith(hidden.unread)
    counts = CheckCounts(marks_unread=3)
    assert list(counts.unchecked().values()) == [3]


@pytest.mark.parametrize(
    ("outcome", "code", "counted"),
    [("PAUSED", "undecryptable_payload", 1), ("PAUSED", None, 0), ("REJECTED", "bad_cron", 0)],
)
def test_a_pause_for_lack_of_a_key_is_counted_and_no_finding(
    monkeypatch: pytest.MonkeyPatch, outcome: str, code: str | None, counted: int
) -> None:
    event = {"outcome": outcome, "code": code, "fire_id": None, "schedule_id": "a"}
    decoder: Any = SimpleNamespace(record=lambda _value, _headers: event)
    counts, nothing = CheckCounts(), SimpleNamespace()
    memory: Any = nothing
    outputs = OutputVerifier(memory, counts)
    unused: Any = nothing
    feed = OutputFeed(unused, unused, unused, decoder, outputs)
    monkeypatch.setattr(verify_outputs, "headers_of", lambda _message: [])
    message: Any = SimpleNamespace(value=bytes)
    feed._take_told(message, Spot("belfry.lifecycle", 0, 5), 1)
    assert outputs.findings == []
    assert counts.undecrypted == counted
    assert sum(counts.unchecked().values()) == counted
