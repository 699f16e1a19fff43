"""Events that a step which was rolled back has left in the outputs, and the true fires.

Of a tenant whose events may come twice (AT_LEAST_ONCE) they leave beside the transaction, and stay
where that is rolled back.  An owner that follows need not do the same step again: it takes requests
in before it fires, fires fewer at once, or comes later.

    rolled back     a fires, b fires, c is TRIGGERed      three events in the output
    done instead    a is cancelled, c's TRIGGER refused   the manifest says 1 fire: b alone
    rolled back     d fires late, for 10:00               FIRE_ONCE: the last that was missed
    done instead    d fires later, for 10:05              both events have the number 4

So such an event may or may not be one of the transaction. Events that come once are sure, and go
first: others count as far as the manifest's number has room for them. The digest tells which of
several did fire, if one of the orders that rows allow has it. Otherwise it stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from belfry.verification.coverage import Coverage
from belfry.verification.extras import FoundExtras
from belfry.verification.judged import FiresJudged, has_digest
from belfry.verification.memory import Memory
from belfry.verification.row_fires import RowFire
from belfry.verification.rows import Sealed, id_of_fire

# So many beginnings of orders are tried for one digest.
MOST_TRIED: Final = 20_000
# By so many numbers an event may have moved on in the step that left it behind.
LATER: Final = 64
# A schedule that may have fired and is in no output: its place among the others, and its id.
Maybe = tuple[int, RowFire, bytes]


class Candidates(NamedTuple):
    """The possible fires of a transaction.

    `by_rows` are the events of which rows tell, in their order; the `loose` of them may be left
    behind.
    """

    by_rows: Sequence[bytes]
    loose: Sequence[bytes]
    extras: FoundExtras
    maybe: Sequence[Maybe]

    @property
    def optional(self) -> set[bytes]:
        """All that may be left behind."""
        return {*self.loose, *self.extras.loose}


class Place(NamedTuple):
    """One event of a transaction or another, the likely one first; None where it may be none."""

    options: tuple[bytes | None, ...]

    @property
    def least(self) -> int:
        """1 where one of them fired for certain."""
        return int(None not in self.options)

    @property
    def is_one_of_several(self) -> bool:
        """Whether several events may be the one that fired."""
        return len(self.options) - 1 + self.least > 1


class Picked(NamedTuple):
    """The events that count, and whether others may have fired instead of some of them."""

    identities: list[bytes]
    in_doubt: bool


class Leftovers:
    """Picks the true fires among events that may be left behind."""

    def __init__(self, memory: Memory, coverage: Coverage) -> None:
        self._memory = memory
        self._coverage = coverage

    def may_repeat(self, identity: bytes) -> bool:
        """Whether the event of this id lies in a topic whose events may come twice."""
        fire = self._memory.fire(identity)
        return fire is not None and self._coverage.may_repeat(fire.spot.topic)

    def pick(self, fired: int, given: Candidates) -> Picked:
        """So many events as the manifest says, or as there are; sure ones go first."""
        loose, extras = given.loose, given.extras
        optional = [each for each in extras.asked if each in extras.loose]
        room = fired - (len(given.by_rows) - len(loose)) - (len(extras.asked) - len(optional))
        taken = [*loose, *optional][: max(0, room)]
        room -= len(taken)
        others = list(extras.others[:room]) if 0 < room <= len(extras.others) else []
        spare = {*loose, *optional}.difference(taken)
        kept = [each for each in (*given.by_rows, *extras.asked) if each not in spare]
        left = bool(spare) or len(others) < len(extras.others)
        return Picked(kept + others, in_doubt=bool(others) or (left and bool(taken)))

    def by_digest(
        self, sealed: Sealed, found: FiresJudged, given: Candidates, *, in_doubt: bool
    ) -> bool:
        """Replace the picked events by the true ones, if the digest tells; whether it is unknown.

        `in_doubt` says that others may have fired instead; events of the same number may, anyway.
        """
        if has_digest(sealed, found, self._memory):
            return False
        places = [*self._of_rows(given, found)]
        if not in_doubt and not any(each.is_one_of_several for each in places):
            return False
        extras = given.extras
        places += [
            Place((each, None) if each in extras.loose else (each,)) for each in extras.asked
        ]
        places += [Place((None, each)) for each in extras.others]
        chosen = chosen_by(sealed, places)
        if chosen is not None:
            found.identities, found.is_proven = chosen, True
        return chosen is None

    def _of_rows(self, given: Candidates, found: FiresJudged) -> Iterator[Place]:
        """The fires that rows tell, in their order; with the other readings of each row."""
        optional, unseen = frozenset(given.loose), iter([*given.maybe, None])
        following = next(unseen)
        for at, each in enumerate((*given.by_rows, None)):
            while following is not None and following[0] == at:
                yield Place((None, following[2]))
                following = next(unseen)
            if each is not None:
                none = (None,) if each in optional else ()
                yield Place((each, *none, *self._instead_of(each, found)))

    def _instead_of(self, identity: bytes, found: FiresJudged) -> list[bytes]:
        """Other events that may have its number, of one schedule, life and version.

        An event that was left behind keeps the number of its step, which may have been a later one
        than that under which the same instant fires once more.
        """
        fire, row_fire = self._memory.fire(identity), found.sources.get(identity)
        if fire is None or row_fire is None or not self._coverage.may_repeat(fire.spot.topic):
            return []
        before, number = row_fire.before, fire.occurrence
        return [
            each.identity
            for each in self._memory.fires(fire.schedule_id, number, number + LATER)
            if each.identity != identity
            and each.identity
            == id_of_fire(row_fire.name, before.life, before.version, each.nominal_ms)
        ]


def chosen_by(sealed: Sealed, places: Sequence[Place]) -> list[bytes] | None:
    """Events of these places, in their order, of which number and digest are right.

    None where there are none such among those that are tried.
    """
    least, most = [0], [0]
    for place in reversed(places):
        least.append(least[-1] + place.least)
        most.append(most[-1] + 1)
    # How many have been placed, how many events of them are chosen, their digest, and they.
    open_: list[tuple[int, int, Any, tuple[Any, ...]]] = [(0, 0, blake2b(digest_size=16), ())]
    for _ in range(MOST_TRIED):
        if not open_:
            return None
        at, number, so_far, chosen = open_.pop()
        rest = len(places) - at
        if not number + least[rest] <= sealed.fired <= number + most[rest]:
            continue
        if not rest:
            if so_far.digest() == sealed.digest:
                return _unrolled(chosen)
            continue
        for option in reversed(places[at].options):
            if option is None:
                open_.append((at + 1, number, so_far, chosen))
                continue
            further = so_far.copy()
            further.update(option.hex().encode())
            open_.append((at + 1, number + 1, further, (chosen, option)))
    return None


def _unrolled(chosen: tuple[Any, ...]) -> list[bytes]:
    """A chain of pairs as a list, the first one first."""
    found: list[bytes] = []
    while chosen:
        chosen, last = chosen
        found.append(last)
    return found[::-1]
