"""One side of a mirror: a belfry in its Kafka cluster, as the mirror reaches it.

Both sides have the same settings but for the way to Kafka: the same prefix of topics, the same
`app_id`, the same number of partitions, and the same secret of workers where rows are signed. A
copy of the state would be of no use to workers with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, TopicCollection

from belfry.kafka import librdkafka
from belfry.kafka.anchors import anchors_of
from belfry.kafka.causes import cause_of
from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
from belfry.kafka.denials import sentence, user_of
from belfry.kafka.log_bounds import LogBounds
from belfry.kafka.record_headers import proof_of
from belfry.kafka.rights import TOPIC
from belfry.kafka.signature_marks import marks_of
from belfry.kafka.topic_tail import TopicTail
from belfry.kafka.topics import REACH_S, create_topics, tombstones_kept_ms
from belfry.kafka.wanted_topics import HOMES_TOPIC, TopicSpec, topics_of
from belfry.mirror.beginnings import CannotMirror, Ends, mark_in
from belfry.mirror.marks import CHANGELOG, KINDS, MARKS, REQUESTS, MirrorMark
from belfry.recovery.identities import Identities
from belfry.settings import SharedSettings
from belfry.store.identity import Identity, decode_identity, differ
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.row_judge import Judge

# Behind the end of every log.
_END: Final = 1 << 62
# Offsets of one look backwards.
_STRETCH: Final = 100
# Marks are small, and only the last one counts.
_MARKS_CONFIG: Final = {"cleanup.policy": "compact", "segment.bytes": "16777216"}


class Side(NamedTuple):
    """A side whose brokers have answered: its settings, its ids, and its topics by their kind.

    `homes` is the number of partitions that keep state. The changelog keeps tombstones for
    `tombstones_ms` at least.
    """

    name: str
    settings: SharedSettings
    here: Identity
    homes: int
    kinds: frozenset[str]
    trust: ChangelogTrust
    tombstones_ms: int
    # How many of the partitions are tenants' homes, where the belfry has grown; else 0.
    grown_from: int = 0
    # How many partitions each topic has, by its kind.
    counts: Mapping[str, int] = {}

    def kinds_of(self, partition: int) -> frozenset[str]:
        """The carried topics of a partition; added partitions are not in all of them."""
        kinds = self.kinds - {MARKS}
        return frozenset(each for each in kinds if partition < self.counts.get(each, 0))

    def judge(self, partition: int) -> Judge:
        """The judge of workers' rows in this side's changelog; CannotMirror without its secret."""
        try:
            mark = self.trust.known(partition)
        except NotTrusted as error:
            raise CannotMirror(f"{self.name}: {error}") from error
        return self.trust.judge(partition, self.here.changelog, mark)

    def bounds(self, kind: str, partition: int) -> LogBounds:
        """Where a topic of this side begins and ends."""
        return LogBounds(self.settings.kafka_properties(), self.settings.topic(kind), partition)

    def ends(self, partition: int) -> Ends:
        """The content of its changelog, and where it ends."""
        log = self.bounds(CHANGELOG, partition)
        end = log.ends()[1]
        newest = next(self.backwards(CHANGELOG, partition), None)
        return Ends(newest is None, end, None if newest is None else (newest.offset() or 0) + 1)

    def backwards(self, kind: str, partition: int) -> Iterator[Message]:
        """The committed records of a partition, the newest first; raises ConnectionError."""
        properties, topic = self.settings.kafka_properties(), self.settings.topic(kind)
        with TopicTail(properties, topic, {partition: _END}) as tail:
            while not tail.is_over:
                yield from reversed(tail.stretch(_STRETCH, lambda message: message))

    def mark(self, partition: int) -> MirrorMark | None:
        """The last mark of a partition of this side; None if it never followed another."""
        if partition >= self.counts.get(MARKS, 0):
            return None
        newest = next((each.value() for each in self.backwards(MARKS, partition)), None)
        return mark_in(newest, f"{self.name}, partition {partition}")

    def last_manifest(self, partition: int) -> Manifest | None:
        """The last manifest of a partition's changelog, or None."""
        manifests = self._rows_backwards(partition, keys.MANIFEST_PREFIX)
        return next((decode_manifest(row) for _, row in manifests), None)

    def given_to(self, partition: int) -> str | None:
        """The other cluster that the last transaction of a partition gives it to; None for none."""
        found = self._rows_backwards(partition, keys.MANIFEST_PREFIX, keys.IDENTITY_KEY)
        next(found, None)
        key, row = next(found, (b"", b""))
        if key != keys.IDENTITY_KEY:
            return None
        cluster = decode_identity(row).cluster
        return cluster if differ(cluster, self.here.cluster) else None

    def _rows_backwards(self, partition: int, *prefixes: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A worker's rows under such keys, the newest first."""
        judge = self.judge(partition)
        for message in self.backwards(CHANGELOG, partition):
            key, offset = message.key() or b"", message.offset() or 0
            if key.startswith(prefixes):
                known, row = judge.row(offset, key, message.value(), partial(proof_of, message))
                if known and row is not None:
                    yield key, row


def opened(name: str, settings: SharedSettings) -> Side:
    """A side by its settings; raises ConnectionError, and CannotMirror for topics that are missing
    or may not be described.

    `name` is its name in messages.
    """
    quiet = {"log_level": 0, "allow.auto.create.topics": False}
    admin = librdkafka.AdminClient({**settings.kafka_properties(), **quiet})
    try:
        cluster = admin.list_topics(timeout=REACH_S)
        partitions = partitions_of(name, admin, settings)
    except (KafkaException, TimeoutError) as error:
        servers = settings.bootstrap_servers
        raise ConnectionError(f"{name} at {servers}: {cause_of(error)}") from error
    names = settings.topic(CHANGELOG), settings.topic(REQUESTS)
    missing = [each for each in (CHANGELOG, REQUESTS) if each not in partitions]
    if missing:
        raise CannotMirror(
            f"{name}: {', '.join(map(settings.topic, missing))} does not exist: create it there"
            " with `belfry topics create`, and start no worker before the mirror has begun."
        )
    grown_from = partitions.pop(HOMES_TOPIC, 0)
    held, homes = partitions[CHANGELOG], partitions[REQUESTS]
    # Amid growth the changelog has its partitions first, and they have no owner yet.
    if held < homes or (held > homes and not grown_from):
        raise CannotMirror(
            f"{name}: {names[1]} has {homes} partitions, and {names[0]} has {held}: a mirror"
            " needs as many of the one as of the other."
        )
    anchors = anchors_of(settings)
    here = Identities(admin, str(cluster.cluster_id), names, anchors).now()
    trust = ChangelogTrust(settings, marks_of(settings))
    kept_ms = _tombstones_ms(admin, names[0])
    kinds = frozenset(partitions)
    return Side(name, settings, here, homes, kinds, trust, kept_ms, grown_from, partitions)


def partitions_of(name: str, admin: Any, settings: SharedSettings) -> dict[str, int]:
    """How many partitions each topic of a mirror has, by its kind; none of those that do not exist.

    Each is asked for by name. A list of all topics leaves out what may not be described, and a side
    whose marks are not seen would pass for one that never took over.
    """
    kinds = {settings.topic(each): each for each in (*KINDS, MARKS, HOMES_TOPIC)}
    asked = admin.describe_topics(TopicCollection(list(kinds)), request_timeout=REACH_S)
    found = {}
    for topic, answer in asked.items():
        try:
            found[kinds[topic]] = len(answer.result(REACH_S).partitions)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                user, servers = user_of(settings.kafka_properties()), settings.bootstrap_servers
                said = sentence(user, "Describe", TOPIC, topic, servers)
                raise CannotMirror(f"{name}: {said}") from error
            if code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def _tombstones_ms(admin: Any, changelog: str) -> int:
    try:
        return tombstones_kept_ms(admin, changelog)
    except KafkaException as error:
        raise ConnectionError(f"{changelog}: {error.args[0].str()}") from error


def pair(source: Side, target: Side, *, taken_over: bool = False) -> None:
    """See that one may follow the other; raises CannotMirror. With `taken_over` it has done so,
    and may have grown since.
    """
    if source.here.cluster == target.here.cluster:
        raise CannotMirror(
            f"source and target are the same cluster, {source.here.cluster}: a mirror is of another"
            " one."
        )
    theirs, mine = (each.grown_from or each.homes for each in (source, target))
    if theirs != mine or (target.homes > source.homes and not taken_over):
        raise CannotMirror(
            f"the source has {source.homes} partitions and the target {target.homes}, of which"
            f" {theirs} and {mine} are tenants' homes: the target may have none that the source has"
            f" not, and as many homes. Create the target's topics with BELFRY_CLUSTER__PARTITIONS="
            f"{theirs}."
        )
    lacking = sorted(source.kinds - target.kinds - {MARKS})
    if lacking:
        names = ", ".join(map(target.settings.topic, lacking))
        raise CannotMirror(f"the target has no {names}: create it with `belfry topics create`.")


def with_marks(side: Side) -> Side:
    """The same side, with the topic of marks, which is created where it is missing."""
    if MARKS in side.kinds:
        return side
    settings = side.settings
    admin = librdkafka.AdminClient({**settings.kafka_properties(), "log_level": 0})
    brokers = len(admin.list_topics(timeout=REACH_S).brokers)
    like = topics_of(settings.cluster, brokers, canary=False, metering=False)[0]
    config = {**_MARKS_CONFIG, "min.insync.replicas": like.config["min.insync.replicas"]}
    create_topics(admin, [TopicSpec(settings.topic(MARKS), side.homes, like.replication, config)])
    counts = {**side.counts, MARKS: side.homes}
    return side._replace(kinds=side.kinds | {MARKS}, counts=counts)


def source_settings(
    settings: SharedSettings, servers: str, properties: Mapping[str, Any]
) -> SharedSettings:
    """The settings of the other side: those of this one, but for the way to Kafka."""
    changed: dict[str, Any] = {"bootstrap_servers": servers, "kafka": dict(properties)}
    return settings.model_copy(update=changed)
