"""Plans the next request to each leader, and how long the leader may wait with its answer.

A request waits at the broker until there are records: for `WAIT_S`, or for `CALM_S` if the same
partitions are read all the time. It waits for less if a partition is left out of the request, since
new records of that partition would not end the wait: 1 to 20 ms if its reader has not taken its
last answer yet, growing with time; else until the partition is no longer put off.

Answers that wait for their readers share a bounded room. If the room is full, only partitions that
trickle (with small answers) are asked for: they take little room, and must not wait for the masses
of other partitions. The others are asked for again once readers have taken some answers. An answer
that its reader has not taken for half a second does not count.

A newly followed partition does not wait until such a request is over. A broker works on one request
of a connection at a time, so the new partition is asked for on another connection, *beside*,
without a wait, until an answer has no records. Then it joins the request of the others:

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

# A broker answers at once when there are records; without records it answers after this time.
WAIT_S: Final = 0.1
# The same if partitions seldom come and go: an answer costs something for each partition, even
# without records. Kafka's own consumers wait for this time. New records end the wait, but not those
# of a partition that was followed meanwhile and had no records then.
CALM_S: Final = 0.5
# Stands for the leader of partitions whose leader is unknown.
NOBODY: Final = -1


class LeaderLane(NamedTuple):
    """A connection to a leader: one request is under way on it at a time."""

    leader: int
    beside: bool = False


@dataclass(slots=True)
class LeaderRequest:
    """A request to a leader: the partitions, and the offsets to begin at.

    The leader may wait with its answer for `wait_s` seconds.
    """

    places: list[tuple[Where, int]] = field(default_factory=list)
    wait_s: float = WAIT_S

    def leaves_out(self, seconds: float) -> None:
        """Shorten the wait for a partition that is left out for so many seconds."""
        self.wait_s = max(0.0, min(self.wait_s, seconds))


class FetchPlan:
    """The requests that are to be sent now; partitions are added one by one.

    `look_again_s` is the number of seconds after which there may be more to send, None if only an
    answer can lead to that.
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
        """`now_s` is of the loop's clock, and so is `not_before`, when a leader may be asked again
        at the earliest. A request waits for `wait_s` at most. `full` says that there is no room for
        more answers, except small ones.
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
        """Ask `leader` (None: unknown) for a partition, if it may be asked for now."""
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
        """How long the partition is put off, in seconds."""
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
