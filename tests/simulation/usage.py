"""What was metered against what the topics say: each figure once, whatever faults there were (I23).

A partition's records of the metering topic and the rows that its changelog still holds add up to
what its committed steps have fired and accepted, and the rows say how many bytes wait.  It is
written against the specification of the bytes, without a line of the engine's.
"""

from __future__ import annotations

import json
from collections import Counter
from struct import Struct
from typing import Final

from tests.simulation.broker import Log
from tests.simulation.stores import CHANGELOG, PENDING, fold
from tests.simulation.trail import FIRED, Step
from tests.simulation.world import World

METERING: Final = "belfry.metering"
USAGE: Final = b"\0u"
# Accepted, fired and held bytes, behind the instants.
_ROW: Final = Struct(">28xQQQ8x")
CHANGES: Final = ("ACCEPTED", "UPDATED")

# Tenant and figure.
Sums = Counter[tuple[str, str]]


def check_usage(world: World, partitions: list[list[Step]]) -> list[str]:
    """What is wrong with the figures of a world whose workers meter."""
    if not world.settings.metering_interval_ms:
        return []
    problems: list[str] = []
    told: dict[int, Sums] = {}
    for entry in world.committed(METERING):
        said = json.loads(entry.value or b"")
        sums = told.setdefault(said["partition"], Counter())
        for name in ("accepted", "fired"):
            sums[said["tenant"], name] += said[name]
    for log, steps in zip(world.broker.topics[CHANGELOG], partitions, strict=True):
        metered = told.get(log.partition, Counter()) + kept(log)
        done = committed(steps) + waiting(log)
        for tenant, name in sorted(metered.keys() | done.keys()):
            if name == "accepted" and world.settings.lifecycle == "FAILURES":
                # No outcome tells the checker of it.
                continue
            one, other = metered[tenant, name], done[tenant, name]
            if one != other:
                what = f"{name} of {tenant}: {one} metered, {other} counted"
                problems.append(f"I23 partition {log.partition}: {what}")
    return problems


def kept(log: Log) -> Sums:
    """What the rows of a partition say that is not told yet, and the bytes that wait."""
    found: Sums = Counter()
    for key, row in fold(log, 1 << 62).items():
        if key.startswith(USAGE) and key != USAGE:
            tenant = key[len(USAGE) :].decode()
            for name, number in zip(("accepted", "fired", "bytes"), _ROW.unpack(row), strict=True):
                found[tenant, name] += number
    return found


def committed(steps: list[Step]) -> Sums:
    """What the steps of a partition have fired and accepted."""
    found: Sums = Counter()
    for step in steps:
        for topic, _ in step.fired:
            found[topic.removeprefix(FIRED), "fired"] += 1
        for event in step.told:
            if event["outcome"] in CHANGES:
                found[event["tenant"], "accepted"] += 1
    return found


def waiting(log: Log) -> Sums:
    """The bytes of the pending records of a partition."""
    found: Sums = Counter()
    for key, row in fold(log, 1 << 62).items():
        if key[:1] != b"\0" and row[1] == PENDING:
            found[key.partition(b"/")[0].decode(), "bytes"] += len(row)
    return found
