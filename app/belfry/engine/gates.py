"""Gates: what waits until a fire is acknowledged.

    serial fire      closes the gate of its group      others of the group are held behind it
    overlap SKIP     closes the schedule's own gate    what comes due meanwhile is given up
    overlap QUEUE    closes the schedule's own gate    the schedule is held behind it

            fires               acknowledged, or time is over            nothing is held any more
    open ──────────► closed ─────────────────────────────► draining ──────────────────────► open
                       ▲                                      │ a serial one of them fires
                       └──────────────────────────────────────┘

While a gate drains, what it holds back moves to its tenant's backlog in due order, up to the next
serial one; what comes due meanwhile is held behind it, unless it is due before all that is held.

A fire that is awaited is a record of the changelog.  Which gates are closed, and what they hold
back, follows from these records: it is counted here, and a rollback takes the step's part back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from belfry.engine.undoing import Undoable
from belfry.schedules.triggers import trigger_of
from belfry.store.layout import keys
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.records import (
    BEHIND_LOCK,
    IN_BACKLOG,
    LOCKS_GROUP,
    LOCKS_OWN,
    Awaited,
    Location,
    decode_awaited,
    encode_awaited,
    encode_location,
)
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

# Rows that leave a gate at once: those behind them wait no longer than a step.
MOST_AT_ONCE: Final = 200
NOWHERE: Final = (-(2**62), 0)
UNREADABLE_GATE: Final = b"u"

Spot = tuple[int, int]
Held = tuple[Pending, bytes]


class Gate(NamedTuple):
    """A tenant's gate: of a group (``g…``), of one schedule (``s…``), of the unreadable (``u``)."""

    tenant: bytes
    name: bytes


class Drain(NamedTuple):
    """How far a gate is drained: where what it still holds begins, and what left it last."""

    first: Spot
    last_name: bytes = b""
    last_place: bytes = b""


def group_gate(row: Pending) -> Gate:
    """The gate of a row's group."""
    return Gate(row.tenant, b"g" + row.group)


def unreadable_gate(row: Pending) -> Gate:
    """The gate of what this version cannot fire; it lets go what a later owner can."""
    return Gate(row.tenant, UNREADABLE_GATE)


def own_gate(row: Pending) -> Gate:
    """The gate of a schedule of its own."""
    return Gate(row.tenant, b"s" + row.schedule_id)


class Gates:
    """The gates of one partition's store."""

    def __init__(self, store: ScheduleStore) -> None:
        self._store = store
        self._closed: Undoable[Gate, bytes] = Undoable()
        self._draining: Undoable[Gate, Drain] = Undoable()
        self._joined: dict[Gate, Spot] = {}
        # Tenants some of whose groups wait, and how many: their fires are not plain.
        self.tenants: Undoable[bytes, int] = Undoable()
        self._count()
        self.committed()

    def _count(self) -> None:
        """Find out by what is stored which gates are closed, and which have to be drained."""
        for key, record in self._store.awaited():
            for gate in _gates_of(key, decode_awaited(record)):
                self._shut(gate)
                self._closed[gate] = key
        for each in self._store.locks():
            gate = Gate(*each)
            if gate not in self._closed:
                self._shut(gate)
                self._draining[gate] = Drain(NOWHERE)

    def committed(self) -> None:
        """The step is in the store."""
        for each in (self._closed, self._draining, self.tenants):
            each.committed()
        self._joined.clear()

    def aborted(self) -> None:
        """The step was rolled back: gates are as they were before it."""
        for each in (self._closed, self._draining, self.tenants):
            each.aborted()
        self._joined.clear()

    def next_ms(self, soon_ms: int) -> int | None:
        """When there is something to do, or None; at `soon_ms` where it is to be done at once."""
        until_ms = self._store.first_until_ms()
        if any(self._has_left(drain) for drain in self._draining.values()):
            return soon_ms if until_ms is None else min(soon_ms, until_ms)
        return until_ms

    def passes(self, row: Pending) -> bool:
        """Whether a due row of a group may leave, as far as its group's gate is concerned."""
        gate = group_gate(row)
        if gate in self._closed:
            return False
        drain = self._draining.get(gate)
        return drain is None or row.sort_key < drain.first

    def is_closed(self, gate: Gate) -> bool:
        """Whether a fire that closed this gate is still awaited."""
        return gate in self._closed

    def hold(self, gate: Gate, row: Pending, record: bytes) -> None:
        """Put a due record behind a gate."""
        spot = row.sort_key
        name = row.name
        self._store.move(name, record, Location(BEHIND_LOCK, *spot, gate.name))
        self._joined[gate] = min(spot, self._joined.get(gate, spot))

    def close(self, row: Pending, fire: tuple[bytes, int], terms: tuple[int, int]) -> None:
        """Await the acknowledgement of a fire (its id, its instant), and close what waits for it.

        The terms are what it closes, and how long it is awaited (ms).
        """
        (identity, now_ms), (closes, wait_ms) = fire, terms
        awaited = Awaited(
            closes, now_ms, now_ms + wait_ms, row.due_ms, row.version, row.schedule_id, row.group
        )
        key, record = keys.awaited_key(row.tenant, identity), encode_awaited(awaited)
        self._store.await_ack(key, record)
        for gate in _gates_of(key, awaited):
            if gate in self._draining:
                del self._draining[gate]
            elif gate not in self._closed:
                self._shut(gate)
            self._closed[gate] = key

    def awaited(self, key: bytes) -> Awaited | None:
        """The fire under a changelog key, if it is still to be acknowledged."""
        record = self._store.named(key)
        return None if record is None else decode_awaited(record)

    def overdue(self, now_ms: int) -> Iterator[tuple[bytes, Awaited]]:
        """Some of the fires that were not acknowledged in time, with their changelog keys."""
        first_ms = self._store.first_until_ms()
        if first_ms is None or first_ms > now_ms:
            return
        for until_ms, key in islice(self._store.untils(), MOST_AT_ONCE):
            awaited = self.awaited(key)
            if until_ms <= now_ms and awaited is not None:
                yield key, awaited

    def open(self, key: bytes) -> list[Held]:
        """Await a fire no longer; what its gates let go, for the tenant's backlog."""
        record = self._store.named(key)
        assert record is not None, "what is opened was awaited"
        self._store.acked(key, record)
        let_go: list[Held] = []
        for gate in _gates_of(key, decode_awaited(record)):
            if self._closed.get(gate) == key:
                del self._closed[gate]
                self._draining[gate] = Drain(NOWHERE)
                let_go += self._drain(gate)
        return let_go

    def drain(self) -> list[Held]:
        """What all gates that are no longer closed let go, for the backlogs of their tenants."""
        let_go: list[Held] = []
        for gate, drain in list(self._draining.items()):
            if self._has_left(drain):
                let_go += self._drain(gate)
        return let_go

    def _drain(self, gate: Gate) -> list[Held]:
        """Let the next rows go, up to a serial one; where none is left, the gate is open."""
        unreadable = gate.name == UNREADABLE_GATE
        # What joined in this process cannot be read by it.
        joined = None if unreadable else self._joined.get(gate)
        let_go: list[Held] = []
        last: tuple[bytes, bytes] = b"", b""
        ends = False
        for key, record in self._store.locked(*gate):
            spot = keys.sort_key(key)
            if unreadable and why_unreadable(record):
                continue
            if ends or (joined is not None and joined < spot) or len(let_go) == MOST_AT_ONCE:
                first = spot if joined is None else min(joined, spot)
                self._draining[gate] = Drain(first, *last)
                return let_go
            row = decode_pending(record)
            self._store.take([(key, record)])
            # Its place is where it was held: a record for a run of late ones waits for its own.
            let_go.append((row.at(spot[0], row.nominal_ms), record))
            last = row.name, encode_location(Location(IN_BACKLOG, *spot))
            ends = not why_unreadable(record) and bool(trigger_of(row.extra).rule.serial)
        if joined is not None:
            self._draining[gate] = Drain(joined, *last)
            return let_go
        del self._draining[gate]
        self._unshut(gate)
        return let_go

    def _has_left(self, drain: Drain) -> bool:
        """Whether what a gate let go last has left the backlog, so that more may follow."""
        return not drain.last_name or self._store.named(drain.last_name) != drain.last_place

    def _shut(self, gate: Gate) -> None:
        if gate.name[:1] == b"g":
            self.tenants[gate.tenant] = self.tenants.get(gate.tenant, 0) + 1

    def _unshut(self, gate: Gate) -> None:
        if gate.name[:1] == b"g":
            self.tenants[gate.tenant] -= 1
            if not self.tenants[gate.tenant]:
                del self.tenants[gate.tenant]


def _gates_of(key: bytes, awaited: Awaited) -> list[Gate]:
    """What an awaited fire keeps closed."""
    tenant, _ = keys.awaited_names(key)
    gates = []
    if awaited.locks & LOCKS_GROUP:
        gates.append(Gate(tenant, b"g" + awaited.group))
    if awaited.locks & LOCKS_OWN:
        gates.append(Gate(tenant, b"s" + awaited.schedule_id))
    return gates
