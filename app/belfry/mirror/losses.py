"""What a source holds that was not carried, as a list: requests, and fires.

    requests behind the mark        are unknown here: nothing became of them, and nothing will
    fires behind the mark           came out of the source; here they are still to come, unless what
                                    had asked for them was not carried

A fire that comes here as well has the same `belfry-fire-id`, unless its schedule begins here anew:
requests are carried ahead of their verdicts, and the id counts from where the request lies.

    requests   40  41  42 │ 43            mark at 43, and the last manifest before it says 41
    lost                    43            nothing becomes of it
    judged anew    41  42                 what they ask for comes here by the id of where they lie

Fires are told by the rows of their transactions (`verification/row_fires.py`), which need to know
how each schedule stood before. What the rows do not tell is counted, by what manifests say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from belfry.schedules.identity import generation_at
from belfry.schedules.rejections import Rejection
from belfry.store.layout import keys
from belfry.verification import rows
from belfry.verification.memory import Remembered
from belfry.verification.row_fires import RowFire, remembered, row_fire_of
from belfry.verification.rows import Logged, Over
from belfry.wire.headers import asked_by
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader


class LostRequest(NamedTuple):
    """A request that was not carried: its offset, when it was written, and what it says.

    `action`, `tenant` and `schedule_id` are empty where it cannot be read.
    """

    offset: int
    at_ms: int
    key: bytes | None
    action: str = ""
    tenant: str = ""
    schedule_id: str = ""


class FiredBehind(NamedTuple):
    """A schedule that fired behind the mark; `times` is None where its rows do not tell.

    With `again` it was carried, and so it fires once more; else what had asked for it was not. With
    `same_id` that fire has the id of this one; else it may have another one.
    """

    again: bool
    same_id: bool
    name: bytes
    due_ms: int
    times: int | None
    offset: int


def lost_request(record: SourceRecord) -> LostRequest:
    """A request as it is listed."""
    offset, at_ms, key, _, _ = record
    read = RequestReader().read_whole(record)
    asked = asked_by(record) if isinstance(read, Rejection) else read
    if asked is None:
        return LostRequest(offset, at_ms, key)
    action = str(asked.get("action") or "")
    return LostRequest(offset, at_ms, key, action, asked["tenant"], asked["schedule_id"])


class JudgedAnew:
    """Requests of a partition that were carried ahead of their verdicts, by their offsets."""

    def __init__(self, partition: int) -> None:
        self._first = generation_at(partition, 0)
        self._offsets: set[int] = set()
        # Those that ask for a schedule, which they begin or change.
        self._asking: dict[bytes, list[int]] = {}

    def take(self, record: SourceRecord) -> None:
        """A further one."""
        its = lost_request(record)
        self._offsets.add(its.offset)
        if its.action == "UPSERT":
            name = keys.schedule_key(its.tenant, its.schedule_id)
            self._asking.setdefault(name, []).append(its.offset)

    def brings(self, name: bytes, was: Remembered | None, its: Remembered | Over) -> bool:
        """Whether a schedule comes to what it was in the source, by what was carried of it.

        `was` is the row that was carried. Each request raises a schedule's version by one at most.
        """
        if was is not None and was.life == its.life:
            begun, version = -1, was.version
        else:
            begun, version = its.life - self._first, 1
            if begun not in self._offsets:
                return False
        later = sum(offset > begun for offset in self._asking.get(name, ()))
        return its.version <= version + later


def stood_before(records: Iterable[Logged], names: frozenset[bytes]) -> dict[bytes, Remembered]:
    """How those schedules stood after these records."""
    known: dict[bytes, Remembered] = {}
    for record in records:
        if record.key in names:
            _note(known, record)
    return known


class FiresBehind:
    """The fires of the transactions behind a mark; `told` counts them as manifests do."""

    def __init__(self, known: dict[bytes, Remembered], anew: JudgedAnew) -> None:
        """`known` is how schedules stood at the mark."""
        self._known = known
        self._anew = anew
        self._carried = known.copy()
        self.told = 0

    def of(self, records: Iterable[Logged]) -> Iterator[FiredBehind]:
        """Schedules that fired, transaction by transaction."""
        cut: list[Logged] = []
        for record in records:
            if not record.key.startswith(keys.MANIFEST_PREFIX):
                cut.append(record)
            elif record.value is not None:
                sealed = rows.manifest(record.value)
                self.told += sealed.fired
                if sealed.fired:
                    yield from self._fired(cut, sealed.watermark_ms)
                else:
                    for each in cut:
                        _note(self._known, each)
                cut = []

    def _fired(self, cut: list[Logged], watermark_ms: int) -> Iterator[FiredBehind]:
        for record in cut:
            if record.key[:1] == b"\0":
                continue
            before = self._known.get(record.key)
            row = None if record.value is None else rows.schedule(record.value)
            fire = row_fire_of(record.key, before, row, watermark_ms, record.offset)
            if isinstance(fire, RowFire):
                yield self._told(record, fire.before, fire.times)
            elif fire is not None:
                yield self._told(record, fire.row, 1)
            _note(self._known, record)

    def _told(self, record: Logged, its: Remembered | Over, times: int | None) -> FiredBehind:
        """A fire as it is listed; `its` is the schedule that fired."""
        was = self._carried.get(record.key)
        again = self._anew.brings(record.key, was, its)
        same_id = again and was is not None and was.life == its.life
        return FiredBehind(again, same_id, record.key, its.due_ms, times, record.offset)


def _note(known: dict[bytes, Remembered], record: Logged) -> None:
    """Remember how a schedule stands after a row of it."""
    if record.key[:1] == b"\0":
        return
    row = None if record.value is None else rows.schedule(record.value)
    after = remembered(record, row, known.get(record.key))
    if after is None:
        known.pop(record.key, None)
    else:
        known[record.key] = after
