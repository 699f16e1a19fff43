"""Ways in which a partition may have come to its log: each is played until it differs.

An owner with local state finds rows that were held back (behind an ack lock, in a backlog, late)
where they lay.  One without folds the changelog, which does not say where things lay, and puts all
of it into the backlog.  Which of the two an owner was, its bytes show, perhaps some steps later.
So where it makes a difference, the partition is played both ways:

    steps       ─── 1 ─── 2 ───┬─── 3 ─── 4 ─── 5 ───►    with local state
    take-over                  └─── 3 ─── 4 ✗             without: differs at 4, and is dropped

A step may also have several ways to the same bytes (`twins.py`), and each goes on likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.reports import SourcePartition
from belfry.playback.attempts import CHUNK
from belfry.playback.beginning import Beginning
from belfry.playback.comparing import StepDifference
from belfry.playback.doubts import (
    GIVEN_UP,
    HELD_BACK,
    OF_TURNS,
    TAKEN_OVER,
    doubts_about,
    is_named,
    is_sure,
)
from belfry.playback.instants import tells_when_it_fired
from belfry.playback.logged import LoggedStep
from belfry.playback.played import Judged, PlayedCounts, PlayedPartition
from belfry.playback.player import PartitionPlayer
from belfry.playback.treatment import Treatment
from belfry.playback.tried import Tried, certain
from belfry.store.layout import keys
from belfry.store.ordered_map import OrderedMap
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# Branches that are played side by side; owners that follow one another quickly would make more.
MOST_BRANCHES: Final = 8


class BranchingPlayer:
    """Plays a partition like a `PartitionPlayer`, in each way in which it may have been taken over.

    `new_rows` makes an empty map for a branch, `new_treatment` the tenants of one.
    """

    def __init__(
        self,
        place: SourcePartition,
        new_rows: Callable[[], OrderedMap],
        reader: RequestReader,
        new_treatment: Callable[[], Treatment],
        chunk: int = CHUNK,
    ) -> None:
        self._new_treatment = new_treatment
        self._chunk = chunk
        self._given_up = False
        self._unsure = ""
        # In how many ways the step before has come out.
        self._fits = 1
        partition = PlayedPartition(place, new_rows, reader, new_treatment())
        self._branches = [PartitionPlayer(partition, chunk)]

    def beginning(self, from_ms: int | None) -> Beginning:
        """Cuts the changelog into steps, from the birth or a later take-over (epoch ms) on."""
        return Beginning(self._branches[0].partition, from_ms)

    @property
    def statement(self) -> bytes | None:
        """The statement of the owner before the next step; None before the first."""
        return self._branches[0].partition.store.named(keys.STATEMENT_KEY)

    @property
    def counts(self) -> PlayedCounts:
        """The result of the playback, by the branch that is likeliest."""
        return self._branches[0].partition.counts

    @property
    def treatment(self) -> Treatment:
        """How tenants are treated by now."""
        return self._branches[0].partition.treatment

    @property
    def owed(self) -> StepDifference | None:
        """At the end of the log, a row that a step wrote and that is nowhere in it; or None."""
        return self._branches[0].partition.owed.first

    def play(
        self, step: LoggedStep, requests: Sequence[SourceRecord], *, appended: bool = True
    ) -> tuple[Effects, StepDifference | None]:
        """Play the next step in each branch; effects of one that fits, or how the first differs.

        Raises `Unplayable` for records that no playback knows.
        """
        first = self._branches[0].partition
        # The rows folded before the first step lie as an owner without local state has them.
        follows = first.engine is not None and first.takes_over(step)
        if follows and any(each.partition.holds_back for each in self._branches):
            # All have the same changelog, so one that folds it is enough.
            cold = first.cold_copy(self._new_treatment())
            self._branches.append(PartitionPlayer(cold, self._chunk))
            self._unsure = TAKEN_OVER
        elif follows:
            self._unsure = ""
        results = [each.play(step, requests, appended=appended) for each in self._branches]
        pairs = zip(self._branches, results, strict=True)
        fits = [(each, result) for each, result in pairs if result[1] is None]
        if not fits:
            return results[0][0], self._judged(step, requests, results)
        self._branches, self._fits = [each for each, _ in fits], len(fits)
        for each, _ in fits:
            self._branches += each.twins
        if len(self._branches) > MOST_BRANCHES:
            different = _different(self._branches)
            self._branches = different[:MOST_BRANCHES]
            self._given_up = self._given_up or len(different) > MOST_BRANCHES
        return fits[0][1]

    def in_doubt(self, step: LoggedStep, found: StepDifference) -> StepDifference:
        """How an event of a step that fits differs, with the doubt that there is about the step."""
        player = self._branches[0]
        doubts = [*doubts_about(step, player.partition, Tried(), Effects(), ())]
        if self._fits == 1 and tells_when_it_fired(step):
            # Which events it fired, the manifest says: turns are in no doubt.
            return found._replace(doubt="; ".join(each for each in doubts if each != HELD_BACK))
        return found._replace(doubt="; ".join([*self._sticking, *doubts]))

    @property
    def _sticking(self) -> list[str]:
        """Doubts about all that follows: ways that were given up, a take-over amid a backlog."""
        return [each for each in (GIVEN_UP if self._given_up else "", self._unsure) if each]

    def _judged(
        self,
        step: LoggedStep,
        requests: Sequence[SourceRecord],
        results: Sequence[Judged],
    ) -> StepDifference:
        """How a step differs, with the doubt that there is about it in any of its branches."""
        effects, found = results[0]
        assert found is not None
        for each in self._branches:
            if not is_sure(step, each.tried, each.partition.standing, requests):
                break
        else:
            return found
        doubts = dict.fromkeys(self._sticking)
        for each in self._branches:
            doubts |= dict.fromkeys(
                doubts_about(step, each.partition, each.tried, effects, requests)
            )
        if doubts and doubts.keys() <= OF_TURNS:
            if all(map(_fires_otherwise, results)):
                return found
            sides = [(each.tried, each.partition.place) for each in self._branches]
            sure = certain(step, sides, lambda key: is_named(key, requests))
            if sure is not None:
                return sure
        return found._replace(doubt="; ".join(doubts))


def _fires_otherwise(result: Judged) -> bool:
    """Whether all rows fit, and events of one tenant are others, or in another order.

    Turns are in no doubt then: those of one tenant leave in due order.
    """
    effects, found = result
    only_digest = found is not None and (found.what, found.name) == ("manifest", "digest")
    return only_digest and len([each for each in effects.lateness.values() if each]) == 1


def _different(branches: list[PartitionPlayer]) -> list[PartitionPlayer]:
    """The branches without those that have come to the same as one before them."""
    found: list[PartitionPlayer] = []
    for each in branches:
        if not any(each.partition.is_like(other.partition) for other in found):
            found.append(each)
    return found
