"""Whether topics that are targets hold what has fired (I48).

    I48   a topic that is a target holds each fire of its tenants whose delivery did not fail, with
          value, key and the user's headers as they have fired, and nothing else

An event may lie there several times: deliveries are made at least once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Entry
from tests.simulation.delivered import given_up
from tests.simulation.topic_targets import SCHEME, TOPICS
from tests.simulation.trail import FIRED, Step, headers_of

if TYPE_CHECKING:
    from tests.simulation.world import World

OURS: Final = "belfry-"


def _fires(partitions: list[list[Step]]) -> dict[str, tuple[str, Entry]]:
    """What has fired, by its id: tenant and record."""
    return {
        headers_of(entry)["belfry-fire-id"].decode(): (topic.removeprefix(FIRED), entry)
        for steps in partitions
        for step in steps
        for topic, entry in step.fired
    }


def _theirs(entry: Entry) -> list[tuple[str, bytes | None]]:
    """The user's headers."""
    return [(name, value) for name, value in entry.headers or () if not name.startswith(OURS)]


def check_topics(world: World, partitions: list[list[Step]]) -> Iterator[str]:
    """What targets hold, against what has fired."""
    if world.hooks is None or not world.scenario.topics:
        return
    fires, held = _fires(partitions), Counter[tuple[str, str]]()
    for topic in TOPICS:
        for entry in world.committed(topic):
            fire_id = headers_of(entry)["belfry-fire-id"].decode()
            tenant, fired = fires.get(fire_id, ("", None))
            held[topic, fire_id] += 1
            if fired is None or topic not in _topics_of(world, tenant):
                yield f"I48 {topic} holds {fire_id}, and should not"
            elif (entry.key, entry.value, _theirs(entry)) != (
                *(fired.key, fired.value, _theirs(fired)),
            ):
                yield f"I48 {topic} holds {fire_id} as {entry.key!r}, {entry.value!r}"
    failed = _failed(world)
    for fire_id, (tenant, _) in fires.items():
        for topic in _topics_of(world, tenant):
            if not held[topic, fire_id] and (topic, fire_id) not in failed:
                yield f"I48 {topic} lacks {fire_id}, whose delivery did not fail"


def _topics_of(world: World, tenant: str) -> list[str]:
    said = world.policies.of(tenant).limits.get("http_targets", [])
    urls = [str(each["url"]) for each in said]
    return [url.removeprefix(SCHEME) for url in urls if url.startswith(SCHEME)]


def _failed(world: World) -> set[tuple[str, str]]:
    """Topic and fire of each delivery that was given up."""
    return {(url.removeprefix(SCHEME), fire_id) for fire_id, url in given_up(world)}
