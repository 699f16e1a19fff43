"""Pauses: what is paused fires when it is resumed, and not before (I32).

    step        3          4        5         6          7
    requests    PAUSE      ·        ·         RESUME     ·
    may fire    yes        no       no        no         yes, late

Firing comes before intake, and jobs come behind it, so a pause shows from the next step on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.bulk import JobsSeen
from tests.simulation.taking import CHANGED, Seen

PAUSED, RESUMED = "PAUSED", "RESUMED"
# Step, whether a job did it, its place there, and whether it is paused from then on.
Change = tuple[int, bool, int, bool]


def check_paused(seen: Seen, jobs: JobsSeen) -> list[str]:
    """All that is wrong with what was paused."""
    changes: dict[tuple[str, str], list[Change]] = {}
    for taken in seen.taken:
        if taken.outcome in (PAUSED, RESUMED):
            key = (taken.sent.tenant, taken.sent.schedule_id)
            change = (taken.step.index, False, taken.place, taken.outcome == PAUSED)
            changes.setdefault(key, []).append(change)
    for number, (key, step, outcome) in enumerate(jobs.pauses):
        changes.setdefault(key, []).append((step.index, True, number, outcome == PAUSED))
    return [
        f"I32 {taken.sent.name} {what}"
        for taken in seen.taken
        if taken.outcome in CHANGED and taken.sent.name in seen.definitions
        for what in _wrong(
            [step.index for step, _ in seen.definitions[taken.sent.name].fired_in],
            sorted(changes.get((taken.sent.tenant, taken.sent.schedule_id), ())),
        )
    ]


def _wrong(fired_in: list[int], changes: list[Change]) -> Iterator[str]:
    """What is wrong with one schedule that fired in these steps."""
    before = False
    for index, _, _, paused in changes:
        if paused is before:
            yield f"was {PAUSED if paused else RESUMED} in step {index}, which it was already"
        before = paused
    for fired in fired_in:
        earlier = [paused for index, _, _, paused in changes if index < fired]
        if earlier and earlier[-1]:
            yield f"fired in step {fired}, and was paused"
