"""`belfry topics`: creates what is missing, leaves what exists alone, and tells what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.cli.entry import main
from belfry.kafka import topics
from belfry.kafka.wanted_topics import output_topic_spec
from belfry.settings import ClusterSettings, Settings


@pytest.fixture
def settings(kafka: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a belfry that has no topics yet; commands get the same."""
    prefix = unique("topics") + "."
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", prefix)
    return Settings(bootstrap_servers=kafka, cluster=ClusterSettings(topic_prefix=prefix))


@pytest.fixture
def admin(kafka: str) -> AdminClient:
    """An admin client."""
    return AdminClient({"bootstrap.servers": kafka})


def test_what_is_created_passes_the_check(
    settings: Settings, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topics", "check"]) == 1
    assert f"{settings.topic('schedules')}: does not exist." in capsys.readouterr().out
    assert main(["topics", "create", "-o", "json"]) == 0
    created = {each["name"]: each for each in orjson.loads(capsys.readouterr().out)}
    assert set(created) == {spec.name for spec in topics.wanted_topics(settings, 1)}
    assert created[settings.topic("changelog")]["config"]["cleanup.policy"] == "compact"
    assert topics.missing(admin, settings) == []
    assert topics.problems(admin, settings) == []
    assert main(["topics", "check", "-o", "json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_creating_again_changes_nothing(
    settings: Settings, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    first = topics.create(admin, settings)
    assert len(first) == len(topics.wanted_topics(settings, 1))
    assert topics.create(admin, settings) == []
    assert main(["topics", "create"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Nothing to create" in shown.err


def test_who_comes_second_finds_the_topics_there(settings: Settings, admin: AdminClient) -> None:
    specs = topics.wanted_topics(settings, 1)
    assert topics.create_topics(admin, specs[:2]) == [spec.name for spec in specs[:2]]
    assert sorted(topics.create_topics(admin, specs)) == sorted(spec.name for spec in specs[2:])


def test_a_tenants_topic_can_be_created(settings: Settings, admin: AdminClient) -> None:
    spec = output_topic_spec(settings.cluster, settings.topic("fired.demo"), 1)
    assert topics.create_topics(admin, [spec]) == [spec.name]
    found = admin.list_topics(timeout=10).topics[spec.name]
    assert len(found.partitions) == settings.cluster.partitions


def test_topics_of_another_shape_are_told(
    settings: Settings, admin: AdminClient, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = NewTopic(settings.topic("schedules"), 2, 1, config={"cleanup.policy": "compact"})
    for future in admin.create_topics([wrong]).values():
        future.result()
    topics.create(admin, settings)
    assert main(["topics", "check"]) == 1
    out = capsys.readouterr().out
    assert "cleanup.policy is compact; it has to be delete." in out
    assert "message.timestamp.type is CreateTime; it has to be LogAppendTime." in out
    assert f"2 partitions, but {settings.topic('changelog')} has 4." in out
    assert f"kafka-topics.sh --bootstrap-server {settings.bootstrap_servers} --alter" in out


def test_a_broker_that_is_not_there_is_told_within_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["topics", "create", "--bootstrap-servers", "127.0.0.1:1"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("belfry: No Kafka broker answers at 127.0.0.1:1 (")
    assert "Connection refused" in err
    assert "`belfry dev`" in err
