"""Output, lifecycle and rejected topics: events, against the fires of transactions.

    output record ─┬─ its id was there before           doubled
                   ├─ a transaction fired it            settled
                   ├─ its schedule was cancelled        cancelled
                   └─ it has no explanation             unasked

Records of different topics are read one after the other, so an event may be read before the
transaction that fired it, or a long time after.  So a record without a match is not judged in the
round in which it came, but at the end of a later one.

Fires are matched by their ids alone.  An id is computed from the changelog, so an event that
somebody else wrote to the topic cannot pass for one that fired.
"""

from __future__ import annotations

from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.headers import COPY_HEADER
from belfry.verification.memory import FiredEntry, Memory, Stands, ToldFire, short
from belfry.verification.rows import id_of_fire


class OutputVerifier:
    """Takes records of all topics but the changelog; `findings` are its results."""

    def __init__(self, memory: Memory, counts: CheckCounts, at_round: int = 1) -> None:
        self.findings: list[Breached] = []
        self.round = at_round
        self._memory = memory
        self._counts = counts
        self._coverage = Coverage("", {})
        # Lifecycle events up to this instant, epoch ms, may tell of fires in another cluster.
        self.elsewhere_until_ms = -1
        # Since when a mirror may have carried word ahead of transactions, and when this side took
        # over without its source, from the first partition to the last: it does those once more.
        self.anew_ms = 0, 0, -1

    @property
    def follows(self) -> bool:
        """Whether this side follows another cluster, or did."""
        return self.elsewhere_until_ms >= 0

    def begin(self, coverage: Coverage) -> None:
        """A round begins."""
        self.round += 1
        self._coverage = coverage

    def renew(self, coverage: Coverage) -> None:
        """The topics were read: their coverage is known now."""
        self._coverage = coverage

    def fired(self, fire: FiredEntry) -> None:
        """A record of an output topic; two with one id are one event too many."""
        self._counts.outputs += 1
        before = self._memory.add_fire(fire, self.round)
        if before is None:
            return
        if self._coverage.may_repeat(fire.spot.topic):
            self._counts.at_least_once += 1
            return
        found = f"fire id {fire.identity.hex()} of {_shown(fire)}, as at {before.spot}"
        self._find(Breach.DOUBLED, fire.spot, found, "one event of this id")

    def copied(self, fire: FiredEntry, mark: bytes) -> None:
        """A record of an output topic that a redrive made; under one name it makes one of each."""
        self._counts.outputs += 1
        self._counts.copies += 1
        if self._memory.fire(fire.identity) is None:
            self._counts.copies_alone += 1
        said, spot = mark.decode(errors="replace"), fire.spot
        place = f"{spot.topic}/{spot.partition}"
        self._once_again(f"{COPY_HEADER} {said} in {place}", spot, fire.timestamp_ms)

    def told(self, told: ToldFire) -> None:
        """A lifecycle event that tells of a fire."""
        self._counts.told += 1
        before = self._memory.add_told(told, self.round)
        if before is not None and not self._is_anew(before.timestamp_ms, told.timestamp_ms):
            found = f"fire id {told.identity.hex()}, as at {before.spot}"
            self._find(Breach.TOLD_TWICE, told.spot, found, "one event FIRED of this id")

    def paused_unread(self) -> None:
        """A lifecycle event that tells of a pause since no key opened the payload.

        Payloads and keys are in no topic that is read here, so it is counted and not judged.
        """
        self._counts.undecrypted += 1

    def refused(self, origin: str, spot: Spot, timestamp_ms: int) -> None:
        """A refused record; `origin` says where it was received."""
        self._counts.refused += 1
        before = self._memory.add_once(origin, spot, timestamp_ms)
        if before is not None and not self._is_anew(before[1], timestamp_ms):
            found = f"the request at {origin}, as at {before[0]}"
            self._find(Breach.REFUSED_TWICE, spot, found, "one outcome of each request")

    def _is_anew(self, *times_ms: int) -> bool:
        """Whether a side repeated work whose report a mirror had carried; counted."""
        level, first, last = self.anew_ms
        anew = level < min(times_ms) <= last and max(times_ms) > first
        self._counts.told_anew += anew
        return anew

    def marked(self, refusal: str, spot: Spot, timestamp_ms: int) -> None:
        """The mark of a refusal: its request was sent again, once."""
        self._counts.copies += 1
        self._once_again(f"the mark of the refusal {refusal}", spot, timestamp_ms)

    def _once_again(self, what: str, spot: Spot, timestamp_ms: int) -> None:
        before = self._memory.add_once(what, spot, timestamp_ms)
        if before is not None:
            found = f"{what}, as at {before[0]}"
            self._find(Breach.REDRIVEN_TWICE, spot, found, "one of each redrive")

    def undecided(self, came_by: int) -> bool:
        """Whether a record that came by that round has no match so far."""
        return bool(self._memory.unsettled(came_by + 1)) or bool(
            self._memory.told_without_fire(came_by + 1)
        )

    def end(self, checked_since_ms: int, came_by: int, seen_ms: int | None = None) -> None:
        """Judge records that came by this round, and have no match after a later one.

        Transactions with timestamps behind `checked_since_ms` were checked in all partitions.  An
        older event may have been fired by a transaction that compaction has removed. Those behind
        `seen_ms` may be hidden by an open one, so younger events are left for a later pass.
        """
        settled: list[bytes] = []
        self._counts.hidden = 0
        for fire in self._memory.unsettled(came_by + 1):
            if seen_ms is not None and fire.timestamp_ms > seen_ms:
                self._counts.hidden += 1
                continue
            settled.append(fire.identity)
            if fire.timestamp_ms <= checked_since_ms:
                self._counts.before_begin += 1
            elif self._coverage.may_repeat(fire.spot.topic):
                self._counts.at_least_once += 1
            elif not self._memory.is_lost(fire.identity):
                self._judge(fire)
        self._memory.settle(settled)
        self._untold(came_by, seen_ms)

    def _judge(self, fire: FiredEntry) -> None:
        """An event that no transaction says it fired."""
        for tenant in self._coverage.tenants_of(fire.spot.topic):
            name = b"%b/%b" % (tenant.encode(), fire.schedule_id)
            for known in self._memory.schedules(short(name)):
                mine = id_of_fire(name, known.life, known.version, fire.nominal_ms)
                if mine == fire.identity and known.stands is Stands.GONE:
                    found = f"{_shown(fire)}, of a schedule that was cancelled"
                    self._find(Breach.CANCELLED, fire.spot, found, "no event of it")
                    return
        found = f"{_shown(fire)}, with the fire id {fire.identity.hex()}"
        self._find(Breach.UNASKED, fire.spot, found, "a transaction that says that it fired")

    def _untold(self, came_by: int, seen_ms: int | None) -> None:
        """Lifecycle events of fires without an event."""
        over: list[bytes] = []
        for told in self._memory.told_without_fire(came_by + 1):
            if seen_ms is not None and told.timestamp_ms > seen_ms:
                continue
            over.append(told.identity)
            if self._memory.is_lost(told.identity):
                # A transaction says that it fired: its missing event was found there.
                continue
            if told.timestamp_ms <= self.elsewhere_until_ms:
                continue
            if told.timestamp_ms <= max(self._coverage.floors.values(), default=0):
                self._counts.output_gone += 1
                continue
            found = f"{told.schedule_id.decode(errors='replace')} FIRED, id {told.identity.hex()}"
            self._find(Breach.UNTOLD_FIRE, told.spot, found, "an event of this id in an output")
        self._memory.forget_told(over)

    def _find(self, breach: Breach, spot: Spot, found: str, expected: str) -> None:
        self.findings.append(Breached(breach, spot, found, expected))


def _shown(fire: FiredEntry) -> str:
    shown = fire.schedule_id.decode(errors="replace")
    return f"{shown}, number {fire.occurrence}, scheduled at {fire.nominal_ms}"
