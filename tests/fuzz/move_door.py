"""Moves of key groups as a door: records that a worker has signed, whatever they say.

A ring of three partitions, one of which awaits the rows of a group.  Each input is one record to
one of them, and has one outcome.  At the end of a lot each partition gets a new owner, which reads
the changelog, fires what is due, and takes a request that is fine.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.giving import move_record
from belfry.wire.moves import MAGIC, ROWS, MoveRecord, decode_move
from tests.unit.engine.driver import HOUR, Driver
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

LOT: Final = 100
YEAR_MS: Final = 366 * 24 * HOUR


class MoveDoor:
    """Takes records in; begins anew after each lot."""

    def __init__(self) -> None:
        self._begin()

    def __call__(self, data: bytes) -> None:
        """Where the first byte is odd, rows that are awaited; else a record's whole value."""
        ring, groups = self._ring, self._ring.drivers[self._target].engine._parts.groups
        to = (data[0] >> 1) % PARTITIONS if data else 0
        row = groups.lies.get(self._group)
        driver = ring.drivers[to]
        record = decode_move(MAGIC + data[1:])
        if data and data[0] & 1 and row is not None:
            driver = ring.drivers[self._target]
            record = MoveRecord(ROWS, self._group, self._target, row.move, row.number, data[1:])
        self._send(driver, record or MAGIC + data[1:])
        start, refused = driver.engine.position, len(ring.refused)
        ring.step(driver.place.partition, 1)
        assert driver.engine.position == start + 1
        assert len(ring.refused) - refused <= 1
        self.taken += 1
        if self.taken >= LOT:
            self.end()

    def _send(self, driver: Driver, said: MoveRecord | bytes) -> None:
        """Send a record as a worker signs it; a value that is none as it is."""
        now_ms = self._ring.now_ms
        if isinstance(said, bytes):
            driver.send(said, timestamp_ms=now_ms)
            return
        sent = move_record(driver.place, driver.place.partition, said, now_ms)
        driver.send(sent.value, sent.key, sent.headers, now_ms)

    def end(self) -> None:
        """New owners, who fire all that waits, and take a request that is fine."""
        ring = self._ring
        ring.settle()
        for each in range(PARTITIONS):
            ring.kill(each)
        ring.now_ms += YEAR_MS
        ring.settle()
        ring.ask("after", schedule_id="fine", at=ring.now_ms + HOUR)
        before = len(ring.refused)
        ring.settle()
        assert len(ring.refused) == before
        self._begin()

    def _begin(self) -> None:
        self._ring, self.taken = MovingRing(), 0
        ring = self._ring
        home = ring.home("demo")
        self._group, self._target = ring.group("demo"), (home + 1) % PARTITIONS
        ring.ask("demo", schedule_id="a", at=ring.now_ms + HOUR)
        ring.settle()
        ring.move("demo", self._target)
        # Asked for, and promised: the home is not told, so no rows come but those of inputs.
        ring.step(home)
        ring.step(self._target)
