"""Names of properties: asked of librdkafka, and compared with what the registry's client reads."""

from __future__ import annotations

import re
from pathlib import Path

import confluent_kafka.schema_registry
import pytest

from belfry.kafka.security import _WITHOUT_COUNTERPART
from belfry.settings import properties
from belfry.settings.properties import (
    REGISTRY_PROPERTIES,
    is_kafka_property,
    kafka_properties,
    property_name,
)

KNOWN = (
    *("bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "log_level"),
    *("ssl.ca.pem", "linger.ms", "queue.buffering.max.ms", "acks", "partitioner", "debug"),
    *("group.id", "isolation.level", "client.rack", "topic.acks", "sasl.oauthbearer.method"),
    *("https.ca.location", *_WITHOUT_COUNTERPART),
)
UNKNOWN = ("sasl.usrname", "no.such", "Property", "ssl", "", "topic.no.such", "security_protocol")


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka does not tell its names."""
    monkeypatch.setattr(properties, "_told", frozenset)


def test_librdkafka_tells_its_names() -> None:
    assert len(kafka_properties()) > 150
    assert all(re.fullmatch(r"[a-z0-9._]+", name) for name in kafka_properties())


@pytest.mark.parametrize("name", KNOWN)
def test_what_librdkafka_knows(name: str) -> None:
    assert is_kafka_property(name)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_it_does_not_know(name: str) -> None:
    assert not is_kafka_property(name)


@pytest.mark.parametrize("name", KNOWN)
def test_without_its_table_a_client_tells_what_is_known(name: str, untold: None) -> None:
    assert is_kafka_property(name)
    assert "sasl.username" in kafka_properties()


@pytest.mark.parametrize("name", ["sasl.usrname", "no.such", "security_protocol"])
def test_without_its_table_a_client_tells_what_is_not(name: str, untold: None) -> None:
    assert not is_kafka_property(name)


def test_a_variable_has_underscores_where_a_property_has_dots() -> None:
    assert property_name("SASL_MECHANISM") == "sasl.mechanism"
    assert property_name("log_level") == "log_level"


def test_the_registrys_names_are_those_that_its_client_reads() -> None:
    folder = Path(confluent_kafka.schema_registry.__path__[0])
    read = {"proxy", "timeout"}
    for name in ("_sync/schema_registry_client.py", "common/_oauthbearer.py"):
        text = (folder / name).read_text("utf-8")
        read |= set(re.findall(r"'([a-z]+(?:\.[a-z]+)+)'", text))
    assert read == REGISTRY_PROPERTIES
