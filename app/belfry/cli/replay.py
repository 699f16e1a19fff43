"""``belfry replay``: the log of requests played through the engine again, on a virtual clock.

    belfry replay                        the same bytes? each transaction of each partition
    belfry replay --until 2026-12-01T…   up to that instant
    belfry replay --with slower.json     what would have been under other policies

Without --with it is a proof of the engine: whatever the workers wrote, an engine that is given the
same requests at the same instants has to write the same rows and the same events. It reads
changelog, requests, policies and outputs, and writes nothing.

With --with nothing is compared with the changelog. The requests are played twice, under the
policies as they were and under those of the file, and what differs is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.changelog import judges
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.session import BOOTSTRAP, Session, with_session
from belfry.cli.shown import plain
from belfry.cli.tenant import policies_in
from belfry.schedules.instants import format_duration, format_instant, parse_instant

if TYPE_CHECKING:
    from belfry.cli.replay_run import PartitionPlayed, World
    from belfry.playback.contrast import MovedEvent, TenantContrast
    from belfry.tenants.policy import TenantPolicy

# A difference was found, where 1 is an error.
DIFFERS = Exit.CONFLICT

Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", min=0, help="Only this partition; repeatable.  [default: all]"),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until", parser=parse_instant, metavar="INSTANT", help="Play up to then.  [default: now]"
    ),
]
With = Annotated[
    Path | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="Policies, as `belfry tenant set --file` takes them: show what they would change.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``replay`` to the program."""
    app.command("replay")(with_session(replay))


def replay(
    session: Session, *, partition: Partitions = None, until: Until = None, with_: With = None
) -> int:
    """Play the log of requests through the engine again, and compare it with what was written.

    Needs all of a partition's changelog and requests, from its birth on. Exit code 0 for the same
    bytes, 4 for a difference, 1 for what cannot be played, 3 where there is no changelog. With
    --with it shows what other policies would have done. Example:

    belfry replay --with slower.json
    """
    from belfry.playback.logged import Unplayable

    policies = {} if with_ is None else {each.tenant: each for each in policies_in(with_)}
    with _world(session) as world:
        chosen = _chosen(world, partition)
        try:
            if with_ is None:
                return _show_same(session, world, chosen, until)
            if not policies:
                raise WrongUse(f"--with {with_}: no policy is in it.")
            until_ms = int(time() * 1000) if until is None else until
            _show_other(session, world, chosen, until_ms, policies)
        except Unplayable as error:
            raise CommandError(str(error)) from None
    return Exit.OK


@contextmanager
def _world(session: Session) -> Iterator[World]:
    """What is read once for all partitions; its connections are closed at the end."""
    from belfry.cli.replay_run import World
    from belfry.cli.replay_topics import ReplayTopics
    from belfry.client.decoding import Decoder
    from belfry.client.kafka import Cluster
    from belfry.registry.subjects import look_in, open_registry
    from belfry.wire.worker_keys import Purpose

    settings = session.settings
    # Readers turn from one topic to the next at once.
    properties = {"fetch.wait.max.ms": 10, **settings.kafka_properties()}
    cluster = Cluster(properties.pop(BOOTSTRAP), properties)
    with closing(ReplayTopics(cluster, settings.topic)) as topics:
        homes = len(topics.partitions())
        if not homes:
            raise CommandError(
                f"There is no topic {settings.topic('changelog')} at {cluster.servers}, so there is"
                " nothing to play. If belfry's topics have another prefix, set"
                " BELFRY_CLUSTER__TOPIC_PREFIX.",
                Exit.NOT_FOUND,
            )
        look = look_in(open_registry(settings))
        signed = settings.worker_keys(Purpose.POLICIES) if settings.policies == "signed" else None
        policies = topics.policies(Decoder("TenantPolicy", look, only=True), signed)
        yield World(topics, settings, policies, homes, look, judges(session))


def _chosen(world: World, partitions: list[int] | None) -> list[int]:
    chosen = sorted(set(partitions)) if partitions else list(range(world.homes))
    if chosen[-1] >= world.homes:
        raise WrongUse(
            f"--partition {chosen[-1]}: schedules live in the partitions 0 to {world.homes - 1}."
        )
    return chosen


# -- the same bytes --------------------------------------------------------------------------------


def _show_same(session: Session, world: World, chosen: list[int], until_ms: int | None) -> int:
    """Play partitions, and print each as it is done."""
    from belfry.cli.replay_run import played

    # Where changelogs end first: what their steps fired is in the outputs by then.
    spans = {each: world.topics.span(each) for each in chosen}
    moved = {each.policy.output_topic for each in world.policies if each.policy}
    events = world.topics.events(name for name in moved if name)
    found: list[PartitionPlayed] = []

    def all_of_them() -> Iterator[tuple[dict[str, Any], str]]:
        for each in chosen:
            found.append(played(world, each, spans[each], until_ms, events))
            yield shown(found[-1]), line(found[-1])

    session.printer.many(all_of_them())
    return DIFFERS if any(each.differs for each in found) else Exit.OK


def shown(result: PartitionPlayed) -> dict[str, Any]:
    """A partition that was played, for programs."""
    counts = result.counts
    difference = None if result.differs is None else result.differs._asdict()
    return {
        "partition": result.partition,
        "same": result.differs is None,
        "transactions": counts.steps,
        "requests": counts.requests,
        "fires": counts.fires,
        "rows": counts.rows,
        "events_compared": result.events,
        "owners": counts.owners,
        "rows_compacted": counts.owed,
        "difference": difference,
    }


def line(result: PartitionPlayed) -> str:
    """A partition that was played, for people."""
    counts, found = result.counts, result.differs
    head = (
        f"partition {result.partition}: {counts.steps:,} transactions of {counts.owners:,} owners,"
        f" {counts.requests:,} requests, {counts.fires:,} fires, {counts.rows:,} rows,"
        f" {result.events:,} events compared"
    )
    if found is None:
        return f"{head}: the same bytes."
    place = f"transaction {found.transaction}, offset {found.offset} of the changelog"
    return plain(
        f"{head}: DIFFERS in {place}, {found.what} {found.name}: there is {found.logged}; played:"
        f" {found.played}"
    )


# -- other policies --------------------------------------------------------------------------------


def _show_other(
    session: Session,
    world: World,
    chosen: list[int],
    until_ms: int,
    policies: Mapping[str, TenantPolicy],
) -> None:
    """Play partitions under both policies, and print what differs, tenant by tenant."""
    from belfry.cli.replay_run import contrasted

    results = [contrasted(world, each, until_ms, policies) for each in chosen]
    requests = sum(count for _, count in results)
    tenants = [item for contrast, _ in results for item in sorted(contrast.tenants.items())]
    differing = [(name, each) for name, each in tenants if each.differs]
    same = len(tenants) - len(differing)
    text = [
        f"{requests:,} requests played up to {format_instant(until_ms)} under both policies:"
        + (" nothing would have been otherwise." if not differing else ""),
        *(text for name, each in differing for text in contrast_lines(name, each)),
    ]
    if differing and same:
        text.append(f"{same:,} other tenants: the same events at the same instants.")
    told = [{"tenant": name, **contrast_shown(each)} for name, each in tenants]
    record = {"until": format_instant(until_ms), "requests": requests, "tenants": told}
    session.printer.one(record, "\n".join(text))


def contrast_shown(found: TenantContrast) -> dict[str, Any]:
    """What differs for a tenant, for programs."""
    return {**asdict(found), "examples": [_moved(each) for each in found.examples]}


def _moved(event: MovedEvent) -> dict[str, Any]:
    instants = ("fired_at", event.was_ms), ("would_fire_at", event.would_ms)
    shown_instants = {name: None if ms is None else format_instant(ms) for name, ms in instants}
    named = {"schedule_id": event.schedule_id, "scheduled_at": event.scheduled_at}
    return {**named, **shown_instants}


def contrast_lines(name: str, found: TenantContrast) -> Iterable[str]:
    """What differs for a tenant, for people."""
    parts = [f"{found.fires:,} fires, {found.would_fire:,} would be"]
    if found.later:
        most = format_duration(found.most_later_ms)
        parts.append(f"{found.later:,} later, by {most} at most")
    for count, what in (
        (found.earlier, "earlier"),
        (found.missing, "not by then"),
        (found.new, "that did not fire"),
    ):
        parts += [f"{count:,} {what}"] if count else []
    if found.refused != found.would_refuse:
        parts.append(f"{found.refused:,} requests refused, {found.would_refuse:,} would be")
    yield plain(f"{name}: {'; '.join(parts)}")
    for each in found.examples:
        was = "did not fire" if each.was_ms is None else format_instant(each.was_ms)
        would = "not by then" if each.would_ms is None else format_instant(each.would_ms)
        yield plain(f"  {each.schedule_id}, due {each.scheduled_at}: {was} → {would}")
