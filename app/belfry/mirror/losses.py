"""The records of a source that were not carried, as a list: requests, and fires.

    requests behind the mark        are unknown here: they had no effect, and will have none
    fires behind the mark           came out of the source; here they are still to come, unless what
                                    had asked for them was not carried

A fire that comes here as well has the same `belfry-fire-id`, unless its schedule begins here anew:
requests are carried ahead of their verdicts, and the id counts from where the request lies.

    requests   40  41  42 │ 43            mark at 43, and the last manifest before it says 41
    lost                    43            it has no effect
    judged anew    41  42                 what they ask for comes here by the id of where they lie

Fires are told by the rows of their transactions (`verification/row_fires.py`), which need to know
how each schedule stood before. Fires without a row are counted, by the manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from belfry.mirror.judged_anew import JudgedAnew
from belfry.store.layout import keys
from belfry.verification import rows
from belfry.verification.memory import Remembered, Stands
from belfry.verification.row_fires import RowFire, remembered, row_fire_of
from belfry.verification.rows import Logged, Over

NOTHING: Final[Mapping[bytes, Remembered]] = MappingProxyType({})


class FiredBehind(NamedTuple):
    """A schedule that fired behind the mark; `times` is None if its rows do not tell.

    With `again` the schedule was carried, and so it fires once more; else its request was not
    carried. With `same_id` that fire has the id of this one; else it may have another one.
    """

    again: bool
    same_id: bool
    name: bytes
    due_ms: int
    times: int | None
    offset: int


def stood_before(records: Iterable[Logged], names: frozenset[bytes]) -> dict[bytes, Remembered]:
    """How those schedules stood after these records."""
    known: dict[bytes, Remembered] = {}
    for record in records:
        if record.key in names:
            _note(known, record)
    return known


def carried_rows_of(
    stood: Iterable[Mapping[bytes, Remembered]], under_way: Mapping[bytes, Remembered]
) -> dict[bytes, Remembered]:
    """How schedules stood at the marks, wherever they were: by how they `stood` in each partition,
    and by the rows that were `under_way` from one to another.

    Where it waits counts for more than what others remember: a partition that gave it away knows it
    as it was then, and a former home may keep the marker of an earlier life.
    """
    found: dict[bytes, Remembered] = {}
    for known in (*stood, under_way):
        for name, its in known.items():
            if name not in found or _worth(its) > _worth(found[name]):
                found[name] = its
    return found


def _worth(its: Remembered) -> int:
    """A pending schedule fires, one given away may fire elsewhere, an ended one does not."""
    return {Stands.OVER: 0, Stands.GONE: 1}.get(its.stands, 2)


class FiresBehind:
    """The fires of the transactions behind a mark; `told` counts them as manifests do."""

    def __init__(
        self, known: dict[bytes, Remembered], anew: JudgedAnew,
        elsewhere: Mapping[bytes, Remembered] = NOTHING, moved: frozenset[bytes] = frozenset(),
    ) -> None:  # fmt: skip
        """`known` is how schedules stood at the mark, and `elsewhere` how those of all partitions
        did (`carried_rows_of`). Rows of those that `moved` go and come without a fire.
        """
        self._known = known
        self._anew = anew
        self._carried = {**known, **elsewhere}
        self._moved = moved
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
            fire = row_fire_of(record, before, row, watermark_ms)
            moved = record.key in self._moved
            if isinstance(fire, RowFire):
                if not (moved and fire.times is None):
                    yield self._told(record, fire.before, fire.times)
            elif fire is not None and not moved:
                yield self._told(record, fire.row, 1)
            _note(self._known, record)

    def _told(self, record: Logged, its: Remembered | Over, times: int | None) -> FiredBehind:
        """A fire as it is listed; `its` is the schedule that fired."""
        comes = self._anew.comes(record.key, self._carried.get(record.key), its)
        return FiredBehind(*comes, record.key, its.due_ms, times, record.offset)


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
