"""The engine as a door: records one by one into a partition that goes on, each with one verdict.

A new engine for each record would spend most of the time on making engines.  So a lot of records
goes into one, each in a step of its own that is committed.  They meet what those before them left:
schedules, markers, remembered requests.  At the end of a lot the engine fires what is due, and
still takes a request that is fine.
"""

from __future__ import annotations

from typing import Final

from belfry.wire.batch import SourceBatch
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0, Driver

LOT: Final = 500
MOST_FIRES: Final = 1_000


class EngineDoor:
    """Takes records in; begins anew after each lot."""

    def __init__(self) -> None:
        self._begin()

    def __call__(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        """One record, one verdict."""
        engine = self._driver.engine
        start = engine.position
        record = (start, T0, key, value, headers)
        effects = engine.accept(SourceBatch(start, start + 1, [record], size=len(value or b"")), T0)
        told = sum(effects.outcomes.values()) + len(effects.rerouted)
        assert told == 1, f"{told} verdicts: {effects}"
        self._commit()
        self.taken += 1
        if self.taken >= LOT:
            self.end()

    def end(self) -> None:
        """Fire what is due, take a request that is fine, and begin anew."""
        engine = self._driver.engine
        if not engine.fire_due(T0 + HOUR, MOST_FIRES).empty:
            self._commit()
        start = engine.position
        self._driver.ask(tenant="after", schedule_id="fine", at=T0 + 2 * HOUR)
        (_, timestamp_ms, key, value, headers) = self._driver.source[-1]
        record = (start, timestamp_ms, key, value, headers)
        effects = engine.accept(SourceBatch(start, start + 1, [record]), T0 + HOUR)
        assert sum(effects.outcomes.values()) == 1, effects
        self._commit()
        self._begin()

    def _begin(self) -> None:
        self._driver, self.taken, self._offset = Driver(), 0, 0

    def _commit(self) -> None:
        engine = self._driver.engine
        engine.seal(owner_epoch=1)
        self._offset += len(engine.claim(None).rows)
        engine.committed(self._offset, T0)
