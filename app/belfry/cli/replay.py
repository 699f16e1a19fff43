"""``belfry replay``: the log of requests played through the engine again, on a virtual clock.

    belfry replay                        the same bytes? each transaction of each partition
    belfry replay --until 2026-12-01T…   up to that instant
    belfry replay --from 2026-11-30T…    from the first take-over on that came then or later
    belfry replay --with slower.json     the outcome under other policies
    belfry replay --zone-data 2024a      the same with time zone data of another release

Without --with it is a proof of the engine: an engine that gets the same requests at the same
instants as the workers has to write the same rows and the same events. It reads changelog,
requests, policies and outputs, and writes nothing.

With --with, --zone-data or --events nothing is compared with the changelog: `replay_contrast` plays
the requests on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import time
from typing import TYPE_CHECKING, Any

import typer

from belfry.cli import log_lines
from belfry.cli.changelog import judges
from belfry.cli.common_options import BOOTSTRAP
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.policy_text import from_file
from belfry.cli.replay_options import Chunk, From, OtherWorld, Partitions, Until
from belfry.cli.session import Session, with_session

if TYPE_CHECKING:
    from belfry.cli.replay_run import Bounds, PartitionPlayed
    from belfry.cli.replay_world import ReplayWorld
    from belfry.tenants.policy import TenantPolicy

# A difference was found, where 1 is an error.
DIFFERS = Exit.CONFLICT


def register(app: typer.Typer) -> None:
    """Add ``replay`` to the program."""
    app.command("replay")(with_session(replay))


def replay(
    session: Session,
    other: OtherWorld,
    *,
    partition: Partitions = None,
    from_: From = None,
    until: Until = None,
    fire_chunk: Chunk = 10_000,
) -> int:
    """Play the log of requests through the engine again, and compare it with what was written.

    Needs all of a partition's changelog and requests, from its birth on, or --from a later
    take-over. Exit code 0 for the same bytes, 4 for a difference, 1 if a partition cannot be played
    or judged, 3 if there is no changelog. With --with or --zone-data it shows what these would have
    done. Example:

    belfry replay --with slower.json
    """
    from belfry.cli.replay_run import Bounds
    from belfry.playback.logged import Unplayable

    log_lines.to_stderr()
    policies = _policies(other)
    with _world(session, fire_chunk) as world:
        chosen = _chosen(world, partition)
        try:
            if other == OtherWorld():
                return _show_same(session, world, chosen, Bounds(from_, until))
            if from_ is not None:
                raise WrongUse(
                    "--from is for a comparison with the log: --with begins at the birth."
                )
            until_ms = int(time() * 1000) if until is None else until
            _show_virtual(session, world, (chosen, until_ms), other, policies)
        except Unplayable as error:
            raise CommandError(str(error)) from None
    return Exit.OK


def _policies(other: OtherWorld) -> dict[str, TenantPolicy]:
    """Policies of the file, by tenant; `WrongUse` for options that cannot be meant."""
    if other.events and other.zone_data is not None:
        raise WrongUse("--events prints what one playback fires: leave --zone-data out.")
    if other.zone_data is not None and not (other.zone_data / "tzdata" / "zoneinfo").is_dir():
        raise WrongUse(
            f"--zone-data {other.zone_data}: there is no package tzdata. Put a release there with"
            f" `pip install --target {other.zone_data} tzdata==2024.1`."
        )
    if other.with_ is None:
        return {}
    policies = {each.tenant: each for each in from_file(other.with_, "--with")}
    if not policies:
        raise WrongUse(f"--with {other.with_}: no policy is in it.")
    return policies


def _show_virtual(
    session: Session,
    world: ReplayWorld,
    what: tuple[list[int], int],
    other: OtherWorld,
    policies: dict[str, TenantPolicy],
) -> None:
    """Play partitions up to an instant on a virtual clock, and print events or what differs."""
    from belfry.cli import replay_contrast

    if other.events:
        replay_contrast.show_events(session, world, *what, policies)
    elif other.zone_data is not None:
        zones = replay_contrast.OtherZones(other.zone_data, other.with_)
        replay_contrast.show_other_zones(session, world, *what, zones)
    else:
        replay_contrast.show_other(session, world, *what, policies)


@contextmanager
def _world(session: Session, chunk: int) -> Iterator[ReplayWorld]:
    """The data that is read once for all partitions; its connections are closed at the end."""
    from belfry.cli.replay_topics import ReplayTopics
    from belfry.cli.replay_world import ReplayWorld
    from belfry.client.decoding import Decoder
    from belfry.client.kafka import Cluster
    from belfry.registry.subjects import ask_in, look_in, open_registry
    from belfry.wire.worker_keys import Purpose

    settings = session.settings
    # Readers turn from one topic to the next at once.
    properties = {"fetch.wait.max.ms": 10, **settings.kafka_properties()}
    cluster = Cluster(properties.pop(BOOTSTRAP), properties)
    with closing(ReplayTopics(cluster, settings.topic)) as topics:
        counts = topics.counted()
        if counts is None:
            raise CommandError(
                f"There is no topic {settings.topic('changelog')} at {cluster.servers}, so there is"
                " nothing to play. If belfry's topics have another prefix, set"
                " BELFRY_CLUSTER__TOPIC_PREFIX.",
                Exit.NOT_FOUND,
            )
        registry = open_registry(settings)
        look = look_in(registry)
        signed = settings.worker_keys(Purpose.POLICIES) if settings.policies == "signed" else None
        policies = topics.policies(Decoder("TenantPolicy", look, only=True), signed)
        counted = session.printer.counted
        judge_of, gone = judges(session), topics.policies_compacted
        ask = ask_in(registry)
        yield ReplayWorld(topics, settings, policies, counts, ask, judge_of, chunk, counted, gone)


def _chosen(world: ReplayWorld, partitions: list[int] | None) -> list[int]:
    chosen = sorted(set(partitions)) if partitions else list(range(world.partitions.count))
    if not world.partitions.holds(chosen[-1]):
        raise WrongUse(
            f"--partition {chosen[-1]}: schedules live in the partitions 0 to"
            f" {world.partitions.count - 1}."
        )
    return chosen


# -- the same bytes --------------------------------------------------------------------------------


def _show_same(session: Session, world: ReplayWorld, chosen: list[int], bounds: Bounds) -> int:
    """Play partitions, and print each as it is done."""
    from belfry.cli.replay_run import played
    from belfry.cli.replay_shown import line, shown

    # Ask for the ends of changelogs first: the outputs have the fires of these steps by then.
    spans = {each: world.topics.span(each) for each in chosen}
    moved = {each.policy.output_topic for each in world.policies if each.policy}
    events = world.topics.events(name for name in moved if name)
    found: list[PartitionPlayed] = []

    def all_of_them() -> Iterator[tuple[dict[str, Any], str]]:
        for each in chosen:
            found.append(played(world, each, spans[each], bounds, events))
            yield shown(found[-1]), line(found[-1])

    session.printer.many(all_of_them())
    differing = [each.differs for each in found if each.differs is not None]
    if any(not each.doubt for each in differing):
        return DIFFERS
    return Exit.ERROR if differing else Exit.OK
