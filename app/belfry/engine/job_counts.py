"""The budget of one step for bulk jobs, and the counts of its walk.

A job looks at names and changes schedules, and both cost time: a filter that matches one schedule
in a million is bounded by the names, one that matches all by the changes.

    Budget(names=1000, changes=200)     names a1 … a1000, of which 30 match: 30 changed, stops at
                                        the names; of which all match: stops behind a200
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from belfry.engine.step import Step
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.jobs import JobRow


class Budget(NamedTuple):
    """How many names a step may look at, and how many schedules it may change.

    The partition's loop chooses it by how long its steps take, so jobs give way to due events.
    """

    names: int
    changes: int

    @property
    def used_up(self) -> bool:
        """Whether nothing is left of it."""
        return self.names <= 0 or self.changes <= 0

    @property
    def half(self) -> Budget:
        """Half of it, rounded up."""
        return Budget(-(-self.names // 2), -(-self.changes // 2))

    def less(self, names: int, changes: int) -> Budget:
        """The rest of it."""
        return Budget(self.names - names, self.changes - changes)


class WorkAsLogged(NamedTuple):
    """The work of jobs and walks in a step, as its log tells it.

    Each job does what it is `allotted`, by its key; None: as much as its rate allows.  `let_go` are
    names of schedules that waited for a group, which has ended in the step.
    """

    allotted: Mapping[bytes, Budget] | None
    let_go: AbstractSet[bytes]


class Walked(NamedTuple):
    """The row of a job after a step, whether it has ended, and the instants counted for nothing.

    `counted` are days, and instants that did not fire in the step, that were looked at one by one:
    they cost about as much as fires, so they take from the budget too.
    """

    row: JobRow
    ended: bool
    counted: int = 0


class Counts:
    """The counts of one step on a walk; `of` adds them to those of the job's row so far.

    A job's row is written once in a step, so counting is done in attributes meanwhile.
    """

    def __init__(self, row: JobRow) -> None:
        self.examined = self.done = self.unchanged = self.refused = 0
        self._refusals = dict(row.refusals)

    @property
    def matched(self) -> int:
        """How many schedules the filter has matched."""
        return self.done + self.unchanged + self.refused

    def add(self, found: Outcome | str | None, action: str, step: Step) -> None:
        """Count one name, by the outcome, or the code of the refusal, of its schedule."""
        self.examined += 1
        if found is None:
            return
        outcome = found if isinstance(found, Outcome) else Outcome.REJECTED
        step.effects.bulk[action, outcome] += 1
        if outcome is Outcome.REJECTED:
            self.refused += 1
            self._refusals[found] = self._refusals.get(found, 0) + 1
        elif outcome is Outcome.UNCHANGED:
            self.unchanged += 1
        else:
            self.done += 1

    def of(self, row: JobRow, cursor: bytes) -> JobRow:
        """The row of the job with the counts of the step."""
        return row._replace(
            cursor=cursor.decode(),
            examined=row.examined + self.examined,
            done=row.done + self.done,
            unchanged=row.unchanged + self.unchanged,
            refused=row.refused + self.refused,
            refusals=self._refusals,
        )
