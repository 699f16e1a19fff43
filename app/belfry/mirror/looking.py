"""What a mirror is asked: how far behind it is, whether both sides are the same, what is lost.

Each look reads topics and writes nothing. Changelogs are read as a whole where schedules are
compared, one partition at a time, and only a digest of each row is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final, NamedTuple

from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.partition_log import PartitionLog
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror, active_epoch
from belfry.mirror.comparing import Compared, Digests, compared
from belfry.mirror.losses import (
    FiredBehind,
    FiresBehind,
    JudgedAnew,
    LostRequest,
    lost_request,
    stood_before,
)
from belfry.mirror.marks import CHANGELOG, MARKS, REQUESTS, MirrorMark, offsets_behind
from belfry.mirror.sides import Side, followed
from belfry.verification.rows import Logged
from belfry.wire.origins import believed_origin
from belfry.wire.record import SourceRecord
from belfry.wire.worker_keys import Purpose

READ: Final = 20_000


class LaneStatus(NamedTuple):
    """How a partition stands: its mark, and offsets still to be carried; None where not known."""

    partition: int
    mark: MirrorMark | None
    behind: int | None


class Uncounted(NamedTuple):
    """Fires that manifests count and no row tells."""

    fires: int


Lost = LostRequest | FiredBehind | Uncounted


def statuses(source: Side | None, target: Side) -> Iterator[LaneStatus]:
    """How each partition stands; without the source nobody knows how far behind it is."""
    for each in range(target.homes):
        mark = target.mark(each)
        behind = None
        if source is not None and mark is not None:
            kinds = source.kinds - {MARKS}
            ends = {kind: source.bounds(kind, each).ends()[1] for kind in kinds}
            behind = offsets_behind(ends, mark.positions)
        yield LaneStatus(each, mark, behind)


def comparison(source: Side, target: Side, partition: int) -> Compared:
    """Both sides of a partition, as of its mark; raises CannotMirror where they have parted."""
    mark = target.mark(partition)
    if mark is None or active_epoch(mark) > active_epoch(source.mark(partition)):
        raise CannotMirror(
            f"partition {partition} does not follow the source: there is nothing to compare."
        )
    at = mark.positions[CHANGELOG]
    mine, theirs = Digests(), Digests()
    moved: set[bytes] = set()
    for record in _rows(target, partition, None):
        mine.take([(record.key, record.value)])
    for record in _rows(source, partition, None):
        if record.offset < at:
            theirs.take([(record.key, record.value)])
        else:
            moved.add(record.key)
    return compared(theirs, mine, frozenset(moved))


def losses(source: Side, target: Side) -> Iterator[tuple[int, Lost]]:
    """What the source holds behind the marks, by partition."""
    marks = {each: followed(target, each) for each in range(target.homes)}
    for partition, mark in marks.items():
        anew, lost = JudgedAnew(partition), []
        for record in _requests(source, partition, mark.judged):
            if record[0] < mark.positions[REQUESTS] or _comes_anew(source, record, marks):
                anew.take(record)
            else:
                lost.append(lost_request(record))
        yield from ((partition, each) for each in _fires(source, partition, mark, anew))
        yield from ((partition, each) for each in lost)


def _fires(
    source: Side, partition: int, mark: MirrorMark, anew: JudgedAnew
) -> Iterator[FiredBehind | Uncounted]:
    """What fired behind a mark."""
    at = mark.positions[CHANGELOG]
    behind = list(_rows(source, partition, at))
    names = frozenset(each.key for each in behind)
    before = (each for each in _rows(source, partition, None) if each.offset < at)
    fires = FiresBehind(stood_before(before, names), anew)
    named = 0
    for fire in fires.of(behind):
        named += fire.times or 0
        yield fire
    if fires.told > named:
        yield Uncounted(fires.told - named)


def _comes_anew(source: Side, record: SourceRecord, marks: Mapping[int, MirrorMark]) -> bool:
    """Whether a request is one that was carried in another partition, and is sent on there anew."""
    topic = source.settings.topic(REQUESTS)
    origin = believed_origin(source.settings.worker_keys(Purpose.ORIGIN), record, topic, -1)
    mark = marks.get(origin.partition) if origin.topic == topic else None
    return mark is not None and mark.judged <= origin.offset < mark.positions[REQUESTS]


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
