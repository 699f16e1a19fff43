"""Causes of silence, in words."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.kafka.causes import cause_of


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError(), "no answer in time"),
        (TimeoutError("asked twice"), "asked twice"),
        (KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), "Topic authorization"),
        (ValueError(), "ValueError"),
    ],
)
def test_no_cause_is_empty(error: Exception, told: str) -> None:
    assert told in cause_of(error)
