"""Which transactions of a changelog fired in another cluster: those that a mirror carried.

    marks of belfry.mirror    partition 0: offsets 0 to 812 were carried     not checked against the
                                                                             outputs of this cluster
                              taken over at 12:00:05                         lifecycle before that
                                                                             tells of other outputs
A belfry without a mirror has no such topic, and all of its transactions are its own.

Brokers do not say whether a topic is there that may not be described.  So if the marks cannot be
read, all transactions count as this cluster's own, and `unread` says why the marks could not be
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # its own

from belfry.client.errors import Unavailable
from belfry.kafka.denials import sentence, user_of
from belfry.kafka.rights import TOPIC
from belfry.kafka.topic_tail import TopicTail
from belfry.kafka.topics import REACH_S
from belfry.mirror.marks import GOES_ON, MARKS, MirrorMark, UnknownMark, decode_mark

if TYPE_CHECKING:
    from belfry.cli.session import Session

# Behind the end of every log, and offsets of one look backwards.
_END: Final = 1 << 62
_STRETCH: Final = 100
# A report from so long before its partition was level is carried with its transaction: clocks
# differ by less, and no transaction takes longer.
SLACK_MS: Final = 300_000


class FiredElsewhere(NamedTuple):
    """Stretches of offsets by partition, and until when (epoch ms) lifecycle tells of others.

    `anew_ms` is since when word may have been carried ahead of its transaction, and when the first
    and the last partition took over without the source. `unread` is why the marks could not be
    read, in a sentence; empty where they could.
    """

    stretches: dict[int, tuple[tuple[int, int], ...]] = {}  # noqa: RUF012  # never changed
    until_ms: int = -1
    anew_ms: tuple[int, int, int] = (0, 0, -1)
    unread: str = ""


def fired_elsewhere(session: Session) -> FiredElsewhere:
    """The content of this cluster's marks; raises `Unavailable` if no broker answers."""
    _, admin = session.admin()
    try:
        partitions, lacks = _marks_topic(session, admin)
        if lacks:
            return FiredElsewhere(unread=lacks)
        marks, unread = _marks(session, partitions)
    except (KafkaException, TimeoutError) as error:
        raise session.told(error) or Unavailable(str(error)) from error
    except ConnectionError as error:
        raise Unavailable(str(error)) from error
    stretches, until_ms = {}, -1
    for partition, mark in marks.items():
        if mark is not None:
            stretches[partition] = mark.carried
            at_ms = GOES_ON if mark.activated is None else mark.activated.at_ms
            until_ms = max(until_ms, at_ms)
    told = FiredElsewhere(stretches, until_ms, unread=unread)
    taken = [
        (each.level_ms or each.began_ms, each.activated.at_ms)
        for each in marks.values()
        if each is not None and each.activated is not None and not each.activated.planned
    ]
    if not taken:
        return told
    levels, times = zip(*taken, strict=True)
    return told._replace(anew_ms=(min(levels) - SLACK_MS, min(times), max(times)))


def _marks(session: Session, partitions: int) -> tuple[dict[int, MirrorMark | None], str]:
    """The newest mark of each partition that has one or none, and why others' cannot be read."""
    marks, unread = dict[int, MirrorMark | None](), list[str]()
    for partition in range(partitions):
        try:
            marks[partition] = _mark(session, partition)
        except UnknownMark as error:
            unread.append(f"{session.settings.topic(MARKS)}, partition {partition}: {error}")
    # One is told in full; once it is mended, the next one is told.
    return marks, unread[0] if unread else ""


def _mark(session: Session, partition: int) -> MirrorMark | None:
    """The newest mark of a partition; None where it never followed another cluster."""
    settings = session.settings
    with TopicTail(settings.kafka_properties(), settings.topic(MARKS), {partition: _END}) as tail:
        while not tail.is_over:
            for value in reversed(tail.stretch(_STRETCH, lambda message: message.value())):
                return None if value is None else decode_mark(value)
    return None


def _marks_topic(session: Session, admin: Any) -> tuple[int, str]:
    """How many partitions the topic of marks has, and which right is missing to read it."""
    topic = session.settings.topic(MARKS)
    asked = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=REACH_S
    )
    try:
        found = asked[topic].result(REACH_S)
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0, ""
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return 0, _lacks(session, "Describe", topic)
        raise
    allowed = found.authorized_operations
    # Brokers that do not tell are asked by reading.
    if allowed and AclOperation.READ not in allowed:
        return 0, _lacks(session, "Read", topic)
    return len(found.partitions), ""


def _lacks(session: Session, operation: str, topic: str) -> str:
    settings = session.settings
    user = user_of(settings.kafka_properties())
    return sentence(user, operation, TOPIC, topic, settings.bootstrap_servers)
