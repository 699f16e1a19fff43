"""The lanes of a take-over: opened, said to leave, and carried up to the source's ends together.

Lanes wait for one another (`cuts.py`), so all of them have their turns until the last one is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from confluent_kafka import KafkaException

from belfry.host import machine
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.cuts import Together
from belfry.mirror.fencing import TRIES
from belfry.mirror.growth import SourceTopics
from belfry.mirror.lane import Lane
from belfry.mirror.marks import offsets_behind
from belfry.mirror.sides import Side

# Seconds without progress after which the rest counts as unreadable.
DRAIN_S: Final = 120.0
# Seconds after which lanes that wait for one another do so no longer.
STUCK_S: Final = 5.0
# Seconds that a lane waits for records.
WAIT_S: Final = 0.02

# Behind each offset, and each number of a transaction.
ALL: Final = 1 << 62

NowMs = Callable[[], int]


class LeavingLanes:
    """The lanes of partitions that are not active on the target yet; for one thread."""

    def __init__(self, source: Side, target: Side, now_ms: NowMs) -> None:
        self._sides = source, target
        self._now_ms = now_ms
        self._together = Together(source.homes)
        self._lanes: dict[int, Lane] = {}
        self.topics = SourceTopics(source)

    def opened(self, partitions: Iterable[int]) -> list[Lane]:
        """Their lanes, which have carried all records; marks say that a take-over has begun.

        No other mirror opens them from then on. One that was about to open one fences it once more,
        so that this is tried some times.
        """
        wanted = list(partitions)
        for each in range(self._sides[0].homes):
            if each in wanted:
                self._leave(each)
            else:
                # Active by an earlier try, so all of it was carried.
                self._together.carried(each, ALL, ALL, 0)
        for left in range(TRIES - 1, -1, -1):
            try:
                self.drain()
            except (KafkaException, BufferError):
                if not left:
                    raise
                for each in list(self._lanes):
                    self._leave(each)
            else:
                break
        return [self._lanes[each] for each in wanted]

    def _leave(self, partition: int) -> None:
        for left in range(TRIES - 1, -1, -1):
            self._give_up(partition)
            lane = Lane(*self._sides, partition, self._now_ms(), self._together, takes_over=True)
            self._lanes[partition] = lane
            try:
                lane.leave()
            except (KafkaException, BufferError):
                if not left:
                    raise
            else:
                return

    def drain(self, *, fenced: bool = False) -> None:
        """Carry all that the source has now; all of it where it is `fenced`.

        Before the fence this only makes the pause shorter. Behind it lanes that wait for one
        another for some seconds wait no longer, since all is carried in the end.
        """
        ends = {each: lane.reader.ends() for each, lane in self._lanes.items()}
        deadline = machine.monotonic() + DRAIN_S
        # Records behind these ends are not progress, and may come for ever.
        best = self._behind(ends)
        while left := [each for each in ends if not self._lanes[each].reached(ends[each])]:
            if self._together.asks:
                self._together.tell(self.topics.input_ends(self._sides[0].homes))
            for lane in self._lanes.values():
                lane.turn(WAIT_S, self._now_ms())
            if (behind := self._behind(ends)) < best:
                best = behind
                deadline = machine.monotonic() + DRAIN_S
            elif machine.monotonic() > deadline - DRAIN_S + STUCK_S and not self._together.open:
                if not fenced:
                    return
                self._together.open = True
            elif machine.monotonic() > deadline:
                raise CannotMirror(
                    f"partition {left[0]} of the source was not read up to its end:"
                    f" {ends[left[0]]}."
                )

    def _behind(self, ends: dict[int, dict[str, int]]) -> int:
        """How many offsets are left up to these ends, by partition."""
        return sum(
            offsets_behind(its, self._lanes[each].reader.positions) for each, its in ends.items()
        )

    def _give_up(self, partition: int) -> None:
        lane = self._lanes.pop(partition, None)
        if lane is not None:
            with suppress(KafkaException):
                lane.close()

    def close(self) -> None:
        """Close all of them."""
        self.topics.close()
        for each in list(self._lanes):
            self._give_up(each)
