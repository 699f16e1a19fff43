"""What the topics say of the transactions that were committed: the checker's raw material.

Written against the specification of the bytes (the store's README, the public schemas), without a
line of the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple

import fastavro

from belfry.store.signatures import FILLER
from tests.simulation.beside import beside_of, give_to_steps
from tests.simulation.broker import OFFSETS, Entry, Txn
from tests.simulation.delivering import TOPIC as DELIVERIES
from tests.simulation.delivering import is_deliverers
from tests.simulation.redriving import OPERATOR
from tests.simulation.sent import schema
from tests.simulation.stores import bare
from tests.simulation.world import World

_MANIFEST: Final = Struct(">BBHQIqqQI16s")
_LIFECYCLE: Final = schema("LifecycleEvent")
FIRED: Final = "belfry.fired."
REQUESTS: Final = "belfry.schedules"
# Of tenants.
INPUTS: Final = "belfry.schedules."
CHANGELOG: Final = "belfry.changelog"
POLICIES: Final = "belfry.tenants"
# Topics that are targets.
AUDIT: Final = "audit."


class Manifest(NamedTuple):
    """The last record of a transaction, field by field."""

    number: int
    epoch: int
    position: int
    watermark_ms: int
    pending: int
    fired: int
    digest: bytes


@dataclass(slots=True)
class Step:
    """One committed transaction of a partition and all that it wrote.

    `order` is its place among the transactions of all partitions, that of its manifest.
    Fired records have their payloads as consumers read them (`payloads`).  `places` are the output
    partitions of fired records, by their order.
    """

    partition: int
    index: int
    txn: Txn
    manifest: Manifest | None = None
    rows: list[Entry] = field(default_factory=list)
    fired: list[tuple[str, Entry]] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[Entry] = field(default_factory=list)
    manifests: int = 0
    order: int = 0
    places: dict[int, int] = field(default_factory=dict)
    # Deliveries that it wrote: first attempts, and retries, which are fires of their own.
    delivered: list[Entry] = field(default_factory=list)
    # Whether some of what it fired left beside its transaction (`beside`).
    has_beside: bool = False


def headers_of(entry: Entry) -> dict[str, bytes]:
    """Headers by name, the last one of a name."""
    return {name: value or b"" for name, value in entry.headers or ()}


def manifest_of(value: bytes) -> Manifest:
    """A manifest's bytes."""
    return Manifest(*_MANIFEST.unpack(value)[3:])


def steps_of(world: World) -> list[list[Step]]:
    """Committed transactions of each partition, in the order of the changelog."""
    steps: dict[Txn, Step] = {}
    found: list[list[Step]] = []
    for log in world.broker.topics["belfry.changelog"]:
        mine: list[Step] = []
        for entry in log.history:
            if not entry.committed or entry.txn is None or entry.key == FILLER:
                continue
            if entry.txn not in steps:
                steps[entry.txn] = Step(log.partition, len(mine), entry.txn)
                mine.append(steps[entry.txn])
            step = steps[entry.txn]
            if (entry.key or b"").startswith(b"\0m") and entry.value is not None:
                step.manifest = manifest_of(bare(entry.value))
                step.manifests += 1
                step.order = entry.order
            step.rows.append(entry)
        found.append(mine)
    _outputs(world, steps)
    if world.scenario.changes:
        beside = beside_of(world)
        for mine in found:
            give_to_steps(beside, mine)
    for step in steps.values():
        step.fired.sort(key=lambda each: each[1].order)
    return found


def _outputs(world: World, steps: dict[Txn, Step]) -> None:
    # Requests and policies need no transaction, and neither does a stranger where one writes.
    faults = world.scenario.faults
    strangers = faults.get("write_in_changelog") or faults.get("copy_lost_step")
    unbound = {REQUESTS, POLICIES, OFFSETS} | ({CHANGELOG} if strangers else set())
    unbound |= {topic for topic in world.broker.topics if topic.startswith((INPUTS, AUDIT))}
    for topic, logs in sorted(world.broker.topics.items()):
        places = {entry.order: log.partition for log in logs for entry in log.history}
        for entry in world.committed(topic):
            if is_deliverers(entry.txn) or (entry.txn and entry.txn.producer == OPERATOR):
                # What follows from deliveries (`delivered`), or was sent again (`redriven`).
                continue
            step = None if entry.txn is None else steps.get(entry.txn)
            if step is None and world.scenario.changes and topic.startswith(FIRED):
                # Of a tenant that lives at least once, perhaps.
                continue
            if step is None:
                assert topic in unbound, f"{topic}: {entry} has no transaction"
            elif topic.startswith(FIRED):
                read = world.payloads.as_read(topic.removeprefix(FIRED), entry)
                step.fired.append((topic, read))
                step.places[entry.order] = places[entry.order]
            elif topic == "belfry.lifecycle":
                reader = BytesIO((entry.value or b"")[10:])
                event: Any = fastavro.schemaless_reader(reader, _LIFECYCLE, None)
                step.told.append(event)
            elif topic == "belfry.rejected":
                step.rejected.append(entry)
            elif topic == DELIVERIES:
                step.delivered.append(entry)
                step.places[entry.order] = places[entry.order]
