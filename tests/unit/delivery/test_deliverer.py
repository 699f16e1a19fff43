"""What a process does for deliveries ends together, not one after the other."""

from __future__ import annotations

from threading import Event
from typing import Any

from belfry.delivery.deliverer import Deliverer

# Longer than a machine that is busy with other things is held up.
PATIENT_S = 10.0


class Part:
    """A dispatcher or what settles: `told` is when it was asked to end, `stop` may wait for it."""

    def __init__(self, awaits: Part | None = None) -> None:
        self.told = Event()
        self.ended = awaits is None
        self.awaits = awaits

    def told_to_stop(self) -> None:
        self.told.set()

    def stop(self) -> None:
        if self.awaits is not None:
            self.ended = self.awaits.told.wait(PATIENT_S)


def test_what_settles_is_told_to_end_before_the_dispatcher_has_ended() -> None:
    settling: Any = Part()
    dispatcher: Any = Part(settling)
    Deliverer(dispatcher, settling).stop()
    assert dispatcher.ended
