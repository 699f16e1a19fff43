"""This worker in its group: what it says, what the leader answered, and who else is there.

Shared by the group's client (which carries them), the owners (which act on the answer) and the code
that shows them.  Every method may be called from any thread.

What changes between two rebalances is told to the group by asking for another one.  The client
drops such a wish while a rebalance is under way, and that one may have sent what held before:

    metadata sent ── leaves(3), rejoin() dropped ── seated() answers the old metadata ── rejoin()

So a wish ends only with an answer to metadata that said it.
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
    """What a member asks before it says anything: each may be called from any thread.

    `rejoin` asks the group to share its partitions anew; `look_again` asks Kafka whether there are
    more of them; `holdings` gives the epochs of what is
    owned, and what is stood by for; `keeps_heartbeat` says whether this worker keeps one.
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
        # What was said last, and of that, what the leader has answered.
        self._said = self._answered = member_metadata
        # Whether the group has yet to hear something, and shares anew for it.
        self._wishes = False
        self.static = static
        self.take_overs = TakeOverLog(member_metadata.worker)
        self._surroundings = Surroundings()

    def connect(self, surroundings: Surroundings) -> None:
        """Say whom to ask, before the group is joined: its client and the owners come later."""
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
        """All workers, as the group told last; it may be older than the assignment."""
        with self._lock:
            return self._assignment_map

    @property
    def alone(self) -> bool:
        """Whether nobody else could take this worker's partitions over."""
        return not self.assignment.others

    def member_metadata(self) -> MemberMetadata:
        """What to say at the next rebalance."""
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
        """Whether a partition that this worker is unable to fire all of is left to another one.

        The group is told and asked to share anew.  If it gives the partition to this worker all
        the same, nobody else can, and it is not left.
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
        """The leader has answered; what it could not know yet is asked for anew."""
        assignment, assignment_map = read_answer(told, self.worker)
        with self._lock:
            self._answered = self._said
            self._assignment = assignment
            self._wishes = asks = self._wishes and not self._heard()
        if assignment_map is not None:
            self.met(assignment_map)
        if asks:
            self.rejoin()

    def _heard(self) -> bool:
        """Whether the leader knew what this worker cannot fire, and whether it wants any."""
        known, now = self._answered, self._member_metadata
        same = (known.leaving, known.unfit) == (now.leaving, now.unfit)
        return same and self._cannot <= {*known.cannot}

    def met(self, assignment_map: AssignmentMap) -> None:
        """The group has told who is in it."""
        with self._lock:
            self._assignment_map = assignment_map
        self.take_overs.met(assignment_map)

    def leave(self, leaving: bool = True, *, unfit: bool = False) -> None:
        """Ask the group for no partitions, or for some again.

        Who is `unfit`, and does not stop, is given some all the same where nobody fit stays.
        """
        with self._lock:
            self._member_metadata = replace(self._member_metadata, leaving=leaving, unfit=unfit)
            self._wishes = True
        self.rejoin()
