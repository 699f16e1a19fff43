"""Requests that wait at the home while their key group moves.

    the group moves     ─► a row for each, in the order of their offsets
    it lies elsewhere   ─► sent on to there, some with each step
    it lies here        ─► taken in, some with each step

As long as one waits, later ones wait behind it, so their order is kept.  The rows lie in the
changelog: another owner goes on with them, and each request has one outcome.

A bulk job is about schedules that were asked for before it, which offsets tell.  Where a group has
come home, its rows have those of the records that brought them, behind the requests that wait:

    offset   8 MOVE   11 BULK, waits   12 UPSERT a, waits   14 ROWS of s   16 END   17 GIVEN

So such a job could not tell `s` from `a`, and is refused: its sender may send it again.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from belfry.engine.admission import Admission
from belfry.engine.arrival import arrival_ms
from belfry.engine.aside_room import taken_place
from belfry.engine.groups import HANDED, USUAL, WAITS, Groups
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports
from belfry.engine.rerouting import MAX_MISROUTED_BYTES, MAX_RETRIES, Rerouting, too_large
from belfry.engine.step import Step
from belfry.engine.unforeseen import read_whole
from belfry.schedules.bulk import BULK
from belfry.schedules.fields import EMPTY
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout.aside import Waits, encode_aside
from belfry.store.layout.groups import RESTS, decode_held, held_key, held_range
from belfry.store.schedules import ScheduleStore
from belfry.wire.headers import asked_by
from belfry.wire.moves import HANDED_ON
from belfry.wire.record import SourceRecord, retries_of, size_of
from belfry.wire.requests import RequestReader

TOO_SOON: Final = Rejection(
    "tenant_held",
    "The key group of its tenant came back to its home partition while the job waited, and what was"
    " asked for before the job cannot be told any more. Nothing was done: send it again.",
)
# Requests of all groups that one step lets go.
MOST_AT_ONCE: Final = 500


class HeldRequests:
    """Keeps the requests of one partition that wait for their groups."""

    def __init__(
        self,
        store: ScheduleStore,
        reader: RequestReader,
        groups: Groups,
        reports: Reports,
        rerouting: Rerouting,
        admission: Admission,
    ) -> None:
        self._store = store
        self._reader = reader
        self._groups = groups
        self._reports = reports
        self._rerouting = rerouting
        self._admission = admission

    @property
    def under_way(self) -> bool:
        """Whether some of them may go on."""
        groups = self._groups
        return bool(groups.held) and any(groups.homes[each].phase == RESTS for each in groups.held)

    def judged_for(self, record: SourceRecord, tenant: str) -> int | None:
        """The partition for which a request is judged here; None where it waits or goes on."""
        way = self._groups.way(tenant, handed_on=self._is_handed_on(record))
        if way == HANDED:
            return self._groups.home(self._groups.of(tenant))
        return self._groups.here if way == USUAL else None

    def pass_on(self, record: SourceRecord, request: Request, step: Step) -> Reply | None:
        """Send a request on to where its group lies, or let it wait; the reply if it is refused."""
        way = self._groups.way(request["tenant"], handed_on=False)
        if way == WAITS:
            return self._hold(record, request, step)
        stop = way, self._reports.asked(record)
        return self._rerouting.send(record, request, stop, step, handed_on=True)

    def _is_handed_on(self, record: SourceRecord) -> bool:
        """Whether the home of its tenant has sent a request to where the group lies."""
        handed_on = any(name == HANDED_ON for name, _ in record[4] or ())
        return handed_on and self._reports.origin(record).rerouted

    def _hold(self, record: SourceRecord, request: Request, step: Step) -> Reply | None:
        """Let a request wait, unless it is too large to be sent on, or to lie in a changelog.

        Nor where something waits under its offset already: its input was made anew.
        """
        size = size_of(record)
        if size > MAX_MISROUTED_BYTES:
            return self._reports.reject(record, request, too_large(size, handed_on=True), step)
        group = self._groups.of(request["tenant"])
        key = held_key(group, record[0])
        if self._store.named(key) is not None:
            return self._reports.reject(record, request, taken_place(record[0]), step)
        waits = Waits(request["tenant"].encode(), record, self._admission.appended)
        self._store.note(key, encode_aside(waits))
        self._groups.held[group] = self._groups.held.get(group, 0) + 1
        step.effects.room -= size
        return None

    def ready(self, step: Step) -> list[Waits]:
        """The requests that are taken in here now, in order; those for elsewhere are sent on."""
        here: list[Waits] = []
        left = MOST_AT_ONCE
        for group in list(self._groups.held):
            if self._groups.homes[group].phase == RESTS:
                let_go = self._let_go(group, left, step)
                here += let_go
                left -= len(let_go)
        return here

    def _let_go(self, group: int, most: int, step: Step) -> list[Waits]:
        row = self._groups.homes[group]
        here: list[Waits] = []
        # Those of this very step are not to be seen yet.
        waiting = list(islice(self._store.between(*held_range(group)), most))
        for key, packed in waiting:
            if step.effects.room <= 0:
                break
            waits = decode_held(key, packed)
            self._store.note(key, None)
            self._leaves(group)
            if row.number and (job := self._job(waits, step)) is not None:
                came_ms = self._reports.origin(waits.record).timestamp_ms
                asked_ms = arrival_ms(came_ms, step.now_ms)
                self._reports.refuse(waits.record, job, TOO_SOON, asked_ms, step)
            elif row.at == self._groups.here or waits.lane in row.stays:
                here.append(waits)
                step.effects.room -= size_of(waits.record)
            else:
                self._send(waits, row.at, step)
        if group not in self._groups.held:
            self._groups.rests(group, row)
        return here

    def _send(self, waits: Waits, to: int, step: Step) -> None:
        """Send a request on to where its group lies.

        It is read only if it may be refused, so that its sender is told by its request id.
        """
        record, request = waits.record, None
        if retries_of(record) >= MAX_RETRIES:
            request = self._asked(waits, step)
        stop = to, self._reports.asked(record)
        self._rerouting.send(record, request, stop, step, handed_on=True)

    def _job(self, waits: Waits, step: Step) -> Request | None:
        """The request that waits, where it is for a bulk job that has begun nowhere yet."""
        read = read_whole(self._reader, waits.record, step)
        if isinstance(read, Rejection) or read["action"] != BULK:
            return None
        return None if self._reports.asked(waits.record) else read

    def _asked(self, waits: Waits, step: Step) -> Request:
        read = read_whole(self._reader, waits.record, step)
        found = asked_by(waits.record) if isinstance(read, Rejection) else read
        if found is None:
            # Its schema is not known here yet.
            nameless: Any = {**EMPTY, "tenant": waits.lane.decode(), "schedule_id": ""}
            found = nameless
        return found

    def _leaves(self, group: int) -> None:
        left = self._groups.held[group] - 1
        if left:
            self._groups.held[group] = left
        else:
            del self._groups.held[group]
