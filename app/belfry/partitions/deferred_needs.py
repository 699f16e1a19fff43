"""Needs that hold no batch up: only what is set aside waits for them, and here is what came of it.

    a batch has waited long enough   ─┐              ┌─► settled: its schema is known
    a former owner had set it aside  ─┼─► deferred ──┼─► refused, for all that its lane holds
    it is set aside, yet forgotten   ─┘              └─► forgotten, once its lane holds nothing

A *need* is a lane of requests and a schema, as `resolver.py` says.  One that is deferred is looked
at from time to time, for as long as the engine has something set aside in its lane
(`engine/aside.py`).  A refusal holds as long: two requests of a lane that need the same schema have
the same answer, whatever batches come in between.  With the lane, both are forgotten, and the next
one that needs the schema later is looked at anew.

Where a partition only forwards, nothing is ever set aside.  So what is deferred stays until it is
settled or refused: it is looked up for those that come later.

Thousands of needs may be deferred, and the partition's thread fires as well.  So a look at them
takes those on which something depends now, and some of the others in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from belfry.engine.aside import Need
from belfry.engine.aside_room import MOST_RECORDS
from belfry.schedules.rejections import Rejection
from belfry.store.layout.aside import Waits
from belfry.wire.requests import RequestReader

# So many are looked at in turn, besides what is looked up and what comes first in its lane.
MOST_IN_TURN: Final = 250


class DeferredNeeds:
    """What is deferred for one partition, since when, and what is refused of it.

    Instants are seconds of a monotonic clock. `forwards`: nothing can be set aside here.
    """

    def __init__(self, reader: RequestReader, *, forwards: bool) -> None:
        self._reader = reader
        self._forwards = forwards
        # The next one in turn comes first.
        self._since: dict[Need, float] = {}
        self._refused: dict[Need, Rejection] = {}
        # Lanes in which something was set aside at the last look.
        self._lanes: frozenset[bytes] = frozenset()

    @property
    def needs(self) -> Collection[Need]:
        """Those that are not settled."""
        return self._since.keys()

    @property
    def refused(self) -> Mapping[Need, Rejection]:
        """Those that are refused, and why."""
        return self._refused

    @property
    def any(self) -> bool:
        """Whether something is deferred, or refused until nothing of its lane is set aside."""
        return bool(self._since or self._refused)

    @property
    def lanes(self) -> set[bytes]:
        """Lanes in which somebody waits already."""
        return {lane for lane, _ in self._since}.union(self._lanes)

    def since(self, need: Need) -> float | None:
        """When it was first needed; None where it is not deferred."""
        return self._since.get(need)

    def add(self, need: Need, since: float) -> None:
        """Defer a need of a batch that began to wait for it then."""
        self._since[need] = since

    def take_over(self, waits: Iterable[Waits], now: float) -> None:
        """Defer what a former owner's requests need: all of it as of now, not one by one."""
        for need in self._needs_of(waits):
            self._since.setdefault(need, now)

    def look(self, heads: Sequence[Waits], looked_up: Iterable[Need], now: float) -> list[Need]:
        """What to look at now: what heads need, what is looked up, and some of the others in turn.

        `heads` are the first requests of all lanes that have something set aside.
        """
        self._lanes = frozenset(waits.lane for waits in heads)
        needed = list(self._needs_of(heads))
        for need in needed:
            # What was forgotten is looked up once more.
            if need not in self._refused:
                self._since.setdefault(need, now)
        some = list(islice(self._since, MOST_IN_TURN))
        for need in some:
            self._since[need] = self._since.pop(need)
        first = chain(needed, looked_up, some)
        return [need for need in dict.fromkeys(first) if need in self._since]

    def settled(self, need: Need) -> None:
        """Its schema is known; nothing happens where it was not deferred."""
        self._since.pop(need, None)

    def refuse(self, need: Need, rejection: Rejection) -> bool:
        """Refuse a need, if it is deferred; whether it was."""
        if self._since.pop(need, None) is None:
            return False
        self._refused[need] = rejection
        return True

    def forget_lanes(self) -> None:
        """Forget what was decided for lanes in which nothing is set aside any more."""
        kept = (self._refused,) if self._forwards else (self._since, self._refused)
        for needs in kept:
            for need in [need for need in needs if need[0] not in self._lanes]:
                del needs[need]
        while len(self._refused) > MOST_RECORDS:
            # What is still set aside for it is looked up once more.
            del self._refused[next(iter(self._refused))]

    def _needs_of(self, waits: Iterable[Waits]) -> Iterator[Need]:
        """What those that are set aside need and nobody knows yet."""
        for lane, record, _ in waits:
            reference = self._reader.unknown_schema(record)
            if reference is not None:
                yield lane, reference
