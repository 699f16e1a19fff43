"""What a fuzzed input means, and what has to hold for it: one record, exactly one verdict.

Its first byte says which parts follow, each with its length in two bytes.

    bit 0  a key        bit 1  a value        bits 2-3  number of headers (name, then value)
"""

from __future__ import annotations

from belfry.wire.record import Headers
from tests.unit.engine.driver import T0, Driver


class Parts:
    """Takes an input apart; where it ends, parts are empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data[1:]
        self.shape = data[0] if data else 0

    def take(self) -> bytes:
        """The next part."""
        size = int.from_bytes(self._data[:2], "big")
        part, self._data = self._data[2 : 2 + size], self._data[2 + size :]
        return part


def one_input(data: bytes) -> None:
    """One record, one verdict; the engine then still takes a request that is fine."""
    parts = Parts(data)
    key = parts.take() if parts.shape & 1 else None
    value = parts.take() if parts.shape & 2 else None
    headers: Headers = []
    for _ in range(parts.shape >> 2 & 3):
        name = parts.take().decode(errors="replace")
        headers.append((name, parts.take()))
    driver = Driver()
    driver.send(value, key, headers or None)
    step = driver.step(T0)
    assert sum(step.effects.outcomes.values()) + len(step.effects.rerouted) == 1, step
    driver.ask(tenant="after", schedule_id="fine", at=T0 + 5)
    assert sum(driver.step(T0).effects.outcomes.values()) == 1
