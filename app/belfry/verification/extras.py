"""Fires that leave no row of their schedule: those of TRIGGERs and bulk jobs.

    a request of the transaction (TRIGGER)      id of schedule, life, version, offset of the request
    a job, whose row the transaction writes     the same with the offset of the job's request, or,
                                                for a backfill, of schedule, life, job and instant

A step that fires for a job writes the job's row, so a transaction that is whole has it.  The row
says how far the job has come, and the one before it where the step began: the step may have fired
anything in between.

    row before   reached b, 10:00          b 11:00   b 12:00   c 10:00 │ c 11:00
    row          reached c, 10:00          └────── this step ──────────┘  a later one

Such fires are found in outputs, by ids that are computed from the changelog.

An extra fire carries the number -1, and its event the schedule's id, so the candidates for a
transaction are the events with -1 around its timestamp: first within a second, then within two
minutes.  Each is tried with the lives and versions that its schedule may have had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

from belfry.verification.coverage import Coverage
from belfry.verification.memory import FiredEntry, Memory, short
from belfry.verification.rows import AskedJob, Sealed, id_of_extra, id_of_past

# Events and rows of one transaction have timestamps that lie no further apart, and mostly not so
# far: a long backfill has so many events that all of the time would be too much to look at.
TOGETHER_MS: Final = 120_000
NEAR_MS: Final = 1_000
VERSIONS: Final = 64
OFFSET_BITS: Final = 48
# So many more are looked at where some may be left behind by a step that was rolled back.
SPARE: Final = 64


class JobRange(NamedTuple):
    """Possible fires of a transaction for a job: all behind `since`, as far as the job came."""

    job: AskedJob
    since: tuple[bytes, int]

    def has(self, name: bytes, nominal_ms: int) -> bool:
        """Whether this instant of a schedule lies in it."""
        return self.since < (name, nominal_ms) <= self.job.reached


class Ask(NamedTuple):
    """A transaction whose fires are to be judged.

    `positions` are requests that it took in, None where that is not known.
    """

    partition: int
    sealed: Sealed
    positions: Sequence[int] | None
    timestamp_ms: int
    # Lives and versions that schedules had in it, by their names.
    versions: dict[bytes, list[tuple[int, int]]]
    # Whether events of the partition may have gone to a topic that is not read.
    unread: bool = False
    # Bulk jobs that it worked on.
    jobs: Sequence[JobRange] = ()
    # Whether a tenant's key group lay there, away from its home.
    lay_here: Callable[[bytes], bool] = lambda _tenant: False


class FoundExtras(NamedTuple):
    """Ids of extra fires of a transaction.

    `asked` have a reason that is known, in the order of the fires, if they are `ordered`.  Of
    `others` no row tells; the likely ones come first.  The `loose` among them may repeat, so a step
    that was rolled back may have left them.
    """

    asked: list[bytes]
    ordered: bool = True
    others: Sequence[bytes] = ()
    loose: Collection[bytes] = ()


class ExtraOrder(NamedTuple):
    """When an extra fire leaves among those of its transaction: TRIGGERs first, then jobs.

    `number` is the offset of the request, or the place of the job in the transaction.
    """

    of_job: bool
    number: int
    name: bytes = b""
    nominal_ms: int = 0


class ExtraFires:
    """Finds the extra fires of transactions in outputs."""

    def __init__(self, memory: Memory, coverage: Coverage) -> None:
        self._memory = memory
        self._coverage = coverage

    def find(self, ask: Ask, most: int) -> FoundExtras:
        """Possible fires of the requests and jobs of a transaction.

        It looks no further than to `most` events that have a known reason and come once, or some
        more that may repeat.
        """
        turns: dict[bytes, ExtraOrder] = {}
        # What comes once goes first, then near ones, of them those of whose schedules no row tells
        # any life.
        others: dict[bytes, tuple[bool, bool, bool]] = {}
        loose: set[bytes] = set()
        once = 0
        for fire in self._candidates(ask):
            repeats = self._coverage.may_repeat(fire.spot.topic)
            for name in self._names(fire):
                turn = self._turn_of(fire, name, ask)
                if turn is not None:
                    once += not repeats and fire.identity not in turns
                    turns[fire.identity] = turn
                elif self._may_be(name, ask):
                    far = abs(fire.timestamp_ms - ask.timestamp_ms) > NEAR_MS
                    others[fire.identity] = repeats, far, bool(ask.versions[name])
                else:
                    continue
                if repeats:
                    loose.add(fire.identity)
            if once == most or len(turns) == most + SPARE:
                break
        # The order in which jobs of several tenants had their turns is not told.
        ordered = len({turn.number for turn in turns.values() if turn.of_job}) < 2
        found = sorted(turns, key=lambda identity: turns[identity])
        rest = sorted((each for each in others if each not in turns), key=lambda each: others[each])
        return FoundExtras(found, ordered, rest, loose)

    def _candidates(self, ask: Ask) -> Iterable[FiredEntry]:
        """Extra fires around a transaction, near ones first; these come twice."""
        for around_ms in (NEAR_MS, TOGETHER_MS):
            yield from self._memory.extras(
                ask.timestamp_ms - around_ms, ask.timestamp_ms + around_ms
            )

    def _names(self, fire: FiredEntry) -> list[bytes]:
        tenants = self._coverage.tenants_of(fire.spot.topic)
        return [b"%b/%b" % (tenant.encode(), fire.schedule_id) for tenant in tenants]

    def _turn_of(self, fire: FiredEntry, name: bytes, ask: Ask) -> ExtraOrder | None:
        """The turn of an extra fire for which this transaction has a reason, None for none."""
        versions = self._versions(name, ask)
        above = self._above(name, ask) if versions else ()
        # The request for a job is not a TRIGGER: its fires have ids of the same offset, in later
        # steps.
        bulk = {stretch.job.offset for stretch in ask.jobs}
        for life, version in versions:
            for number, stretch in enumerate(ask.jobs):
                if stretch.has(name, fire.nominal_ms) and fire.identity in _ids(
                    above, stretch.job, name, (life, version, fire.nominal_ms)
                ):
                    return ExtraOrder(
                        of_job=True, number=number, name=name, nominal_ms=fire.nominal_ms
                    )
            for position in ask.positions or ():
                asked = _triggered(above, name, (life, version), position)
                if position not in bulk and fire.identity in asked:
                    return ExtraOrder(of_job=False, number=position)
        return None

    def _above(self, name: bytes, ask: Ask) -> tuple[int, ...]:
        """Possible numbers above the offsets of requests, in the ids of a schedule's extra fires.

        None at its home; the partition, from 1, if its key group lies away from there.  The home
        had other requests of the same offsets, so no other id is tried.  Spread tenants stay
        behind, and since when they are spread no row tells.
        """
        tenant = name.partition(b"/")[0]
        if not ask.lay_here(tenant):
            return (0,)
        above = ask.partition + 1 << OFFSET_BITS
        return (0, above) if tenant.decode() in self._coverage.spread else (above,)

    def _may_be(self, name: bytes, ask: Ask) -> bool:
        """Whether a schedule may have fired for a reason that no row tells.

        For an unknown request, or one in a life that began and ended within it.
        """
        if name not in ask.versions or ask.positions is None:
            return name in ask.versions
        known, had = self._memory.schedule(ask.partition, short(name)), ask.versions[name]
        return known is None or not had or any(life != known.life for life, _ in had)

    def _versions(self, name: bytes, ask: Ask) -> list[tuple[int, int]]:
        """Lives and versions that a schedule may have had within a transaction."""
        known = self._memory.schedule(ask.partition, short(name))
        found = list(ask.versions.get(name, ()))
        for life, last in found.copy():
            if known is None or life != known.life:
                # It began in it, or came with its key group: it may have had other versions before.
                found += [(life, version) for version in range(max(1, last - VERSIONS), last)]
        if known is not None:
            found.append((known.life, known.version))
            later = [version for life, version in found if life == known.life]
            last = min(max(later, default=0), known.version + VERSIONS)
            found += [(known.life, version) for version in range(known.version + 1, last)]
        return list(dict.fromkeys(found))


def _triggered(
    above: tuple[int, ...], name: bytes, had: tuple[int, int], offset: int
) -> list[bytes]:
    """The ids that a TRIGGER at this offset may give, with what may stand above it."""
    return [id_of_extra(name, *had, each | offset) for each in above]


def _ids(
    above: tuple[int, ...], job: AskedJob, name: bytes, fire: tuple[int, int, int]
) -> tuple[bytes, ...]:
    """The ids that a fire of this life, version and instant may have for a job."""
    life, version, nominal_ms = fire
    if not name.startswith(job.owner):
        return ()
    extra = _triggered(above, name, (life, version), job.offset)
    return *extra, id_of_past(name, life, job.origin, nominal_ms)
