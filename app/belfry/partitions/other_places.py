"""Looks for open transactions where only a tenant, deliveries or readers wait for them.

One question asks about all places.  Where it fails, because a topic was removed or has no leader,
each topic is asked about alone, for some seconds in all.  Topics that failed before come last:

    deliveries, schedules.ash, schedules.oak        one question      ash has no leader: no answer
    deliveries   ash   oak                          one after the other
    deliveries   oak   ash                          the next time: oak need not wait for ash

Output topics have a question of their own, and are never asked about one by one: they may be a
thousand, and each has its turn again.  One transaction may hang in hundreds of them, so only some
are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from confluent_kafka import KafkaException

from belfry.host import machine
from belfry.kafka.fetch_position import Where
from belfry.partitions.watched_places import WatchedPlaces
from belfry.telemetry.limited import LimitedLogger

# Seconds for an answer, and for all questions about single topics.
OTHERS_S: Final = 1.0
ALONE_S: Final = 5.0
# So many partitions of output topics are named.
MOST_NAMED: Final = 20
_FAILS: Final = (KafkaException, ConnectionError)
_UNSEEN: Final = "open transactions of tenants' topics and deliveries not looked at"


class OtherPlaces:
    """The offsets of the last look, and places where they stay the same; used by one thread."""

    def __init__(
        self,
        places: WatchedPlaces,
        behind: Callable[[list[Where], float], dict[Where, int]],
        told: Callable[[list[Where]], dict[Where, int] | None],
        log: LimitedLogger,
    ) -> None:
        """`behind` asks where readers of partitions stop before the end, within some seconds.

        `told` does so by one short question; None where no broker answers.
        """
        self._places = places
        self._behind = behind
        self._told = told
        self._log = log
        self._failed: set[str] = set()
        self._silent = False
        self.stable: dict[Where, int] = {}
        self.stuck: list[Where] = []

    def look(self, followed: Sequence[int]) -> None:
        """Look once; a failure is logged, and does not disturb the other looks."""
        before, self.stable = self.stable, {}
        try:
            places = self._places.of_others(followed)
        except _FAILS as error:
            self._say("", error)
        else:
            self._look_at(places)
        self._look_at_outputs(self._places.outputs(followed, before))
        self.stuck = self._to_name(
            [place for place, at in self.stable.items() if before.get(place) == at]
        )

    def _look_at_outputs(self, places: list[Where]) -> None:
        found, before = self._told(places), self._silent
        self._silent = found is None
        if self._silent and before:
            # A single silence comes from a busy machine, or leaders had to be learned first.
            self._say("output topics", "no broker answers in time")
        self.stable |= found or {}

    def _to_name(self, stuck: list[Where]) -> list[Where]:
        """The places to name: all, but of many output partitions only some."""
        outputs = [place for place in stuck if self._places.is_output(place[0])]
        if len(outputs) > MOST_NAMED:
            more = "transactions stay open in many partitions of output topics: some are named"
            self._log.warning("many outputs", more, partitions=len(outputs))
        left_out = {*outputs[MOST_NAMED:]}
        return [place for place in stuck if place not in left_out]

    def _look_at(self, places: list[Where]) -> None:
        try:
            self.stable = self._behind(places, OTHERS_S)
        except _FAILS:
            self._one_by_one(places)
        else:
            self._failed.clear()

    def _one_by_one(self, places: list[Where]) -> None:
        until = machine.monotonic() + ALONE_S
        for topic, several in self._in_order(places):
            if machine.monotonic() >= until:
                self._say("", "some brokers do not answer in time")
                break
            try:
                self.stable |= self._behind(several, OTHERS_S)
            except _FAILS as error:
                self._failed.add(topic)
                self._say(topic, error)
            else:
                self._failed.discard(topic)

    def _in_order(self, places: list[Where]) -> Iterable[tuple[str, list[Where]]]:
        """Topics with their partitions, those that failed before last."""
        ordered = sorted(places, key=lambda place: (place[0] in self._failed, place))
        for topic, several in groupby(ordered, itemgetter(0)):
            yield topic, list(several)

    def _say(self, topic: str, error: object) -> None:
        # The known numbers of partitions may be wrong by now.
        self._places.forget()
        self._log.warning(f"others {topic}", _UNSEEN, topic=topic or None, cause=str(error))
