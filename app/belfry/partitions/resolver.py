"""Schemas that a batch of requests refers to: what is asked for, and what is not waited for.

    what is known ──────────────────────────────► read
    what would be refused anyway ───────────────► refused unread    (`engine/claims.py`)
    within its asker's budget ──► looked up ────► read, or refused with the registry's reason
                                      └ 100 ms ─► deferred: set aside    (`engine/aside.py`)
    beyond it, or not answered in time ─────────► refused: schema_unavailable

A batch never waits for its worst record.  Where it is known who asks for a schema, the batch waits
for `SHORT_S`, or less.  Then it is deferred: the engine sets aside what refers to it, which waits
for up to `wait_s` by itself, and the rest is taken in.  Where somebody waits already, what the
same asker needs is deferred at once.

Where nobody knows who asks, or there is no state to set anything aside in, the batch waits as long
as the partition's patience lasts: `wait_s` at a stretch, and a tenth of the time in the long run.
Where the registry is silent (`registry/lookups.py`) nothing waits at all.  Meanwhile the partition
fires.

A refusal holds for the batch that met it, however often its step is rolled back and done again,
and in however many steps it is taken in; with the next batch the reference is looked at anew.
That of a deferred schema holds until nothing is set aside any more.
Everything here belongs to the partition's thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

from belfry.engine.claims import NOBODY, asker
from belfry.firing.rates import Rate
from belfry.registry.lookups import Lookups
from belfry.schedules.rejections import Rejection
from belfry.tenants.directory import Tenants
from belfry.wire.record import SourceRecord
from belfry.wire.requests import Reference, RequestReader

MINUTE_MS: Final = 60_000
# How much of the time a partition may wait for answers in the long run.
SHARE: Final = 0.1
# Who asks is looked at for each record, which costs a signature: so many are looked at in a step.
MOST_AT_ONCE: Final = 250
# How long a batch waits for a schema of somebody who can be set aside: so long at most, and for
# this part of the wait that is allowed.
SHORT_S: Final = 0.1
SHORT_PART: Final = 0.2

Askers = frozenset[bytes]


class Deferred(NamedTuple):
    """A schema that set-aside requests wait for: since when (seconds), and who asks for it."""

    since: float
    askers: Askers


class WaitBudget:
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
        *,
        sets_aside: bool = False,
    ) -> None:
        wait_s, self._per_minute = limits
        self._wait_s = wait_s
        self._short_s = min(SHORT_S, wait_s * SHORT_PART)
        self._sets_aside = sets_aside
        self._reader = reader
        self._lookups = lookups
        self._tenants = tenants
        self._clock = clock
        self._patience = WaitBudget(wait_s)
        self._budget = Rate(MINUTE_MS)
        self._began = self._until = 0.0
        self._records: Sequence[SourceRecord] | None = None
        # What of the batch is not settled, with those who ask; on whose account it is looked up;
        # and what is refused until the batch has been taken in.
        self._open: dict[Reference, Askers] = {}
        self._paid: dict[Reference, bytes] = {}
        self._held: list[Reference] = []
        # What set-aside requests wait for, and what of it is refused until they are taken in.
        self._deferred: dict[Reference, Deferred] = {}
        self.too_many = False
        self._held_apart: set[Reference] = set()

    @property
    def deferred(self) -> Collection[Reference]:
        """Schemas that are not settled, and for which nobody waits but who asks for them."""
        return self._deferred.keys()

    @property
    def looks_after(self) -> bool:
        """Whether something is deferred, or refused until nothing is set aside any more."""
        return bool(self._deferred or self._held_apart)

    def look_after(self, heads: Sequence[SourceRecord]) -> None:
        """Settle what is deferred, where `heads` are the first requests that are set aside."""
        for record in heads:
            self._meet_again(record)
        lookups = self._lookups
        if lookups is not None:
            for reference in [each for each in self._paid if each in self._deferred]:
                self._settled(reference, lookups)
            self._ask(lookups, {each: found.askers for each, found in self._deferred.items()})
        for reference, (since, _) in list(self._deferred.items()):
            if lookups is None:
                self._refuse(reference, Rejection("unknown_schema_id", _NO_REGISTRY))
            elif self._clock() - since >= self._wait_s:
                self._refuse_open(reference, _late(self._clock() - since))
        if lookups is not None and self._deferred and (silent := lookups.silent):
            for reference in list(self._deferred):
                self._refuse_open(reference, f"The schema registry is silent: {silent}.")
        if not heads and self._records is None:
            self._forget_held_apart()

    def _meet_again(self, record: SourceRecord) -> None:
        """What a former owner has set aside waits here too, as does what was forgotten."""
        reference = self._reader.unknown_schema(record)
        if reference is not None and reference not in self._deferred:
            found = asker(record, self._tenants)
            askers = frozenset((NOBODY if isinstance(found, Rejection) else found,))
            self._deferred[reference] = Deferred(self._clock(), askers)
            if self._lookups is not None:
                self._settled(reference, self._lookups)

    def _forget_held_apart(self) -> None:
        for reference in self._held_apart:
            self._reader.forget(reference)
        self._held_apart.clear()

    def knows(self, records: Sequence[SourceRecord]) -> bool:
        """Whether these records need nobody to be asked."""
        return not self._reader.unknown_schemas(records)

    def ready(self, records: Sequence[SourceRecord]) -> bool:
        """Whether this batch can be taken in; called again and again until it can.

        One that is to be divided first is not looked at, and is `too_many`.
        """
        self.too_many = False
        if self._records is not records:
            unknown = self._reader.unknown_schemas(records)
            if not unknown:
                return True
            self.too_many = len(records) > MOST_AT_ONCE
            if self.too_many:
                return False
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
            if reference not in self._held_apart:
                self._reader.forget(reference)
        self._held.clear()
        self._reader.forget_oldest()

    def _begin(self, records: Sequence[SourceRecord]) -> None:
        self._records = records
        self._open.clear()
        self._paid = {each: by for each, by in self._paid.items() if each in self._deferred}
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
            if reference in self._deferred and self._may_part(askers):
                return
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
            self._deferred.pop(reference, None)
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
                self._open.pop(reference, None)
        silent = lookups.silent
        if silent:
            self._give_up(f"The schema registry is silent: {silent}.")
            return
        self._ask(lookups, self._open)
        self._part()
        if self._open and self._clock() >= self._until:
            self._give_up(_late(self._clock() - self._began))

    def _part(self) -> None:
        """Defer what was waited for long enough, and what is asked for by who waits already."""
        over = self._clock() >= min(self._until, self._began + self._short_s)
        waiting = frozenset[bytes]().union(*(each.askers for each in self._deferred.values()))
        for reference, askers in list(self._open.items()):
            if self._may_part(askers) and (over or askers <= waiting):
                del self._open[reference]
                self._deferred.setdefault(reference, Deferred(self._began, askers))

    def _may_part(self, askers: Collection[bytes]) -> bool:
        """Whether it is known whose later requests have to wait with what these ask for."""
        if not self._sets_aside:
            return False
        return NOBODY not in askers or self._tenants.signing.everybody

    def _ask(self, lookups: Lookups, wanted: Mapping[Reference, Askers]) -> None:
        """Ask for what budgets allow; refuse what is beyond them and cannot come within them."""
        under_way = Counter(self._paid.values())
        poor: set[bytes] = set()
        for reference, askers in list(wanted.items()):
            payer = self._paid.get(reference)
            if payer is None:
                payer = self._payer(askers, poor)
            if payer is not None:
                if reference not in self._paid:
                    self._take(payer, 1)
                    self._paid[reference] = payer
                    under_way[payer] += 1
                if not lookups.ask(reference):
                    self._refuse_open(reference, "Too many schemas are being looked up.")
            elif not any(under_way[each] for each in askers):
                self._refuse_open(
                    reference,
                    f"More than {self._per_minute} schemas were asked for within a minute that are"
                    " none of requests.",
                )

    def _payer(self, askers: Askers, poor: set[bytes]) -> bytes | None:
        """Who has room for one lookup more; `poor` are those who are known to have none."""
        for each in askers - poor:
            if self._room(each):
                return each
            poor.add(each)
        return None

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
        self._open.pop(reference, None)
        self._paid.pop(reference, None)
        name = UUID(bytes=reference) if isinstance(reference, bytes) else reference
        reason = f"{why} The value needs schema {name}: send the request again later."
        self._refuse(reference, Rejection("schema_unavailable", reason))

    def _refuse(self, reference: Reference, rejection: Rejection) -> None:
        self._reader.refuse(reference, rejection)
        if self._deferred.pop(reference, None) is not None:
            self._held_apart.add(reference)
        else:
            self._held.append(reference)


def _late(waited_s: float) -> str:
    return f"The schema registry gave no answer within {waited_s:.1f} s."


_NO_REGISTRY: Final = (
    "The value carries a registry's schema id, and no registry is configured: set"
    " BELFRY_SCHEMA_REGISTRY_URL, or write single-object Avro."
)
