"""An error that no command has expected still says what refused whom, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.canary import rows
from belfry.cli.entry import main
from belfry.cli.failures import CommandError, tell
from belfry.cli.mirror_sides import told as mirror_told
from belfry.cli.remote import _refused
from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster

SHOP = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.username=shop")
LOGIN = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.password=x")
DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


def said(
    raised: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What `belfry slo` says where Kafka's client raises this."""

    def fails(*_: Any) -> Any:
        raise raised

    monkeypatch.setattr(rows, "slots_until", fails)
    assert main(["slo", "--bootstrap-servers", "one:9092", *SHOP, *LOGIN]) == 1
    return capsys.readouterr().err


def test_who_was_refused_is_named_with_the_brokers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(KafkaException(DENIED), monkeypatch, capsys)
    assert told.startswith("belfry: Kafka at one:9092 does not let User:shop in: ")
    assert "`belfry doctor` names the rights that are missing" in told


def test_an_answer_that_did_not_come_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(TimeoutError(), monkeypatch, capsys)
    assert told.startswith("belfry: Kafka at one:9092 gave no answer in time. ")


def test_brokers_that_went_away_amid_the_work_are_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(ConnectionError("3 requests were not acknowledged"), monkeypatch, capsys)
    assert told == (
        "belfry: 3 requests were not acknowledged. `belfry doctor` says which brokers answer.\n"
    )


def test_a_side_of_a_mirror_that_does_not_answer_is_told_with_what_to_give() -> None:
    with pytest.raises(CommandError, match="by --source, those of the target by"), mirror_told():
        raise ConnectionError("source at kafka-a:9092: no answer")
    with pytest.raises(BrokenPipeError), mirror_told():
        raise BrokenPipeError


@pytest.mark.parametrize(("status", "is_told"), [(401, True), (403, False)])
def test_who_shows_no_key_is_told_where_a_command_takes_it_from(
    status: int, *, is_told: bool
) -> None:
    refused = _refused(status, b'{"detail": "Show a key.", "code": "no"}')
    assert ("BELFRY_HTTP_TOKEN" in str(refused)) is is_told


@pytest.mark.parametrize("command", [["list"], ["list", "--open"], ["replay", "--all"]])
def test_deliveries_without_a_broker_are_told_in_one_sentence(
    command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["deliveries", *command, "--bootstrap-servers", "127.0.0.1:1"]) == 1
    told = capfd.readouterr().err
    assert told.startswith("belfry: No Kafka broker answers at 127.0.0.1:1")
    assert told.count("\n") == 1


@pytest.mark.parametrize("raised", [KafkaException(), KafkaException("")])
def test_an_error_without_words_ends_behind_no_colon(
    raised: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(raised, monkeypatch, capsys)
    assert told == (
        "belfry: Kafka refuses: it does not say why. `belfry doctor` looks for the cause.\n"
    )


def test_no_sentence_of_a_command_ends_behind_its_colon(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tell(CommandError("It could not be prepared: ")) == 1
    told = capsys.readouterr().err
    assert told == "belfry: It could not be prepared: what failed said nothing more.\n"


@pytest.mark.parametrize(
    ("code", "topic", "group", "operation", "what"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "t", "", "Read", "Read topic t"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "t", "", "Write", "Write topic t"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "t", "g", "Read", "Read group g"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "t", "", "Write", "Write topic t"),
    ],
)
def test_principal_operation_and_resource_are_named_with_the_command_that_grants_it(
    code: int, topic: str, group: str, operation: str, what: str
) -> None:
    cluster = Cluster("one:9092", {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"})
    cluster._properties["sasl.username"] = "shop"
    told = str(cluster.unavailable(KafkaError(code), topic, group, operation))
    assert f"User:shop may not {what}. Grant it: kafka-acls.sh" in told


def test_a_transactional_id_that_is_denied_is_named() -> None:
    cluster = Cluster("one:9092")
    found = cluster.refused("Write", "transactional-id", "belfry.redrive")
    assert isinstance(found, Unavailable)
    assert "User:ANONYMOUS may not Write transactional id belfry.redrive" in str(found)
