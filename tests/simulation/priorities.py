"""Priorities: of what is held back, nothing leaves before what is more urgent (I33).

    watermark behind step 6     12:00:05
    due by then, and not fired  a (priority 1), b (priority -9): both lie in their tenant's backlog
    step 7                      a leaves first; b may follow in the same step

What is due up to the watermark has left the timeline.  So the topics alone tell what lies in a
backlog, of schedules that fire once and wait for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.simulation.bulk import Definition, JobsSeen
from tests.simulation.filed import ever_away, was_late
from tests.simulation.taking import Seen
from tests.simulation.trail import Step
from tests.simulation.world import World

# Schedules that say nothing else have no lock, no rhythm and no instant that slides.
SAYS: Final = frozenset({"at", "group", "priority", "expected_version"})


def check_priorities(world: World, seen: Seen, jobs: JobsSeen) -> list[str]:
    """All that left before what was more urgent."""
    if world.scenario.early_ms:
        # Where clocks are wrong, an owner may wait for an instant that the one before has passed.
        return []
    paused = {key for key, _, _ in jobs.pauses}
    paused |= {
        (each.sent.tenant, each.sent.schedule_id)
        for each in seen.taken
        if each.sent.action == "PAUSE"
    }
    filed = ever_away(seen.partitions)
    waiting: defaultdict[tuple[int, str], list[Definition]] = defaultdict(list)
    for each in seen.definitions.values():
        sent = each.sent
        simple = sent.fields.keys() <= SAYS and not sent.fields.get("group") and not each.moved_ms
        name, partition = (sent.tenant, sent.schedule_id), each.accepted_in.partition
        if not simple or len(each.fired_in) != 1 or name in paused:
            continue
        # What is due before its file was read back waits by itself, and leaves late.
        if name not in filed or not was_late(seen.partitions[partition], each):
            waiting[partition, sent.tenant].append(each)
    return [
        f"I33 {what}"
        for (partition, _), several in waiting.items()
        for what in _overtaken(seen.partitions[partition], several)
    ]


def _overtaken(steps: list[Step], several: list[Definition]) -> Iterator[str]:
    for low in several:
        step, _ = low.fired_in[0]
        before = steps[step.index - 1].manifest if step.index else None
        if before is None or not _held(low, step, before.watermark_ms):
            continue
        for high in several:
            if (
                _came_later(high, low)
                and _held(high, step, before.watermark_ms)
                and _more_urgent(high, low)
            ):
                yield f"{low.sent.name} came out before {high.sent.name}, which was held as well"


def _came_later(one: Definition, other: Definition) -> bool:
    """Whether it came out in a later step, or behind the other one in the same output partition.

    The direct writer's records come partition by partition.
    """
    (step, entry), (first_in, first) = one.fired_in[0], other.fired_in[0]
    if step is not first_in:
        return step.index > first_in.index
    same_place = step.places[entry.order] == step.places[first.order]
    return same_place and entry.order > first.order


def _held(definition: Definition, step: Step, watermark_ms: int) -> bool:
    """Whether it lay in the backlog when the step began."""
    return definition.accepted_in.index < step.index and definition.due_ms <= watermark_ms


def _more_urgent(one: Definition, other: Definition) -> bool:
    return (one.sent.fields.get("priority") or 0) > (other.sent.fields.get("priority") or 0)
