"""A take-over: the side that follows becomes the active one, after the other one was fenced.

With the source, no record is lost:

    1  say `leaving`                    a mirror that runs ends
    2  carry all records                the source's workers still fire
    3  fence each of its partitions     its workers are refused; the last row names this cluster, so
                                        they stop, and so does every worker that is started there
    4  carry the rest, and policies     up to the ends that were asked for after the fence
    5  activate each partition here     its workers, which look every three seconds, fire

All partitions are fenced before the rest is carried: one partition writes requests to another.

Without the source (`abandoned`) there is step 5 alone. The source's work behind the marks is not
here, and the source may still fire. No record can stop it: the clusters cannot talk. Partitions fit
together all the same (`cuts.py`), and records in inputs ahead of that are left out.

Repeat an interrupted take-over with the same command. Fenced partitions are fenced once more, and
active ones stay so. Policies were carried before the first partition became active, and not again:
from then on this side's own count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from belfry.host import machine
from belfry.kafka.causes import cause_of
from belfry.mirror.beginnings import CannotMirror, active_epoch
from belfry.mirror.fencing import TRIES, activate, fence
from belfry.mirror.growth import see_that_it_is_whole
from belfry.mirror.lane import TRANSACTION_MS
from belfry.mirror.leaving import LeavingLanes, NowMs
from belfry.mirror.marks import CHANGELOG, REQUESTS, Activated, MirrorMark
from belfry.mirror.opening import followed, is_added, number_of
from belfry.mirror.sides import Side
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.schedules.instants import format_instant
from belfry.store.layout import keys
from belfry.store.signatures import FILLER

# Seconds before it is tried again.
AGAIN_S: Final = 1.0
# Errors of a client if no broker answers: it has waited for long by then.
_AWAY: Final = (
    KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN,
)  # fmt: skip

# A line of the report: the partition, None for all, and a sentence.
Said = tuple[int | None, str]


def planned(
    source: Side, target: Side, policies: Callable[[], int], now_ms: NowMs
) -> Iterator[Said]:
    """Take over with the source; returns the steps, line by line. `policies` carries them."""
    begins: dict[int, dict[str, int]] = {}
    return _tried(lambda: _planned((source, target), policies, now_ms, begins))


def _planned(
    sides: tuple[Side, Side], policies: Callable[[], int], now_ms: NowMs,
    begins: dict[int, dict[str, int]],
) -> Iterator[Said]:  # fmt: skip
    """Do so once; `begins` is kept for the next try: from where the way back reads partitions."""
    source, target = sides
    left = [each for each in range(source.homes) if not _is_active(source, target, each)]
    with closing(LeavingLanes(source, target, now_ms)) as leaving:
        lanes = leaving.opened(left)
        for each in left:
            number = fence(source, target, each)
            yield each, f"fenced in the source, by transaction {number}"
        leaving.drain(fenced=True)
        # What was added behind the fence is empty, for groups come there by way of a home; but the
        # way back would find fewer partitions than it has.
        see_that_it_is_whole(leaving.topics, source.homes)
        if len(left) == source.homes:
            yield None, f"{policies()} policies carried"
        # Before anybody fires here: a partition that is active writes to others.
        for each in left:
            begins.setdefault(each, _begins(target, each))
        for lane in lanes:
            mark = lane.mark._replace(positions=lane.reader.positions)
            activated = Activated(now_ms(), True, begins[lane.partition])
            told = activate(lane.writer, target, lane.partition, mark, activated, {})
            yield lane.partition, f"active here: {told}"


def abandoned(target: Side, now_ms: NowMs) -> Iterator[Said]:
    """Take over without the source; returns the steps and the losses, line by line."""
    done: set[int | None] = set()

    def once() -> Iterator[Said]:
        for partition, said in _abandoned(target, now_ms, done):
            done.add(partition)
            yield partition, said

    return _tried(once)


def _tried(once: Callable[[], Iterator[Said]]) -> Iterator[Said]:
    """Do so some times, where somebody fences a partition of this side amid it.

    That may be a mirror that opens its lane again, or a worker that reads a partition's cluster. A
    repeated try skips the steps that were done.
    """
    for left in range(TRIES - 1, -1, -1):
        try:
            yield from once()
        except KafkaException as error:
            if not left or error.args[0].code() in _AWAY:
                raise
            yield None, f"begun again, for somebody took a partition meanwhile: {cause_of(error)}"
            machine.sleep(AGAIN_S)
        else:
            return


def _abandoned(target: Side, now_ms: NowMs, done: Collection[int | None]) -> Iterator[Said]:
    """Do so once; steps in `done` are not told again."""
    with ExitStack() as undo:
        writers = {}
        marks = {}
        for each in range(target.homes):
            marks[each] = followed(target, each)
            activated = marks[each].activated
            if activated is not None:
                _see_that_it_is_ours(target, each)
                if each not in done:
                    yield each, f"active here since {format_instant(activated.at_ms)}"
            else:
                writer = ChangelogWriter(target.settings, each, TRANSACTION_MS)
                writers[each] = undo.enter_context(closing(writer))
        # After the fence: no mirror carries anything any more. Soon, for a worker that waits here
        # fences as well, when it is given a partition.
        marks |= {each: followed(target, each) for each in writers}
        torn = _torn(target, marks, writers)
        if torn:
            raise CannotMirror(
                f"partitions {', '.join(map(str, torn))} were never carried as a whole: this side"
                " has no state to go on with there. Restore a backup instead."
            )
        numbers = {each: number_of(target, each, mark) for each, mark in marks.items()}
        for each, writer in writers.items():
            mark, activated = marks[each], Activated(now_ms(), False, {})
            told = activate(writer, target, each, mark, activated, numbers)
            yield each, f"active here: {told}"
            yield each, _given_up(mark)


def _torn(target: Side, marks: Mapping[int, MirrorMark], asked: Iterable[int]) -> list[int]:
    """The partitions that cannot be gone on with, of those that are `asked` about."""
    homes = range(target.grown_from or target.homes)
    since_ms = min(marks[each].began_ms for each in homes)
    return [each for each in asked if not _is_state(target, each, marks[each], since_ms)]


def _is_state(target: Side, partition: int, mark: MirrorMark, since_ms: int) -> bool:
    """Whether a partition can be gone on with: it was carried as a whole, or held nothing yet.

    The latter is a partition that the source got after the mirror began, at `since_ms`: records
    that others sent there are here. An older one may hold many records that were not carried.
    """
    if mark.whole:
        return mark.level_ms > 0
    if mark.number or not is_added(target, partition):
        return False
    if not mark.level_ms and mark.began_ms <= since_ms:
        return False
    # Rows of a first copy are carried in pieces, and identity and manifest name their cluster.
    found = (each.key() or b"" for each in target.backwards(CHANGELOG, partition))
    last = next((key for key in found if key != FILLER), b"")
    return not last or last.startswith((keys.MANIFEST_PREFIX, keys.IDENTITY_KEY))


def _see_that_it_is_ours(target: Side, partition: int) -> None:
    """Raise CannotMirror where the other side took over later, which this one never followed."""
    other = target.given_to(partition)
    if other is not None:
        raise CannotMirror(
            f"partition {partition} belongs to cluster {other}, which took over from this one, and"
            " no mirror has carried anything back since. If that cluster is lost for good: `belfry"
            " recover --from log --accept-input` goes on with what lies here, and reads requests"
            " again from the first one that is kept, so events that have fired may come once more."
        )


def fenced_late(source: Side, target: Side, *, apply: bool) -> Iterator[Said]:
    """Fence a source from which this side took over without it; with `apply` it is done."""
    for each in range(target.homes):
        # Partitions that this side got after its take-over never followed.
        own = is_added(target, each) and target.mark(each) is None
        if not (own or _is_active(source, target, each)):
            raise CannotMirror(
                f"partition {each} is not active on this side, or the source took over later: a"
                " fence would stop the side that may fire."
            )
    # Partitions that only the source got since fire there as well.
    for each in range(source.homes):
        if apply:
            yield each, f"fenced in the source, by transaction {fence(source, target, each)}"
        else:
            yield each, "would be fenced in the source"


def _begins(target: Side, partition: int) -> dict[str, int]:
    """Where the way back reads this side from, but for its requests."""
    kinds = target.kinds_of(partition) - {REQUESTS}
    return {each: target.bounds(each, partition).ends()[1] for each in kinds}


def _is_active(source: Side, target: Side, partition: int) -> bool:
    """Whether an earlier, interrupted take-over has got so far here."""
    return active_epoch(target.mark(partition)) > active_epoch(source.mark(partition))


def _given_up(mark: MirrorMark) -> str:
    """The warning on work of an abandoned source that is not here."""
    if not mark.positions:
        return "it was added lately, and nothing of it was carried"
    at = mark.positions[CHANGELOG], mark.positions[REQUESTS]
    level = format_instant(mark.level_ms)
    return (
        f"carried up to offset {at[0]} of the source's changelog and {at[1]} of its requests, which"
        f" is all that it had by {level}; `belfry mirror lost` lists what lies behind that, once"
        " the source can be read"
    )
