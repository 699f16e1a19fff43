"""What `belfry doctor` says where nobody delivers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.cli import doctor_deliveries
from belfry.cli.check import Status
from belfry.cli.doctor_deliveries import Offsets, delivery_checks, judge, removed_checks
from belfry.settings import CommandSettings

CLUSTER: Any = SimpleNamespace(topics={"belfry.deliveries": SimpleNamespace(partitions={0: None})})


def test_deliveries_that_wait_are_counted() -> None:
    (found,) = judge("belfry.deliver", Offsets({0: 5, 1: 7}, {0: 2, 1: 7}, {0: 9, 1: 8}))
    assert (found.check, found.status) == ("deliveries", Status.PROBLEM)
    assert "up to 3 deliveries wait, and the group belfry.deliver has no member" in found.detail
    assert "--role deliver" in found.to_do


def test_the_marker_of_a_transaction_is_no_delivery() -> None:
    found = Offsets({0: 8, 1: 8, 2: 9}, {0: 0, 1: 0, 2: 0}, {0: 8, 1: 9, 2: 8})
    assert [*judge("belfry.deliver", found)] == []


def test_deliveries_that_were_removed_unread_are_told_of() -> None:
    lost, waits = judge("belfry.deliver", Offsets({0: 5, 1: 7}, {0: 8, 1: 7}, {0: 12, 1: 8}))
    assert (lost.check, lost.status) == ("deliveries", Status.PROBLEM)
    assert "Up to 3 deliveries were removed by the topic's retention" in lost.detail
    assert "retention.ms" in lost.to_do
    assert "up to 3 deliveries wait" in waits.detail


def test_a_group_that_was_forgotten_says_nothing_of_what_was_removed() -> None:
    (waits,) = judge("belfry.deliver", Offsets({0: -1001}, {0: 8}, {0: 12}))
    assert "up to 3 deliveries wait" in waits.detail


def test_what_a_worker_counted_as_removed_is_told_of() -> None:
    page = 'belfry_deliveries_removed_total{topic="deliveries"} %s\n'
    assert [*removed_checks(page % "0.0")] == []
    assert [*removed_checks("")] == []
    (found,) = removed_checks(page % "12.0")
    assert (found.check, found.status) == ("deliveries", Status.RISK)
    assert "Up to 12 deliveries" in found.detail


def admin_of(members: int | KafkaError) -> Any:
    def result(_timeout: float) -> Any:
        if isinstance(members, KafkaError):
            raise KafkaException(members)
        return SimpleNamespace(members=[None] * members)

    answer = {"belfry.deliver": SimpleNamespace(result=result)}
    return SimpleNamespace(describe_consumer_groups=lambda *_, **__: answer)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (1, []),
        (0, [Status.PROBLEM]),
        (KafkaError(KafkaError.GROUP_ID_NOT_FOUND), [Status.PROBLEM]),
        (KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), [Status.SKIPPED]),
    ],
)
def test_only_a_group_without_members_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, members: Any, told: list[Status]
) -> None:
    monkeypatch.setattr(doctor_deliveries, "_offsets", lambda *_: Offsets({0: 0}, {0: 0}, {0: 3}))
    found = [*delivery_checks(admin_of(members), CLUSTER, CommandSettings())]
    assert [each.status for each in found] == told


def test_a_belfry_without_the_topic_has_nothing_to_deliver() -> None:
    nowhere: Any = SimpleNamespace(topics={})
    assert [*delivery_checks(None, nowhere, CommandSettings())] == []
