"""Addresses of brokers: what is none is refused with a sentence, before anybody waits for it."""

from __future__ import annotations

import pytest

from belfry.settings.checks import brokers


@pytest.mark.parametrize(
    "given",
    [
        *(
            "127.0.0.1:9092",
            "kafka-1:9092,kafka-2:9092",
            "kafka-1:9092, kafka-2",
            "kafka",
            "k:65535",
        ),
        *("[::1]:9092", "[2001:db8::1]", "SASL_SSL://kafka:9093", "k_1.internal:1"),
    ],
)
def test_addresses_are_left_as_they_are(given: str) -> None:
    assert brokers(given) == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "it is empty"),
        (" ", "it is empty"),
        ("kafka:9092,", "nothing between two commas"),
        (",kafka:9092", "nothing between two commas"),
        ("http://kafka:9092", "Kafka speaks no HTTP"),
        (":9092", "':9092' has no host"),
        ("SSL://:9092", "has no host"),
        ("kafka:", "'kafka:' has no port from 1 to 65535"),
        ("kafka:0", "no port"),
        ("kafka:65536", "no port"),
        ("kafka:9092:1", "no port"),
        ("kafka:port", "no port"),
        ("[::1]9092", "no port"),
        ("ok:1,kafka:", "'kafka:' has no port"),
    ],
)
def test_what_is_no_address_is_refused_with_what_is_allowed(given: str, said: str) -> None:
    with pytest.raises(ValueError, match="such as kafka-1:9092") as refused:
        brokers(given)
    assert said in str(refused.value)
