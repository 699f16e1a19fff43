"""Requests of a replay that name schemas of a registry, also where the replay is given none.

Without a registry a playback refuses them. Whether the workers have refused them as well tells two
cases apart:

    workers had no registry either   they were refused      the playback does the same
    workers had one                  they were carried out  the playback shows another belfry

A comparison with the log needs no more: it differs in the second case. A playback on a virtual
clock compares nothing, so it asks `belfry.rejected`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belfry.cli.failures import CommandError
from belfry.playback.logged import Unplayable
from belfry.registry.answers import RegistryError
from belfry.schedules.rejections import Rejection

if TYPE_CHECKING:
    from belfry.cli.replay_topics import ReplayTopics
    from belfry.registry.subjects import Look
    from belfry.wire.record import SourceRecord
    from belfry.wire.requests import RequestReader


def learn(look: Look | None, reader: RequestReader, requests: list[SourceRecord]) -> None:
    """Let the reader know the schemas of these requests; raises `CommandError`."""
    if look is None:
        return
    for reference in reader.unknown_schemas(requests):
        try:
            writer = look(reference)
        except RegistryError as error:
            raise CommandError(f"The schema {reference!r} was not found: {error}") from None
        if writer is None:
            unknown = Rejection("unknown_schema_id", f"No schema {reference!r} is known.")
            reader.refuse(reference, unknown)
        else:
            reader.learn(reference, writer)


def without_registry(
    look: Look | None, reader: RequestReader, requests: list[SourceRecord]
) -> set[int]:
    """Offsets of the requests that name schemas of a registry, if the settings name no registry."""
    if look is not None:
        return set()
    naming = reader.unknown_schemas(requests).values()
    return {record[0] for same in naming for record in same}


def check_registry(unread: bool, partition: int) -> None:
    """Raise `Unplayable` if a playback would refuse requests that workers have read."""
    if unread:
        raise Unplayable(
            f"Requests of partition {partition} name schemas of a registry, and none is given, so"
            " they would be refused: name that of the workers (--schema-registry-url,"
            " BELFRY_SCHEMA_REGISTRY_URL)."
        )


class Refusals:
    """Requests of a partition that workers have refused for their schema; read at the first use."""

    def __init__(self, look: Look | None, topics: ReplayTopics, partition: int) -> None:
        self._look, self._topics, self._partition = look, topics, partition
        self._refused: set[int] | None = None

    def check(self, reader: RequestReader, requests: list[SourceRecord]) -> None:
        """Raise `Unplayable` unless workers have refused all requests that cannot be read here."""
        unread = without_registry(self._look, reader, requests)
        if unread and self._refused is None:
            self._refused = self._topics.refused_schemas(self._partition)
        check_registry(bool(unread - (self._refused or set())), self._partition)
