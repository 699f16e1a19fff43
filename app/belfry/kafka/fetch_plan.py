"""What each leader is to be asked for next, and for how long it may wait with its answer.

A request waits at the broker until there is something: for `WAIT_S`, or for `CALM_S` where the same
partitions are read all the time.  It does so for less where a partition is left out of it, since
what comes for that one would not end the wait: 1 to 20 ms where nobody has taken its last answer
yet, the longer the later; else until it is no longer put off.

Answers that wait for their readers have room in common.  Where there is none, only what trickles is
asked for: it takes little, and must not wait for what other partitions have in masses.  What flows
is asked for again once its readers have taken some.  An answer that nobody takes for half a second
counts no more.

A partition that is followed from now on does not wait for the end of such a wait.  A broker works
on one request of a connection at a time, so it is asked for on another one, *beside*, without a
wait, until there is nothing at once.  Then it goes into the request of the others:

    12:00:00.000  asked: partitions 1 and 2, which have nothing; the broker waits
    12:00:00.010  partition 3 is followed: asked for beside, and answered at once
    12:00:00.100  nothing has come for 1 and 2; asked: partitions 1, 2 and 3
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from belfry.kafka.fetch_position import LATE_S, LONGEST_PAUSE_S, PAUSE_S, FetchPosition, Where

# A broker answers at once when there is something; this is how often one is asked in calm times.
WAIT_S: Final = 0.1
# The same where partitions seldom come and go: an answer costs something for each of them, also
# where it brings nothing.  Kafka's own consumers wait for so long.  What comes ends the wait, but
# not for a partition that was followed in the midst of it, and had nothing then.
CALM_S: Final = 0.5
# The leader of partitions for which none is to be found.
NOBODY: Final = -1


class LeaderLane(NamedTuple):
    """A connection to a leader: one request is under way on it at a time."""

    leader: int
    beside: bool = False


@dataclass(slots=True)
class LeaderRequest:
    """Which partitions a leader is to be asked for, and from which offsets on.

    It may wait with its answer for `wait_s` seconds.
    """

    places: list[tuple[Where, int]] = field(default_factory=list)
    wait_s: float = WAIT_S

    def leaves_out(self, seconds: float) -> None:
        """A partition is left out of it, which is to be asked for in so many seconds."""
        self.wait_s = max(0.0, min(self.wait_s, seconds))


class FetchPlan:
    """The requests that are to be sent now; partitions are added one by one.

    `look_again_s` is after how many seconds there may be more to send, None where that comes of an
    answer alone.
    """

    def __init__(
        self,
        now_s: float,
        under_way: Container[LeaderLane],
        not_before: Mapping[int, float],
        wait_s: float = WAIT_S,
        *,
        full: bool = False,
    ) -> None:
        """`now_s` is of the loop's clock, and so is when a leader may be asked again at the
        earliest.  A request waits for `wait_s` at most.  `full` says that there is no room for more
        answers, except small ones.
        """
        self._full = full
        self._now_s = now_s
        self._under_way = under_way
        self._not_before = not_before
        self.requests: defaultdict[LeaderLane, LeaderRequest] = defaultdict(
            lambda: LeaderRequest(wait_s=wait_s)
        )
        self.look_again_s: float | None = None

    def add(self, where: Where, place: FetchPosition, leader: int | None) -> None:
        """Ask for a partition that somebody leads, or None, if it may be asked for now."""
        lane = LeaderLane(NOBODY if leader is None else leader)
        if lane in self._under_way:
            if not place.joins:
                return
            lane = LeaderLane(lane.leader, beside=True)
        if place.beside or lane in self._under_way:
            return
        wait_s = self._wait_s(place, leader)
        if wait_s <= 0:
            self._ask(lane, where, place)
            return
        if place.may_go_on:
            self._look_again(wait_s)
        if leader is not None:
            self.requests[lane].leaves_out(wait_s)

    def _wait_s(self, place: FetchPosition, leader: int | None) -> float:
        """For how long the partition is put off."""
        if not place.may_go_on:
            return place.look_again_s(self._now_s)
        if leader is None:
            return PAUSE_S
        if self._full and place.flows:
            return LATE_S
        return max(place.not_before, self._not_before.get(leader, 0.0)) - self._now_s

    def _ask(self, lane: LeaderLane, where: Where, place: FetchPosition) -> None:
        request = self.requests[lane]
        request.places.append((where, place.next))
        place.beside = lane.beside
        if lane.beside:
            request.wait_s = 0.0
        else:
            place.joins = False

    def _look_again(self, wait_s: float) -> None:
        self.look_again_s = min(
            wait_s, LONGEST_PAUSE_S if self.look_again_s is None else self.look_again_s
        )
