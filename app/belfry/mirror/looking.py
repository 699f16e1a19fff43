"""Questions to a mirror: how far behind it is, whether both sides are the same, the losses.

Each look reads topics and writes nothing. To compare schedules it reads whole changelogs, one
partition at a time, and keeps only a digest of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Final, NamedTuple

from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.partition_log import PartitionLog
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror, active_epoch
from belfry.mirror.comparing import Compared, Digests, Owners, compared
from belfry.mirror.judged_anew import LostRequest
from belfry.mirror.losses import FiredBehind, FiresBehind, carried_rows_of, stood_before
from belfry.mirror.marks import CHANGELOG, REQUESTS, MirrorMark, offsets_behind
from belfry.mirror.opening import followed, is_added, number_of
from belfry.mirror.requests_behind import RequestsBehind, WaitingRows
from belfry.mirror.sides import Side
from belfry.verification.memory import Remembered
from belfry.verification.rows import Logged
from belfry.wire.origins import believed_origin
from belfry.wire.record import Origin, SourceRecord, sent_by_of
from belfry.wire.worker_keys import Purpose

READ: Final = 20_000


class LaneStatus(NamedTuple):
    """How a partition stands: its mark, and offsets still to be carried; None where not known.

    `given` is the cluster that took over from this side in its turn; None where none has.
    """

    partition: int
    mark: MirrorMark | None
    behind: int | None
    given: str | None = None

    @property
    def stands(self) -> bool:
        """Whether the partition follows a source, or is the active side's."""
        return self.mark is not None and self.given is None


class Uncounted(NamedTuple):
    """Fires that manifests count and no row tells."""

    fires: int


Lost = LostRequest | FiredBehind | Uncounted


def statuses(source: Side | None, target: Side) -> Iterator[LaneStatus]:
    """The state of each partition; without the source its lag is unknown."""
    partitions = target.homes if source is None else max(source.homes, target.homes)
    for each in range(partitions):
        mark = target.mark(each)
        behind = None
        if source is not None and mark is not None:
            kinds = source.kinds_of(each)
            ends = {kind: source.bounds(kind, each).ends()[1] for kind in kinds}
            behind = offsets_behind(ends, mark.positions)
        given = None if mark is None or mark.activated is None else target.given_to(each)
        yield LaneStatus(each, mark, behind, given)


def comparison(source: Side, target: Side, partition: int, owners: Owners) -> Compared:
    """Both sides of a partition, as of its mark; raises CannotMirror where they have parted.

    `owners` sees the target's rows of it.
    """
    mark = target.mark(partition)
    if mark is None and partition >= target.homes:
        return Compared(0, [], 0)
    if mark is None or active_epoch(mark) > active_epoch(source.mark(partition)):
        raise CannotMirror(
            f"partition {partition} does not follow the source: there is nothing to compare."
        )
    at = mark.positions.get(CHANGELOG, 0)
    mine, theirs = Digests(), Digests()
    moved: set[bytes] = set()
    for record in _rows(target, partition, None):
        mine.take([(record.key, record.value)])
    for record in _rows(source, partition, None):
        if record.offset < at:
            theirs.take([(record.key, record.value)])
        else:
            moved.add(record.key)
    owners.take(mine)
    return compared(theirs, mine, frozenset(moved))


def losses(source: Side, target: Side) -> Iterator[tuple[int, Lost]]:
    """The source's records behind the marks, by partition."""
    marks = {each: _followed(target, each) for each in range(source.homes)}
    sorting = RequestsBehind({each: number_of(target, each, marks[each]) for each in marks})
    for partition, mark in marks.items():
        _sort(source, partition, mark, marks, sorting)
    # Read twice, for there may be far more rows than names; and up to where they ended at first.
    at = {each: mark.positions.get(CHANGELOG, 0) for each, mark in marks.items()}
    ends = dict(at)
    changed: set[bytes] = set()
    waiting = {each: WaitingRows(_origins(source, each)) for each in marks}
    for each in marks:
        for row in _rows(source, each, at[each]):
            if not waiting[each].changes(row.key):
                changed.add(row.key)
            ends[each] = row.offset + 1
    names = frozenset(changed)
    stood = {each: _stood(source, each, at[each], names, waiting[each]) for each in marks}
    for each, requests in waiting.items():
        sorting.wait(each, requests)
    elsewhere = carried_rows_of(stood.values(), sorting.under_way)
    anew, moved = sorting.anew(), frozenset(sorting.moved)
    for partition in marks:
        rows = (r for r in _rows(source, partition, at[partition]) if r.offset < ends[partition])
        fires = FiresBehind(stood[partition], anew, elsewhere, moved)
        named = 0
        for fire in fires.of(rows):
            named += fire.times or 0
            yield partition, fire
        if fires.told > named:
            yield partition, Uncounted(fires.told - named)
        yield from ((partition, each) for each in sorting.lost.get(partition, ()))


def _followed(target: Side, partition: int) -> MirrorMark:
    """The mark of a partition; one that was added since the last look has not been carried."""
    if partition >= target.homes or (
        is_added(target, partition) and target.mark(partition) is None
    ):
        return MirrorMark("", "", "", 0, {})
    return followed(target, partition)


def _stood(
    source: Side, partition: int, at: int, names: frozenset[bytes], waiting: WaitingRows
) -> dict[bytes, Remembered]:
    """How those schedules stood at a mark, an offset of the changelog; and what waited there."""
    if not at or not (names or waiting.any):
        return {}
    rows = (each for each in _rows(source, partition, None) if each.offset < at)
    return stood_before(waiting.seen(rows), names)


def _sort(
    source: Side, partition: int, mark: MirrorMark, marks: Mapping[int, MirrorMark],
    sorting: RequestsBehind,
) -> None:  # fmt: skip
    """Sort the requests of a partition that were not judged by its mark."""
    topic, origin_of = source.settings.topic(REQUESTS), _origins(source, partition)
    for record in _requests(source, partition, mark.judged):
        origin = origin_of(record)
        carried = record[0] < mark.positions.get(REQUESTS, 0)
        by = sent_by_of(record[4]) if origin.rerouted else None
        if by is None and origin.topic == topic and origin.rerouted:
            # Sent on by a release that does not say in which transaction.
            first = marks.get(origin.partition)
            carried = carried or (first is not None and _is_unjudged(origin.offset, first))
        sorting.take(partition, record, carried, by, origin[:3])


def _origins(source: Side, partition: int) -> Callable[[SourceRecord], Origin]:
    """A function that tells where a request of a partition came in first."""
    origin_keys = source.settings.worker_keys(Purpose.ORIGIN)
    topic = source.settings.topic(REQUESTS)
    return lambda record: believed_origin(origin_keys, record, topic, partition)


def _is_unjudged(offset: int, mark: MirrorMark) -> bool:
    """Whether a request was carried and not judged by then."""
    return mark.judged <= offset < mark.positions.get(REQUESTS, 0)


def _requests(source: Side, partition: int, at: int) -> Iterator[SourceRecord]:
    topic = source.settings.topic(REQUESTS)
    with closing(PartitionLog(source.settings.kafka_properties(), topic, partition)) as log:
        low, end = log.ends()
        log.seek(max(at, low))
        for messages in log.read_until(end, READ):
            for message, headers in zip(messages, headers_of(messages), strict=True):
                offset, at_ms = message.offset() or 0, message.timestamp()[1]
                yield offset, at_ms, message.key(), message.value(), headers


def _rows(side: Side, partition: int, at: int | None) -> Iterator[Logged]:
    """Rows of a side's changelog from an offset on, None for its first one."""
    topic = side.settings.topic(CHANGELOG)
    with closing(ChangelogReader(side.settings.kafka_properties(), topic, partition)) as log:
        log.sieve = Sieve(side.judge(partition))
        low, end = log.ends()
        log.seek(low if at is None else max(at, low))
        for records in log.read_until(end, READ):
            times = {each.offset: each.timestamp for each in records}
            for (key, row), offset in zip(*log.changes(records), strict=True):
                yield Logged(offset, times[offset], key, row)
