"""A source that has grown: the target is given the same partitions, while workers of both run.

    1  belfry.homes        as many partitions as there are homes
    2  belfry.mirror       for the marks of those that are added
    3  belfry.changelog    then a transaction in each that is added: whose it is, and a mark
    4  belfry.schedules    a worker here that is given one of them finds whose it is, and waits

So the passive side begins no belfry of its own in a partition that is empty. A repeated run leaves
out steps that were done. No schedule of a group can lie in a partition that is not followed: a
transaction that names it waits in its lane (`cuts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

from confluent_kafka import KafkaException

from belfry.kafka import librdkafka
from belfry.kafka.causes import cause_of
from belfry.kafka.growth import add_partitions, keep_homes
from belfry.kafka.log_ends import LogEnds
from belfry.mirror.beginnings import CannotMirror, active_epoch
from belfry.mirror.marks import (
    CHANGELOG,
    GOES_ON,
    MARK_KEY,
    MARKS,
    REQUESTS,
    MirrorMark,
    encode_mark,
)
from belfry.mirror.sides import Side, opened, partitions_of, with_marks
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.store.identity import encode_identity
from belfry.store.layout import keys

# A transaction that its mirror leaves behind hides the target's end for so long.
TRANSACTION_MS: Final = 60_000


class SourceTopics:
    """Asks a source how many partitions it has, and where its topic of requests ends.

    Methods raise ConnectionError where no broker answers.
    """

    def __init__(self, source: Side) -> None:
        properties = source.settings.kafka_properties()
        quiet = {"log_level": 0, "allow.auto.create.topics": False}
        self._source = source
        self._admin = librdkafka.AdminClient({**properties, **quiet})
        self._ends = LogEnds(properties)

    def partitions(self) -> int:
        """How many partitions hold schedules and take requests by now."""
        side = self._source
        try:
            counts = partitions_of(side.name, self._admin, side.settings)
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"{side.name}: {cause_of(error)}") from error
        return min(counts.get(CHANGELOG, 0), counts.get(REQUESTS, 0))

    def input_ends(self, count: int) -> Mapping[int, int]:
        """Where each partition of the requests ends, committed or not."""
        topic = self._source.settings.topic(REQUESTS)
        ends = self._ends.all_ends([(topic, each) for each in range(count)])
        return {partition: end for (_, partition), end in ends.items()}

    def close(self) -> None:
        """Close the connections."""
        self._ends.close()


def grown_together(source: Side, target: Side, now_ms: int) -> tuple[Side, Side]:
    """Both sides as they are now, the target with all partitions that the source has.

    Raises ConnectionError where a side does not answer or refuses, and CannotMirror where a target
    was not made for this source.
    """
    source = opened(source.name, source.settings)
    if source.homes <= target.homes:
        return source, target
    target = with_marks(target)
    settings, added = target.settings, range(target.homes, source.homes)
    admin = librdkafka.AdminClient({**settings.kafka_properties(), "log_level": 0})
    try:
        if not target.grown_from:
            keep_homes(admin, settings.cluster, source.grown_from)
        for kind in (MARKS, CHANGELOG):
            add_partitions(admin, settings.topic(kind), source.homes)
        for each in added:
            _say_whose(source, target, each, now_ms)
        add_partitions(admin, settings.topic(REQUESTS), source.homes)
    except (KafkaException, TimeoutError) as error:
        raise ConnectionError(
            f"{target.name} cannot be given the partitions {added[0]} to {added[-1]}, which the"
            f" source has: {cause_of(error)}"
        ) from error
    return source, opened(target.name, settings)


def _say_whose(source: Side, target: Side, partition: int, now_ms: int) -> None:
    """Let the first transaction of a partition that was added say that it follows the source."""
    ends = target.ends(partition)
    if not ends.empty:
        return
    mark = MirrorMark(
        *source.here[:2], target.here.changelog,
        epoch=active_epoch(source.mark(partition)) + 1,
        positions={},
        carried=((ends.end, GOES_ON),),
        began_ms=now_ms,
    )  # fmt: skip
    with closing(ChangelogWriter(target.settings, partition, TRANSACTION_MS)) as writer:
        writer.begin(target.here.changelog)
        # Without a manifest, as a first copy begins: the first one that is carried has number 1.
        writer.row(keys.IDENTITY_KEY, encode_identity(source.here))
        writer.beside(target.settings.topic(MARKS), MARK_KEY, encode_mark(mark))
        writer.commit()


def see_that_it_is_whole(topics: SourceTopics, count: int) -> None:
    """Raise `CannotMirror` where the source has more partitions by now than are carried."""
    if topics.partitions() > count:
        raise CannotMirror(
            "the source was given more partitions meanwhile. Say the same once more: they are added"
            " here then."
        )
