"""The events that the canary has to ask for, and their results, as bits of an hour.

Time is cut into slots of the canary's interval.  Each slot of each partition stands for one event,
so events that were not asked for are known as well:

    slot        0    1    2    3    4    5
    asked       1    1    .    .    1    1       two slots without an owner
    registered  1    1    .    .    1    1       accepted before it was due
    fired       1    1    .    .    1    .       a reader has it; the last is still to come
    in time     1    .    .    .    1    .       within a second of its due instant

A row has the bits of one hour, partition and process.  Rows of several processes are joined by OR:
it does not matter which process saw an event, in which order rows come, and how often.  So the
death of an owner loses no result that another process has seen, and an owner that goes on after it
was fenced off does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

FORMAT: Final = 1
HOUR_MS: Final = 3_600_000
# An event is due so long after its slot begins, and has to be accepted by then.
AHEAD_MS: Final = 5_000
IN_TIME_MS: Final = 1_000
_MOST_PARTITIONS: Final = 100_000
_MOST_HOURS: Final = 1 << 32


class Probe(NamedTuple):
    """One event of the canary; `slot` counts intervals since the epoch."""

    partition: int
    slot: int
    interval_ms: int

    @property
    def due_ms(self) -> int:
        """When it is due."""
        return self.slot * self.interval_ms + AHEAD_MS

    @property
    def hour(self) -> int:
        """The hour of its slot, counted since the epoch."""
        return self.slot * self.interval_ms // HOUR_MS

    @property
    def bit(self) -> int:
        """Its slot in the row of its hour."""
        return 1 << self.slot % (HOUR_MS // self.interval_ms)

    def payload(self) -> bytes:
        """The payload of its event."""
        return b"%d/%d/%d" % self


def open_slots(now_ms: int, interval_ms: int) -> range:
    """The slots that have begun, and whose events are not due yet."""
    return range((now_ms - AHEAD_MS) // interval_ms + 1, now_ms // interval_ms + 1)


def probe_in(payload: bytes | None) -> Probe | None:
    """The probe that an event carries, or None for anything else."""
    parts = (payload or b"").split(b"/")
    if len(parts) != 3 or not all(part.isdigit() and len(part) < 19 for part in parts):
        return None
    partition, slot, interval_ms = map(int, parts)
    whole = 0 < interval_ms <= HOUR_MS and HOUR_MS % interval_ms == 0
    return Probe(partition, slot, interval_ms) if whole else None


# Partition, hour and interval.
Place = tuple[int, int, int]


@dataclass(slots=True)
class HourRow:
    """The slots of one partition in one hour, as bits; `partitions` is how many there are."""

    partition: int
    hour: int
    interval_ms: int
    partitions: int = 0
    asked: int = 0
    registered: int = 0
    fired: int = 0
    in_time: int = 0

    @property
    def place(self) -> Place:
        """The partition, the hour and the interval of the row."""
        return self.partition, self.hour, self.interval_ms

    def join(self, other: HourRow) -> None:
        """Add the bits of another row of the same place."""
        self.partitions = max(self.partitions, other.partitions)
        self.asked |= other.asked
        self.registered |= other.registered
        self.fired |= other.fired
        self.in_time |= other.in_time


_BITS: Final = ("asked", "registered", "fired", "in_time")


def encode_row(row: HourRow) -> bytes:
    """A row as it lies in the topic: JSON, with bits as hexadecimal digits."""
    numbers = (row.partition, row.hour, row.interval_ms, row.partitions)
    names = ("partition", "hour", "interval_ms", "partitions")
    bits = {name: f"{getattr(row, name):x}" for name in _BITS}
    return orjson.dumps({"v": FORMAT, **dict(zip(names, numbers, strict=True)), **bits})


def decode_row(value: bytes | None) -> HourRow | None:
    """The row in a record, or None where this version cannot read one."""
    try:
        found = orjson.loads(value or b"")
        if found["v"] != FORMAT:
            return None
        bits = {name: int(found[name], 16) for name in _BITS}
        row = HourRow(
            *(int(found[name]) for name in ("partition", "hour", "interval_ms", "partitions")),
            **bits,
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    whole = 0 < row.interval_ms <= HOUR_MS and HOUR_MS % row.interval_ms == 0
    sane = 0 <= row.partition < _MOST_PARTITIONS and row.partitions <= _MOST_PARTITIONS
    # Rows of hours in a distant future would never be forgotten.
    sane = sane and 0 <= row.hour < _MOST_HOURS
    return row if whole and sane and min(bits.values()) >= 0 else None


class CanarySlots:
    """Rows by place, joined."""

    def __init__(self, rows: Iterable[HourRow] = ()) -> None:
        self.rows: dict[Place, HourRow] = {}
        for row in rows:
            self.add(row)

    def add(self, row: HourRow) -> None:
        """Join a row."""
        self.row(*row.place).join(row)

    def row(self, partition: int, hour: int, interval_ms: int) -> HourRow:
        """The row of a place, an empty one where there was none."""
        place = partition, hour, interval_ms
        return self.rows.setdefault(place, HourRow(*place))

    def of(self, probe: Probe) -> HourRow:
        """The row of a probe."""
        return self.row(probe.partition, probe.hour, probe.interval_ms)

    def last_asked(self, partition: int, interval_ms: int) -> int | None:
        """The last slot of a partition that any process asked for, None where none is known."""
        a_row = HOUR_MS // interval_ms
        rows = (self.rows[each] for each in self.rows if each[::2] == (partition, interval_ms))
        return max(
            (row.hour * a_row + row.asked.bit_length() - 1 for row in rows if row.asked),
            default=None,
        )

    def forget(self, before_hour: int) -> None:
        """Drop rows of hours before this one."""
        self.rows = {place: row for place, row in self.rows.items() if place[1] >= before_hour}
