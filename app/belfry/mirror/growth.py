"""A source that grows while it is followed: what moves to its new partitions would not be carried.

So a mirror looks once a minute, and ends where there are more partitions than it carries. Once the
target has been given as many, it begins again, and the new ones from their first record.
"""

from __future__ import annotations

from confluent_kafka import KafkaException

from belfry.kafka import librdkafka
from belfry.kafka.causes import cause_of
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.marks import CHANGELOG
from belfry.mirror.sides import Side, grown_told, partitions_of


def see_that_it_is_whole(source: Side) -> None:
    """Raise `CannotMirror` where the source was given more partitions since it was opened.

    Raises ConnectionError where no broker answers.
    """
    quiet = {"log_level": 0, "allow.auto.create.topics": False}
    admin = librdkafka.AdminClient({**source.settings.kafka_properties(), **quiet})
    try:
        now = partitions_of(source.name, admin, source.settings).get(CHANGELOG, 0)
    except (KafkaException, TimeoutError) as error:
        raise ConnectionError(f"{source.name}: {cause_of(error)}") from error
    if now > source.homes:
        homes = source.grown_from or source.homes
        raise CannotMirror(grown_told(source._replace(homes=now, grown_from=homes)))
