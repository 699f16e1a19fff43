"""Backfills: each occurrence of the range that is over, once, and no other (I30).

instants    ●  ●  ●  ●  ●  ●  ●  ●         of the rule, from its start on
range            [ ─────────── )
over             ●  ●  ●  ●                before the job arrived, and before what waited when
                                           the schedule was begun: that fires by itself
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.acks import nominal_ms
from tests.simulation.bulk import Definition, JobSeen, JobsSeen
from tests.simulation.taking import Seen
from tests.simulation.trail import headers_of

if TYPE_CHECKING:
    from tests.simulation.trail import Step


def check_past(seen: Seen, jobs: JobsSeen) -> list[str]:
    """All that is wrong with what backfills have fired."""
    problems: list[str] = []
    known: dict[tuple[str, str], JobSeen] = {
        (job.sent.tenant, job.sent.schedule_id): job
        for job in jobs.jobs()
        if job.spec["action"] == "BACKFILL"
    }
    for name, definition in seen.definitions.items():
        for _, entry in definition.past:
            named = headers_of(entry)["belfry-backfill"].decode()
            if (definition.sent.tenant, named) not in known:
                problems.append(f"I30 {name} fired for {named}, which is no backfill")
    for job in known.values():
        for name, (event, step) in job.told.items():
            definition = seen.definitions[name]
            found = _wrong(job, definition, event, step)
            problems += [f"I30 {job.sent.name}: {name} {what}" for what in found]
    return problems


def _wrong(
    job: JobSeen, definition: Definition, event: dict[str, Any], told_in: Step
) -> Iterator[str]:
    """What is wrong with one schedule of a job; `event` is what was told of it."""
    mine = job.sent.schedule_id.encode()
    fired = [
        (nominal_ms(entry), step)
        for step, entry in definition.past
        if headers_of(entry)["belfry-backfill"] == mine
    ]
    if not definition.sent.recurs:
        if fired or event["outcome"] != "REJECTED":
            yield f"fires once, and was told {event['outcome']}; {len(fired)} fires"
        return
    begun_in = fired[0][1] if fired else told_in
    wanted = _over(job, definition, begun_in)
    instants = [at_ms for at_ms, _ in fired]
    if event["outcome"] == "REJECTED":
        # It was over amid the job: what was fired is the begin of the range.
        last = [step.index for step, _ in definition.fired_in]
        if len(last) != definition.sent.fields["max_fires"] or max(last) > told_in.index:
            yield "was left amid its range, and waited"
        wanted = wanted[: len(instants)]
    elif (event["outcome"] == "TRIGGERED") is not bool(wanted):
        yield f"was told {event['outcome']}, and {len(wanted)} occurrences are over"
    if instants != wanted:
        yield f"fired {instants}, and {wanted} are over"


def _over(job: JobSeen, definition: Definition, begun_in: Step) -> list[int]:
    """The occurrences of the range that are over when a schedule is begun."""
    own = sorted(
        nominal_ms(entry) for step, entry in definition.fired_in if step.index > begun_in.index
    )
    until_ms = min([job.spec["range_until"], job.sent.appended_ms, *own[:1]])
    return definition.sent.between(job.spec["range_from"], until_ms)
