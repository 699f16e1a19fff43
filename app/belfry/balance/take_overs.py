"""The former owner of a partition that a worker took over, and why it changed hands.

A worker knows its own take-overs; the group's map tells the rest, before and after the rebalance:

    map before      w1 owns 0, 1    w2 owns 2
    map after       w2 owns 0, 2    w3 owns 1                w1 is not among them: GONE
                    w1 leaves, w2 owns 0, …                  LEAVING
                    w1 owns 1, and said that it had 0        MOVED: shares were levelled

A worker that has just joined does not know the map before.  But each member states in joining which
partitions it owned (`AssignedMember.held`), so the map after names the former owner as well, if
that one lives.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from belfry.balance.assignment_map import AssignmentMap


class TakeOverCause(StrEnum):
    """Why a partition changed hands."""

    # A standby fenced an owner that was silent for too long, ahead of the group.
    SILENT = "owner_silent"
    GONE = "owner_gone"
    LEAVING = "owner_leaving"
    MOVED = "moved"
    # The same worker took over again, after a failure or a commit of unknown result.
    AGAIN = "started_over"
    FIRST = "no_owner_known"


class TakenOver(NamedTuple):
    """A take-over, as the worker that did it knows it.

    It ended at `at_ms` (epoch ms) and took `took_ms`, in which `records` of the changelog were
    read.  `warm`: a standby had read the others; `ahead`: of the group; `again`: from itself.
    """

    partition: int
    at_ms: int
    took_ms: int
    records: int
    warm: bool
    ahead: bool = False
    again: bool = False


class TakeOverEntry(NamedTuple):
    """A take-over with the former owner, None where that is not known, and the cause."""

    taken: TakenOver
    former: str | None
    cause: TakeOverCause


def told_by(taken: TakenOver, worker: str, after: AssignmentMap) -> bool:
    """Whether a map is from after the rebalance, so that it tells all about a take-over."""
    owner = after.owner(taken.partition)
    return taken.ahead or taken.again or (owner is not None and owner.worker == worker)


def entry_of(
    taken: TakenOver, worker: str, after: AssignmentMap, before: AssignmentMap
) -> TakeOverEntry:
    """A take-over by `worker`, with the facts of the maps after and before the rebalance."""
    if taken.again:
        return TakeOverEntry(taken, worker, TakeOverCause.AGAIN)
    former = _former(taken.partition, worker, after, before)
    if taken.ahead:
        return TakeOverEntry(taken, former, TakeOverCause.SILENT)
    if former is None:
        return TakeOverEntry(taken, None, TakeOverCause.FIRST)
    found = next((each for each in after.entries if each.worker == former), None)
    if found is None:
        return TakeOverEntry(taken, former, TakeOverCause.GONE)
    cause = TakeOverCause.LEAVING if found.leaving else TakeOverCause.MOVED
    return TakeOverEntry(taken, former, cause)


def _former(partition: int, worker: str, after: AssignmentMap, before: AssignmentMap) -> str | None:
    """The member that said in joining that it owned the partition; else its owner by a map."""
    others = [each for each in after.entries if each.worker != worker]
    holder = next((each for each in others if partition in each.held), None)
    owners = (after.owner(partition), before.owner(partition))
    found = [each.worker for each in (holder, *owners) if each is not None]
    return next((name for name in found if name != worker), None)
