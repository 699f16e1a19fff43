"""Schemas that a batch of requests refers to: which are looked up, and which are waited for.

    a known schema ─────────────────────────────► read
    a request to be refused anyway ─────────────► refused unread    (`engine/claims.py`)
    within its account's budget ──► looked up ──► read, or refused with the registry's reason
                                       └ 100 ms ► set aside         (`deferred_needs.py`)
    beyond it, or not answered in time ─────────► refused: schema_unavailable

All of this is decided for a *need*: a lane of requests (`engine/claims.py`) and a schema.  The
waits and refusals of one lane do not touch another lane.  A schema that was found counts for all
lanes.

A batch never waits for its worst record.  It waits for `SHORT_S` at most, and for a tenth of the
time in the long run.  Then its needs are deferred: the engine sets aside the requests that have
them (`engine/aside.py`), these wait by themselves for up to `wait_s`, and the rest is taken in.  A
lane with requests that wait already holds no batch up at all.  The time that a lookup waits for
those of others does not count (`registry/lookups.py`), so no request is refused because others come
first.

A partition that only forwards cannot set requests aside, so it does not wait: the engine forwards
an unreadable request to the partition that can set it aside.

A refusal holds for the batch that met it, however often its step is rolled back and done again,
and in however many steps it is taken in; with the next batch the need is looked at anew.
Everything here belongs to the partition's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from belfry.engine.aside import Need
from belfry.engine.claims import lane_of
from belfry.host import machine
from belfry.partitions.deferred_needs import DeferredNeeds
from belfry.partitions.lookup_budgets import PaidLookups, WaitBudget, unavailable
from belfry.registry.lookups import Lookups
from belfry.schedules.rejections import Rejection
from belfry.store.layout.aside import Waits
from belfry.tenants.directory import Tenants
from belfry.wire.readings import Reference
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# The sender of each record is checked, which costs a signature: so many records in a step.
MOST_AT_ONCE: Final = 250
# How long a batch waits for a schema at most, and which part of the allowed wait.
SHORT_S: Final = 0.1
SHORT_PART: Final = 0.2


class Resolver:
    """Settles the schemas that the requests of one partition need to be read.

    Each account has `per_minute` lookups (`lookup_budgets.py`). A lookup that finds a request's
    schema is not counted, so that a worker that starts anew learns all of them.
    """

    def __init__(
        self,
        reader: RequestReader,
        lookups: Lookups | None,
        tenants: Tenants,
        limits: tuple[float, int],
        clock: Callable[[], float] | None = None,
        *,
        forwards: bool = False,
    ) -> None:
        self._wait_s, per_minute = limits
        short_s = min(SHORT_S, self._wait_s * SHORT_PART)
        self._timeouts = WaitBudget(0.0 if forwards else short_s)
        self._forwards = forwards
        self._reader = reader
        self._lookups = lookups
        self._tenants = tenants
        self._clock = clock or machine.monotonic
        # Lookups under way, and what they have used of the budgets.
        self._paid = PaidLookups(per_minute)
        self._began = self._until = 0.0
        self._records: Sequence[SourceRecord] | None = None
        # The needs of the batch that are not settled, and those refused for this batch alone.
        self._open: dict[Need, None] = {}
        self._refused: dict[Need, Rejection] = {}
        self.deferred = DeferredNeeds(reader, forwards=forwards)
        self.too_many = False

    @property
    def refused(self) -> Mapping[Need, Rejection] | None:
        """The refused needs of the batch that is ready; None where all its schemas are known."""
        if self._records is None:
            return None
        return {**self.deferred.refused, **self._refused}

    # -- requests that are set aside -------------------------------------------------------------

    def take_over(self, waits: Iterable[Waits]) -> None:
        """Wait for requests that a former owner has set aside: for all from now on, not in turn."""
        self.deferred.take_over(waits, self._clock())

    def look_after(self, heads: Sequence[Waits]) -> None:
        """Settle deferred needs; `heads` are the first requests of lanes that are set aside."""
        now = self._clock()
        looked_at = self.deferred.look(heads, self._paid.under_way, now)
        if self._records is None:
            self._paid.begin(now)
        for need in looked_at:
            self._settle(need)
        looked_at = [need for need in looked_at if need in self.deferred.needs]
        for need, why in self._beyond(looked_at):
            self._refuse(need, why)
        for need in looked_at:
            over = self._over(need)
            if over is not None:
                self._refuse(need, over)
        if self._records is None:
            self.deferred.forget_lanes()

    def _over(self, need: Need) -> Rejection | None:
        """Why a deferred need is not waited for any longer, or None."""
        since = self.deferred.since(need)
        if self._lookups is None or since is None:
            return None
        silent = self._lookups.silent(*need)
        if silent:
            return unavailable(need, f"The schema registry does not answer ({silent}).")
        waited_s = min(self._clock() - since, self._lookups.waited_s(*need))
        if waited_s < self._wait_s:
            return None
        return unavailable(need, f"The schema registry gave no answer within {waited_s:.1f} s.")

    # -- batches ---------------------------------------------------------------------------------

    def knows(self, records: Sequence[SourceRecord]) -> bool:
        """Whether the schemas of all these records are known."""
        return not self._reader.unknown_schemas(records)

    def ready(self, records: Sequence[SourceRecord]) -> bool:
        """Whether this batch can be taken in; called again and again until it can.

        A batch that has to be divided first is not looked at, and `too_many` is set.
        """
        self.too_many = False
        if self._records is not records:
            unknown = self._reader.unknown_schemas(records)
            if not unknown:
                return True
            self.too_many = len(records) > MOST_AT_ONCE
            if self.too_many:
                return False
            self._begin(records, unknown)
        elif not self._open:
            return True
        self._go_on()
        if not self._open:
            self._timeouts.end(self._clock())
        return not self._open

    def taken(self) -> None:
        """The batch has been taken in: forget the refusals that were for it alone."""
        if self._records is None:
            return
        self._records = None
        self._refused.clear()
        self._reader.forget_oldest()

    def _begin(
        self,
        records: Sequence[SourceRecord],
        unknown: Mapping[Reference, Sequence[SourceRecord]],
    ) -> None:
        self._records = records
        self._began = self._clock()
        self._until = self._timeouts.begin(self._began)
        self._paid.begin(self._began)
        self._open.clear()
        for reference, shown in unknown.items():
            for lane in {lane_of(record, self._tenants) for record in shown}:
                # A request that is refused whatever its schema is needs none.
                if not isinstance(lane, Rejection):
                    self._open[lane, reference] = None
        decided = (self._refused, self.deferred.refused, self.deferred.needs)
        for need in [need for need in self._open if any(need in each for each in decided)]:
            del self._open[need]

    def _go_on(self) -> None:
        """Take answers, start lookups within budgets, and defer needs that must not hold it up."""
        for need in list(self._open):
            self._settle(need)
        for need, why in self._beyond(self._open):
            self._refuse(need, why)
        over = self._clock() >= self._until
        waiting = self.deferred.lanes
        for need in list(self._open):
            if over or need[0] in waiting:
                del self._open[need]
                self.deferred.add(need, self._began)

    # -- needs of batches, and deferred ones -----------------------------------------------------

    def _settle(self, need: Need) -> None:
        """Take the answer to a need, if there is one."""
        lane, reference = need
        if self._lookups is None:
            self._refuse(need, Rejection("unknown_schema_id", _NO_REGISTRY))
            return
        reading = self._lookups.answer(lane, reference)
        if reading is None:
            return
        if isinstance(reading, Rejection):
            self._refuse(need, reading)
            return
        self._open.pop(need, None)
        self.deferred.settled(need)
        self._reader.settle(reference, reading)
        self._paid.found(need)

    def _beyond(self, needs: Iterable[Need]) -> list[tuple[Need, Rejection]]:
        """Start the lookups that budgets allow; returns the needs that are beyond them for good."""
        if self._lookups is None:
            return []
        beyond = self._paid.ask(self._lookups.ask, needs, self._needs)
        # A request that is forwarded unread is judged where it arrives.
        return [] if self._forwards else beyond

    def _needs(self, need: Need) -> bool:
        return need in self._open or need in self.deferred.needs

    def _refuse(self, need: Need, rejection: Rejection) -> None:
        self._open.pop(need, None)
        if not self.deferred.refuse(need, rejection):
            self._refused[need] = rejection


_NO_REGISTRY: Final = (
    "The value carries a registry's schema id, and no registry is configured: set"
    " BELFRY_SCHEMA_REGISTRY_URL, or write single-object Avro."
)
