"""What `belfry doctor` says of transactions that stay open."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException

from belfry.cli import doctor_transactions
from belfry.cli.check import Check, Status
from belfry.cli.doctor_transactions import judge, transaction_checks
from belfry.kafka import open_transactions
from belfry.kafka.holders import OpenTransaction
from belfry.settings import Settings

STRANGER = OpenTransaction(
    "belfry.changelog", 2, 17, 9, 3, 5_000, "outbox-1", "Ongoing", 1_000, 60_000
)
SETTINGS = Settings(bootstrap_servers="k:1")


def judged(first: OpenTransaction | None, now_ms: float) -> list[Check]:
    topic = "belfry.changelog" if first is None else first.topic
    found = [] if first is None else [first]
    return list(judge((topic, 2), found, SETTINGS, now_ms))


@pytest.mark.parametrize(
    ("topic", "age_ms", "status"),
    [
        ("belfry.changelog", 10, Status.PROBLEM),
        ("belfry.schedules", 9_999, Status.RISK),
        ("belfry.schedules", 10_000, Status.PROBLEM),
        ("belfry.tenants", 60_001, Status.PROBLEM),
        ("belfry.schedules.ash", 60_001, Status.PROBLEM),
    ],
)
def test_a_stranger_is_named(topic: str, age_ms: int, status: Status) -> None:
    (check,) = judged(replace(STRANGER, topic=topic), 1_000 + age_ms)
    assert check.status is status
    assert "outbox-1" in check.detail
    command = f"kafka-transactions.sh --bootstrap-server k:1 abort --topic {topic} --partition 2"
    assert f"{command} --start-offset 17" in check.to_do


def test_one_that_hangs_is_a_problem_at_once() -> None:
    hangs = replace(STRANGER, topic="belfry.schedules", transactional_id=None, state=None)
    (check,) = judged(hangs, 5_001)
    assert check.status is Status.PROBLEM


def test_belfrys_own_are_none_while_they_are_under_way() -> None:
    own = replace(STRANGER, transactional_id="belfry.2")
    assert not judged(own, 2_000)
    assert judged(own, 61_001)[0].status is Status.PROBLEM
    assert judged(replace(own, state="Empty"), 2_000)[0].status is Status.PROBLEM


def test_what_has_ended_since_is_nothing() -> None:
    assert not judged(None, 0)


@pytest.mark.parametrize(
    ("topic", "harm"),
    [
        ("belfry.fired.ash", "Nobody reads an event behind it"),
        ("belfry.fired", "Nobody reads an event behind it"),
        ("belfry.dead-letters.ash", "No dead letter of this tenant behind it"),
        ("belfry.rejected", "No refused request behind it"),
        ("belfry.undelivered", "No dead letter behind it"),
    ],
)
def test_one_where_belfry_only_writes_is_named_by_who_cannot_read(topic: str, harm: str) -> None:
    (check,) = judged(replace(STRANGER, topic=topic), 60_001)
    assert check.detail.startswith(harm)


def test_topics_of_events_are_looked_at_but_for_those_without_a_leader() -> None:
    def topic(*leaders: int) -> SimpleNamespace:
        partitions = {number: SimpleNamespace(leader=at) for number, at in enumerate(leaders)}
        return SimpleNamespace(partitions=partitions)

    asked: list[tuple[str, int]] = []

    def ends(places: Any, **_: object) -> dict[Any, Any]:
        asked.extend((each.topic, each.partition) for each in places)
        return {each: SimpleNamespace(result=lambda: SimpleNamespace(offset=5)) for each in places}

    found = {
        "belfry.fired.ash": topic(1, 2),
        "belfry.fired.oak": topic(1, -1),
        "belfry.dead-letters.ash": topic(3),
        "belfry.firedmore": topic(1),
        "shop": topic(1),
    }
    admin = SimpleNamespace(
        list_topics=lambda **_: SimpleNamespace(topics=found), list_offsets=ends
    )
    (check,) = transaction_checks(admin, SETTINGS)
    assert check.status is Status.OK
    fired = {("belfry.fired.ash", 0), ("belfry.fired.ash", 1)}
    assert {*asked} == {*fired, ("belfry.dead-letters.ash", 0)}


def test_of_hundreds_that_are_held_back_some_are_named_and_one_that_is_gone_hides_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends(places: Any, *, isolation_level: Any, **_: object) -> dict[Any, Any]:
        return {each: answer(each, isolation_level) for each in places}

    def answer(place: Any, isolation: Any) -> Future[Any]:
        told: Future[Any] = Future()
        if place.partition == 7:
            told.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            committed = isolation == IsolationLevel.READ_COMMITTED
            told.set_result(SimpleNamespace(offset=5 if committed else 9))
        return told

    looked: list[tuple[str, int]] = []

    def holders(_: object, places: list[tuple[str, int]]) -> list[OpenTransaction]:
        looked.extend(places)
        return [replace(STRANGER, topic=places[0][0], partition=places[0][1])]

    monkeypatch.setattr(open_transactions, "look_up", holders)
    monkeypatch.setattr(doctor_transactions, "sleep", lambda _: None)
    leads = SimpleNamespace(leader=1)
    found = {"belfry.fired": SimpleNamespace(partitions=dict.fromkeys(range(100), leads))}
    admin = SimpleNamespace(
        list_topics=lambda **_: SimpleNamespace(topics=found), list_offsets=ends
    )
    more, *named = transaction_checks(admin, SETTINGS)
    assert more.detail.startswith("79 more partitions")
    assert len(looked) == len(named) == 20


def test_what_follows_a_roll_back_of_belfrys_own_depends_on_the_topic() -> None:
    own = replace(STRANGER, transactional_id="belfry.2", state="Empty")
    said = [
        judged(replace(own, topic=each), 61_001)[0].to_do for each in (own.topic, "belfry.fired.a")
    ]
    assert "fire once more" in said[0]
    assert "fire once more" not in said[1]
    assert "`belfry verify` names" in said[1]
