"""A trickle over several partitions is fetched by one request a sip; what comes alone, at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from belfry.kafka.fetch_plan import FetchPlan, LeaderLane
from belfry.kafka.fetch_position import FetchPosition
from belfry.partitions.request_readers import SIP_S

LANE = LeaderLane(1)
TICK_S = 0.0005


class OneBroker:
    """Leads all partitions, and answers a request as soon as there is something for it."""

    def __init__(self, arrivals: Sequence[Sequence[float]]) -> None:
        """`arrivals` has the instants of each partition's records."""
        self._arrivals = arrivals
        self._places = {("requests", number): FetchPosition(0) for number in range(len(arrivals))}
        for place in self._places.values():
            place.joins = False
        self._until_s = 0.0
        self._asked: list[tuple[tuple[str, int], int]] = []
        self.answers = 0
        self.waited: list[float] = []

    def run(self, seconds: float) -> None:
        """Ask and answer for so long."""
        for tick in range(round(seconds / TICK_S)):
            now_s = tick * TICK_S
            if not self._asked or self._answer(now_s):
                self._ask(now_s)

    def _ask(self, now_s: float) -> None:
        plan = FetchPlan(now_s, (), {})
        for where, place in self._places.items():
            plan.add(where, place, LANE.leader)
        request = plan.requests[LANE]
        self._asked, self._until_s = request.places, now_s + request.wait_s

    def _answer(self, now_s: float) -> bool:
        """Answer where there is something, or nothing has come for as long as was asked for."""
        found = False
        for (topic, number), offset in self._asked:
            come = [each for each in self._arrivals[number][offset:] if each <= now_s]
            if come:
                place, found = self._places[topic, number], True
                place.next += len(come)
                place.sipped(100, now_s, SIP_S)
                self.waited += [now_s - each for each in come]
        if not found and now_s < self._until_s:
            return False
        self.answers += found
        self._asked = []
        return True


def test_partitions_that_all_have_something_in_each_sip_share_one_request() -> None:
    random, broker_s = Random(1), 2.0
    arrivals = []
    for _ in range(4):
        instants = [random.uniform(0.0, broker_s) for _ in range(round(250 * broker_s))]
        arrivals.append(sorted(instants))
    broker = OneBroker(arrivals)
    broker.run(broker_s)
    # One for each sip, and those that began: each by itself they would be four times as many.
    assert broker.answers <= 1.2 * broker_s / SIP_S
    assert max(broker.waited) <= SIP_S + 2 * TICK_S


def test_what_comes_alone_is_fetched_at_once() -> None:
    broker = OneBroker([[0.1], [0.113], [0.331], []])
    broker.run(0.5)
    assert broker.answers == 3
    assert max(broker.waited) <= 2 * TICK_S
