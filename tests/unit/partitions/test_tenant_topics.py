"""Tenants' own topics are found by their names, and read at the tenants' homes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from belfry.partitions.tenant_topics import TenantTopics
from belfry.schedules.identity import Homes

HOMES = Homes(4)


def topic(partitions: int = 1, error: Any = None) -> Any:
    """What a cluster says of a topic."""
    return SimpleNamespace(partitions=dict.fromkeys(range(partitions)), error=error)


def found(**topics: Any) -> dict[int, set[tuple[str, str, int]]]:
    """Tenant, topic and partition of the tenant inputs of each home."""
    known = TenantTopics("b.schedules.", HOMES)
    known.look(topics)
    return {
        home: {(each.tenant, each.place.topic, each.place.partition) for each in known.of(home)}
        for home in range(HOMES.partitions)
        if known.of(home)
    }


def test_each_partition_is_read_at_the_tenants_home() -> None:
    home = HOMES.of("mail.bulk")
    assert found(**{"b.schedules.mail.bulk": topic(2), "b.schedules": topic(4)}) == {
        home: {("mail.bulk", "b.schedules.mail.bulk", partition) for partition in (0, 1)}
    }


def test_other_topics_are_nobodys() -> None:
    assert found(**{"b.fired.x": topic(), "b.schedules.no name": topic(), "x": topic()}) == {}


def test_a_topic_without_metadata_is_left_out() -> None:
    assert found(**{"b.schedules.x": topic(error="unknown")}) == {}


def test_a_topic_that_goes_is_read_no_more() -> None:
    known = TenantTopics("b.schedules.", HOMES)
    known.look({"b.schedules.x": topic()})
    assert known.of(HOMES.of("x"))
    known.look({})
    assert not known.of(HOMES.of("x"))
