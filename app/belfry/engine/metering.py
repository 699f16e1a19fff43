"""Metering: the use of a partition by each tenant and hour, so that it can be billed.

    step      accepted, fired, bytes that came and left  ─► row of the tenant, in the changelog
    09:00:00  the hour is over                           ─► effects.metered, and a row of the next
    next owner                                              reads the rows and goes on

A tenant has one row (`store/layout/usage.py`), which a step writes once, however many events it
has.  The record of an hour leaves in the transaction that begins the row of the next one, so it is
written exactly once, and holds all that was committed in that hour.  A step counts as a whole at
its first instant, which is that of its fires.

*Held* are the bytes of pending records, times how long they wait.  The row keeps how many there are
and up to when they were reckoned, so a change costs one multiplication, and a schedule that waits
for years costs one record an hour.  A tenant of which nothing is left has no row.

    09:10  100 bytes come       held 100
    09:40  they fire            held 0       100 × 30 min        = 50 byte-hours
    10:00  the record leaves

After a time in which nobody owned the partition, many periods are over.  A sweep tells so many of
them and goes on with the next one.  A step in which the tenant does something cannot wait for that:
periods that it has no room for become one record, from the first of them to the last.

    no owner from 10:20 to 22 December, 12:10      a sweep: 10:00 … 11:00 … 12:00 …, 500 at a time
                                                   a step:  10:00 … 14:00, then one to 12:00

Where metering is switched on, all that is pending is weighed once, at the take-over.  Where it is
switched off, the first step writes all that was not told yet, and the rows go.

Exactly once holds for usage as it does for events, and for the same reason: the counters are rows
of the state, and the record that tells them is in the transaction that resets them.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.store.layout.buckets import bytes_by_tenant
from belfry.store.layout.usage import (
    METERED,
    USAGE_END,
    USAGE_PREFIX,
    UsageRow,
    decode_usage_row,
    encode_usage_row,
    tenant_of_usage,
    usage_key,
)
from belfry.store.schedules import ScheduleStore
from belfry.wire.metering import Usage, encode_usage, period_of

# Behind the mark: where the rows of tenants begin.
FIRST_ROW: Final = USAGE_PREFIX + b"\0"
# So many periods of a tenant that are over are told by a step in which it does something.
MOST_PERIODS: Final = 100
# About the size of a record.
RECORD_BYTES: Final = 250


class Metering:
    """Counts the use of one partition by tenants; `length_ms` is the length of a period, 0: never.

    Periods begin at multiples of their length since 1970, so all partitions have the same ones.
    """

    def __init__(self, store: ScheduleStore, partition: int, length_ms: int, undo: UndoLog) -> None:
        self._store = store
        self._partition = partition
        self._length_ms = length_ms
        self._undo = undo
        metered = store.named(USAGE_PREFIX) is not None
        # Bytes that wait of each tenant, where metering begins and they are not written down yet.
        self._base = bytes_by_tenant(store.all_pending()) if length_ms and not metered else None
        self._ends = metered and not length_ms
        self._cursor = FIRST_ROW
        # When the next look at all rows is due, and when this one began.
        self._next_ms = self._began_ms = 0

    def settle(self, step: Step) -> None:
        """Count the work of a step; called once it is complete.

        A step without an instant (a manifest alone) does nothing for a tenant.  Costs one row for
        each tenant that the step has touched; their rows are read in one call.
        """
        if not step.first_ms or not (self._length_ms or self._ends):
            return
        self._begin_or_end(step)
        if not self._length_ms:
            return
        effects, grown = step.effects, self._store.grown_bytes()
        fired = {name.encode(): len(late) for name, late in effects.lateness.items() if late}
        names = {*effects.accepted, *fired, *(name for name, by in grown.items() if by)}
        self._store.prefetch([usage_key(name) for name in names])
        for name in sorted(names):
            accepted = effects.accepted.get(name, 0)
            row = self._up_to_now(name, step)
            self._keep(name, row.used(accepted, fired.get(name, 0), grown.get(name, 0)))

    def sweep(self, step: Step, at_most: int) -> None:
        """Tell of periods that are over, among the next `at_most` tenants."""
        self._begin_or_end(step)
        if not self._length_ms or step.first_ms < self._next_ms:
            return
        for attribute in ("_cursor", "_next_ms", "_began_ms"):
            self._undo.attribute(self, attribute)
        if self._cursor == FIRST_ROW:
            self._began_ms = step.first_ms
        for key, record in islice(self._store.between(self._cursor, USAGE_END), at_most):
            row = decode_usage_row(record)
            if row.until_ms <= step.first_ms and key not in self._store.changed:
                name, told = tenant_of_usage(key), len(step.effects.metered)
                row = self._tell_some(name, row, step, at_most)
                self._keep(name, row)
                if row.held_bytes and row.until_ms <= step.first_ms:
                    return
                at_most -= max(len(step.effects.metered) - told - 1, 0)
            self._cursor = key + b"\0"
            at_most -= 1
            if at_most <= 0 or step.effects.room <= 0:
                return
        if at_most > 0:
            self._cursor = FIRST_ROW
            self._next_ms = period_of(self._began_ms, self._length_ms)[1]

    def _begin_or_end(self, step: Step) -> None:
        """Switch metering on or off, where the state says otherwise."""
        if self._base is not None:
            self._undo.attribute(self, "_base")
            base, self._base = self._base, None
            self._store.note(USAGE_PREFIX, METERED)
            for name, held_bytes in base.items():
                self._keep(name, self._begun(step.first_ms)._replace(held_bytes=held_bytes))
        if self._ends:
            self._undo.attribute(self, "_ends")
            self._ends = False
            for key, record in self._store.between(FIRST_ROW, USAGE_END):
                row = decode_usage_row(record)
                row = row.reckoned(min(step.first_ms, row.until_ms))
                self._tell(tenant_of_usage(key), row, step)
                self._store.note(key, None)
            self._store.note(USAGE_PREFIX, None)

    def _up_to_now(self, name: bytes, step: Step) -> UsageRow:
        """A tenant's row, reckoned up to now; tells of the periods that have ended since.

        "Now" is the step's first instant, so all that the step does counts into one period.
        """
        record = self._store.named(usage_key(name))
        if record is None:
            return self._begun(step.first_ms)
        row = self._tell_some(name, decode_usage_row(record), step, MOST_PERIODS)
        if row.until_ms <= step.first_ms:
            # The step's own counts belong behind all of them, and they are too many for it.
            begins_ms = max(row.until_ms, period_of(step.first_ms, self._length_ms)[0])
            self._tell(name, row._replace(until_ms=begins_ms).reckoned(begins_ms), step)
            row = self._next(begins_ms, row.held_bytes)
        return row.reckoned(step.first_ms)

    def _tell_some(self, name: bytes, row: UsageRow, step: Step, at_most: int) -> UsageRow:
        """Tell of periods that are over, as far as there is room; the row of the next one."""
        while row.until_ms <= step.first_ms and at_most > 0 and step.effects.room > 0:
            self._tell(name, row.reckoned(row.until_ms), step)
            if not row.held_bytes:
                return self._begun(step.first_ms)
            row = self._next(row.until_ms, row.held_bytes)
            at_most -= 1
        return row

    def _next(self, begins_ms: int, held_bytes: int) -> UsageRow:
        """The row of a period that begins where another one has ended."""
        _, until_ms = period_of(begins_ms, self._length_ms)
        return UsageRow(begins_ms, until_ms, begins_ms, held_bytes=held_bytes)

    def _begun(self, now_ms: int) -> UsageRow:
        return UsageRow(*period_of(now_ms, self._length_ms), now_ms)

    def _keep(self, name: bytes, row: UsageRow) -> None:
        self._store.note(usage_key(name), None if row.empty else encode_usage_row(row))

    def _tell(self, name: bytes, row: UsageRow, step: Step) -> None:
        if not (row.accepted or row.fired or row.held_byte_ms):
            return
        usage = Usage(
            tenant=name.decode(),
            from_ms=row.from_ms,
            until_ms=row.until_ms,
            accepted=row.accepted,
            fired=row.fired,
            held_byte_ms=row.held_byte_ms,
            partition=self._partition,
        )
        step.effects.metered.append((name, encode_usage(usage)))
        step.effects.room -= RECORD_BYTES
