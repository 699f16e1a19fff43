"""What a topic answers, what is never written to, and what the record is."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from belfry.delivery.answers import Answer, End
from belfry.delivery.kinds import kafka
from belfry.delivery.kinds.kafka import KafkaSender, answer_to, headers_of
from belfry.delivery.work import Work, WorkId
from belfry.schedules.target_kinds import list_problem
from belfry.schedules.target_kinds.kafka import KAFKA
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

T0 = 1_800_000_000_000
EVENT = FiredEvent("demo", "a", "f" * 32, 1, 0, T0, T0, T0, missed=2, payload=b"{}")
URL = "kafka:payments.audit"


def work_to(url: str, *hosts: str) -> Work:
    state = DeliveryState((HttpTarget(url),), hosts=hosts)
    return Work(b"demo/a", b"", EVENT, [("content-type", b"text/plain")], state)


@pytest.mark.parametrize(
    ("code", "end", "name", "words"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, End.FINAL, "too_large", "payments.audit"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, End.FINAL, "topic_missing", "payments.audit"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, End.AGAIN, "not_authorized", "User:belfry"),
        (KafkaError._MSG_TIMED_OUT, End.AGAIN, "kafka", "payments.audit"),
    ],
)
def test_each_error_has_one_meaning(code: int, end: End, name: str, words: str) -> None:
    answer = answer_to(KafkaError(code), URL, {"sasl.username": "belfry"})
    assert (answer.end, answer.code) == (end, name)
    assert words in answer.reason
    assert "payments.audit" in answer.reason


@pytest.mark.parametrize(
    "topic", ["belfry.tenants", "belfry.deliveries", "belfry.fired.other", "__consumer_offsets"]
)
def test_a_reserved_topic_is_refused_though_it_is_listed(topic: str) -> None:
    answers: list[Answer] = []
    sender = KafkaSender(Settings(), lambda _work_id, _work, answer: answers.append(answer))
    sender._send(WorkId(0, 0, 0), work_to(f"kafka:{topic}", f"kafka:{topic}"))
    assert [(each.end, each.code) for each in answers] == [(End.FINAL, "target_not_allowed")]
    assert KAFKA.refused(f"kafka:{topic}", lambda name: f"reserved {name}") == f"reserved {topic}"


def test_one_that_waits_for_work_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "WAIT_S", 60.0)
    sender = KafkaSender(Settings(), lambda _work_id, _work, _answer: None)
    sender.start()
    sender.stop()
    assert not sender._thread.alive


class NoTopics:
    """An administrator of a cluster without topics."""

    def describe_topics(self, asked: TopicCollection, request_timeout: float) -> dict[str, Any]:
        assert request_timeout > 0
        (topic,) = asked.topic_names
        answer: Future[None] = Future()
        absent = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        answer.set_exception(KafkaException(absent))
        return {topic: answer}


def test_a_topic_that_is_missing_is_never_written_to() -> None:
    """Producers would have it made, where brokers make topics on demand."""
    answers, produced = list[Answer](), list[Any]()
    sender = KafkaSender(Settings(), lambda _work_id, _work, answer: answers.append(answer))
    sender._admin = NoTopics()
    sender._producer = SimpleNamespace(produce=lambda *given, **_: produced.append(given))
    sender._send(WorkId(0, 0, 0), work_to(URL, URL))
    assert [(each.end, each.code) for each in answers] == [(End.FINAL, "topic_missing")]
    assert not produced


@pytest.mark.parametrize("hosts", [(), ("payments.audit",), ("kafka:payments",), ("*",)])
def test_nothing_but_the_very_entry_allows_a_topic(hosts: tuple[str, ...]) -> None:
    answers: list[Answer] = []
    sender = KafkaSender(Settings(), lambda _work_id, _work, answer: answers.append(answer))
    sender._send(WorkId(0, 0, 0), work_to(URL, *hosts))
    assert [each.code for each in answers] == ["target_not_allowed"]


def test_the_record_has_the_key_and_the_headers_of_the_fired_one() -> None:
    work = work_to(URL, URL)
    assert work.fired_key == b"a"
    assert replace(work, given_key=b"").fired_key == b""
    found = dict(headers_of(work))
    assert found["content-type"] == b"text/plain"
    assert found["belfry-fire-id"] == EVENT.fire_id.encode()
    assert (found["belfry-missed"], found["belfry-attempt"]) == (b"2", b"1")


@pytest.mark.parametrize(
    "more",
    [
        {"timeout_ms": 1},
        {"secret_ref": "main"},
        {"headers": (("a", "b"),)},
        {"strategy": "FIRST_AVAILABLE"},
        {"strategy": "ROUND_ROBIN"},
    ],
)
def test_what_a_topic_cannot_do_is_refused_and_named(more: dict[str, Any]) -> None:
    assert next(iter(more)) in (list_problem([HttpTarget(URL, **more)]) or "")
