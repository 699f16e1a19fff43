"""What `belfry doctor` says of replicas, from the metadata of a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.cli.check import Status
from belfry.cli.doctor_topics import replica_checks
from belfry.settings import Settings


def cluster(**topics: list[tuple[int, int]]) -> Any:
    """Topics with partitions, each as its leader and the number of replicas in sync of three."""
    return SimpleNamespace(
        topics={
            name.replace("_", "."): SimpleNamespace(
                partitions={
                    number: SimpleNamespace(
                        leader=leader, replicas=[1, 2, 3], isrs=list(range(in_sync))
                    )
                    for number, (leader, in_sync) in enumerate(partitions)
                }
            )
            for name, partitions in topics.items()
        }
    )


def test_nothing_is_said_where_all_is_well_and_of_others_topics() -> None:
    found = cluster(belfry_schedules=[(1, 3), (2, 3)], others=[(-1, 0)])
    assert list(replica_checks(found, Settings())) == []


def test_a_partition_that_nobody_leads() -> None:
    (check,) = replica_checks(cluster(belfry_fired_shop=[(1, 3), (-1, 0)]), Settings())
    assert check.status is Status.PROBLEM
    assert check.detail.startswith("Nobody leads belfry.fired.shop/1: ")


def test_replicas_that_are_not_in_sync() -> None:
    (check,) = replica_checks(cluster(belfry_changelog=[(1, 2)] * 7), Settings())
    assert check.status is Status.RISK
    assert "belfry.changelog/4 and 2 more" in check.detail
