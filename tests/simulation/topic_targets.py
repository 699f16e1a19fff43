"""Targets that are topics: what is written there.

    fire ─► belfry.deliveries ─► a dispatcher, beside partitions or alone ─► audit.all
                                      └─ refused, or not acknowledged ─► the next attempt

A record there is kept as a post is: its attempt, when it left, whether it lies there and whether
its producer has heard so.  So I39 holds for it as well; what targets hold is judged by
`topics_held`.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.broker import Entry, Log
from tests.simulation.machine import Machine
from tests.simulation.polled import PolledProducer
from tests.simulation.stage import here
from tests.simulation.webhooks import HOSTS, Hooks, Posted

if TYPE_CHECKING:
    from tests.simulation.world import World

SCHEME: Final = "kafka:"
TOPICS: Final = ("audit.all", "audit.some")
PARTITIONS: Final = 2
# How long a target refuses, in milliseconds.
REFUSES_MS: Final = (700.0, 4_000.0, 12_000.0)


@dataclass(eq=False, slots=True)
class Written:
    """A record on its way to a target."""

    posted: Posted

    def lies(self, _log: Log, _entry: Entry) -> None:
        """The target has it."""
        self.posted.status = 204
        self.posted.arrived_ms = here().now_ms

    def heard(self, error: Any) -> None:
        """Its sender is told."""
        self.posted.ended_ms = here().now_ms
        self.posted.heard = error is None


def producer() -> PolledProducer:
    """The producer of a sender, whose records are kept as posts."""
    return PolledProducer(_posted)


def _posted(by: Machine, topic: str, value: Any, _key: Any, headers: Any) -> Written:
    said = {name: (given or b"").decode() for name, given in headers}
    said["webhook-id"] = said["belfry-fire-id"]
    posted = Posted(by, SCHEME + topic, said, value or b"", here().now_ms)
    assert by.hooks is not None, "somebody delivers here"
    by.hooks.posts.append(posted)
    return Written(posted)


def targets(random: Random) -> dict[str, Any]:
    """Topics as targets of a tenant, and all that it allows."""
    chosen = random.sample(TOPICS, random.choice((1, 1, 2)))
    return {
        "targets": [{"url": SCHEME + topic} for topic in chosen],
        "allowed_hosts": [*(host.partition(":")[0] for host in HOSTS), *HOSTS]
        + [SCHEME + topic for topic in TOPICS],
    }


def refuse_target(world: World) -> None:
    """A target refuses what comes, for a while."""
    topic = world.random.choice(TOPICS)
    world.broker.refused[topic] = "not authorised"
    assert world.hooks is not None
    world.hooks.struck.append("topic refuses")

    def mend() -> None:
        world.broker.refused.pop(topic, None)

    world.stage.later(world.random.choice(REFUSES_MS), mend)


def add_to(hooks: Hooks, said: dict[str, Any]) -> dict[str, Any]:
    """A tenant's policy with topics among its targets."""
    drawn = targets(hooks.random)
    of_http = said["http_targets"] if hooks.random.random() < 0.5 else []
    return said | {
        "http_targets": of_http + drawn["targets"],
        "allowed_hosts": drawn["allowed_hosts"],
    }
