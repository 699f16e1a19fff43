"""What a worker leaves behind, made by the real engine: a changelog, requests, policies, events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from belfry.engine.effects import Fired
from belfry.playback.branches import BranchingPlayer
from belfry.playback.comparing import StepDifference
from belfry.playback.logged import LoggedRow
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.playback.written_events import WrittenEvents
from belfry.store.layout import keys
from belfry.store.layout.records import encode_text
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from belfry.tenants.payload_keys import PayloadKeys
from belfry.tenants.policy import TenantPolicy
from belfry.wire.requests import RequestReader
from tests.unit.engine.driver import T0, Driver

SAID: Final = encode_text('{"lifecycle":"ALL"}')


class Leaving(Driver):
    """An engine whose transactions, policies and events are kept as the topics have them."""

    def __init__(self, partitions: int = 1) -> None:
        """Of so many partitions it is the first one."""
        self.log: list[LoggedRow] = []
        self.events: list[tuple[bytes, Fired]] = []
        self.policies: list[PolicyAt] = []
        self.epoch = 0
        self.offset = 0
        super().__init__(Level.ALL, partitions=partitions)
        self.own(T0)

    def own(self, now_ms: int, *, cold: bool = False) -> None:
        """An owner begins, on the rows of the one before; a `cold` one folds the changelog."""
        rows = MemoryMap() if cold else self.rows
        if cold or self.epoch:
            replay = Replay(ScheduleStore(rows))
            if cold:
                changes = [(each.key, each.row) for each in self.log]
                replay.apply(changes, [each.offset for each in self.log], now_ms)
            replay.finish(now_ms)
        self.start(rows)
        self.epoch += 1
        first = self.epoch == 1
        self.engine.claim(b"{}" if first else None, None, SAID if first else None)
        self.end(now_ms)

    def end(self, now_ms: int, *, commit: bool = True) -> None:
        """Seal the step and commit it, or roll it back, which uses offsets up."""
        effects = self.engine.claim(None)
        self.engine.seal(owner_epoch=self.epoch)
        if not commit:
            self.engine.aborted()
            self.offset += 3
            return
        for key, row in effects.rows.items():
            self.log.append(LoggedRow(self.offset, now_ms + 3, key, row))
            self.offset += 1
        self.offset += 1
        self.events += zip(effects.fire_ids, effects.fired, strict=True)
        self.engine.committed(self.offset, now_ms)

    def set(self, at_ms: int, **fields: Any) -> None:
        """A tenant's policy changes, and the worker has it at once."""
        policy = TenantPolicy(**fields)
        self.policies.append(PolicyAt(at_ms, policy.tenant, policy))
        effective = self.tenants.of(policy.tenant).effective
        self.tenants.follow(effective._replace(policy=policy, payload_keys=self.keys_of(policy)))

    @staticmethod
    def keys_of(_policy: TenantPolicy) -> PayloadKeys | None:
        """The keys for payloads that a policy names: none, unless a test has some."""
        return None


@dataclass
class Outcome:
    """How a playback of a trail ended."""

    player: BranchingPlayer
    differs: StepDifference | None = None
    events: int = 0
    effects: list[Any] = field(default_factory=list)


def play(
    trail: Leaving,
    log: list[LoggedRow] | None = None,
    from_ms: int | None = None,
    *,
    compacted: bool = False,
) -> Outcome:
    """Play a trail, or a log in place of its own, to its end or to the first difference.

    With `from_ms` it begins with the first take-over from then on that a playback may begin with.
    Some policies are gone where their topic is `compacted`.
    """
    player = BranchingPlayer(
        trail.place,
        MemoryMap,
        RequestReader(),
        lambda: Treatment(trail.policies, "belfry.", keys_of=trail.keys_of, compacted=compacted),
    )
    written = WrittenEvents()
    for identity, (topic, key, _, value, headers) in trail.events:
        written.add(identity, topic, key, value, headers)
    cutter = player.beginning(from_ms)
    done, outcome = 0, Outcome(player)
    for row in trail.log if log is None else log:
        step = cutter.feed(row)
        if step is None:
            continue
        behind = step.manifest.position
        done = behind if not player.counts.steps else done
        requests = [each for each in trail.source if done <= each[0] < behind]
        done = behind
        effects, outcome.differs = player.play(step, requests)
        if outcome.differs is None:
            for found in written.differing(step, effects, lambda _topic: False):
                outcome.events += 1
                if found is not None and outcome.differs is None:
                    outcome.differs = player.in_doubt(step, found)
        if outcome.differs is not None:
            return outcome
    cutter.ended()
    outcome.differs = player.owed
    return outcome


def replaced(log: list[LoggedRow], key: bytes, row: bytes | None) -> list[LoggedRow]:
    """The log with another row in the first record of a key."""
    at = next(n for n, each in enumerate(log) if each.key == key)
    return [*log[:at], log[at]._replace(row=row), *log[at + 1 :]]


def is_manifest(row: LoggedRow) -> bool:
    """Whether a record ends a transaction."""
    return row.key.startswith(keys.MANIFEST_PREFIX)
