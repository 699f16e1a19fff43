"""How large a step is, and when the next one begins: four rules for the loop of a partition.

**`Pace`: as many events as are committed in good time.**  A transaction pays for every output
partition that it touches.  A step of 10 000 events takes half a second for a few tenants, and may
take longer than the broker waits where each event has a topic of its own.  Such a step would be
rolled back and begun again for ever.  So a slow or failed commit halves the next step, and quick
commits let it grow, as TCP does.  Jacobson, "Congestion Avoidance and Control", 1988.

    most 10 000, many topics    500 ─ quick ► 1 000 ─ quick ► 2 000 ─ slow ► 1 000 ─ quick ► 2 000

**`Linger`: a pause after a small step, while many calls come over HTTP.**  Where cores are idle it
is quickest to let one small step follow another at once.  But each transaction costs the worker and
the broker time that others wait for.  So the loop pauses, and all requests that come meanwhile go
into the next transaction together:

    without    a │ b │ c │ d │ e │         five transactions, each for a request
    with       a │ · · · · · · · │ bcde │  two; requests of the pause of 20 ms share the second

Few calls, such as those of open consoles, of probes, or of a single writer, gain little by pauses,
and an event that is due in a pause is late by it.

**`commit_interval_ms`: a least time from the begin of one step to that of the next.**  A small
transaction costs worker and broker about the same whatever is in it, and a steady trickle makes a
partition commit one after the other.  Where cores are worth more than milliseconds, an operator
sets the least time between them:

    0 ms     │a│b│c│d│e│f│g│h│      each commit takes 5 ms: 200 a second
    25 ms    │a│· · · ·│bcdef│·     40 a second; a due event waits for 25 ms and a commit at most

An owner that is behind neither pauses nor keeps that time.  It is behind where its step left an
event that was due at the step before already, or where it took in as many requests as it may.  An
owner with a backlog that may fire does not wait either.

**`JobsPace`: as much of a bulk job as takes a few milliseconds.**  Due events wait while a job
works, so a step changes about as many schedules as took 5 to 20 ms before.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.job_counts import Budget

# On a cluster with so many output topics a term begins with steps of `FIRST` events.
MANY_TOPICS: Final = 1_000
FIRST: Final = 500
# No step is made smaller than this.
LEAST: Final = 50
# A full step that is quicker doubles the next one; a step that is slower than `SLOW_MS` halves it.
QUICK_MS: Final = 1_000.0
SLOW_MS: Final = 2_500.0
# A step of fewer events and requests than this is small.
FEW: Final = 200
# The pause behind a small step.
LINGER_MS: Final = 20.0
# Bounds of the time that jobs take in a step, and of the schedules that they change in one.
JOBS_QUICK_MS: Final = 5.0
JOBS_SLOW_MS: Final = 20.0
JOBS_FIRST: Final = 50
JOBS_LEAST: Final = 5
JOBS_MOST: Final = 200
# Names that a job looks at for each schedule that it may change: it leaves most of them alone.
NAMES_EACH: Final = 10


class Pace:
    """The size of one partition's next step, `most` events at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.at_most = most

    def begin(self, topics: int) -> None:
        """A term of ownership begins, on a cluster with so many output topics."""
        if topics > MANY_TOPICS:
            self.at_most = min(self.at_most, FIRST)

    def committed(self, fired: int, took_ms: float) -> None:
        """A step fired so many events and took so long to commit; small steps do not count."""
        if took_ms > SLOW_MS and 2 * fired >= self.at_most:
            self.failed()
        elif took_ms < QUICK_MS and fired >= self.at_most:
            self.at_most = min(2 * self.at_most, self._most)

    def failed(self) -> None:
        """A step was not committed."""
        self.at_most = max(self.at_most // 2, min(LEAST, self._most))


class Linger:
    """The pauses of one partition, which takes in at most `most` requests at once.

    Its steps begin `apart_ms` after one another at the earliest.
    """

    def __init__(self, most: int, apart_ms: int = 0) -> None:
        self._most = most
        self._few = min(FEW, most)
        self._apart_ms = apart_ms
        self._until_ms = 0.0
        self._now_ms = self._before_ms = 0

    def fires(self, now_ms: int) -> None:
        """A step is to fire the events that are due by now, or waits for room to do so."""
        self._before_ms, self._now_ms = self._now_ms, now_ms

    def after(
        self, events: int, left_ms: int | None, began_ms: float, now_ms: float, *, often: bool
    ) -> None:
        """A step of so many events and requests is done; `left_ms` is when its rest is due.

        It began at `began_ms` and is done at `now_ms`, both monotonic.  `often` says whether many
        calls come over HTTP.
        """
        behind = left_ms is not None and left_ms <= self._before_ms
        if behind or events >= self._most:
            return
        self._until_ms = began_ms + self._apart_ms
        if often and events < self._few:
            self._until_ms = max(self._until_ms, now_ms + LINGER_MS)

    def left_s(self, monotonic_ms: float) -> float:
        """The rest of the pause, in seconds."""
        return max(0.0, self._until_ms - monotonic_ms) / 1000


class JobsPace:
    """The budget of bulk jobs in one partition's next step."""

    def __init__(self) -> None:
        self._changes = JOBS_FIRST

    @property
    def budget(self) -> Budget:
        """How many names the next step may look at, and how many schedules it may change."""
        return Budget(NAMES_EACH * self._changes, self._changes)

    def took(self, took_ms: float, *, used_up: bool) -> None:
        """A step's jobs took so long, and may have used its budget up."""
        if took_ms > JOBS_SLOW_MS:
            self._changes = max(self._changes // 2, JOBS_LEAST)
        elif took_ms < JOBS_QUICK_MS and used_up:
            self._changes = min(2 * self._changes, JOBS_MOST)
