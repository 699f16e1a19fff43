"""All schedules that wait, read from the changelog: no worker is needed, and none is disturbed.

Each partition is read `read_committed` up to the end that the log had when its reading began, and
folded: the last record of a name counts. An open transaction may hide a part of that, so the reader
waits for it, and one that stays open is an error: records behind it are not left out in silence.
The last transaction's manifest says how many schedules wait, so a hole is noticed. One partition's
waiting schedules are held in memory at a time.

    offset     0       1       2        3           4          5
    record     a       b       M(2)     a deleted   M(1)       marker of the commit
    waiting    a       a b              b                      the manifest says 1: all is there

A schedule that fires during the reading of a partition may be in the export or not. A schedule that
was accepted before the reading began, and still waits at its end, is always in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from belfry.client.errors import BelfryError, MissingTopic
from belfry.client.kafka import Cluster
from belfry.client.watermarks import watermarks
from belfry.kafka.record_headers import proof_of
from belfry.store.group_lookup import unsettled
from belfry.store.layout.groups import GROUP_PREFIX
from belfry.store.layout.keys import MANIFEST_PREFIX
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.layout.pending_bytes import HEAD_OF_PENDING
from belfry.store.layout.records import GROUP, PENDING, UnknownFormat, check_format
from belfry.store.row_judge import Judge

BATCH = 10_000
POLL_S = 0.2
TIMEOUT_S = 30.0


class DamagedChangelog(BelfryError):
    """The changelog does not hold what its last manifest says."""


class MovedMeanwhile(BelfryError):
    """A key group was on its way between partitions while the changelog was read."""


class HiddenChangelog(BelfryError):
    """An open transaction hides a part of the changelog."""


def _ignored(_row: bytes) -> None:
    """The callback for rows that the caller did not ask for."""


class Fold:
    """The pending schedules of one partition, by name, and its last manifest.

    `held` makes the part of a schedule's row that is kept, and `noted` hears of rows that belong to
    no schedule: locks, jobs, requests set aside.
    """

    def __init__(
        self,
        judge: Judge,
        held: Callable[[bytes], bytes] = bytes,
        noted: Callable[[bytes], object] = _ignored,
    ) -> None:
        self._judge = judge
        self._held = held
        self._noted = noted
        self.waiting: dict[bytes, bytes] = {}
        # Rows of key groups that are not simply at home.
        self.groups: dict[bytes, bytes] = {}
        self.manifest: Manifest | None = None

    def take(self, message: Message) -> None:
        """One more record of the changelog, in its order."""
        key, value, offset = message.key() or b"", message.value(), message.offset() or 0
        if self._judge.believes(key, value):
            # Nearly all are such: a schedule that waits, or one that is over.
            assert value is not None
            if value[:2] == HEAD_OF_PENDING:
                self.waiting[key] = self._held(value)
            else:
                self.waiting.pop(key, None)
            return
        known, value = self._judge.row(offset, key, value, partial(proof_of, message))
        if known:
            self._take(key, value)

    def _take(self, key: bytes, value: bytes | None) -> None:
        """One row: a manifest, a pending schedule, or the removal of one."""
        if key.startswith(MANIFEST_PREFIX):
            self.manifest = self.manifest if value is None else decode_manifest(value)
        # Keys of belfry's own begin so: locks, jobs and others. An export is of schedules alone.
        elif key[:1] == b"\0":
            self._noted(value or b"")
            if key.startswith(GROUP_PREFIX):
                self._take_group(key, value)
        elif value is not None and check_format(value) == PENDING:
            self.waiting[key] = self._held(value)
        else:
            self.waiting.pop(key, None)

    def _take_group(self, key: bytes, value: bytes | None) -> None:
        """A row of a group; requests that wait for a group are not kept."""
        if value is None:
            self.groups.pop(key, None)
        elif value[1:2] == bytes((GROUP,)):
            self.groups[key] = value

    def check(self, partition: int) -> None:
        """Raise `DamagedChangelog` unless as many wait as the manifest says."""
        told = 0 if self.manifest is None else self.manifest.pending
        if told != len(self.waiting):
            raise DamagedChangelog(
                f"Partition {partition} of the changelog holds {len(self.waiting)} waiting"
                f" schedules, but its last manifest says {told}: records are missing. Start a"
                " worker, whose log says more, and restore a backup."
            )


def _trusting(_partition: int) -> Judge:
    """The judge for unsigned changelogs: it believes each row."""
    return Judge()


def waiting_records(
    cluster: Cluster,
    changelog: str,
    group: str,
    tenant: str | None = None,
    judges: Callable[[int], Judge] = _trusting,
) -> Iterator[bytes]:
    """The pending records of all schedules that wait, or of one tenant's, in order of their names.

    The order is that of partitions first. `judges` gives for each partition the judge that tells
    its rows from strangers' records. The bytes are those of docs in `store/README.md`. Raises
    `DamagedChangelog`, `HiddenChangelog`, `MovedMeanwhile` and `Unavailable`, and closes its
    consumers where the caller ends early.
    """
    for _, fold in folded(cluster, changelog, group, lambda each: Fold(judges(each))):
        for name in sorted(fold.waiting):
            if tenant is None or name.startswith(f"{tenant}/".encode()):
                yield fold.waiting[name]
        # Before the next partition is read, for two of them may not fit into memory.
        del fold


def folded(
    cluster: Cluster, changelog: str, group: str, fold_of: Callable[[int], Fold]
) -> Iterator[tuple[int, Fold]]:
    """Each partition of a changelog with its pending schedules; one after the other.

    The caller lets go of one before it takes the next. Raises as `waiting_records` does, and behind
    the last one `MovedMeanwhile` where a key group may have been missed, or met twice.
    """
    consumer = cluster.consumer(group, from_beginning=True, tells_ends=True)
    ends = cluster.consumer(group, uncommitted=True)
    groups: list[dict[bytes, bytes]] = []
    try:
        homes = _homes(cluster, consumer, changelog)
        for partition in sorted(cluster.partitions(consumer, changelog)):
            fold, place = fold_of(partition), TopicPartition(changelog, partition)
            _read(cluster, consumer, place, fold, _log_end(cluster, ends, place))
            fold.check(partition)
            groups.append(fold.groups)
            yield partition, fold
        if (moving := unsettled(groups, homes)) is not None:
            raise MovedMeanwhile(
                f"A key group is on its way to another partition (group {moving}), so some"
                " schedules may be missing in what was read, or there twice. Do not use"
                " it: read again when the group has arrived."
            )
    finally:
        consumer.close()
        ends.close()


def _homes(cluster: Cluster, consumer: Consumer, changelog: str) -> int:
    """How many partitions are homes, by the topic that says so where a belfry has grown; 0: all."""
    try:
        return len(cluster.partitions(consumer, f"{changelog.removesuffix('changelog')}homes"))
    except MissingTopic:
        return 0


def _log_end(cluster: Cluster, consumer: Consumer, place: TopicPartition) -> int:
    """The offset after the last record, whether an open transaction holds it back or not."""
    try:
        return watermarks(consumer, place, TIMEOUT_S)[1]
    except KafkaException as error:
        raise cluster.unavailable(error.args[0], place.topic) from None


def _read(
    cluster: Cluster, consumer: Consumer, place: TopicPartition, fold: Fold, end: int
) -> None:
    """Fold a partition up to `end`; HiddenChangelog where it cannot be read so far."""
    try:
        low = watermarks(consumer, place, TIMEOUT_S)[0]
        consumer.assign([TopicPartition(place.topic, place.partition, low)])
        reached, moved = low, monotonic()
        while reached < end:
            # What has come is taken at once: to wait for a whole batch would end each partition
            # with such a wait.
            some = consumer.consume(1, POLL_S)
            some += consumer.consume(BATCH, 0) if some else []
            now_at = max(reached, _fold(cluster, some, fold))
            if now_at > reached:
                reached, moved = now_at, monotonic()
            elif monotonic() - moved > TIMEOUT_S:
                raise HiddenChangelog(
                    f"{place.topic}/{place.partition} cannot be read beyond offset {reached}, and"
                    f" ends at {end}: a transaction is open there and hides what follows."
                    " `belfry doctor` says whose it is and how to end it."
                )
    except KafkaException as error:
        raise cluster.unavailable(error.args[0], place.topic) from None


def _take(fold: Fold, message: Message) -> None:
    """Fold one record; a format of a later release is damage here, for no row may be left out."""
    try:
        fold.take(message)
    except UnknownFormat as error:
        raise DamagedChangelog(f"{message.topic()}/{message.partition()}: {error}") from None


def _fold(cluster: Cluster, messages: Sequence[Message], fold: Fold) -> int:
    """Fold records; returns the offset to be read next, past the marks of transactions."""
    reached = 0
    for message in messages:
        error = message.error()
        if error is None:
            reached = (message.offset() or 0) + 1
            _take(fold, message)
        elif error.code() == KafkaError._PARTITION_EOF:
            reached = message.offset() or 0
        elif error.fatal() or not error.retriable():
            raise cluster.unavailable(error, message.topic() or "")
    return reached
