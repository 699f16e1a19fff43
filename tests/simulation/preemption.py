"""Pre-emption between lines: where threads share state, another one may go on after any line.

Elsewhere a task hands over where it waits.  Threads of Python may lose their turn between any two
lines, and what they share has to stand that.  So in some worlds each task is traced through a few
rooms of the shell, drawn from the seed, and hands over there with some chance at each line:

    owners      self._assigned = set(partitions)  ┐
    standby-2                                     ├ reads, writes, waits for a lock, …
    owners      self._rivals.assigned_anew()      ┘

Few rooms and many switches find more than many rooms and few: each seed has its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import belfry
from belfry.transactions.placing import partitioner
from tests.simulation.stage import Stage

BELFRY: Final = Path(belfry.__file__).parent
# Rooms whose objects several threads use.
ROOMS: Final = (
    *("firing", "group", "host", "kafka", "outputs", "partitions", "policies", "recovery"),
    *("tenants", "transactions"),
)
# Threads of Faust; and a lock of the process, which is made before any world is.
SPARED: Final = (
    *("group/membership.py", "group/batch_agent.py", "group/faust_app.py"),
    "host/background.py",
)
AT_ONCE: Final = 2
CHANCES: Final = (0.003, 0.02, 0.1)
# A world has an end.
MOST: Final = 30_000


def files_of(rooms: Sequence[str]) -> frozenset[str]:
    """The files of some rooms, by name."""
    found = {str(path) for room in rooms for path in (BELFRY / room).rglob("*.py")}
    return frozenset(found - {str(BELFRY / each) for each in SPARED})


class Preemption:
    """Lets tasks lose their turn between lines of some files."""

    def __init__(self, stage: Stage, random: Random) -> None:
        assert stage.traced
        # What is worked out once in a process, so that no seed is another run where it comes first.
        partitioner()
        self._stage = stage
        self._random = random
        self._files = files_of(random.sample(ROOMS, AT_ONCE))
        self._chance = random.choice(CHANCES)
        self.times = 0

    def trace(self) -> None:
        """Trace the thread that calls this."""
        sys.settrace(self._entered)

    def _entered(self, frame: Any, _event: str, _told: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        # A module is run once in a process, and a seed has to be one run.
        if code.co_filename not in self._files or code.co_name == "<module>":
            return None
        return self._at_a_line

    def _at_a_line(self, _frame: Any, event: str, _told: Any) -> Callable[..., Any]:
        if event == "line" and self._random.random() < self._chance and self.times < MOST:
            stage = self._stage
            if not stage.acting and not stage.current.host.dead:
                self.times += 1
                stage.turn()
        return self._at_a_line
