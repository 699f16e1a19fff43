"""Records of the requests topic, each taken in by an engine.

What is right is the code of docs/rejections.md, or that the request is taken; and behind each one
the engine still takes a request that is fine.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from belfry.schedules.outcomes import Outcome
from belfry.wire.record import Headers
from tests.attack.family import Attack
from tests.unit.engine.driver import HOUR, T0, Driver, request

TAKEN: Final = "taken"


class Record(NamedTuple):
    """One record of the requests topic."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None


class Engines:
    """An engine for many attacks, and a new one now and then, so that none grows old."""

    def __init__(self) -> None:
        self._left = 0

    def __call__(self, given: Record) -> str:
        """What became of a record: its code, or that it was taken."""
        if self._left == 0:
            self._driver, self._left = Driver(), 50
        self._left -= 1
        driver = self._driver
        driver.send(given.value, given.key, given.headers)
        step = driver.step(T0, fire=False)
        assert sum(step.effects.outcomes.values()) == 1, "not one verdict"
        driver.ask(tenant="after", schedule_id=f"fine-{self._left}", at=T0 + HOUR)
        assert driver.step(T0, fire=False).effects.outcomes[Outcome.ACCEPTED] == 1
        return step.codes[0] if step.codes else TAKEN


def asked(name: str, right: str, **fields: Any) -> Attack[Record]:
    """A request in Avro."""
    given = {"tenant": "demo", "schedule_id": name[:60], "at": T0 + HOUR, **fields}
    return Attack(name, Record(request(**given)), right)
