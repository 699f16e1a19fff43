"""The engine of one partition: requests in, due events out, one step at a time.

    accept(batch, now)      requests to verdicts           ┐ effects of one step,
    fire_due(now, at_most)  what is due to fired records   ┘ one transaction
    committed(…)            the transaction is in the log: write the same locally
    aborted()               it is not: forget the step

A step fires first and accepts then: the due scan reads only what is committed, and a cancel that
arrives with the fire comes too late.  The engine never looks at a clock and never waits.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from belfry.engine.catch_up import LEAST_SHARE, CatchUp
from belfry.engine.effects import STEP_BYTES, Effects
from belfry.engine.firing import Firing
from belfry.engine.intake import Intake
from belfry.engine.limits import Limits
from belfry.engine.oldest import FIRING, Oldest
from belfry.engine.plain import Instants, PlainIntake
from belfry.engine.removal import Removal
from belfry.engine.ruled import Ruled
from belfry.engine.timeouts import TimeOuts
from belfry.engine.verdicts import Place, Verdicts
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.firing.due import ScanPosition
from belfry.schedules.tenants import StepTenants, Tenants
from belfry.store.layout import keys
from belfry.store.layout.records import Manifest, StoredState
from belfry.store.schedules import ScheduleStore
from belfry.store.sweep import Sweep
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader

# Requests that a step looks at, behind one that had no room for all of its batch.
FEW: Final = 64
NO_MANIFEST = Manifest(0, 0, 0, 0, 0, 0, b"")


class GapInSource(Exception):
    """A batch does not begin where the last one ended: read again from the stored position."""


class PartitionEngine:
    """Schedules of one partition; `store` holds exactly what `manifest` says.

    A step takes in about `step_bytes`, and fires as many: the last of each may be larger.
    """

    def __init__(
        self,
        place: Place,
        store: ScheduleStore,
        reader: RequestReader,
        tenants: Tenants,
        step_bytes: int = STEP_BYTES,
    ) -> None:
        self._step_bytes = step_bytes
        # How many requests the next step looks at, where the last one had no room for more.
        self._few: int | None = None
        stored = store.state()
        self.manifest = NO_MANIFEST if stored is None else stored.manifest
        self._store = store
        self._reader = reader
        self._reach = ScanPosition.at(self.manifest.watermark_ms)
        self._tenants = of_step = StepTenants(tenants)
        self._waiting = Waiting(store, self._reach)
        self._zones = ZoneChange(store, self._waiting)
        ruled = Ruled(store, self._waiting, self._zones)
        self._firing = Firing(store, of_step, self._waiting, ruled)
        self._time_outs = TimeOuts(of_step, self._waiting)
        self._catch_up = CatchUp(store, of_step, self._waiting, ruled)
        verdicts = Verdicts(place, store)
        self._limits = Limits(store)
        self._intake = Intake(place, store, of_step, self._waiting, verdicts, self._limits)
        self._plain = PlainIntake(place, store, of_step, self._waiting, verdicts)
        self._sweep = Sweep(store)
        self._removal = Removal(store, of_step, self._waiting)
        self._oldest = Oldest(store, of_step, self._waiting)
        self._next_due_ms = store.first_due_ms(self._reach.next)
        self._effects = Effects(rows=store.changes, room=step_bytes)
        self._position = self.manifest.position
        self._heard_ms = self._step_heard_ms = 0
        self._step_reach = self._reach

    @property
    def position(self) -> int:
        """The source offset that the next batch has to begin with."""
        return self._position

    @property
    def pending(self) -> int:
        """Number of schedules that wait."""
        return self.manifest.pending

    def begin_at(self, position: int) -> None:
        """Start at this source offset: the partition never had an owner."""
        assert self.manifest is NO_MANIFEST, "a partition that has state has its position"
        self.manifest = NO_MANIFEST._replace(position=position)
        self._position = position

    def claim(self, settings: bytes | None, identity: bytes | None = None) -> Effects:
        """The first step of an owner: a manifest of its own, and what of these is not kept yet."""
        if identity is not None:
            self._store.note(keys.IDENTITY_KEY, identity)
        if settings is not None:
            self._store.note(keys.SETTINGS_KEY, settings)
            if not self._zones.under_way:
                self._zones.settle()
        self._effects.moved = True
        return self._effects

    def next_due_ms(self) -> int | None:
        """Instant of the next event to fire, None for none; in the past where a backlog waits.

        A backlog may hold what is due up to the reach, so it waits for a clock that went back.
        """
        self._see_tenants()
        due_ms, queues = self._next_due_ms, self._firing.queues
        if queues.waits:
            held_ms = max(self._reach.horizon_ms, self._waiting.held_up_to_ms)
            due_ms = held_ms if due_ms is None else min(held_ms, due_ms)
        again_ms = self._catch_up.next_ms
        gates_ms = self._waiting.gates.next_ms(self._reach.horizon_ms)
        known = (due_ms, queues.next_ms(), again_ms, gates_ms)
        return min([each for each in known if each is not None], default=None)

    @property
    def drains(self) -> bool:
        """Whether something that was held back may fire at once, from a backlog or a gate."""
        self._see_tenants()
        gate_ms = self._waiting.gates.next_ms(self._reach.horizon_ms)
        open_gate = gate_ms is not None and gate_ms <= self._reach.horizon_ms
        return open_gate or self._firing.queues.waits

    def oldest_due_ms(self) -> dict[str, int]:
        """Earliest due instants by what is waited for (`engine/oldest.py`); from any thread."""
        found, due_ms = dict(self._oldest.due_ms), self._next_due_ms
        if due_ms is not None:
            found[FIRING] = min(due_ms, found.get(FIRING, due_ms))
        return found

    def fire_due(self, now_ms: int, at_most: int) -> Effects:
        """Fire at most `at_most` events that are due by `now_ms`; the first half of a step."""
        empty = self._next_due_ms is None or self._next_due_ms > now_ms
        if empty and now_ms > self._reach.watermark_ms:
            # Nothing lies between the watermark and now, so this needs no transaction.
            self._reach = self._step_reach = ScanPosition.at(now_ms)
        due_ms = self.next_due_ms()
        if due_ms is not None and due_ms <= now_ms:
            reach = self._firing.fire_due(self._reach, now_ms, at_most, self._effects)
            if self._waiting.catch_up:
                left = at_most - len(self._effects.fired)
                self._catch_up.fire(now_ms, max(left, at_most // LEAST_SHARE), self._effects)
            self._waiting.settle(reach)
            self._time_outs.settle(now_ms, self._effects)
            self._step_reach = reach
        return self._effects

    def accept(self, batch: SourceBatch, now_ms: int) -> Effects:
        """Take a batch of requests in; the second half of a step.

        Each request counts from its own arrival (`arrival.py`).  `now_ms` is when its verdict is
        told of, and when the fire of a TRIGGER leaves.

        Small requests may have large effects: a TRIGGER fires a payload that was stored.  Where the
        step has no room left, `position` stays amid the batch, and `batch.behind(position)` is for
        the next step.
        """
        if batch.start != self._position:
            raise GapInSource(
                f"expected offset {self._position}, the batch begins at {batch.start}"
            )
        self._see_tenants()
        watermark_ms = self._step_reach.watermark_ms
        self._intake.begin(now_ms, watermark_ms, appended=batch.appended)
        self._waiting.reach = self._step_reach
        read, effects = self._reader.read, self._effects
        records, behind = batch.records, batch.next_position
        if self._few is not None and len(records) > self._few:
            records, behind = records[: self._few], records[self._few][0]
        # A batch is bounded itself, so what it brings along fits; what it sets off may not.
        effects.room = self._step_bytes + 2 * batch.size
        requests = [read(record) for record in records]
        for tenant in self._firing.queues.crowds.crowding(requests, batch.start):
            self._waiting.set_apart(tenant)
        instants = Instants(now_ms, watermark_ms)
        last = records[-1] if records else None
        taking = self._plain.keep(records, requests, instants, effects)
        for record, request in taking:
            whole = self._reader.read_whole(record) if type(request) is tuple else request
            self._intake.take(record, whole, effects)
            if effects.room <= 0 and record is not last:
                taking.close()
                last, behind = record, record[0] + 1
                break
        self._few = _next_few(self._few, behind < batch.next_position, effects.room)
        effects.moved = effects.moved or behind != self._position
        self._position = behind
        if last is not None:
            self._step_heard_ms = max(self._step_heard_ms, last[1])
        return effects

    def sweep(self, now_ms: int, at_most: int) -> Effects:
        """Forget markers and verdicts whose time is over, among the next `at_most` rows."""
        self._see_tenants()
        self._sweep.sweep(now_ms, self._heard_ms, at_most)
        self._firing.queues.crowds.forget(now_ms)
        self._removal.sweep(now_ms, at_most, self._effects)
        self._oldest.look()
        self._waiting.reach = self._step_reach
        self._zones.sweep(now_ms, at_most, self._effects)
        return self._effects

    def _see_tenants(self) -> None:
        """See tenants as they are treated now, unless the step has begun: it goes by one policy."""
        if self._effects.empty:
            self._tenants.renew()

    @property
    def sweeps_behind(self) -> bool:
        """Whether more was written than sweeps have made up for."""
        return self._sweep.behind

    def seal(self, owner_epoch: int, *, read_lease: bool = False) -> Manifest:
        """The manifest of the step: what it did, and where the partition stands after it.

        `read_lease` says that the owner may answer reads for a while without asking anybody.
        """
        effects, before = self._effects, self.manifest
        digest = blake2b(b"".join(effects.fire_ids), digest_size=16).digest()
        effects.manifest = Manifest(
            txn_seq=before.txn_seq + 1,
            owner_epoch=owner_epoch,
            position=self._position,
            watermark_ms=max(before.watermark_ms, self._step_reach.watermark_ms),
            pending=before.pending + self._store.pending_change,
            fired=len(effects.fire_ids),
            digest=digest,
            read_lease=read_lease,
        )
        self._store.seal(effects.manifest)
        return effects.manifest

    def committed(self, changelog_offset: int, now_ms: int) -> None:
        """The step's transaction is in the log up to `changelog_offset`: make it so here."""
        manifest = self._effects.manifest
        assert manifest is not None, "a step is sealed before it is committed"
        self._sweep.wrote(len(self._effects.rows))
        self._limits.committed()
        self._firing.queues.committed()
        self._catch_up.committed()
        self._store.commit(StoredState(changelog_offset, now_ms, manifest))
        self._waiting.committed()
        self._removal.committed()
        self.manifest = manifest
        self._heard_ms = self._step_heard_ms
        self._reach = self._step_reach
        self._next_due_ms = self._store.first_due_ms(self._reach.next)
        self._effects = Effects(rows=self._store.changes, room=self._step_bytes)

    def aborted(self) -> None:
        """The step's transaction was rolled back: forget it."""
        self._store.discard()
        self._waiting.aborted()
        self._limits.aborted()
        self._firing.queues.aborted()
        self._catch_up.aborted()
        self._removal.aborted()
        self._sweep.restart()
        self._zones.restart()
        self._effects = Effects(rows=self._store.changes, room=self._step_bytes)
        self._position = self.manifest.position
        self._step_heard_ms = self._heard_ms
        self._step_reach = self._reach


def _next_few(few: int | None, left: bool, room: int) -> int | None:
    """How many requests the next step looks at, None for all of a batch.

    Whoever reads a batch anew for each few that it takes in would be busy with nothing else.
    """
    if left and room <= 0:
        return FEW
    return None if few is None or not left else 2 * few
