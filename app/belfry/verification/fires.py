"""The fires of one transaction: by its rows, in the outputs, and by its manifest.

    rows ─► their fires ─► an id for each ─► is it in an output? ┐
    outputs ─► fires that leave no row (`extras`) ───────────────┴─► number and digest of the
                                                                     manifest (`judged`)

A transaction whose manifest says 3 fires, with these rows:

    a   waited, number 4 ─► waits, number 5          fired once: id of a at its old instant
    b   waited           ─► marker                   fired once
    c   waited           ─► another version          may have fired before it was replaced
    so  a and b are certain, and 3 - 2 = 1 is missing; c's event is in an output: it fired

Where events may come twice (AT_LEAST_ONCE), `leftovers` picks the true fires among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from belfry.verification.coverage import Coverage
from belfry.verification.extras import Ask, ExtraFires, FoundExtras
from belfry.verification.findings import Breach
from belfry.verification.judged import Fault, FiresJudged, compare
from belfry.verification.leftovers import Candidates, Leftovers, Maybe
from belfry.verification.memory import FiredEntry, Memory
from belfry.verification.row_fires import RETRIES, RowFire, Unfounded
from belfry.verification.rows import digest_of, id_of_fire

# Most fires of one schedule that are looked for in one step.
MOST_OF_ONE: Final = 4_096


class FireJudge:
    """Judges the fires of transactions, one after the other.

    A judge belongs to one reading of the outputs: `coverage` says which of them were read.
    """

    def __init__(self, memory: Memory, coverage: Coverage) -> None:
        self._memory = memory
        self._coverage = coverage
        self._extra_fires = ExtraFires(memory, coverage)
        self._leftovers = Leftovers(memory, coverage)

    def judge(self, ask: Ask, row_fires: Sequence[RowFire | Unfounded]) -> FiresJudged:
        """The comparison of rows, outputs and manifest.

        Where fewer are found than the manifest counts, the others are looked for among extra fires,
        and at last among schedules that may have fired.
        """
        found = FiresJudged()
        # Schedules that may have fired and are in no output, with their places among the others.
        maybe: list[Maybe] = []
        # Ids in outputs that a step may have left which was rolled back.
        loose: list[bytes] = []
        plain = True
        for row_fire in row_fires:
            if isinstance(row_fire, Unfounded):
                self._unfounded(row_fire, found)
            elif row_fire.times is None:
                before = len(found.identities)
                plain = self._perhaps(row_fire, found, maybe) and plain
                loose += filter(self._leftovers.may_repeat, found.identities[before:])
            else:
                plain = self._certain(row_fire, ask, found) and plain
        plain = self._pick(ask, found, loose, maybe) and plain
        if found.short_of > 0 and found.short_of == len(maybe):
            self._all_of(maybe, ask, found)
        if found.short_of > 0:
            self._unseen(maybe, ask, found)
        if found.short_of > 0 and not found.out_of_sight:
            self._out_of_sight(ask, found)
        compare(ask, found, self._memory, plain=plain)
        return found

    def is_unread(self, names: Iterable[bytes]) -> bool:
        """Whether events of one of these schedules go to a topic that is not read.

        Retries of webhooks are no users' schedules: no TRIGGER fires them.
        """
        return any(
            self._coverage.floor_of(name) is None and not name.startswith(RETRIES) for name in names
        )

    # -- by rows -----------------------------------------------------------------------------------

    def _unfounded(self, row_fire: Unfounded, found: FiresJudged) -> None:
        row = row_fire.row
        found.faults.append(
            Fault(
                Breach.UNASKED,
                row_fire.offset,
                f"{_shown(row_fire.name)} fired (version {row.version})",
                "a schedule of this version that waits",
            )
        )
        found.identities.append(id_of_fire(row_fire.name, row.life, row.version, row.due_ms))

    def _perhaps(self, row_fire: RowFire, found: FiresJudged, maybe: list[Maybe]) -> bool:
        """A schedule that may have fired before it was replaced; whether the order is known.

        A fire that an output shows has happened. A fire without an output goes to `maybe`: the
        digest may still say that it happened, and then its event is missing.
        """
        first = _expected_id(row_fire)
        if row_fire.one_shot:
            several = [first] if self._memory.fire(first) is not None else []
        else:
            several = [each.identity for each in self._fires_of(row_fire, MOST_OF_ONE)]
        found.identities += several
        found.sources |= dict.fromkeys(several, row_fire)
        if not several:
            maybe.append((len(found.identities), row_fire, first))
        return len(several) < 2

    def _certain(self, row_fire: RowFire, ask: Ask, found: FiresJudged) -> bool:
        """A schedule that has fired; whether the order of its fires among others is known."""
        if row_fire.early:
            found.faults.append(_early(row_fire, ask.sealed.watermark_ms))
        times = row_fire.times or 0
        first = _expected_id(row_fire)
        if times == 1 and self._memory.fire(first) is not None:
            found.identities.append(first)
            found.sources[first] = row_fire
            return True
        fires = () if row_fire.one_shot else self._fires_of(row_fire, times)
        several = [each.identity for each in fires]
        found.identities += several
        found.sources |= dict.fromkeys(several, row_fire)
        left = times - len(several)
        if not left:
            # Fired at another instant than it waited for: its row may have been written before, for
            # occurrences that were missed, and then lies before those of earlier fires.
            return False
        self._absent(row_fire, first, left, ask, found)
        # One that cannot be seen has the id of its instant, unless it stands for a late run.
        found.identities += [first] * left
        return times == 1 and row_fire.one_shot

    def _absent(
        self, row_fire: RowFire, identity: bytes, number: int, ask: Ask, found: FiresJudged
    ) -> None:
        """So many of these fires are in no output; or it is unknown."""
        floor_ms = self._coverage.floor_of(row_fire.name)
        if floor_ms is None:
            found.unread += number
        elif ask.timestamp_ms <= floor_ms:
            found.gone += number
        else:
            found.missing.append((row_fire, identity))

    def _fires_of(self, row_fire: RowFire, most: int) -> Iterator[FiredEntry]:
        """Fires in outputs that are of this schedule's life and version, in their order."""
        before, name = row_fire.before, row_fire.name
        first = before.occurrence
        schedule_id = name.partition(b"/")[2]
        wanted = first
        for each in self._memory.fires(schedule_id, first, first + most - 1):
            mine = id_of_fire(name, before.life, before.version, each.nominal_ms)
            if each.identity == mine and each.occurrence == wanted:
                wanted += 1
                yield each

    # -- by outputs --------------------------------------------------------------------------------

    def _pick(
        self, ask: Ask, found: FiresJudged, loose: list[bytes], maybe: Sequence[Maybe]
    ) -> bool:
        """Add fires of requests and jobs, leave out events left behind; whether that is sure.

        If it is, the order of the added ones is known as well.
        """
        sealed, rows = ask.sealed, found.identities
        room = sealed.fired - len(rows) + len(loose)
        extras = self._extra_fires.find(ask, room) if room > 0 else FoundExtras([])
        given = Candidates(rows, loose, extras, maybe)
        found.identities, in_doubt = self._leftovers.pick(sealed.fired, given)
        found.short_of = sealed.fired - len(found.identities)
        hidden = bool(maybe) or ask.unread or self._coverage.may_be_gone(ask.timestamp_ms)
        in_doubt = in_doubt or (hidden and not given.optional.isdisjoint(found.identities))
        unknown = not found.short_of and self._leftovers.by_digest(
            sealed, found, given, in_doubt=in_doubt
        )
        fired = {identity for _, _, identity in maybe}.intersection(found.identities)
        for _, row_fire, identity in maybe:
            if identity in fired:
                self._absent(row_fire, identity, 1, ask, found)
        return extras.ordered and not unknown

    def _out_of_sight(self, ask: Ask, found: FiresJudged) -> None:
        """Count missing events that may be fires of jobs, or of TRIGGERs, in any topic."""
        floors = [self._coverage.floor_of(stretch.job.owner) for stretch in ask.jobs]
        asked = bool(ask.jobs) or ask.positions is None or len(ask.positions) > 0
        if None in floors:
            found.unread += found.short_of
            found.out_of_sight = True
        elif asked and self._coverage.may_be_gone(ask.timestamp_ms):
            found.gone += found.short_of

    def _unseen(self, maybe: Sequence[Maybe], ask: Ask, found: FiresJudged) -> None:
        """Count missing events if no output can show any more which of them fired."""
        floors = [self._coverage.floor_of(row_fire.name) for _, row_fire, _ in maybe]
        hidden = [each for each in floors if each is None or ask.timestamp_ms <= each]
        if found.short_of > len(hidden):
            return
        unread = min(found.short_of, hidden.count(None))
        found.unread += unread
        found.gone += found.short_of - unread
        found.out_of_sight = True

    def _all_of(self, maybe: Sequence[Maybe], ask: Ask, found: FiresJudged) -> None:
        """Assume that all possible ones have fired, if the digest says so."""
        identities = list(found.identities)
        for place, _, identity in reversed(maybe):
            identities.insert(place, identity)
        if digest_of(identities) == ask.sealed.digest:
            found.identities, found.is_proven = identities, True
            for _, row_fire, identity in maybe:
                self._absent(row_fire, identity, 1, ask, found)
            found.short_of = 0


def _expected_id(row_fire: RowFire) -> bytes:
    before = row_fire.before
    return id_of_fire(row_fire.name, before.life, before.version, before.nominal_ms)


def _early(row_fire: RowFire, watermark_ms: int) -> Fault:
    return Fault(
        Breach.EARLY,
        row_fire.offset,
        f"{_shown(row_fire.name)} fired in a transaction with the watermark {watermark_ms}",
        f"not before it is due, at {row_fire.before.due_ms}",
    )


def _shown(name: bytes) -> str:
    return name.decode(errors="replace")
