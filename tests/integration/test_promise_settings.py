"""Settings that a promise rests on are compared with those of the cluster, and told with a cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from belfry.cli.entry import main
from belfry.kafka import topics
from belfry.kafka.cluster_checks import look_at_brokers
from belfry.settings import ClusterSettings, Settings

pytestmark = pytest.mark.slow


def alter(admin: AdminClient, topic: str, **config: str) -> None:
    """Alter settings of a topic, as an operator does; underscores are dots."""
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([asked]).values():
        future.result()


def test_altered_settings_are_told_with_what_mends_them(
    kafka: str,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = ClusterSettings(topic_prefix=unique("rests") + ".", partitions=1)
    settings = Settings(bootstrap_servers=kafka, cluster=cluster)
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", cluster.topic_prefix)
    monkeypatch.setenv("BELFRY_CLUSTER__PARTITIONS", "1")
    admin = AdminClient({"bootstrap.servers": kafka})
    topics.create(admin, settings)
    found = look_at_brokers(admin, settings)
    assert found.problems == []
    assert found.told.startswith("Kafka 4.3 (metadata.version 30")
    assert main(["topics", "check"]) == 0

    schedules = settings.topic("schedules")
    alter(admin, schedules, retention_ms="60000", unclean_leader_election_enable="true")
    capsys.readouterr()
    assert main(["topics", "check", "--output", "jsonl"]) == 1
    told = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_topic: list[tuple[Any, Any, Any]] = [
        (each["topic"], each["problem"].split()[0], each["fatal"]) for each in told
    ]
    assert by_topic == [
        (schedules, "retention.ms", True),
        (schedules, "unclean.leader.election.enable", True),
    ]
    assert main(["doctor"]) == 1
    command = f"kafka-configs.sh --bootstrap-server {settings.bootstrap_servers} --alter --topic"
    assert f"To do: {command}" in capsys.readouterr().out
