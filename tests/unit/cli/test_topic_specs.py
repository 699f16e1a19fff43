"""Topics as they should be, and what is told about those that are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from belfry.kafka.topics import missing, wanted_topics
from belfry.kafka.wanted_topics import (
    config_problems,
    home_problems,
    output_topic_spec,
    partition_problems,
    replication_problems,
)
from belfry.settings import ClusterSettings, Settings

SETTINGS = Settings(cluster=ClusterSettings(topic_prefix="x.", partitions=8))


@pytest.mark.parametrize(
    ("brokers", "replication", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (9, 3, "2")]
)
def test_replicas_follow_the_number_of_brokers(
    brokers: int, replication: int, in_sync: str
) -> None:
    for spec in wanted_topics(SETTINGS, brokers):
        assert spec.replication == replication
        assert spec.config["min.insync.replicas"] == in_sync


def test_the_topics_of_the_contract() -> None:
    found = {spec.name: spec for spec in wanted_topics(SETTINGS, 3)}
    policies = {name: spec.config["cleanup.policy"] for name, spec in found.items()}
    assert policies == {
        "x.schedules": "delete",
        "x.rejected": "delete",
        "x.lifecycle": "delete",
        "x.deliveries": "delete",
        "x.undelivered": "delete",
        "x.audit": "delete",
        "x.tenants": "compact",
        "x.changelog": "compact",
    }
    assert {spec.partitions for spec in found.values()} == {8}
    for name in ("x.schedules", "x.changelog"):
        assert found[name].config["message.timestamp.type"] == "LogAppendTime"
    assert found["x.schedules"].config["retention.ms"] == str(7 * 86_400_000)
    assert found["x.rejected"].config["retention.ms"] == str(14 * 86_400_000)


def test_usage_has_a_topic_where_it_is_counted() -> None:
    settings = SETTINGS.model_copy(update={"metering_interval_ms": 3_600_000})
    found = {spec.name: spec for spec in wanted_topics(settings, 1)}
    assert len(found) == len(wanted_topics(SETTINGS, 1)) + 1
    assert found["x.metering"].config["retention.ms"] == str(400 * 86_400_000)
    (problem,) = config_problems(found["x.metering"], {"cleanup.policy": "compact"})
    assert problem.fatal


@pytest.mark.parametrize("length_ms", [1, 9_000, 7_000_000, 35_000])
def test_a_period_of_usage_divides_an_hour(length_ms: int) -> None:
    with pytest.raises(ValidationError, match="metering_interval_ms"):
        Settings(metering_interval_ms=length_ms)


def test_a_tenants_topic() -> None:
    spec = output_topic_spec(SETTINGS.cluster, SETTINGS.topic("fired.payments.eu"), 1)
    assert spec.name == "x.fired.payments.eu"
    assert spec.config["cleanup.policy"] == "delete"


def test_a_setting_that_breaks_a_promise_is_fatal() -> None:
    schedules = wanted_topics(SETTINGS, 1)[0]
    compacted = {**schedules.config, "cleanup.policy": "compact"}
    (problem,) = config_problems(schedules, compacted)
    assert problem.fatal
    assert problem.what == "cleanup.policy is compact; it has to be delete"
    assert "--add-config cleanup.policy=delete" in problem.cure
    assert config_problems(schedules, {**schedules.config, "retention.ms": "1"}) == []


def test_too_few_replicas_are_a_risk_and_none_to_write_to_is_fatal() -> None:
    spec = wanted_topics(SETTINGS, 3)[0]
    assert replication_problems(spec, 3, 2) == []
    assert [p.fatal for p in replication_problems(spec, 1, 1)] == [False]
    (problem,) = replication_problems(spec, 1, 2)
    assert problem.fatal
    assert problem.cure.startswith("give it 3 replicas")
    assert problem.cure.endswith("--add-config min.insync.replicas=2")
    # With one broker there are no more replicas to be had.
    (problem,) = replication_problems(wanted_topics(SETTINGS, 1)[0], 1, 2)
    assert problem.cure.startswith("kafka-configs.sh --alter --topic x.schedules")
    assert problem.cure.endswith("--add-config min.insync.replicas=1")


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({"schedules": 4, "changelog": 4}, []),
        ({"schedules": 8, "changelog": 4}, []),
        ({"schedules": 3, "changelog": 4}, [True]),
        # A belfry that grows: workers start, and are told to have it done.
        ({"schedules": 4, "changelog": 8, "homes": 4}, [False]),
        ({"schedules": 3, "changelog": 8, "homes": 4}, [True]),
        ({"schedules": 8, "changelog": 8, "homes": 4}, []),
        ({"schedules": 4}, []),
        ({}, []),
    ],
)
def test_input_needs_a_partition_for_each_home(counts: dict[str, int], told: list[bool]) -> None:
    named = {f"belfry.{name}": count for name, count in counts.items()}
    assert [each.fatal for each in partition_problems(ClusterSettings(), named)] == told


@pytest.mark.parametrize(
    ("counts", "said_by"),
    [
        ({"changelog": 4}, []),
        ({}, []),
        ({"changelog": 16}, ["changelog"]),
        ({"changelog": 2}, ["changelog"]),
        ({"changelog": 16, "homes": 4}, []),
        ({"changelog": 16, "homes": 8}, ["homes"]),
        ({"changelog": 4, "homes": 4}, []),
        ({"changelog": 4, "homes": 1}, ["homes"]),
    ],
)
def test_the_number_of_homes_is_what_was_agreed(counts: dict[str, int], said_by: list[str]) -> None:
    named = {f"belfry.{name}": count for name, count in counts.items()}
    found = home_problems(ClusterSettings(partitions=4), named)
    assert [each.topic for each in found] == [f"belfry.{name}" for name in said_by]
    assert all(each.fatal for each in found)


@pytest.mark.parametrize(
    ("counts", "made"),
    [
        ({"schedules": 16, "homes": 4}, {"changelog": 16}),
        ({"changelog": 16, "homes": 4}, {"schedules": 16}),
        ({"homes": 4}, {"changelog": 4, "schedules": 4}),
        # Partitions that were added to the input alone send requests on.
        ({"schedules": 6}, {"changelog": 4}),
        ({}, {"changelog": 4, "schedules": 4}),
    ],
)
def test_a_lost_topic_of_a_belfry_that_has_grown_gets_as_many_partitions(
    counts: dict[str, int], made: dict[str, int]
) -> None:
    cluster = ClusterSettings(partitions=4)
    there = {f"belfry.{name}": SimpleNamespace(partitions=range(n)) for name, n in counts.items()}
    found = SimpleNamespace(topics=there, brokers=[1])
    admin: Any = SimpleNamespace(list_topics=lambda timeout: found)
    specs = {each.name: each.partitions for each in missing(admin, Settings(cluster=cluster))}
    assert {each: specs.get(f"belfry.{each}") for each in made} == made
    assert specs["belfry.tenants"] == 4


@pytest.mark.parametrize(
    ("counts", "cure"),
    [
        # It has grown, and the topic that says so is gone or hidden: 16 would be wrong for all.
        ({"changelog": 16}, "--create --topic belfry.homes --partitions 4"),
        ({"changelog": 2}, "set it to 2 on all workers"),
        ({"changelog": 16, "homes": 8}, "set it to 8 on all workers"),
    ],
)
def test_who_misses_the_number_of_homes_is_told_how_to_say_it_again(
    counts: dict[str, int], cure: str
) -> None:
    named = {f"belfry.{name}": count for name, count in counts.items()}
    (problem,) = home_problems(ClusterSettings(partitions=4), named)
    assert cure in problem.cure
