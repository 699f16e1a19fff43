"""The effects of one step of a partition: all of them in one transaction, or none.

Made per event, so entries are plain tuples; the shell produces them and never looks inside.

    Effects            ─► topic                               when
    fired              ─► belfry.fired.<tenant>               in the step's transaction
    deliveries         ─► belfry.deliveries
    rejected           ─► belfry.rejected
    letters            ─► belfry.dead-letters.<tenant>
    rerouted           ─► belfry.schedules, at its home
    lifecycle          ─► belfry.lifecycle
    metered            ─► the topic of metering
    rows, manifest     ─► belfry.changelog                    last, and then the local store
    objects            ─► the store of payloads               before the transaction
    counters, traced, drained, move_ends                      told once the commit is acknowledged

Counts lie here too, and not in metrics of the engine: a step that is rolled back has then counted
nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from belfry.engine.drained import Drained
from belfry.engine.rejected_record import RejectedRecord
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.manifests import Manifest
from belfry.wire.accepted import Told
from belfry.wire.record import Headers, Origin
from belfry.wire.trace_context import TraceContext

# topic, key, group or None, value, headers
Fired = tuple[str, bytes, bytes | None, bytes | None, Headers]

# tenant, what it used in a period
Metered = tuple[bytes, bytes]

# key, body of the FiredEvent (the frame comes before it), headers
Delivered = tuple[bytes, bytes, Headers]


STEP_BYTES: Final = 16_000_000
# Of refused records: others wait while they are written.
REFUSED_BYTES: Final = 1_000_000


class Letter(NamedTuple):
    """A dead letter on its way to its tenant's topic, which is there."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


class Rerouted(NamedTuple):
    """A misrouted request on its way to its home partition; `partition` is of the shared topic.

    Key and value are as received; the headers carry where and when it first came in.
    """

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class TracedRequest(NamedTuple):
    """A request that has its verdict; `origin` is where, and when, it was first received."""

    context: TraceContext
    tenant: str
    schedule_id: str
    action: str
    origin: Origin
    outcome: Outcome
    code: str | None
    reason: str | None


class TracedFire(NamedTuple):
    """A fired record; instants in epoch milliseconds.

    `accepted_ms` is when the request arrived since which it has waited.  None where it has waited
    for something else: it is not the first of its schedule, or a TRIGGER asked for it.
    """

    context: TraceContext
    tenant: str
    schedule_id: str
    fire_id: str
    topic: str
    occurrence: int
    accepted_ms: int | None
    due_ms: int
    fired_ms: int


Traced = TracedRequest | TracedFire


class MoveEnd(NamedTuple):
    """A move of a key group is over, as its home hears it: where it lay, and where it was to go.

    `why` it stays where it lay; empty where it has moved.  `move` names the move.
    """

    group: int
    source: int
    target: int
    why: str = ""
    move: int = 0


@dataclass(slots=True)
class Effects:
    """One step's effects; `manifest` says where the partition stands after it.

    `rows` are changelog records by key (None: tombstone), the last one of a key wins.  `unframed`
    are tenants whose envelopes were made before their head was known: such a step is not committed.
    `unreadable` are schedules (changelog key, why) that were due and cannot be understood here.
    `failed_checks` are for the log: where checks have raised (`unforeseen.py`). `objects` are large
    payloads by tenant and digest: they are stored before the commit. `move_ends` are moves of key
    groups that are over; the home tells of them. `non_transactional` are topics whose fired records
    need not be in the transaction, only be there before it. `drained` are buckets that had ended
    when the step was committed; they are filled in then. `lateness` has how late each fire of a
    tenant was; `refused` counts refusals by the tenant that they name, and `accepted` the accepted
    requests of each.  `bulk` counts what jobs did, by action and outcome.  `metered` is for the
    metering topic.  `traced` has the values that spans are made of (`engine/traces.py`); empty
    where nothing is traced. `now_ms` is the instant of the step, as its records say it. `room` is
    how many bytes may still join.  A part whose output is not bounded by its own input takes from
    it, and work that comes when it is used up waits for the next step.  It may go below zero, by
    the last thing that joined.  `refused_room` is how many bytes of refused records are still kept
    whole; those that come when it is used up are cut.
    """

    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    fired: list[Fired] = field(default_factory=list)
    deliveries: list[Delivered] = field(default_factory=list)
    fire_ids: list[bytes] = field(default_factory=list)
    lateness: dict[str, list[int]] = field(default_factory=dict)
    lifecycle: list[Told] = field(default_factory=list)
    rejected: list[RejectedRecord] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    rerouted: list[Rerouted] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    accepted: Counter[bytes] = field(default_factory=Counter)
    bulk: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    metered: list[Metered] = field(default_factory=list)
    traced: list[Traced] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)
    unframed: set[str] = field(default_factory=set)
    non_transactional: set[str] = field(default_factory=set)
    unreadable: list[tuple[bytes, str]] = field(default_factory=list)
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    move_ends: list[MoveEnd] = field(default_factory=list)
    failed_checks: list[str] = field(default_factory=list, compare=False)
    rederived: int = 0
    drained: list[Drained] = field(default_factory=list)
    now_ms: int = field(default=0, compare=False)
    room: int = field(default=STEP_BYTES, compare=False)
    refused_room: int = field(default=REFUSED_BYTES, compare=False)
    moved: bool = False
    manifest: Manifest | None = None

    @property
    def lateness_ms(self) -> list[int]:
        """How late each fire of the step was."""
        return list(chain.from_iterable(self.lateness.values()))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.moved or self.rows or self.fired)
