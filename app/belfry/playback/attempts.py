"""Attempts at a step: instants, sizes and parts that a changelog does not tell.

A worker's step depends on values that are in no log: how many events it meant to fire at most,
whether it fired at all, how much of a bulk job it had time for, whether it swept.  Each combination
is an *attempt*.  A step that is played by the right one gives the bytes that are there, so attempts
are made until one does; by far most steps agree with their first attempt.

    first       all that is due by the watermark, then the requests up to the manifest's position
    then        other instants that rows tell; as many events as the manifest counts; no firing
    last        with a sweep behind; sizes to which `partitions/pacing.py` may have come
                with large payloads refused, all of them or those on one side of some request
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from belfry.engine.after_acks import GRACE_MS
from belfry.engine.job_counts import Budget
from belfry.playback.instants import given_up_at, instants_of, worked_at
from belfry.playback.logged import LoggedStep
from belfry.store.layout.calendars import CALENDAR_PREFIX
from belfry.store.layout.jobs import JOB_PREFIX, RUNNING, JobRow, decode_job
from belfry.store.layout.manifests import Manifest
from belfry.wire.record import SourceRecord

# Most events of a step by default, and the number that a term with many topics begins with.
CHUNK: Final = 10_000
FIRST: Final = 500
LEAST: Final = 50
# Fires of a step that may have been those of a TRIGGER, which no size bounds.
EXTRAS: Final = range(1, 9)
# Budgets of jobs: names for each change, and changes that a step may have had room for.
NAMES_EACH: Final = 10
CHANGES: Final = (50, 100, 200, 25, 12, 6, 5, 10, 20, 24, 40, 48, 80, 96, 160, 192)
MUCH: Final = 1 << 30
# Attempts that are made again with other policies, with tenants held, and with a sweep.
FIRST_FEW: Final = 6
# A job looks at the clock behind the rest of the step, so its rate may have let a little more go.
LATER_MS: Final = (0, 2, 5, 10, 20, 50, 100)


# Requests at which the store of large payloads may have gone away, or come back.
MOST_TURNS: Final = 200
NEVER: Final = range(0)
ALWAYS: Final = range(1 << 62)

# The allowance of each job of a step, by its key, in the order of their turns.
Allotted = tuple[tuple[bytes, Budget], ...]


class Attempt(NamedTuple):
    """One way in which a step may have been; instants are epoch ms.

    It `fires` at most `at_most` events that are due by `now_ms`, and takes its requests in.  Its
    time is up once it has fired `in_time`; None: it had time for all of them.  Sweeps
    may follow, each at an instant, and jobs go on within their `budget` at `later_ms`.  Each job
    does what it is `allotted`, by its key; None: as much as its rate allows.  Large payloads are
    refused of requests at the offsets `away`: their store was away then.
    """

    now_ms: int
    at_most: int
    fires: bool = True
    sweeps: tuple[int, ...] = ()
    budget: Budget | None = None
    later_ms: int = 0
    allotted: Allotted | None = None
    away: range = NEVER
    in_time: int | None = None

    @property
    def without_jobs(self) -> Attempt:
        """The same without the work of jobs."""
        return self._replace(budget=None, later_ms=0, allotted=None)


def attempts_at(
    step: LoggedStep, before: Manifest, jobs: Mapping[bytes, JobRow] | None, chunk: int
) -> list[Attempt]:
    """All that a step may have been, the likeliest first.

    `before` is the manifest of the step before it, `jobs` are rows of jobs as they were then; None
    where neither jobs nor followers of calendars have anything to do.  `chunk` is how many events a
    worker fires at most (`fire_chunk`).
    """
    plain = _plain(step, before, chunk)
    if jobs is None:
        return plain
    budgets = _budgets(step, jobs)
    told = worked_at(step)
    worked = [
        each._replace(budget=budget, later_ms=later_ms, allotted=allotted)
        for each in plain[:FIRST_FEW]
        for number, later_ms in enumerate(told or [each.now_ms + later for later in LATER_MS])
        for budget, allotted in budgets[: None if number == 0 else 1]
    ]
    has_worked = told or any(key.startswith(JOB_PREFIX) for key in step.rows)
    return worked + plain if has_worked else plain + worked


@cache
def sizes_of(chunk: int) -> tuple[int, ...]:
    """The sizes that the pace of a partition makes of `chunk`: halved and doubled, in any order.

    >>> sizes_of(200)
    (200, 100, 50)
    """
    found: dict[int, None] = {}
    left = deque(sorted({chunk, min(chunk, FIRST)}))
    while left:
        size = left.popleft()
        if size not in found:
            found[size] = None
            left += (min(2 * size, chunk), max(size // 2, min(LEAST, chunk)))
    return tuple(found)


def likeliest(tries: Sequence[Attempt]) -> list[Attempt]:
    """The first few of these, and of those that work the first one for each of a few instants."""
    working = [each for each in tries if each.budget is not None]
    first = {each.without_jobs: each for each in reversed(working)}
    others = [each for each in working if first[each.without_jobs] is each]
    return list(dict.fromkeys([*tries[:FIRST_FEW], *others[:FIRST_FEW]]))


def swept(step: LoggedStep, tries: Sequence[Attempt]) -> Iterator[Attempt]:
    """The likeliest of these once more, with sweeps behind.

    A sweep goes round in parts, so it may take two to come to the rows that the step has looked at.
    A schedule that is given up was found by a sweep of a minute before, which changed nothing.
    """
    told, given_up = worked_at(step), given_up_at(step)
    for each in likeliest(tries):
        yield each._replace(sweeps=(each.now_ms,))
        for at_ms in told:
            yield each._replace(sweeps=(at_ms, at_ms))
        for at_ms in given_up:
            before_ms = at_ms - GRACE_MS
            yield each._replace(sweeps=(before_ms, before_ms, at_ms, at_ms))


def refusing(tries: Sequence[Attempt], requests: Sequence[SourceRecord]) -> Iterator[Attempt]:
    """The likeliest of these once more, while the store of large payloads was away.

    It may have been so for all of the requests that the step took in, for those from one of them
    on, or for those before one: a worker learns of it amid a step.
    """
    few = likeliest(tries)
    yield from (each._replace(away=ALWAYS) for each in few)
    for offset in [each[0] for each in requests[1 : MOST_TURNS + 1]]:
        for away in (range(offset, ALWAYS.stop), range(offset)):
            yield from (each._replace(away=away) for each in few[:1])


def _plain(step: LoggedStep, before: Manifest, chunk: int) -> list[Attempt]:
    """Attempts without jobs and sweeps."""
    manifest = step.manifest
    # An owner that still takes in requests that waited does not look at due rows.
    stood = manifest.watermark_ms == before.watermark_ms
    instants = instants_of(step)
    silent = Attempt(max(manifest.watermark_ms, step.written_ms), chunk, fires=False)
    silents = [silent, *(silent._replace(now_ms=now_ms) for now_ms in instants)]
    found = [*silents] if stood else []
    fired = max(1, manifest.fired)
    for now_ms in instants:
        found += [Attempt(now_ms, chunk), Attempt(now_ms, fired)]
    found += silents
    found += [
        Attempt(now_ms, fired - each) for now_ms in instants for each in EXTRAS if fired > each
    ]
    found += [Attempt(now_ms, size) for now_ms in instants for size in sizes_of(chunk)]
    # A step that was slow meant to fire more, so it had not the order of one that fires fewer.
    found += [Attempt(now_ms, chunk, in_time=fired) for now_ms in instants]
    return list(dict.fromkeys(found))


def _budgets(
    step: LoggedStep, jobs: Mapping[bytes, JobRow]
) -> list[tuple[Budget, Allotted | None]]:
    """Budgets, the likeliest first, each with the allotments of jobs within it.

    The row of a job says how much it did.  So its rate, which depends on when it was looked at in
    all steps before, need not be known.  A budget also bounds the walks behind calendars.  Looks
    that fired nothing are in no row, so the budgets of workers come once more without allotments.
    """
    allotted = tuple(_allotted(step, jobs))
    workers = [Budget(NAMES_EACH * each, each) for each in CHANGES]
    exact = (
        [Budget(MUCH, MUCH), *workers]
        if any(key.startswith(CALENDAR_PREFIX) for key in step.rows)
        else [Budget(MUCH, MUCH)]
    )
    return [*((each, allotted) for each in exact), *((each, None) for each in workers)]


def _allotted(step: LoggedStep, jobs: Mapping[bytes, JobRow]) -> Iterator[tuple[bytes, Budget]]:
    """The work of each job in a step, as a budget within which it does the same.

    Rows are written in the order in which jobs had their turns.
    """
    for key, row in step.rows.items():
        if not key.startswith(JOB_PREFIX) or row is None or key not in jobs:
            continue
        now, then = decode_job(row), jobs[key]
        names = now.examined - then.examined
        if now.state != RUNNING:
            yield key, Budget(MUCH, MUCH)
        elif now.amid_fired:
            # It ended amid the schedule behind those that it has examined.
            yield key, Budget(names + 1, now.fired - then.fired)
        else:
            yield key, Budget(names, MUCH)
