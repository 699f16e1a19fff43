"""Needs that hold no batch up: only requests that are set aside wait for them.

    a batch has waited long enough   ─┐              ┌─► settled: its schema is known
    a former owner had set it aside  ─┼─► deferred ──┼─► refused, for all requests of its lane
    it is set aside, yet forgotten   ─┘              └─► forgotten, once its lane has no request

A *need* is a lane of requests and a schema, as `resolver.py` says.  A deferred need is looked at
from time to time, while the engine has requests of its lane set aside (`engine/aside.py`).  A
refusal holds as long: two requests of a lane that need the same schema have the same answer,
whatever batches come in between.  Once no request of the lane is set aside, needs and refusals are
forgotten, and a later request that needs the schema is looked at anew.

Where a partition only forwards, nothing is ever set aside.  So a deferred need stays until it is
settled or refused: the lookup serves requests that come later.

Thousands of needs may be deferred, and the partition's thread fires as well.  So a look at them
takes those that a lane's first request has and those under way, and some of the others in turn.
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

# So many are looked at in turn, besides those under way and those of the heads of lanes.
MOST_IN_TURN: Final = 250


class DeferredNeeds:
    """The deferred needs of one partition, since when they wait, and the refused ones.

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
        """Needs that are not settled."""
        return self._since.keys()

    @property
    def refused(self) -> Mapping[Need, Rejection]:
        """Needs that are refused, and why."""
        return self._refused

    @property
    def any(self) -> bool:
        """Whether a need is deferred, or refused while requests of its lane are set aside."""
        return bool(self._since or self._refused)

    @property
    def lanes(self) -> set[bytes]:
        """Lanes in which requests wait already."""
        return {lane for lane, _ in self._since}.union(self._lanes)

    def since(self, need: Need) -> float | None:
        """When it was first needed; None where it is not deferred."""
        return self._since.get(need)

    def add(self, need: Need, since: float) -> None:
        """Defer a need of a batch that has waited for it since this instant."""
        self._since[need] = since

    def take_over(self, waits: Iterable[Waits], now: float) -> None:
        """Defer the needs of a former owner's requests: all of them as of now, not one by one."""
        for need in self._needs_of(waits):
            self._since.setdefault(need, now)

    def look(self, heads: Sequence[Waits], looked_up: Iterable[Need], now: float) -> list[Need]:
        """The needs to look at now: those of heads, those under way, and some others in turn.

        `heads` are the first requests of all lanes that have something set aside.
        """
        self._lanes = frozenset(waits.lane for waits in heads)
        needed = list(self._needs_of(heads))
        for need in needed:
            # A need that was forgotten is looked up once more.
            if need not in self._refused:
                self._since.setdefault(need, now)
        some = list(islice(self._since, MOST_IN_TURN))
        for need in some:
            self._since[need] = self._since.pop(need)
        first = chain(needed, looked_up, some)
        return [need for need in dict.fromkeys(first) if need in self._since]

    def settled(self, need: Need) -> None:
        """The schema of a need is known; nothing happens where the need was not deferred."""
        self._since.pop(need, None)

    def refuse(self, need: Need, rejection: Rejection) -> bool:
        """Refuse a need if it is deferred; returns whether it was."""
        if self._since.pop(need, None) is None:
            return False
        self._refused[need] = rejection
        return True

    def forget_lanes(self) -> None:
        """Forget needs and refusals of lanes in which no request is set aside any more."""
        kept = (self._refused,) if self._forwards else (self._since, self._refused)
        for needs in kept:
            for need in [need for need in needs if need[0] not in self._lanes]:
                del needs[need]
        while len(self._refused) > MOST_RECORDS:
            # For requests that are still set aside for it, it is looked up once more.
            del self._refused[next(iter(self._refused))]

    def _needs_of(self, waits: Iterable[Waits]) -> Iterator[Need]:
        """The needs of requests that are set aside whose schemas are not known yet."""
        for lane, record, _ in waits:
            reference = self._reader.unknown_schema(record)
            if reference is not None:
                yield lane, reference
