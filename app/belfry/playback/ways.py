"""The ways in which a step may have gone: attempts, each with its policies and its tenants held.

    policies    of those written by the step's end, the newest first: a worker may lag behind
    held        as before, then tenants besides or fewer, of those that would have fired
    sweep       the likeliest attempts once more, with sweeps behind
    away        the likeliest once more, with large payloads refused, where tenants have such
                and the step took requests in

The fires of an attempt say whose events would have come, and rows of the log say whose came.  A
tenant that has events only in the attempts was held by the worker, which is in no log.  So the held
tenants are guessed after the first attempts have been made, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from belfry.playback.attempts import Attempt, attempts_at, likeliest, refusing, swept
from belfry.playback.instants import tenants_that_fired, worked_at
from belfry.playback.logged import LoggedStep
from belfry.playback.played import PlayedPartition
from belfry.playback.treatment import Treatment
from belfry.store.layout.jobs import JOB_END, JOB_PREFIX, decode_job
from belfry.wire.record import SourceRecord


class Way(NamedTuple):
    """An attempt, with so many policies in effect and these tenants held."""

    policies: int
    held: frozenset[str]
    attempt: Attempt

    def prepare(self, treatment: Treatment) -> None:
        """Let tenants be treated in this way."""
        treatment.reach(self.policies)
        treatment.hold(self.held)


def ways_of(
    step: LoggedStep,
    partition: PlayedPartition,
    chunk: int,
    fired: AbstractSet[str],
    requests: Sequence[SourceRecord],
) -> Iterator[Way]:
    """All that the step may have been, the likeliest first.

    The partition is as the step before has left it, `chunk` is the workers' `fire_chunk`.  `fired`
    are tenants that did something in the attempts so far: it grows while the ways are gone through.
    The step took these `requests` in.
    """
    engine, store, treatment = partition.engine, partition.store, partition.treatment
    assert engine is not None
    jobs = None
    # An ACK may end a group that nothing was walked for before.
    if engine.jobs.under_way or worked_at(step):
        jobs = {key: decode_job(row) for key, row in store.between(JOB_PREFIX, JOB_END)}
    tries = attempts_at(step, engine.manifest, jobs, chunk)
    held, reached = treatment.held, treatment.reached
    counts = range(max(treatment.due(step.written_ms), reached), reached - 1, -1)
    for count in counts:
        yield from (Way(count, held, each) for each in tries)
    # By now it is known whose events would fire.
    done = {held}
    for others in other_holds(held, fired, tenants_that_fired(step)):
        if others in done:
            continue
        done.add(others)
        for count in dict.fromkeys((counts[0], counts[-1])):
            yield from (Way(count, others, each) for each in likeliest(tries))
    for each in swept(step, tries):
        yield Way(counts[0], held, each)
    if treatment.keeps_elsewhere and requests:
        yield from (Way(counts[0], held, each) for each in refusing(tries, requests))


def let_go(fit: Way) -> list[Way]:
    """The same with some of the held ones let go: their late events may show later.

    It leaves their backlog for the queue of catching up, and fires from there in the next step.
    """
    fewer = (fit.held - {name} for name in sorted(fit.held))
    others = dict.fromkeys((frozenset[str](), *fewer)) if fit.held else {}
    return [fit._replace(held=held) for held in others]


def other_holds(
    held: frozenset[str], fired: AbstractSet[str], seen: frozenset[str]
) -> Iterator[frozenset[str]]:
    """Which tenants may have been held besides, or let go.

    `fired` would have had events in the attempts so far, and grows with them; `seen` had events in
    the log, so they were not held.
    """
    yield held - seen
    yield held.union(fired) - seen
    # With nobody held it shows whose events would have fired.
    yield frozenset()
    yield frozenset(fired) - seen
    for name in sorted(held):
        yield held - {name}
    for name in sorted(fired - held):
        yield held | {name}
