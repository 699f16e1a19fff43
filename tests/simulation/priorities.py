"""Priorities: of what is held back, nothing leaves before what is more urgent (I33).

    watermark behind step 6     12:00:05
    due by then, and not fired  a (priority 1), b (priority -9): both lie in their tenant's backlog
    step 7                      a leaves first; b may follow in the same step

What is due up to the watermark has left the timeline.  So the topics alone tell what lies in a
backlog, of schedules that fire once and wait for nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from tests.simulation.bulk import Definition, JobsSeen
from tests.simulation.filed import ever_away, was_late
from tests.simulation.taking import Seen
from tests.simulation.trail import Step
from tests.simulation.world import World

# Schedules that say nothing else have no lock, no rhythm and no instant that slides.
SAYS: Final = frozenset({"at", "group", "priority", "expected_version"})
# Before all instants.
NEVER: Final = -(1 << 62)


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
    """What left before something more urgent that was held as well: one of these for each.

    Steps are gone through once, so a backlog may be long.
    """
    leaves: defaultdict[int, list[Definition]] = defaultdict(list)
    joins: defaultdict[int, list[Definition]] = defaultdict(list)
    passed = list(accumulate((_watermark(each) for each in steps), max, initial=NEVER))
    for each in several:
        leaves[each.fired_in[0][0].index].append(each)
        # Held from the first step on that begins with its instant behind the watermark.
        held_at = max(each.accepted_in.index + 1, bisect_left(passed, each.due_ms))
        joins[held_at].append(each)
    last: dict[int, Definition] = {}
    for step in steps:
        for each in joins[step.index]:
            before = last.get(_urgency(each))
            if before is None or _left(before).index < _left(each).index:
                last[_urgency(each)] = each
        held = [each for each in leaves[step.index] if _held(each, step, _begun(steps, step))]
        for low in held:
            urgent = [each for urgency, each in last.items() if urgency > _urgency(low)]
            late = [each for each in urgent if _left(each).index > step.index]
            for high in late[:1]:
                yield f"{low.sent.name} came out before {high.sent.name}, which was held as well"
        yield from _within(step, held)


def _within(step: Step, held: list[Definition]) -> Iterator[str]:
    """The same of one step: the direct writer's records come partition by partition."""
    most: dict[int, Definition] = {}
    for low in sorted(held, key=lambda each: each.fired_in[0][1].order, reverse=True):
        place = step.places[low.fired_in[0][1].order]
        high = most.get(place)
        if high is not None and _urgency(high) > _urgency(low):
            yield f"{low.sent.name} came out before {high.sent.name}, which was held as well"
        if high is None or _urgency(high) < _urgency(low):
            most[place] = low


def _watermark(step: Step) -> int:
    return NEVER if step.manifest is None else step.manifest.watermark_ms


def _begun(steps: list[Step], step: Step) -> int:
    """The watermark that a step begins with."""
    return _watermark(steps[step.index - 1]) if step.index else NEVER


def _left(definition: Definition) -> Step:
    return definition.fired_in[0][0]


def _held(definition: Definition, step: Step, watermark_ms: int) -> bool:
    """Whether it lay in the backlog when the step began."""
    return definition.accepted_in.index < step.index and definition.due_ms <= watermark_ms


def _urgency(definition: Definition) -> int:
    return definition.sent.fields.get("priority") or 0
