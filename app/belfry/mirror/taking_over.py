"""A take-over: the side that follows becomes the active one, after the other one was fenced.

With the source, nothing is lost:

    1  carry what there is              the source's workers still fire
    2  say `leaving`                    a mirror that runs ends
    3  fence each of its partitions     its workers are refused; the last row names this cluster, so
                                        they stop, and so does every worker that is started there
    4  carry the rest, and policies     up to the ends that were asked for after the fence
    5  activate each partition here     its workers, which look every three seconds, fire

All partitions are fenced before the rest is carried: one partition writes requests to another.

Without the source (`abandoned`) there are steps 2 and 5 alone. What the source did behind the marks
is not here, and nobody keeps it from firing. No record can: the clusters cannot talk.

A take-over that was interrupted is repeated as it is. What is fenced is fenced once more, and what
is active stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Final

from confluent_kafka import TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.log_bounds import WITHOUT_GROUP
from belfry.kafka.record_headers import headers_of
from belfry.mirror.beginnings import CannotMirror, active_epoch
from belfry.mirror.carried import carried_from, translated
from belfry.mirror.lane import TRANSACTION_MS, Lane
from belfry.mirror.manifests import activation_manifest, fence_manifest
from belfry.mirror.marks import (
    CHANGELOG,
    MARK_KEY,
    MARKS,
    REQUESTS,
    Activated,
    MirrorMark,
    encode_mark,
)
from belfry.mirror.sides import Side
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.schedules.instants import format_instant
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest

# Seconds within which the rest has to be carried, and a look at requests be answered.
DRAIN_S: Final = 120.0
LOOK_S: Final = 10.0

NowMs = Callable[[], int]
# A line of the report: the partition, None for all, and a sentence.
Said = tuple[int | None, str]


def planned(
    source: Side, target: Side, policies: Callable[[], int], now_ms: NowMs
) -> Iterator[Said]:
    """Take over with the source; what is done, line by line. `policies` carries them."""
    left = [each for each in range(source.homes) if not _is_active(source, target, each)]
    with ExitStack() as undo:
        lanes = []
        for each in left:
            lane = undo.enter_context(closing(Lane(source, target, each, takes_over=True)))
            lanes.append(lane)
            _drain(lane, now_ms)
        for lane in lanes:
            lane.say(lane.mark._replace(leaving=True))
        for lane in lanes:
            number = fence(source, target, lane.partition)
            yield lane.partition, f"fenced in the source, by transaction {number}"
        for lane in lanes:
            _drain(lane, now_ms)
        yield None, f"{policies()} policies carried"
        for lane in lanes:
            told = _activate(lane.writer, target, lane.partition, lane.mark, now_ms(), planned=True)
            yield lane.partition, f"active here: {told}"


def abandoned(target: Side, now_ms: NowMs) -> Iterator[Said]:
    """Take over without the source; what is done and what that gives up, line by line."""
    with ExitStack() as undo:
        writers = {}
        for each in range(target.homes):
            if _followed(target, each).activated is None:
                writer = ChangelogWriter(target.settings, each, TRANSACTION_MS)
                writers[each] = undo.enter_context(closing(writer))
        # After the fence: no mirror carries anything any more.
        marks = {each: _followed(target, each) for each in writers}
        torn = [each for each, mark in marks.items() if not mark.whole]
        if torn:
            raise CannotMirror(
                f"partitions {', '.join(map(str, torn))} were never carried as a whole: this side"
                " has no state to go on with there. Restore a backup instead."
            )
        for each, mark in marks.items():
            told = _activate(writers[each], target, each, mark, now_ms(), planned=False)
            yield each, f"active here: {told}"
            yield each, _given_up(mark)


def fenced_late(source: Side, target: Side, *, apply: bool) -> Iterator[Said]:
    """Fence a source from which this side took over without it; with `apply` it is done."""
    for each in range(target.homes):
        if not _is_active(source, target, each):
            raise CannotMirror(
                f"partition {each} is not active on this side, or the source took over later: a"
                " fence would stop the side that may fire."
            )
    for each in range(target.homes):
        if apply:
            yield each, f"fenced in the source, by transaction {fence(source, target, each)}"
        else:
            yield each, "would be fenced in the source"


def fence(source: Side, target: Side, partition: int) -> int:
    """Let the last row of a partition name the target's cluster; the number of that transaction.

    Whoever owned the partition is refused from here on, and whoever takes it over stops before it
    fires (`other_cluster`). Raises CannotMirror where the end of the changelog is hidden.
    """
    with closing(ChangelogWriter(source.settings, partition, TRANSACTION_MS)) as writer:
        log = source.bounds(CHANGELOG, partition)
        if log.ends()[1] < log.log_end():
            writer.abort_what_is_torn()
        if log.ends()[1] < log.log_end():
            raise CannotMirror(
                f"a transaction is open in partition {partition} of the source's changelog and"
                " hides its end: `belfry doctor` there says whose it is and how to end it."
            )
        requests = source.bounds(REQUESTS, partition)
        manifest = fence_manifest(source.last_manifest(partition), requests.ends()[0])
        _write(writer, source, (encode_identity(target.here), manifest))
        writer.commit()
    return manifest.txn_seq


def _write(writer: ChangelogWriter, side: Side, rows: tuple[bytes, Manifest]) -> None:
    """Begin a transaction with the two rows that say whose a partition is, and how it stands."""
    identity, manifest = rows
    writer.begin(side.here.changelog)
    writer.row(keys.IDENTITY_KEY, identity)
    writer.row(keys.manifest_key(manifest.txn_seq), encode_manifest(manifest))


def _activate(
    writer: ChangelogWriter, target: Side, partition: int, mark: MirrorMark, now_ms: int,
    *, planned: bool,
) -> str:  # fmt: skip
    """Make a partition this side's own, in one transaction; how it stands, in words."""
    last = target.last_manifest(partition)
    if last is None:
        raise CannotMirror(f"partition {partition} holds no transaction: nothing was carried.")
    position = _position(target, partition, last.position)
    begins = {}
    if planned:
        others = target.kinds - {MARKS, REQUESTS}
        begins = {each: target.bounds(each, partition).ends()[1] for each in others}
        begins[REQUESTS] = position
    manifest = activation_manifest(last, position)
    identity = target.here._replace(generation=mark.generation + 1)
    *former, (since, _) = mark.carried
    carried = (*former, (since, target.bounds(CHANGELOG, partition).ends()[1]))
    activated = Activated(now_ms, planned, begins)
    taken = mark._replace(leaving=True, activated=activated, carried=carried)
    _write(writer, target, (encode_identity(identity), manifest))
    writer.beside(target.settings.topic(MARKS), MARK_KEY, encode_mark(taken))
    writer.commit()
    return f"{manifest.pending} schedules wait, requests are read on from offset {position}"


def _position(target: Side, partition: int, source_position: int) -> int:
    """The offset of the target's requests that stands for one of the source's."""
    topic = target.settings.topic(REQUESTS)
    low, end = target.bounds(REQUESTS, partition).ends()
    properties = {
        **target.settings.kafka_properties(), **WITHOUT_GROUP, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "error",
        "fetch.wait.max.ms": 10,
    }  # fmt: skip
    with closing(librdkafka.Consumer(properties)) as consumer:

        def look(offset: int) -> int | None:
            consumer.assign([TopicPartition(topic, partition, offset)])
            deadline = machine.monotonic() + LOOK_S
            while machine.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error() is not None:
                    return None
                found = carried_from(headers_of([message])[0])
                if found is not None:
                    return found
            raise ConnectionError(f"{topic}/{partition} is not read within {LOOK_S:.0f} s")

        return translated(source_position, low, end, look)


def _drain(lane: Lane, now_ms: NowMs) -> None:
    """Carry all that the source has now."""
    ends = lane.reader.ends()
    deadline = machine.monotonic() + DRAIN_S
    while not lane.reached(ends):
        if lane.turn(0.1, now_ms()):
            deadline = machine.monotonic() + DRAIN_S
        elif machine.monotonic() > deadline:
            raise CannotMirror(
                f"partition {lane.partition} of the source was not read up to its end: {ends}."
            )


def _is_active(source: Side, target: Side, partition: int) -> bool:
    """Whether an earlier, interrupted take-over has got so far here."""
    return active_epoch(target.mark(partition)) > active_epoch(source.mark(partition))


def _followed(target: Side, partition: int) -> MirrorMark:
    mark = target.mark(partition)
    if mark is None:
        raise CannotMirror(f"partition {partition} of this side never followed another cluster.")
    return mark


def _given_up(mark: MirrorMark) -> str:
    """What an abandoned source may have done that is not here."""
    at = mark.positions[CHANGELOG], mark.positions[REQUESTS]
    level = format_instant(mark.level_ms)
    return (
        f"carried up to offset {at[0]} of the source's changelog and {at[1]} of its requests, which"
        f" is all that it had by {level}; `belfry mirror lost` lists what lies behind that, once"
        " the source can be read"
    )
