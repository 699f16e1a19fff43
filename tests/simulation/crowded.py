"""Worlds in which steps have little room: who waits for it, and whether all of it comes back.

    asks ─┬─ has room at once
          └─ waits for room ─┬─ is given room, perhaps less than it wants: cut short by room
                             └─ goes without room, since nobody is to wait for ever

What is held has to be what the shares hold, amid all of it.  No step goes on to wait when two
seconds are over, and once all is quiet nobody holds anything or waits.  That partitions go on with
what is not fired meanwhile, unit tests look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from belfry.partitions import step_shares, steps
from belfry.partitions.step_shares import FULL, LEAST, LONGEST_S, StepRoom, StepShare
from belfry.process import sharing
from tests.simulation.machine import machine
from tests.simulation.primitives import monotonic
from tests.simulation.stage import here, plays

if TYPE_CHECKING:
    from tests.simulation.world import World

WAITED: Final = "waited for room"
GIVEN: Final = "given room"
NEVER: Final = "no step waited for room"
LOOKS: Final = 10
LOOK_MS: Final = 500.0


class CountedRoom(StepRoom):
    """The room of a worker, looked at after each change."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.shares: list[CountedShare] = []
        self._waited: set[StepShare] = set()

    def ask(self, share: StepShare) -> None:
        """Give room to a share, now or later."""
        super().ask(share)
        if not share.parts:
            machine().struck.append(WAITED)
            self._waited.add(share)
        self._look()

    def _give(self) -> list[StepShare]:
        given = super()._give()
        machine().struck += [GIVEN for share in given if share in self._waited]
        self._waited -= {*given}
        return given

    def insist(self, share: StepShare) -> None:
        """Give a share the least."""
        self._waited.discard(share)
        super().insist(share)
        self._look()

    def bound(self, share: StepShare, parts: int) -> None:
        """Take back what is beyond these parts."""
        self._waited.discard(share)
        super().bound(share, parts)
        self._look()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def _look(self) -> None:
        held = sum(share.parts for share in self.shares)
        if held != self.held:
            self.tell(f"{self.held} parts count as held, and shares hold {held}")
        most = step_shares.TOGETHER + LEAST * len(self.shares)
        if held > most:
            self.tell(f"shares hold {held} parts, and {most} are the most")

    def tell(self, problem: str) -> None:
        """Something is wrong."""
        self.problems.append(f"I51 {machine().name}: {problem}")


class CountedShare(StepShare):
    """The share of a partition, which says what becomes of it."""

    def __init__(self, room: StepRoom, wake: Callable[[], object]) -> None:
        super().__init__(room, wake)
        assert isinstance(room, CountedRoom)
        self._counted = room
        self._since: float | None = None
        self._stage = here()
        room.shares.append(self)

    def ask(self) -> None:
        """Ask for a share."""
        super().ask()
        if self._since is None:
            self._since = monotonic()

    def awaits(self) -> bool:
        """Whether the step goes on to wait."""
        waits = super().awaits()
        waited_s = 0.0 if self._since is None else monotonic() - self._since
        if waits and waited_s > LONGEST_S:
            self._counted.tell(f"a step waits on, {waited_s:.1f} s after it asked for room")
        return waits

    def of(self, most: int) -> int:
        """As much as the share allows."""
        if not self.parts and self._since is not None:
            machine().struck.append("went without room")
        elif 0 < self.parts < self.wants and self.parts != LEAST:
            machine().struck.append("cut short by room")
        return super().of(most)

    def leave(self) -> None:
        """Hold nothing, and wait no longer; in a world that is over nothing happens any more.

        Python closes the steps of workers that were killed when it clears their world away.  By
        then another world may play, whose tasks are not to be woken, nor to go on with those loops.
        """
        if plays(self._stage):
            self._since = None
            super().leave()


def doors(full_steps: float) -> list[tuple[Any, str, Any]]:
    """What stands in where the steps of a worker have room for so many full ones together."""
    return [
        (step_shares, "TOGETHER", round(full_steps * FULL)),
        (steps, "StepShare", CountedShare),
        (sharing, "StepRoom", CountedRoom),
    ]


def found_in(world: World) -> list[str]:
    """What was wrong amid a run, and what is left now that all is quiet."""
    if not world.scenario.room:
        return []
    for _ in range(LOOKS):
        if not any(_left(world)):
            break
        world.stage.sleep(LOOK_MS)
    rooms = (life.room for life in world.lives)
    amid = [each for room in rooms if isinstance(room, CountedRoom) for each in room.problems]
    return [*amid, *_left(world)]


def _left(world: World) -> Iterator[str]:
    for worker in world.workers:
        room = worker.room
        if worker.alive and isinstance(room, CountedRoom) and (room.held or room.waiting):
            what = f"{room.held} parts are held and {room.waiting} shares wait"
            yield f"I51 {worker.machine.name}: {what}, though all is quiet"


def struck_in(world: World) -> list[str]:
    """That no step has waited, where there was little room."""
    waited = any(WAITED in life.machine.struck for life in world.lives)
    return [NEVER] if world.scenario.room and not waited else []
