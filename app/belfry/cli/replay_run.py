"""Playbacks over the topics of a belfry: partition by partition, each with a store of its own.

    same bytes     changelog ─► steps ─► BranchingPlayer ◄─ requests, policies
                                              └► differs? events, in output topics
    another policy    requests ─┬─► VirtualPartition, as it was ──────┬─► Contrast
                                └─► VirtualPartition, as it would be ─┘

The state of a playback lies in a temporary RocksDB, so memory does not grow with what is pending.
Digests of events do lie in memory, some 150 bytes for each.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from belfry.cli.replay_schemas import Refusals, check_registry, learn, without_registry
from belfry.cli.replay_world import ReplayWorld, check_secrets
from belfry.cli.verify_topics import ReadableRange
from belfry.host.rocks import RocksMap
from belfry.playback.branches import BranchingPlayer
from belfry.playback.comparing import StepDifference
from belfry.playback.logged import LoggedRow
from belfry.playback.played import PlayedCounts
from belfry.playback.treatment import said_in
from belfry.playback.virtual import VirtualEvent, VirtualPartition
from belfry.playback.written_events import WrittenEvents
from belfry.store.layout import keys
from belfry.store.ordered_map import OrderedMap
from belfry.tenants.policy import TenantPolicy
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader


class Bounds(NamedTuple):
    """From and up to when a partition is played (epoch ms); None: its birth, its end."""

    from_ms: int | None = None
    until_ms: int | None = None


class PartitionPlayed(NamedTuple):
    """The result of a partition's playback; `differs` is None if all bytes are the same.

    Where that has a doubt, `unjudged` transactions, from that one on, cannot be judged.
    `events` is how many fired records were compared byte for byte; the others are not in the
    output topics any more.
    """

    partition: int
    counts: PlayedCounts
    events: int
    differs: StepDifference | None
    unjudged: int = 0


def played(
    world: ReplayWorld,
    partition: int,
    span: ReadableRange,
    bounds: Bounds,
    events: WrittenEvents,
) -> PartitionPlayed:
    """Play a partition within its bounds, or to the first difference.

    `span` is the part of the changelog that existed before the events were read.  Raises
    `Unplayable`.
    """
    with TemporaryDirectory(prefix="belfry-replay-") as folder:
        reader, place, numbers = RequestReader(), world.place(partition), itertools.count()

        def new_rows() -> OrderedMap:
            # Branches come and go; RocksDB closes those without a reference.
            return RocksMap(Path(folder) / str(next(numbers)))

        player = BranchingPlayer(place, new_rows, reader, world.treatment, world.chunk)
        cutter = player.beginning(bounds.from_ms)
        stream, compared, unread = None, 0, False
        rows = world.topics.rows(partition, span, world.judge_of(partition))
        records = iter(world.counted(rows, f"records of partition {partition} played"))
        for record in records:
            step = cutter.feed(record)
            if step is None:
                continue
            if bounds.until_ms is not None and step.written_ms > bounds.until_ms:
                return PartitionPlayed(partition, player.counts, compared, None)
            if stream is None:
                check_secrets(world, step.rows.get(keys.STATEMENT_KEY) or player.statement)
                _, stream = world.topics.requests(partition, step.manifest.position)
            requests = stream.up_to(step.manifest.position)
            learn(world.look, reader, requests)
            unread |= bool(without_registry(world.look, reader, requests))
            effects, found = player.play(step, requests, appended=stream.appended)
            if found is None:
                for other in events.differing(step, effects, player.treatment.enveloped):
                    compared += 1
                    if other is not None:
                        found = player.in_doubt(step, other)
                        break
            if found is not None:
                # Workers without a registry have refused them as well, and then nothing differs.
                check_registry(unread, partition)
                left = 1 + _ended_by(records, bounds.until_ms) if found.doubt else 0
                return PartitionPlayed(partition, player.counts, compared, found, left)
        cutter.ended()
        return PartitionPlayed(partition, player.counts, compared, player.owed)


def _ended_by(records: Iterable[LoggedRow], until_ms: int | None) -> int:
    """How many transactions more there are, up to an instant (epoch ms); None: to the end."""
    return sum(
        record.key.startswith(keys.MANIFEST_PREFIX) and record.row is not None
        for record in records
        if until_ms is None or record.written_ms <= until_ms
    )


class VirtualSide(NamedTuple):
    """One of the playbacks of the same requests: policies that hold always, and who hears of
    events.
    """

    always: Mapping[str, TenantPolicy]
    told: Callable[[VirtualEvent], None]


def played_virtually(
    world: ReplayWorld, partition: int, until_ms: int, sides: Sequence[VirtualSide]
) -> tuple[int, list[Counter[str]]]:
    """Play the requests of a partition on a virtual clock, once for each side, side by side.

    How many requests there were, and how many each side refused, by tenant.  Raises `Unplayable`.
    """
    judge, span = world.judge_of(partition), world.topics.span(partition)
    rows = world.topics.rows(partition, span, judge)
    statement = next((each.row for each in rows if each.key == keys.STATEMENT_KEY), None)
    check_secrets(world, statement)
    said = said_in(statement)
    with ExitStack() as stores:
        playing = [
            _virtual(world, partition, stores.enter_context(store()), each, said) for each in sides
        ]
        start, stream = world.topics.requests(partition, None)
        for each, _ in playing:
            each.begin_at(start)
        count, now_ms, refusals = 0, 0, Refusals(world.look, world.topics, partition)
        batches = world.counted(stream.rest(), f"batches of partition {partition} played")
        for requests, appended in batches:
            now_ms = max(now_ms, requests[0][1])
            if now_ms > until_ms:
                break
            behind = requests[-1][0] + 1
            for each, reader in playing:
                refusals.check(reader, requests)
                learn(world.look, reader, requests)
                each.take(SourceBatch(start, behind, requests, appended=appended), now_ms)
            start, count = behind, count + len(requests)
        for each, _ in playing:
            each.to(until_ms)
    return count, [each.refused for each, _ in playing]


def _virtual(
    world: ReplayWorld, partition: int, rows: OrderedMap, side: VirtualSide, said: Mapping[str, Any]
) -> tuple[VirtualPartition, RequestReader]:
    treatment, reader = world.treatment(side.always), RequestReader()
    treatment.begin(said)
    place = world.place(partition)
    return VirtualPartition(place, rows, reader, treatment, side.told), reader


@contextmanager
def store() -> Iterator[OrderedMap]:
    """An empty ordered map on disk, which is gone at the end."""
    with (
        TemporaryDirectory(prefix="belfry-replay-") as folder,
        closing(RocksMap(Path(folder) / "state")) as rows,
    ):
        yield rows
