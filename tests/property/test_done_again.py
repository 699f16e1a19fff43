"""A step that fails anywhere, amid nobody, and is done again is the step that it would have been.

The faults come in the midst of parts, so what a part has changed by then has to be undone as well.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from belfry.engine.culprits import Culprits
from belfry.engine.undo import Tracked
from belfry.store.schedules import ScheduleStore
from tests.property.test_faults import INSTANTS, drawn
from tests.unit.engine.driver import T0, Driver, Step

VERBS: Final = (
    *("named", "note", "keep", "keep_in_timeline", "move", "move_to_timeline", "rewrite"),
    *("take", "take_apart", "remove", "end", "await_ack", "acked", "pending_at", "prefetch"),
)
MOST_CALLS: Final = 40
MOST_IN_A_STEP: Final = 3


class Anywhere(LookupError):
    """A fault that is nobody's."""


class Faults:
    """Lets calls of what a step changes raise, before or behind what they do; so many `more`."""

    def __init__(self, random: Random, culprits: Culprits, monkeypatch: pytest.MonkeyPatch) -> None:
        self.culprits = culprits
        self.more = self.raised = 0
        self._random = random
        self._calls = 1
        for name in VERBS:
            self._plant(ScheduleStore, name, monkeypatch)
        for name in ("__setitem__", "__delitem__"):
            self._plant(Tracked, name, monkeypatch)
        self._blame = Culprits.blame
        monkeypatch.setattr(Culprits, "blame", self._spare)

    def _spare(self, error: BaseException, *_: Any) -> None:
        assert type(error) is Anywhere, "nothing else fails"

    def _plant(self, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        sound = getattr(owner, name)

        def planted(*given: Any, **named: Any) -> Any:
            self._may_raise()
            done = sound(*given, **named)
            self._may_raise()
            return done

        monkeypatch.setattr(owner, name, planted)

    def _may_raise(self) -> None:
        self._calls -= self.more > 0
        if self._calls <= 0:
            self._calls = self._random.randrange(1, MOST_CALLS)
            self.more -= 1
            self.raised += 1
            error = Anywhere()
            self._blame(self.culprits, error, ("nobody", self.raised))
            raise error


class Failing(Driver):
    """The same driver, whose parts of steps fail now and then; the end of a step does not."""

    faults: Faults | None = None

    def step(self, now_ms: int, *given: Any, **named: Any) -> Step:
        """As ever, with faults."""
        if self.faults is not None:
            self.faults.more = MOST_IN_A_STEP
        return super().step(now_ms, *given, **named)

    def end(self, now_ms: int, *, commit: bool = True) -> None:
        """As ever, without faults."""
        if self.faults is not None:
            self.faults.more = 0
        super().end(now_ms, commit=commit)


def told(driver: Driver, seed: int, at_most: int) -> list[tuple[Any, ...]]:
    """What the steps of a random history come to."""
    random = Random(seed)
    found = []
    for number in range(60):
        name = f"s{random.randrange(30)}"
        driver.ask(schedule_id=name, request_id=f"r{number}", **drawn(random))
        if number % 9 == 8:
            driver.ask(schedule_id=f"s{random.randrange(30)}", action="CANCEL")
        if number % 7 == 6:
            found.append(driver.step(T0, at_most, fire=False))
    for now_ms in INSTANTS:
        while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
            found.append(driver.step(now_ms, at_most, take=0))
    return [
        (each.effects.rows, each.effects.fired, each.effects.lifecycle, each.effects.outcomes)
        for each in found
    ]


@pytest.mark.parametrize("seed", range(10))
def test_a_step_that_is_done_again_is_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    at_most = Random(seed).choice([3, 20, 1_000])
    wanted = told(Driver(), seed, at_most)
    driver = Failing()
    driver.faults = faults = Faults(Random(seed), driver.engine._parts.culprits, monkeypatch)
    assert told(driver, seed, at_most) == wanted
    assert faults.raised > 20
