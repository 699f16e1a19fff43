"""This worker in its group: its metadata, the leader's answer, and the other members.

The group's client (which carries these), the owners (which act on the answer) and the code that
shows them share one `Group`. Every method may be called from any thread.

If the metadata change between two rebalances, the group asks for another rebalance. The client
drops that request while a rebalance is under way, which may have sent the old metadata:

    metadata sent ── leaves(3), rejoin() dropped ── seated() answers the old metadata ── rejoin()

So a wish only ends with an answer to metadata that had it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from belfry.balance.assignment import Assignment, read_answer
from belfry.balance.assignment_map import AssignmentMap, MemberMetadata
from belfry.group.take_over_log import TakeOverLog
from belfry.host import machine

Holdings = Callable[[], tuple[dict[int, int], tuple[int, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Callbacks of a member; each may be called from any thread.

    `rejoin` asks the group to share its partitions anew; `look_again` asks Kafka whether there are
    more partitions; `holdings` gives the epochs of owned partitions, and the warm standbys;
    `keeps_heartbeat` says whether this worker sends a heartbeat.
    """

    rejoin: Callable[[], None] = lambda: None
    look_again: Callable[[], None] = lambda: None
    holdings: Holdings = lambda: ({}, ())
    keeps_heartbeat: Callable[[], bool] | None = None


class Group:
    """A member's member metadata, its assignment, and the assignment map as far as it knows it."""

    def __init__(self, member_metadata: MemberMetadata, static: bool = False) -> None:
        self._member_metadata = member_metadata
        self._lock = machine.Lock()
        self._assignment = Assignment()
        self._assignment_map = AssignmentMap()
        self._cannot: set[int] = set()
        # The metadata that were sent last, and those that the leader has answered last.
        self._said = self._answered = member_metadata
        # Whether the group has not got a change yet, for which it is to share anew.
        self._wishes = False
        self.static = static
        self.take_overs = TakeOverLog(member_metadata.worker)
        self._surroundings = Surroundings()

    def connect(self, surroundings: Surroundings) -> None:
        """Set the callbacks, before the group is joined: its client and owners are made later."""
        self._surroundings = surroundings

    def rejoin(self) -> None:
        """Ask the group to share its partitions anew."""
        self._surroundings.rejoin()

    def look_again(self) -> None:
        """Ask Kafka whether there are more partitions to share; a rebalance follows if so."""
        self._surroundings.look_again()

    @property
    def worker(self) -> str:
        """This worker's name."""
        return self._member_metadata.worker

    @property
    def leaving(self) -> bool:
        """Whether this worker has asked for no partitions."""
        return self._member_metadata.leaving

    @property
    def assignment(self) -> Assignment:
        """This worker's part, as the leader told it last."""
        with self._lock:
            return self._assignment

    @property
    def assignment_map(self) -> AssignmentMap:
        """All workers, as the group named them last; the map may be older than the assignment."""
        with self._lock:
            return self._assignment_map

    @property
    def alone(self) -> bool:
        """Whether no other worker could take this worker's partitions over."""
        return not self.assignment.others

    def member_metadata(self) -> MemberMetadata:
        """The metadata for the next rebalance."""
        owns, warm = self._surroundings.holdings()
        keeps = self._surroundings.keeps_heartbeat
        heartbeats = self._member_metadata.heartbeats if keeps is None else keeps()
        with self._lock:
            self._said = replace(
                self._member_metadata,
                owns=owns,
                warm=warm,
                cannot=tuple(sorted(self._cannot)),
                heartbeats=heartbeats,
            )
            return self._said

    def leaves(self, partition: int, unable: bool) -> bool:
        """Whether to leave a partition to another worker; `unable`: this one cannot fire all of it.

        The group is told and asked to share anew. If it still gives the partition to this worker,
        no other worker can fire all of it, and the partition is not left.
        """
        with self._lock:
            if not unable:
                self._cannot.discard(partition)
                return False
            is_new = partition not in self._cannot
            self._cannot.add(partition)
            answered = partition in self._answered.cannot
            alone = not self._assignment.others
            self._wishes |= is_new
        if is_new and not alone:
            self.rejoin()
        return not alone and (is_new or not answered)

    def seated(self, told: bytes) -> None:
        """Take in the leader's answer; a change that it did not know needs another rebalance."""
        assignment, assignment_map = read_answer(told, self.worker)
        with self._lock:
            self._answered = self._said
            self._assignment = assignment
            self._wishes = asks = self._wishes and not self._leader_knows()
        if assignment_map is not None:
            self.met(assignment_map)
        if asks:
            self.rejoin()

    def _leader_knows(self) -> bool:
        """Whether the leader knew which partitions this worker cannot fire, and if it leaves."""
        known, now = self._answered, self._member_metadata
        same = (known.leaving, known.unfit) == (now.leaving, now.unfit)
        return same and self._cannot <= {*known.cannot}

    def met(self, assignment_map: AssignmentMap) -> None:
        """Take in the group's new map."""
        with self._lock:
            self._assignment_map = assignment_map
        self.take_overs.met(assignment_map)

    def leave(self, leaving: bool = True, *, unfit: bool = False) -> None:
        """Ask the group for no partitions, or for some again.

        A worker that is `unfit`, and does not stop, still gets partitions if no fit worker stays.
        """
        with self._lock:
            self._member_metadata = replace(self._member_metadata, leaving=leaving, unfit=unfit)
            self._wishes = True
        self.rejoin()
