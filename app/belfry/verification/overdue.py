"""Schedules that were due, have not fired, and have no reason to wait that anybody could read.

The log tells its own time: a transaction carries the broker's timestamp, so a schedule that was due
well before the last one of any partition should have fired by then.

    due, or asked for later      12:00:00
    end of the log               12:01:30     a minute later or more, and its row still waits
    reasons to wait              paused, cancelled, over            the row says so
                                 its tenant is paused, limited      its policy says so
                                 its tenant's topic is missing      the list of topics says so
                                 a fire before it is not acknowledged   the awaited row says so
                                 its key group moves                the group's row says so

Which partition stands still does not matter: one without an owner has no transactions any more, and
others go on.  If no partition goes on, the log ends, and later instants are unknown.

A belfry that nobody ran has not had that time. So a partition tells the time only once it has had
owners for a minute without a pause (`Standing.owned_ms`):

    epoch 3    12:00:00       the last transaction of all, and a schedule is due at 12:30
               a night        nobody runs
    epoch 4    08:00:00       partition 1 is back, and fires; partition 0 is being taken over
               08:00:30       nothing is overdue: nobody had a minute for it
               08:01:00       what partition 0 has not fired by now is overdue

A schedule that was held back fires within seconds once its reason is gone. So a schedule is a
*suspect* first, and a finding if it still waits at the end of the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.key_groups import MovingGroups
from belfry.verification.memory import Memory, Remembered
from belfry.verification.standing import NEVER, Standing

# Of one partition in one pass; the oldest are taken, and the others in a later pass.
MOST_SUSPECTS: Final = 10_000
# The tenant of retries of webhooks, whose events go to the topic of deliveries.
RETRYING: Final = "belfry-deliveries"


class Suspect(NamedTuple):
    """A schedule that should have fired: partition, short name, and the facts on it."""

    partition: int
    name: int
    known: Remembered


def owed_until(standings: Iterable[Standing], overdue_ms: int) -> int:
    """What was due by this instant (epoch ms) should have fired by the end of the log.

    It lies `overdue_ms` before the last transaction of a partition that has had owners for as long,
    and is `NEVER` where no partition has.
    """
    told = (each for each in standings if each.last_ms - each.owned_ms >= overdue_ms)
    return max((each.last_ms - overdue_ms for each in told), default=NEVER)


class OverdueSchedules:
    """Looks for schedules that should have fired; each is told of once."""

    def __init__(self, memory: Memory, counts: CheckCounts) -> None:
        self._memory = memory
        self._counts = counts
        # Whose number of partitions is that of the changelog, where groups move.
        self.moving = MovingGroups(memory, 1)

    def suspects(
        self, partitions: Iterable[int], until_ms: int, coverage: Coverage
    ) -> list[Suspect]:
        """Schedules of these partitions that should have fired by this instant (epoch ms).

        `CheckCounts` gets how many of them have a reason to wait, at this look.
        """
        found: list[Suspect] = []
        self._counts.held = self._counts.locked = self._counts.moving = 0
        for partition in partitions:
            most = len(found) + MOST_SUSPECTS
            for name, known in self._memory.overdue(partition, until_ms):
                suspect = Suspect(partition, name, known)
                if _is_held(known, coverage):
                    self._counts.held += 1
                elif self._is_locked(suspect):
                    self._counts.locked += 1
                elif self.moving.waits(partition, known.tenant):
                    self._counts.moving += 1
                else:
                    found.append(suspect)
                if len(found) == most:
                    break
        return found

    def still(self, suspects: Iterable[Suspect], coverage: Coverage) -> list[Suspect]:
        """Those that still wait, with the same row and without a reason."""
        return [
            suspect
            for suspect in suspects
            if self._memory.schedule(suspect.partition, suspect.name) == suspect.known
            and not _is_held(suspect.known, coverage)
            and not self._is_locked(suspect)
            and not self.moving.waits(suspect.partition, suspect.known.tenant)
        ]

    def tell(self, topic: str, suspects: Sequence[Suspect]) -> Iterator[Breached]:
        """One finding for each tenant and partition, at the row of the oldest of its schedules."""
        by_place: dict[tuple[int, str], list[Suspect]] = {}
        for suspect in suspects:
            by_place.setdefault((suspect.partition, suspect.known.tenant), []).append(suspect)
        for (partition, tenant), those in by_place.items():
            self._memory.tell(partition, [each.name for each in those])
            oldest = min(those, key=_age).known
            number = f"{len(those)} schedules" if len(those) > 1 else "a schedule"
            yield Breached(
                Breach.OVERDUE,
                Spot(topic, partition, oldest.offset),
                f"{number} of {tenant}, due at {oldest.due_ms} or later, and not fired",
                "an event, or a reason to wait: a pause, a rate, a missing topic, an ack lock,"
                " a move",
            )

    def _is_locked(self, suspect: Suspect) -> bool:
        """Whether a fire before it is not acknowledged, of its own or of its group."""
        locks = {suspect.name, suspect.known.group or suspect.name}
        return any(self._memory.is_locked(suspect.partition, lock) for lock in locks)


def _age(suspect: Suspect) -> tuple[int, int]:
    return suspect.known.expected_ms, suspect.known.offset


def _is_held(known: Remembered, coverage: Coverage) -> bool:
    """Whether its tenant has a reason to wait: its policy, or a topic that is not there."""
    if known.tenant in coverage.held:
        return True
    return known.tenant != RETRYING and coverage.topic_of(known.tenant) not in coverage.floors
