"""Why there is no connection: nobody answers, or somebody does and lets nobody in."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from belfry.client.faults import LOCKED_OUT
from belfry.client.kafka import Cluster

SILENT = KafkaError(KafkaError._TRANSPORT, "Failed to get metadata")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize("code", sorted(LOCKED_OUT))
def test_who_is_not_let_in_is_told_why(code: int) -> None:
    cluster = Cluster("broker:9093")
    for error in (KafkaError(code, "verify that ssl.ca.location is right"), DOWN):
        cluster.faults(error)
    said = str(cluster.unavailable(SILENT))
    assert said.startswith("Kafka at broker:9093 is there, and there is no secure connection to it")
    assert "verify that ssl.ca.location is right" in said
    assert "sasl.password" in said


def test_a_broker_that_is_away_since_is_told_as_such() -> None:
    cluster = Cluster("broker:9093")
    for code in (KafkaError._SSL, KafkaError._TRANSPORT):
        cluster.faults(KafkaError(code, "Connection refused"))
    said = str(cluster.unavailable(SILENT))
    assert said.startswith("No Kafka broker answers at broker:9093 (Connection refused)")
