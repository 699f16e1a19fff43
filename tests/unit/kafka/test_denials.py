"""Whom brokers take a client for, and the sentence that says what it may not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from belfry.kafka.denials import denial, sentence, user_of
from belfry.kafka.rights import GROUP, TOPIC, Right
from tests.unit.kafka.test_security import signed

SASL = {"security.protocol": "SASL_SSL", "sasl.username": "payments"}


@pytest.mark.parametrize(
    ("properties", "user"),
    [
        ({}, "ANONYMOUS"),
        ({"security.protocol": "ssl"}, "ANONYMOUS"),
        ({**SASL, "sasl.mechanism": "SCRAM-SHA-512"}, "payments"),
        ({**SASL, "sasl.mechanisms": "PLAIN"}, "payments"),
        ({"security.protocol": "SASL_SSL"}, "<its Kerberos name>"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "<the subject of its token>"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "a.p12"},
         "<the subject of its certificate>"),
        ({"security.protocol": "SSL", "ssl.certificate.location": "/nowhere"},
         "<the subject of its certificate>"),
    ],
)  # fmt: skip
def test_whom_brokers_take_a_client_for(properties: dict[str, str], user: str) -> None:
    assert user_of(properties) == user


def test_with_a_certificate_alone_its_subject_is_the_user(tmp_path: Path) -> None:
    shown = signed("worker-1")
    (tmp_path / "one.pem").write_text(shown.pem)
    for name, value in (("location", str(tmp_path / "one.pem")), ("pem", shown.pem)):
        properties = {"security.protocol": "SSL", f"ssl.certificate.{name}": value}
        assert user_of(properties) == "CN=worker-1"


def test_a_denial_names_who_what_with_which_and_the_command() -> None:
    assert sentence("payments", "Read", GROUP, "payments.tail", "kafka:9092") == (
        "User:payments may not Read group payments.tail. Grant it: kafka-acls.sh"
        " --bootstrap-server kafka:9092 --add --allow-principal User:payments --operation Read"
        " --group payments.tail"
    )


def test_a_denial_of_many_names_one_and_counts_the_others() -> None:
    right = Right(TOPIC, "belfry.", True, ("Read", "Write"), "")
    problem, cure = denial("<the subject of its token>", right, ["belfry.a", "belfry.b"], "k:1")
    assert (
        problem == "User:<the subject of its token> may not Read, Write topic belfry.a and 1 more"
    )
    assert "'User:<the subject of its token>' --operation Read --operation Write --topic" in cure
    assert cure.endswith("--topic belfry. --resource-pattern-type prefixed")
