"""Lanes: queues of senders that wait for schemas, and the order of their lookups.

Each request belongs to a *lane* (`engine/claims.py`), and a lane to an *account*: a tenant's own,
or the one that all strangers share. An account has a bounded number of lookups under way, never all
threads; a lane has two. The account that was served longest ago comes next, and of its lanes the
one that was served longest ago. So ids without an answer only use up the turns of their own
senders:

    mallory   900 901 902 …  each takes 2 s ─┐ 2 at a time; then one at a time, a second apart
    strangers 77 78          ────────────────┤ 4 at a time, 2 of a lane
    victim    42             ────────────────┴─► goes out at once

A lane is *doubted* after three lookups in a row without an answer. Doubted lanes come behind all
others, together use at most half of the threads, and have one lookup each.

A wait only counts as far as other lanes are not its cause. While a lane's lookup has not gone out
because others come first, the wait does not count; a delay by its own lane counts.

Instants are seconds of the caller's clock. There are no locks here: `lookups.py` has one lock
around all of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from belfry.engine.claims import NOBODY, account_of
from belfry.wire.readings import Reference

# The most lookups under way: of all lanes together, each in a thread of its own.
THREADS: Final = 8
# The same of a tenant or a lane, and of all strangers together.
AT_ONCE: Final = 2
STRANGERS_AT_ONCE: Final = 4
AGAIN_S: Final = 1.0
# Lookups in a row without an answer after which a lane, or the registry, is in doubt.
DOUBTS: Final = 3
# A caller that waits asks again many times a second; a want that is older is not looked up.
WANTED_S: Final = 5.0
# How long the unanswered lookups of a lane are remembered.
REMEMBERED_S: Final = 60.0
FORGET_S: Final = 1.0
# The most wants of each lane.
MOST_WANTED: Final = 1_000


@dataclass(slots=True)
class Want:
    """A schema that a lane waits for: since when, and when it was last asked for (seconds).

    `waited` is the wait up to `asked`, as far as other lanes are not its cause. `out` is when the
    lookup under way went out, None if there is none; `begun` says whether one ever went out.
    """

    since: float
    asked: float
    not_before: float = 0.0
    waited: float = 0.0
    begun: bool = False
    out: float | None = None
    missed: bool = False


@dataclass(slots=True)
class AskingLane:
    """The wants of one lane, and the state of its lookups."""

    name: bytes
    account: bytes
    wants: dict[Reference, Want] = field(default_factory=dict)
    served: float = -inf
    out: int = 0
    misses: int = 0
    again_at: float = 0.0

    @property
    def doubted(self) -> bool:
        """Whether its last lookups had no answer."""
        return self.misses >= DOUBTS

    def may_go_out(self, now: float) -> bool:
        """Whether one more lookup may be under way, by the lane's own bounds."""
        if self.doubted:
            return not self.out and now >= self.again_at
        return self.out < AT_ONCE

    def count(self, want: Want, now: float) -> float:
        """How long the lane has waited for a schema up to now, without waits for other lanes."""
        own = want.begun or self.served > want.since or not self.may_go_out(now)
        held_until = self.again_at if self.doubted else want.asked
        want.waited += max(0.0, (now if own else min(now, held_until)) - want.asked)
        want.asked = now
        return want.waited

    def next(self, now: float) -> Reference | None:
        """The schema to look up next; wants that are not asked for any more are forgotten."""
        for reference, want in list(self.wants.items()):
            if want.out is not None:
                continue
            if now - want.asked > WANTED_S:
                del self.wants[reference]
            elif now >= want.not_before:
                return reference
        return None


class Lookup(NamedTuple):
    """One lookup: its lane, and the schema's reference."""

    lane: AskingLane
    reference: Reference


class Lanes:
    """All lanes of a worker, and the lookups that their accounts have under way."""

    def __init__(self) -> None:
        self.by_name: dict[bytes, AskingLane] = {}
        # By account: when it was served last, and how many of its lookups are under way.
        self.served: dict[bytes, float] = {}
        self._out: Counter[bytes] = Counter()
        self._went_out = 0.0
        self._forgets_at = -inf

    @property
    def waiting(self) -> bool:
        """Whether any lane waits for a schema."""
        return any(lane.wants for lane in self.by_name.values())

    def want(self, lane: bytes, reference: Reference) -> Want | None:
        """A lane's want of a schema, or None if it has not asked."""
        asking = self.by_name.get(lane)
        return None if asking is None else asking.wants.get(reference)

    def ask(self, lane: bytes, reference: Reference, now: float) -> bool:
        """Note that a lane waits, newly or still; False if it has too many wants."""
        asking = self.by_name.get(lane)
        if asking is None:
            self._forget(now)
            asking = self.by_name[lane] = AskingLane(lane, account_of(lane))
        want = asking.wants.get(reference)
        if want is not None:
            asking.count(want, now)
        elif len(asking.wants) < MOST_WANTED:
            asking.wants[reference] = Want(now, now)
        return reference in asking.wants

    def waited(self, lane: bytes, want: Want, now: float, stuck_s: float) -> float:
        """How long a lane has waited, as far as other lanes are not the cause."""
        asking = self.by_name[lane]
        stuck = not want.begun and self.stuck(asking.account, now, stuck_s)
        return now - want.since if stuck else asking.count(want, now)

    def stuck(self, account: bytes, now: float, stuck_s: float) -> bool:
        """Whether all lookups that an account, or the worker, may have are out for `stuck_s`."""
        waiting = self._out.total() == THREADS and now - self._went_out >= stuck_s
        own = now - self.served.get(account, now) >= stuck_s
        return waiting or (own and self._out[account] >= _at_once(account))

    def next(self, now: float) -> Lookup | None:
        """The next lookup: doubted lanes come last, and the lane served longest ago first."""
        found: tuple[tuple[bool, float, float], Lookup] | None = None
        doubted_out = sum(lane.out for lane in self.by_name.values() if lane.doubted)
        for lane in self.by_name.values():
            if not self._has_room(lane, doubted_out, now):
                continue
            rank = lane.doubted, self.served.get(lane.account, -inf), lane.served
            if found is not None and found[0] <= rank:
                continue
            reference = lane.next(now)
            if reference is not None:
                found = rank, Lookup(lane, reference)
        return None if found is None else found[1]

    def _has_room(self, lane: AskingLane, doubted_out: int, now: float) -> bool:
        if not lane.wants or self._out[lane.account] >= _at_once(lane.account):
            return False
        return lane.may_go_out(now) and (not lane.doubted or doubted_out < THREADS // 2)

    def goes_out(self, turn: Lookup, now: float) -> None:
        """Note that a lookup is under way, until `ended`."""
        lane, want = turn.lane, turn.lane.wants[turn.reference]
        lane.count(want, now)
        want.out, want.begun = now, True
        lane.served = self.served[lane.account] = self._went_out = now
        lane.out += 1
        self._out[lane.account] += 1

    def ended(self, turn: Lookup) -> None:
        """Note that a lookup is not under way any more, whatever its result."""
        turn.lane.out -= 1
        self._out[turn.lane.account] -= 1

    def missed(self, turn: Lookup, now: float) -> None:
        """Note that a lookup had no answer: it is repeated, behind those that are not out yet."""
        lane = turn.lane
        want = lane.wants.pop(turn.reference)
        want.out, want.missed, want.not_before = None, True, now + AGAIN_S
        lane.wants[turn.reference] = want
        lane.misses += 1
        lane.again_at = now + AGAIN_S

    def heard(self, turn: Lookup, *, by_all: bool) -> list[bytes]:
        """Take an answer in; returns the lanes that it is for, and removes their wants.

        An answer `by_all` is for every lane. "There is none" is not: it does not count for lanes
        that asked after the lookup went out, and not for other accounts.
        """
        turn.lane.misses = 0
        went_out = turn.lane.wants[turn.reference].out or 0.0
        told: list[bytes] = []
        for lane in self.by_name.values():
            want = lane.wants.get(turn.reference)
            if want is None or (lane is not turn.lane and want.out is not None):
                continue
            if by_all or (lane.account == turn.lane.account and want.since <= went_out):
                told.append(lane.name)
                del lane.wants[turn.reference]
        return told

    def _forget(self, now: float) -> None:
        """Forget lanes without wants whose last lookup is long ago; at most once in `FORGET_S`."""
        if now < self._forgets_at:
            return
        self._forgets_at = now + FORGET_S
        for name, lane in list(self.by_name.items()):
            if not lane.wants and now - lane.served > REMEMBERED_S:
                del self.by_name[name]
        accounts = {lane.account for lane in self.by_name.values()}
        self.served = {name: at for name, at in self.served.items() if name in accounts}


def _at_once(account: bytes) -> int:
    """The most lookups of an account that may be under way at a time."""
    return STRANGERS_AT_ONCE if account == NOBODY else AT_ONCE
