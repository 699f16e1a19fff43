"""Schemas that a batch of requests refers to: what is asked for, and what is not waited for.

    what is known ──────────────────────────────► read
    what would be refused anyway ───────────────► refused unread    (`engine/claims.py`)
    within its asker's budget ──► looked up ────► read, or refused with the registry's reason
    beyond it, or not answered in time ─────────► refused: schema_unavailable

A batch never waits for its worst record.  It waits for answers as long as the partition's patience
lasts: `wait_s` at a stretch, and a tenth of the time in the long run.  Where the registry is silent
(`registry/lookups.py`) it does not wait at all.  Meanwhile the partition fires.

A refusal holds for the batch that met it, however often its step is rolled back and done again,
and in however many steps it is taken in; with the next batch the reference is looked at anew.
Everything here belongs to the partition's thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final
from uuid import UUID

from belfry.engine.claims import asker
from belfry.firing.rates import Rate
from belfry.registry.lookups import Lookups
from belfry.schedules.rejections import Rejection
from belfry.tenants.directory import Tenants
from belfry.wire.record import SourceRecord
from belfry.wire.requests import Reference, RequestReader

MINUTE_MS: Final = 60_000
# How much of the time a partition may wait for answers in the long run.
SHARE: Final = 0.1

Askers = frozenset[bytes]


class Patience:
    """How long a partition may wait for answers: up to `most_s` at once, `SHARE` of the time."""

    def __init__(self, most_s: float) -> None:
        self._most_s = self._left_s = most_s
        self._rested_at = 0.0

    def begin(self, now: float) -> float:
        """Until when to wait, from now on."""
        rested_s = now - self._rested_at
        self._left_s = min(self._most_s, self._left_s + rested_s * SHARE)
        self._rested_at = now
        return now + self._left_s

    def end(self, now: float) -> None:
        """The wait that began is over."""
        self._left_s = max(0.0, self._left_s - (now - self._rested_at))
        self._rested_at = now


class Resolver:
    """Settles schema references for one partition's reader.

    `per_minute` lookups are on each asker's account; one that finds a request's schema is not
    counted, so that a worker that starts anew learns all of them.
    """

    def __init__(
        self,
        reader: RequestReader,
        lookups: Lookups | None,
        tenants: Tenants,
        limits: tuple[float, int],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        wait_s, self._per_minute = limits
        self._reader = reader
        self._lookups = lookups
        self._tenants = tenants
        self._clock = clock
        self._patience = Patience(wait_s)
        self._budget = Rate(MINUTE_MS)
        self._began = self._until = 0.0
        self._records: Sequence[SourceRecord] | None = None
        # What of the batch is not settled, with those who ask; on whose account it is looked up;
        # and what is refused until the batch has been taken in.
        self._open: dict[Reference, Askers] = {}
        self._paid: dict[Reference, bytes] = {}
        self._held: list[Reference] = []

    def knows(self, records: Sequence[SourceRecord]) -> bool:
        """Whether these records need nobody to be asked."""
        return not self._reader.unknown_schemas(records)

    def ready(self, records: Sequence[SourceRecord]) -> bool:
        """Whether this batch can be taken in; called again and again until it can."""
        if self._records is not records:
            unknown = self._reader.unknown_schemas(records)
            if not unknown:
                return True
            self._begin(records)
            for reference, shown in unknown.items():
                self._look_at(reference, shown)
        elif not self._open:
            return True
        self._go_on()
        if not self._open:
            self._patience.end(self._clock())
        return not self._open

    def taken(self) -> None:
        """The batch has been taken in: forget what was refused for its sake."""
        if self._records is None:
            return
        self._records = None
        for reference in self._held:
            self._reader.forget(reference)
        self._held.clear()
        self._reader.forget_oldest()

    def _begin(self, records: Sequence[SourceRecord]) -> None:
        self._records = records
        self._open.clear()
        self._paid.clear()
        self._began = self._clock()
        self._until = self._patience.begin(self._began)

    def _look_at(self, reference: Reference, shown: list[SourceRecord]) -> None:
        """Settle a reference that was just met, or keep it open with those who ask for it."""
        if self._lookups is None:
            self._refuse(reference, Rejection("unknown_schema_id", _NO_REGISTRY))
        elif not self._settled(reference, self._lookups):
            askers: set[bytes] = set()
            refused: list[Rejection] = []
            for found in (asker(record, self._tenants) for record in shown):
                if isinstance(found, Rejection):
                    refused.append(found)
                else:
                    askers.add(found)
            if askers:
                self._open[reference] = frozenset(askers)
            else:
                self._refuse(reference, refused[0])

    def _settled(self, reference: Reference, lookups: Lookups) -> bool:
        """Whether there is an answer; it counts from now on."""
        reading = lookups.answer(reference)
        if reading is None:
            return False
        payer = self._paid.pop(reference, None)
        if isinstance(reading, Rejection):
            self._refuse(reference, reading)
        else:
            self._reader.settle(reference, reading)
            if payer is not None:
                self._take(payer, -1)
        return True

    def _go_on(self) -> None:
        """Take answers, ask for what budgets allow, and give up what is not to be waited for."""
        lookups = self._lookups
        if lookups is None or not self._open:
            return
        for reference in list(self._paid):
            if self._settled(reference, lookups):
                del self._open[reference]
        silent = lookups.silent
        if silent:
            self._give_up(f"The schema registry is silent: {silent}.")
            return
        self._ask(lookups)
        if self._clock() >= self._until:
            waited_s = self._clock() - self._began
            self._give_up(f"The schema registry gave no answer within {waited_s:.1f} s.")

    def _ask(self, lookups: Lookups) -> None:
        under_way = Counter(self._paid.values())
        for reference, askers in list(self._open.items()):
            payer = self._paid.get(reference)
            if payer is None:
                payer = next((each for each in askers if self._room(each)), None)
                if payer is not None:
                    self._take(payer, 1)
                    self._paid[reference] = payer
                    under_way[payer] += 1
            if payer is not None:
                if not lookups.ask(reference):
                    self._refuse_open(reference, "Too many schemas are being looked up.")
            elif not any(under_way[each] for each in askers):
                self._refuse_open(
                    reference,
                    f"More than {self._per_minute} schemas were asked for within a minute that are"
                    " none of requests.",
                )

    def _room(self, payer: bytes) -> bool:
        return self._budget.room(payer, self._per_minute / 60, self._instant_ms) > 0

    def _take(self, payer: bytes, count: int) -> None:
        self._budget.take(payer, self._per_minute / 60, self._instant_ms, count)

    @property
    def _instant_ms(self) -> float:
        """When the batch began: while it waits, nobody's budget grows."""
        return self._began * 1000 + MINUTE_MS

    def _give_up(self, why: str) -> None:
        for reference in list(self._open):
            self._refuse_open(reference, why)

    def _refuse_open(self, reference: Reference, why: str) -> None:
        del self._open[reference]
        self._paid.pop(reference, None)
        name = UUID(bytes=reference) if isinstance(reference, bytes) else reference
        reason = f"{why} The value needs schema {name}: send the request again later."
        self._refuse(reference, Rejection("schema_unavailable", reason))

    def _refuse(self, reference: Reference, rejection: Rejection) -> None:
        self._reader.refuse(reference, rejection)
        self._held.append(reference)


_NO_REGISTRY: Final = (
    "The value carries a registry's schema id, and no registry is configured: set"
    " BELFRY_SCHEMA_REGISTRY_URL, or write single-object Avro."
)
