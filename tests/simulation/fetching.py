"""What stands in for belfry's own fetches: batches as a broker stores them, out of simulated logs.

Records of transactions that were rolled back are fetched as well, and so are markers: to pass them
over is up to the reader.  Where compaction left a hole, a batch is as long as what it held.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from belfry.kafka.fetcher import Fetched, OffsetGone, Where
from tests.simulation.broker import Entry
from tests.simulation.machine import machine
from tests.simulation.murmur import partition_of
from tests.simulation.record_batches import control_of, stored
from tests.simulation.stage import here

AT_ONCE: Final = 50
PRODUCERS: Final = 1_000_000


class SimFetcher:
    """`Fetcher`: answers of one partition after the other."""

    def __init__(self, _properties: Mapping[str, Any], _answer_bytes: int = 0) -> None:
        self._machine = machine()
        self._positions: dict[Where, int] = {}
        self._told_ends: dict[Where, int] = {}

    def follow(self, positions: Mapping[Where, int]) -> None:
        """Fetch from these partitions alone."""
        here().check()
        self._positions = dict(positions)
        self._told_ends.clear()

    def take(self, wait_s: float, but: Container[Where] = ()) -> Fetched | None:
        """The next answer, None where none comes in time; those of `but` stay for another call."""
        stage = here()
        deadline_ms = stage.now_ms + wait_s * 1000
        while True:
            stage.check()
            wanted = [where for where in self._positions if where not in but]
            for where in wanted if not self._machine.cut else ():
                answer = self._fetch(where)
                if answer is not None:
                    return answer
            if stage.now_ms >= deadline_ms:
                return None
            self._wait(deadline_ms - stage.now_ms)

    def _wait(self, ms: float) -> None:
        stage = here()
        logs = [self._machine.broker.log(*where) for where in self._positions]
        for log in logs:
            log.readers.append(stage.current)
        stage.wait(ms)
        for log in logs:
            if stage.current in log.readers:
                log.readers.remove(stage.current)

    def _fetch(self, where: Where) -> Fetched | None:
        log, offset = self._machine.broker.log(*where), self._positions[where]
        if offset > log.end:
            error = OffsetGone(f"{where}: {offset} is out of range")
            return Fetched(where, offset, offset, error=error)
        entries = log.read(offset, log.stable_end, AT_ONCE)
        if not entries:
            if self._told_ends.get(where) == offset:
                return None
            self._told_ends[where] = offset
            return Fetched(where, offset, offset)
        behind = self._positions[where] = entries[-1].offset + 1
        aborted = {
            (_number(each), each.offset)
            for each in reversed(entries)
            if not each.marker and each.txn is not None and each.txn.outcome != "commit"
        }
        return Fetched(where, offset, behind, b"".join(map(_stored, entries)), tuple(aborted))

    def close(self) -> None:
        """Nothing is kept open."""


def _number(entry: Entry) -> int:
    """The producer id of a transaction: one for each, as a later one of the same has its own."""
    assert entry.txn is not None
    return partition_of(f"{entry.txn.producer} {entry.txn.number}".encode(), PRODUCERS)


def _stored(entry: Entry) -> bytes:
    producer = -1 if entry.txn is None else _number(entry)
    if entry.marker:
        assert entry.txn is not None
        commits = entry.txn.outcome == "commit"
        return control_of(entry.offset, entry.timestamp_ms, producer, commits=commits)
    record = (entry.key, entry.value, entry.headers)
    return stored(entry.offset, entry.timestamp_ms, record, producer)
