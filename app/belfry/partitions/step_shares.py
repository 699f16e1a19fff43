"""What the steps of a worker's partitions hold together: each asks for a share before it fires.

    ask ─┬─ has a share ─► fires ─► keep ─► commits ─► over
         │  held: all of it         held: what it has fired, until it is over
         └─ waits: its steps take requests in, and fire nothing, until it has one

A step holds its events until they are committed, with the records made from them.  If all
partitions have thousands of events due, each would hold a full step.  So a worker has room for four
full steps.  If four steps hold some of it, a fifth has room only while all hold less than one full
step.  A step asks for twice as much as the step before it has held, and for a quarter of a full one
at least.  It gets that, or the rest of the room, if the rest is worth a transaction.  While eight
or more hold room or wait for some, it gets half a full step at most: each of them should have its
turn before it has waited for two seconds.

A partition that finds less waits for its turn, and is woken as others give room back.  It does not
stand still meanwhile: its steps fire nothing and do everything else, because requests go on to
arrive, and an owner that commits nothing for a second may be taken for dead.  If it is given room
amid such a step, its next step uses it, and the room is idle until then.  That costs less than to
pass the room by: the turn of a partition that always takes requests in would always come amid a
step.

A commit may hang, because its broker is away.  If no share was given for a second though a
partition waits, all partitions that ask go on at once with a small share.  So does a partition that
has waited for two seconds:

    64 partitions, all with many events due at noon
    12:00:00.000   4 steps fire a quarter of a full one each, and 60 wait
    12:00:00.300   a step is committed: the partition that waits longest fires

Four partitions always have room for full steps.  More steps than that would wait for each other:
the interpreter fires one at a time, while others commit.  Smaller shares than a quarter would need
more transactions, and these cost the broker more than the events in them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Final, Self

from belfry.host import machine

# What steps hold is counted in parts of a full one, in whole numbers, so that nothing drifts.
FULL: Final = 10_000
# The partitions of a worker hold so much together, and a little beyond where commits hang.
TOGETHER: Final = 4 * FULL
# If so many steps hold room, another one has room only while all hold less than `OF_MANY`.
FEW: Final = 4
OF_MANY: Final = FULL
# While so many hold room or wait for some, a share has at most `HALF`.
CROWD: Final = 8
HALF: Final = FULL // 2
# A partition that finds less than this waits for more.
WORTHWHILE: Final = FULL // 4
# The share of a step that does not wait any longer.
LEAST: Final = FULL // 16
# Events count by their payloads.  As many small events as a step may fire (`BELFRY_FIRE_CHUNK`)
# take a quarter of the memory of events whose payloads fill a step (`BELFRY_STEP_BYTES`).
LIGHT: Final = 4
# No partition waits any longer if no share was given for so long.
TIMEOUT_S: Final = 1.0
# Nor does any partition wait longer than this, however many others were given a share meanwhile:
# its events are late by it.
LONGEST_S: Final = 2.0


class StepRoom:
    """The room that the steps of a worker share; used by any thread."""

    def __init__(self) -> None:
        self._lock = machine.Lock()
        self._waiting: deque[StepShare] = deque()
        self._given_s = machine.monotonic()
        self.held = 0
        # The shares that were given room and still hold some; not those that insisted.
        self._holders: set[StepShare] = set()

    def ask(self, share: StepShare) -> None:
        """Give room to a share, now or later: it is woken then."""
        with self._lock:
            self._waiting.append(share)
            self._give()

    def insist(self, share: StepShare) -> None:
        """Give a share that has nothing yet the least, whether there is room or not."""
        with self._lock:
            self._forget(share)
            if not share.parts:
                share.parts = LEAST
                self.held += LEAST

    def bound(self, share: StepShare, parts: int) -> None:
        """Leave so many parts to a share, and take the rest back for those that wait.

        A share that waits stops waiting.  It may have been given room just now, unseen.
        """
        with self._lock:
            over = max(0, share.parts - parts)
            share.parts -= over
            self.held -= over
            if not share.parts:
                self._holders.discard(share)
            self._forget(share)
            given = self._give()
        for other in given:
            other.wake()

    def timeout_s(self) -> float:
        """How many seconds a partition should go on waiting."""
        with self._lock:
            return self._given_s + TIMEOUT_S - machine.monotonic()

    def _give(self) -> list[StepShare]:
        given = []
        while self._waiting and (left := self._left()) >= WORTHWHILE:
            most = HALF if len(self._holders) + len(self._waiting) >= CROWD else FULL
            share = self._waiting.popleft()
            share.parts = min(share.wants, left, most)
            self.held += share.parts
            self._holders.add(share)
            self._given_s = machine.monotonic()
            given.append(share)
        return given

    def _left(self) -> int:
        """How much is there for one more."""
        return (TOGETHER if len(self._holders) < FEW else OF_MANY) - self.held

    def _forget(self, share: StepShare) -> None:
        if share in self._waiting:
            self._waiting.remove(share)


class StepShare:
    """The share of one partition: held within a step, given back behind it, however it ends.

    A step that goes on to wait (`awaits`) keeps its place for the next step, unless it fails; the
    partition has to `leave` behind its last step.  Any thread may call `wake`, when the share is
    given room.  The thread that has the partition's turn calls everything else.
    """

    def __init__(self, room: StepRoom, wake: Callable[[], object]) -> None:
        self._room = room
        self.wake = wake
        self.parts = 0
        # How much it asks for: twice what the step before it has held.
        self.wants = WORTHWHILE
        self._asked = self._goes_on = False
        self._asked_s = 0.0

    def ask(self) -> None:
        """Ask for a share, unless this was done before; it may come later, also amid a step."""
        if not self._asked:
            self._asked = True
            self._asked_s = machine.monotonic()
            self._room.ask(self)

    def wait_s(self) -> float:
        """How many seconds to wait for it: none if it is there, or is not to be expected."""
        if self.parts:
            return 0.0
        left_s = self._asked_s + LONGEST_S - machine.monotonic()
        return max(0.0, min(left_s, self._room.timeout_s()))

    def awaits(self) -> bool:
        """Whether the step that begins has no share, and the next one is to have it."""
        self._goes_on = self.wait_s() > 0
        return self._goes_on

    def leave(self) -> None:
        """Hold nothing, and wait no longer."""
        if self._asked or self.parts:
            self._asked = self._goes_on = False
            self._room.bound(self, 0)

    def of(self, most: int) -> int:
        """As much of what a full step does as this share allows; the least where it is empty."""
        if not self.parts:
            self._room.insist(self)
        return max(1, most * self.parts // FULL)

    def keep(self, *done: float) -> None:
        """Keep what the step holds, the largest of these parts of a full one, if that is less."""
        parts = ceil(FULL * max(done))
        self.wants = min(FULL, max(WORTHWHILE, 2 * parts))
        if parts < self.parts:
            self._room.bound(self, parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object = None, *_: object) -> None:
        if failed is not None or not self._goes_on:
            self.leave()
