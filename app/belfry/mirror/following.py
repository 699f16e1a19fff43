"""A mirror that runs: lane after lane, round after round, in one thread.

A lane that fails is closed, and opened again after a pause: its mark says where it goes on, so no
record is carried twice or left out. The others go on meanwhile.

    lane 0   turn ─ turn ─ no broker answers ─ (pause) ─ opened at its mark ─ turn
    lane 1   turn ─ turn ─ turn ─ turn ─ turn

Where the source has grown, the target is given the same partitions, and they get lanes of their own
(`growth.py`). A partition that cannot be mirrored (`CannotMirror`) ends the whole: an operator has
to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from confluent_kafka import KafkaException

from belfry.client.errors import BelfryError
from belfry.client.tenants import TenantPolicies
from belfry.host import machine
from belfry.mirror.beginnings import see_that_it_follows
from belfry.mirror.cuts import Together
from belfry.mirror.growth import SourceTopics, grown_together
from belfry.mirror.lane import Lane
from belfry.mirror.policies import carry_policies
from belfry.mirror.sides import Side
from belfry.recovery.partition_evidence import CannotRecover
from belfry.telemetry.mirror_metrics import MirrorMetrics

# After a failure, and between two looks at policies and at how far behind it is.
PAUSE_MS: Final = 2_000
LOOK_EVERY_MS: Final = 5_000
# Seconds for a round in which nothing comes, and for one where lanes wait for one another.
IDLE_S: Final = 0.1
HELD_S: Final = 0.01
# Among partitions that are tried again: that some are added.
_GROWTH: Final = -1
FAILURES: Final = (KafkaException, BufferError, ConnectionError, CannotRecover, BelfryError)


class MirrorFollower:
    """Carries all partitions from a source to a target; for one thread."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        policies: tuple[TenantPolicies, TenantPolicies],
        metrics: MirrorMetrics,
        told: Callable[[str], None],
    ) -> None:
        """`sides` and `policies` are those of source and target; `told` gets sentences."""
        self._sides = sides
        self._policies = policies
        self._metrics = metrics
        self._told = told
        self._lanes: dict[int, Lane] = {}
        # When each partition that failed is tried again, epoch ms.
        self._again_ms: dict[int, int] = {}
        self._looked_ms = 0
        self._carried = True
        self._together = Together(sides[0].homes)
        self._topics = SourceTopics(sides[0])
        # The source's records up to then are carried, epoch ms; by partition.
        self._level_ms: dict[int, int] = {}

    def run(self, *, once: bool, now_ms: Callable[[], int]) -> None:
        """Carry, for ever; with `once` up to where the source ended at the begin.

        Raises `CannotMirror`, and with `once` every failure, which else is told and tried again.
        """
        began_ms = now_ms()
        while True:
            self._ask(once=once)
            partitions = range(self._sides[0].homes)
            carried = sum(self._turn(each, now_ms(), once=once) for each in partitions)
            self._carried = carried > 0
            done = once and all(lane.level_ms >= began_ms for lane in self._lanes.values())
            if any(lane.wants_growth for lane in self._lanes.values()):
                self._grow(now_ms(), once=once)
                done = False
            if done or now_ms() - self._looked_ms >= LOOK_EVERY_MS:
                self._look(now_ms(), once=once)
            if done:
                return

    def close(self) -> None:
        """Give all lanes up."""
        self._topics.close()
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()

    def _ask(self, *, once: bool) -> None:
        """Learn where requests end, if lanes wait for that."""
        if not self._together.asks:
            return
        try:
            self._together.tell(self._topics.input_ends(self._sides[0].homes))
        except FAILURES as error:
            if once:
                raise
            self._told(f"where requests of the source end is asked again: {error}")
            self._metrics.failed()
            machine.sleep(IDLE_S)

    def _grow(self, now_ms: int, *, once: bool) -> None:
        """Follow all partitions that the source has by now; a failure is told, and tried again."""
        if now_ms < self._again_ms.get(_GROWTH, 0):
            return
        try:
            if self._topics.partitions() > self._sides[0].homes:
                before = self._sides[0].homes
                self._sides = grown_together(*self._sides, now_ms)
                self._together.count = now = self._sides[0].homes
                self._told(f"the source has grown from {before} partitions to {now}, as this side")
            else:
                self._together.looked_ms = now_ms
        except FAILURES as error:
            if once:
                raise
            self._told(f"partitions that were added are followed later: {error}")
            self._metrics.failed()
        self._again_ms[_GROWTH] = now_ms + PAUSE_MS

    def _turn(self, partition: int, now_ms: int, *, once: bool) -> int:
        """One turn of a partition; a failure is told, and the turn is tried again later."""
        if now_ms < self._again_ms.get(partition, 0):
            machine.sleep(IDLE_S / self._sides[0].homes)
            return 0
        try:
            lane = self._lanes.get(partition)
            if lane is None:
                lane = Lane(*self._sides, partition, now_ms, self._together)
                self._lanes[partition] = lane
            wait_s = 0.0 if self._carried else self._idle_s / self._sides[0].homes
            carried = lane.turn(wait_s, now_ms)
        except FAILURES as error:
            if once:
                raise
            self._failed(partition, now_ms, error)
            return 0
        self._level_ms[partition] = lane.mark.level_ms
        self._metrics.carried(carried)
        return carried

    @property
    def _idle_s(self) -> float:
        return HELD_S if any(lane.is_held for lane in self._lanes.values()) else IDLE_S

    def _failed(self, partition: int, now_ms: int, error: Exception) -> None:
        self._told(f"partition {partition} is carried on in a moment: {error}")
        self._metrics.failed()
        self._again_ms[partition] = now_ms + PAUSE_MS
        lane = self._lanes.pop(partition, None)
        if lane is not None:
            with suppress(KafkaException):
                lane.close()

    def _look(self, now_ms: int, *, once: bool) -> None:
        """Carry policies, and see how far behind the mirror is."""
        self._looked_ms = now_ms
        try:
            self._grow(now_ms, once=once)
            carry_policies(*self._policies, self._see_that_it_follows)
            behind = sum(lane.behind() for lane in self._lanes.values())
        except FAILURES as error:
            if once:
                raise
            self._told(f"policies, and how far behind this is, are looked at later: {error}")
            self._metrics.failed()
            return
        if len(self._lanes) == self._sides[0].homes:
            self._metrics.looked(behind, min(self._level_ms.values()), now_ms)

    def _see_that_it_follows(self) -> None:
        """Raise `CannotMirror` where this side is to be the active one: its policies are its own.

        A lane notices a take-over when it next writes, which may be later.
        """
        source, target = self._sides
        for each in range(target.homes):
            mine = target.mark(each)
            if mine is not None and mine.leaving:
                see_that_it_follows(mine, source.mark(each), each)
