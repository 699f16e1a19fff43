"""A sweep of stored payloads: it puts unclaimed objects aside, and a later sweep removes them.

    1  list      objects older than the margin, and those that earlier sweeps have put aside
    2  read      claims on objects: in rows, requests, events, backups
    3  act       put back claimed objects from aside; remove objects that are aside since a day;
                 put aside unclaimed objects
    4  follow    the changelog, meanwhile and for two minutes, and at last all other topics once
                 more: objects that they claim by now are put back

An object is named by its content, so a new request may use an object that is about to go:

    12:00:00  5f0c… is a month old, and nothing claims it
    12:00:05  the sweep looks at it once more: a month old
    12:00:05  a worker stores the same content anew, for a request         ─┐ within one round trip
    12:00:05  the sweep removes it, and has a copy aside                   ─┘
    12:00:06  the worker commits the row that claims it
    12:00:07  the sweep reads that row, and puts the copy back

No store can remove a file only if it was not written since, and the content does not tell. Any
other order of these steps is harmless: a worker stores an object that it claims within the 60
seconds before its commit (`FRESH_S` and the time of a transaction), so an object that was stored
before the look is young, and stays; and one that is stored after the removal is there.  A client
that finds its object stored does so only where it is younger than an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

from belfry.cli.payload_list import PayloadList, PayloadSum

if TYPE_CHECKING:
    from belfry.cli.payload_claims import ClaimReader
    from belfry.outputs.stored_payloads import StoredPayload, SweptStore

DAY_MS: Final = 24 * 3_600_000
# An object that is aside for so long is removed if it is still unclaimed.
ASIDE_MS: Final = DAY_MS
LOOK_S: Final = 1.0
NONE: Final = PayloadSum(0, 0)


class SweepTerms(NamedTuple):
    """How a sweep is made: instants in epoch ms, and objects a second.

    Objects that were stored at or after `before_ms` are left alone. For `followed_s` seconds the
    changelog is followed, which is longer than a worker takes from storing a payload to the end of
    the transaction that claims it.
    """

    now_ms: float
    before_ms: float
    per_second: float
    followed_s: float


@dataclass(slots=True)
class SweepResult:
    """Counts of a sweep: objects that it has found, and what it has done with them."""

    listed: int = 0
    young: int = 0
    records: int = 0
    claimed: PayloadSum = NONE
    unclaimed: PayloadSum = NONE
    aside_claimed: PayloadSum = NONE
    aside_over: PayloadSum = NONE
    put_aside: int = 0
    put_back: int = 0
    removed: int = 0
    # Stored anew between the list and the look, or gone.
    left: int = 0


@dataclass(slots=True)
class PayloadSweep:
    """One sweep: `list`, `read`, `act`; `objects` may be told of further claims before `act`."""

    store: SweptStore
    terms: SweepTerms
    note: Callable[[str], object]
    found: SweepResult = field(default_factory=SweepResult)
    objects: PayloadList = field(default_factory=PayloadList)

    def list(self) -> int:
        """List the objects that may go, and those put aside; how many there are."""
        for each in self.store.there.all():
            if each.stored_ms is None or each.stored_ms >= self.terms.before_ms:
                self.found.young += 1
            else:
                self._add(each, aside=False, old=True)
        for each in self.store.aside.all():
            over = each.stored_ms is not None and each.stored_ms < self.terms.now_ms - ASIDE_MS
            self._add(each, aside=True, old=over)
        return self.found.listed

    def _add(self, each: StoredPayload, *, aside: bool, old: bool) -> None:
        self.objects.add(each.tenant, each.digest, each.size, aside=aside, old=old)
        self.found.listed += 1

    def read(self, claims: ClaimReader) -> None:
        """Read all claims, in an order that misses none; and count."""
        claims.waiting()
        self.found.records = claims.elsewhere()
        claims.follow()
        found, tally = self.found, self.objects.tally
        found.claimed = tally(aside=False, claimed=True)
        found.unclaimed = tally(aside=False, claimed=False)
        found.aside_claimed = tally(aside=True, claimed=True)
        found.aside_over = tally(aside=True, claimed=False)

    def act(self, claims: ClaimReader) -> None:
        """Do it, and put back objects that turn out to be claimed."""
        self._put_back()
        for tenant, digest in self._paced(aside=True, claimed=False):
            self.store.aside.remove(tenant, digest)
            self.objects.forget(tenant, digest)
            self.found.removed += 1
        looked_s = monotonic()
        for tenant, digest in self._paced(aside=False, claimed=False):
            if self.store.put_aside(tenant, digest, self.terms.before_ms):
                self.objects.moved(tenant, digest, aside=True)
                self.found.put_aside += 1
            else:
                self.found.left += 1
            if monotonic() - looked_s >= LOOK_S:
                self._look(claims)
                looked_s = monotonic()
        if self.found.put_aside:
            self._follow(claims)

    def _follow(self, claims: ClaimReader) -> None:
        """Look again and again, until no step can be under way any more.

        A schedule that was created, triggered and cancelled in one step was in no row: the last
        look goes to events as well.
        """
        self.note(f"Put aside: {self.found.put_aside:,}. Following the changelog for"
                  f" {self.terms.followed_s:.0f} s …")  # fmt: skip
        until_s = monotonic() + self.terms.followed_s
        while True:
            last = monotonic() >= until_s
            if last:
                claims.since()
            self._look(claims)
            if last:
                return
            sleep(LOOK_S)

    def _look(self, claims: ClaimReader) -> None:
        """Put back objects that the changelog claims by now."""
        claims.follow()
        self._put_back()

    def _put_back(self) -> None:
        for tenant, digest in self.objects.each(aside=True, claimed=True):
            self.found.put_back += self.store.put_back(tenant, digest)
            self.objects.moved(tenant, digest, aside=False)

    def _paced(self, *, aside: bool, claimed: bool) -> Iterator[tuple[str, str]]:
        """Objects of a sort, so many a second at most."""
        began_s = monotonic()
        for number, each in enumerate(self.objects.each(aside=aside, claimed=claimed)):
            early_s = began_s + number / self.terms.per_second - monotonic()
            if early_s > 0:
                sleep(early_s)
            yield each
