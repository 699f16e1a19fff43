"""What stands in for belfry's own fetches: batches as a broker stores them, out of simulated logs.

Records of transactions that were rolled back are fetched as well, and so are markers: to pass them
over is up to the reader.  Where compaction left nothing up to the end, an empty batch is as long as
what lay there.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache
from typing import Any, Final

from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from tests.simulation.broker import Entry, Log, Txn
from tests.simulation.machine import machine
from tests.simulation.murmur import partition_of
from tests.simulation.record_batches import control_of, emptied, stored
from tests.simulation.stage import Task, here

AT_ONCE: Final = 50
PRODUCERS: Final = 1_000_000


class SimFetcher:
    """`Fetcher`: answers of one partition after the other."""

    def __init__(
        self,
        _properties: Mapping[str, Any],
        _answer_bytes: int = 0,
        sip_s: float = 0.0,
        wait_s: float = 0.0,
    ) -> None:
        # An answer comes as soon as there is something, however long a broker would wait.
        del wait_s
        self._machine = machine()
        self._sip_ms = 1000 * sip_s
        # When a partition is asked for again, after a small answer.
        self._not_before: dict[Where, float] = {}
        self._taking: Task | None = None
        self._woken = False
        self._positions: dict[Where, int] = {}
        self._told_ends: dict[Where, int] = {}

    def follow(self, positions: Mapping[Where, int]) -> None:
        """Fetch from these partitions alone."""
        here().check()
        self._positions = dict(positions)
        self._told_ends.clear()

    def take(
        self, wait_s: float, but: Container[Where] = (), _small_of: Container[Where] = ()
    ) -> Fetched | None:
        """The next answer, None if none comes in time; those of `but` stay for another call."""
        stage = here()
        deadline_ms = stage.now_ms + wait_s * 1000
        while True:
            stage.check()
            asked = [where for where in self._positions if where not in but]
            for where in asked if not self._machine.cut else ():
                if self._not_before.get(where, 0.0) > stage.now_ms:
                    continue
                answer = self._fetch(where)
                if answer is not None:
                    self._not_before[where] = self._next_sip_ms(stage.now_ms)
                    return answer
            if stage.now_ms >= deadline_ms or self._woken:
                self._woken = False
                return None
            sips = [ms for where in asked if (ms := self._not_before.get(where, 0)) > stage.now_ms]
            self._wait(min([deadline_ms, *sips]) - stage.now_ms)

    def wake(self) -> None:
        """Let `take` return, be it under way or the next one."""
        self._woken = True
        if self._taking is not None:
            here().wake(self._taking)

    def _next_sip_ms(self, now_ms: float) -> float:
        """Sips begin at the same instants for all partitions."""
        return (now_ms // self._sip_ms + 1) * self._sip_ms if self._sip_ms else now_ms

    def _wait(self, ms: float) -> None:
        stage = here()
        logs = [self._machine.broker.log(*where) for where in self._positions]
        for log in logs:
            log.readers.append(stage.current)
        self._taking = stage.current
        stage.wait(ms)
        self._taking = None
        for log in logs:
            if stage.current in log.readers:
                log.readers.remove(stage.current)

    def _fetch(self, where: Where) -> Fetched | None:
        log, offset = self._machine.broker.log(*where), self._positions[where]
        if offset > log.end:
            error = OffsetGone(f"{where}: {offset} is out of range")
            return Fetched(where, offset, offset, error=error)
        end = log.stable_end
        entries = log.read(offset, end, AT_ONCE)
        last = entries[-1].offset + 1 if entries else offset
        more = emptied(last, end) if len(entries) < AT_ONCE and last < end else b""
        if not entries and not more:
            if self._told_ends.get(where) == offset:
                return None
            self._told_ends[where] = offset
            return Fetched(where, offset, offset)
        behind = self._positions[where] = end if more else last
        aborted = {
            (_number(each.txn), each.offset)
            for each in reversed(entries)
            if not each.marker and each.txn is not None and each.txn.outcome != "commit"
        }
        data = b"".join([_stored(log, each) for each in entries]) + more
        return Fetched(where, offset, behind, data, tuple(aborted))

    def close(self) -> None:
        """Nothing is kept open."""


def _number(txn: Txn) -> int:
    """The producer id of a transaction: one for each, as a later one of the same has its own."""
    return _drawn(txn.producer, txn.number)


@lru_cache(maxsize=10_000)
def _drawn(producer: str, number: int) -> int:
    return partition_of(f"{producer} {number}".encode(), PRODUCERS)


def _stored(log: Log, entry: Entry) -> bytes:
    """An entry as a batch, which is the same for all that fetch it: its transaction has ended."""
    found = log.fetched.get(entry.order)
    if found is None:
        found = log.fetched[entry.order] = _batch(entry)
    return found


def _batch(entry: Entry) -> bytes:
    producer = -1 if entry.txn is None else _number(entry.txn)
    if entry.marker:
        assert entry.txn is not None
        commits = entry.txn.outcome == "commit"
        return control_of(entry.offset, entry.timestamp_ms, producer, commits=commits)
    record = (entry.key, entry.value, entry.headers)
    return stored(entry.offset, entry.timestamp_ms, record, producer)
