"""The logs of a simulated world, played through an engine again: the same bytes have to come out.

Whatever struck the workers, what they committed follows from requests and instants.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from belfry.client.key_ring import KeyRing
from belfry.engine.reports import SourcePartition
from belfry.playback.branches import BranchingPlayer
from belfry.playback.logged import LoggedRow, StepCutter, Unplayable
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.playback.written_events import WrittenEvents
from belfry.schedules.identity import Homes
from belfry.store.ordered_map import MemoryMap
from belfry.store.signatures import FILLER
from belfry.tenants.policy import TenantPolicy
from belfry.wire.headers import FIRE_ID
from belfry.wire.policies import decode_policy
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader
from belfry.wire.worker_keys import Purpose
from tests.simulation.broker import Log
from tests.simulation.payload_keys import SECRETS
from tests.simulation.stores import bare
from tests.simulation.tenant_policies import HEAD
from tests.simulation.tenant_policies import TOPIC as POLICIES
from tests.simulation.trail import CHANGELOG, FIRED, REQUESTS
from tests.simulation.world import World

# In these worlds strangers write rows, rows are more than what a step made, or requests need a
# registry, which said nothing at times.
OTHERS: Final = frozenset(
    {
        *("strangers", "copied_steps", "registry", "registry_silences"),
        *("resigned_rows", "signed_rows"),
    }
)


def played_again(world: World) -> tuple[list[str], Counter[str]]:
    """What differs in a world from what is played, and how much was played."""
    problems: list[str] = []
    counts: Counter[str] = Counter()
    events = _events(world)
    for log in world.broker.topics[CHANGELOG]:
        try:
            found, of_log = _played(world, log, events)
        except Unplayable as error:
            # A key group that moves, or a request that was set aside: the message says it.
            found, of_log = [], Counter({"unplayable": 1, _kind(error): 1})
        problems += found
        counts.update(of_log)
    return problems, counts


def _kind(error: Unplayable) -> str:
    """Why something cannot be played, without the number of its transaction."""
    return re.sub(r"[0-9]+", "N", str(error).partition(".")[0])


def _played(world: World, log: Log, events: WrittenEvents) -> tuple[list[str], Counter[str]]:
    homes, keys = Homes(world.scenario.partitions), world.settings.worker_keys(Purpose.ORIGIN)
    player = BranchingPlayer(
        SourcePartition(REQUESTS, log.partition, homes, keys),
        MemoryMap,
        RequestReader(),
        lambda: _treatment(world),
        world.settings.fire_chunk,
    )
    cutter, done, compared = StepCutter(), 0, 0
    source = _requests(world, log.partition)
    for row in _rows(log):
        step = cutter.feed(row)
        if step is None:
            continue
        behind = step.manifest.position
        requests = [each for each in source if done <= each[0] < behind]
        done = behind
        effects, differs = player.play(step, requests)
        if differs is None:
            for found in events.differing(step, effects, player.treatment.enveloped):
                compared += 1
                if found is not None:
                    differs = player.in_doubt(step, found)
                    break
        if differs is not None and differs.doubt:
            return [], Counter({"unjudged": 1, differs.doubt: 1})
        if differs is not None:
            return [f"partition {log.partition}: {differs}"], Counter(differ=1)
    counts = player.counts
    sums = {"steps": counts.steps, "requests": counts.requests, "fires": counts.fires}
    more = {"owners": counts.owners, "attempts": counts.attempts, "compared": compared}
    return [], Counter(**sums, **more)


def _treatment(world: World) -> Treatment:
    """Policies by their time, with the keys that they name."""
    changes = [
        PolicyAt(entry.timestamp_ms, (entry.key or b"").decode(), _policy(entry.value))
        for entry in world.committed(POLICIES)
    ]
    return Treatment(changes, "belfry.", keys_of=_keys_of)


def _policy(value: bytes | None) -> TenantPolicy | None:
    """A policy as workers read it, with its targets; None for no policy."""
    return None if value is None else decode_policy(value.removeprefix(HEAD))


def _keys_of(policy: TenantPolicy) -> KeyRing | None:
    reference = policy.payload_key_ref
    return None if reference is None else KeyRing(policy.tenant, SECRETS[reference])


def _rows(log: Log) -> Iterator[LoggedRow]:
    for entry in log.history:
        if entry.committed and entry.txn is not None and entry.key not in (None, FILLER):
            value = None if entry.value is None else bare(entry.value)
            yield LoggedRow(entry.offset, entry.timestamp_ms, entry.key or b"", value)


def _requests(world: World, partition: int) -> list[SourceRecord]:
    return [
        (entry.offset, entry.timestamp_ms, entry.key, entry.value, entry.headers)
        for entry in world.broker.log(REQUESTS, partition).history
        if entry.committed
    ]


def _events(world: World) -> WrittenEvents:
    found = WrittenEvents()
    for topic in world.broker.topics:
        if topic.startswith(FIRED):
            for entry in world.committed(topic):
                headers = list(entry.headers or ())
                identity = dict(headers)[FIRE_ID] or b""
                found.add(identity, topic, entry.key, entry.value, headers)
    return found
