"""What a partition spends on a schema registry: the time of its batches, and lookups.

**Time.**  A batch may wait for answers for a moment, and all batches for a part of the time.

**Lookups.**  A tenant has `per_minute` to itself.  Strangers have as many together, since names can
be made up: a new name must not bring a new budget.  It must not use up that of others either.  So
the lanes of strangers (`engine/claims.py`) share it in two ways:

    part      where n lanes have asked within the last minute, each may have an n-th of the budget
    reserve   a 256th of the budget is there for a lane though others have used up all of it

    one name asks for ids that nobody knows      60 a minute, as long as nobody else asks
    another name begins to ask                   one at once, then 30 a minute for each of them
    200 names ask all the time                   each has one now, and then one in 200 s or more

What a reserve gives counts as used by all, so all lanes together stay within `per_minute` in the
long run, and 256 lookups more at once.  A lookup that finds a schema of requests is given back, so
the reserve is enough for who has a schema, even beside 255 lanes that make ids up.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.claims import NOBODY, STRANGERS_LANES, account_of
from belfry.firing.rates import Rate

MINUTE_MS: Final = 60_000
# How much of the time batches of a partition may wait for answers in the long run.
SHARE: Final = 0.1
# Before the name of a lane: what is its own whatever others have used up.
RESERVE: Final = b"!"

# What a lookup has used up, to be given back: rates by name, and how much a second each gives.
Payment = tuple[tuple[bytes, float], ...]


class WaitBudget:
    """How long batches may wait for answers: up to `most_s` at once, `SHARE` of the time.

    Instants are monotonic seconds. `begin` and `end` come in pairs, from the partition's thread.
    """

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


class LookupBudget:
    """How many lookups each lane may cause: `per_minute` for a tenant, and for all strangers."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        # Instants by lane: of tenants with a policy, and of the lanes of strangers.
        self._used_up: dict[bytes, float] = {}
        self._rate = Rate(MINUTE_MS, self._used_up)
        # When each lane of strangers has last asked for one.
        self._asked: dict[bytes, float] = {}
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """It is this instant (seconds); until the next call nobody's budget grows."""
        # Clocks may begin at nothing, and a reserve is full from the beginning.
        self._at_ms = now * 1000 + STRANGERS_LANES * 1000 / self._per_second + MINUTE_MS

    def take(self, lane: bytes) -> Payment | None:
        """One lookup for a lane; None where nothing is left for it."""
        if account_of(lane) != NOBODY:
            own = lane, self._per_second
            return self._charge((own,)) if self._room(own) else None
        everybodys = NOBODY, self._per_second
        part = lane, self._per_second / self._asking(lane)
        reserve = RESERVE + lane, self._per_second / STRANGERS_LANES
        if not self._room(part):
            return None
        if self._room(everybodys):
            paid: Payment = (everybodys, part)
        elif self._room(reserve):
            paid = everybodys, part, reserve
        else:
            return None
        return self._charge(paid)

    def give_back(self, payment: Payment) -> None:
        """The lookup has found what is everybody's."""
        for name, per_second in payment:
            self._rate.take(name, per_second, self._at_ms, -1)

    def _asking(self, lane: bytes) -> int:
        """How many lanes of strangers have asked within a minute, with this one now."""
        self._asked[lane] = self._at_ms
        since_ms = self._at_ms - MINUTE_MS
        return sum(at_ms > since_ms for at_ms in self._asked.values())

    def _room(self, each: tuple[bytes, float]) -> bool:
        return self._rate.room(*each, self._at_ms) > 0

    def _charge(self, payment: Payment) -> Payment:
        for name, per_second in payment:
            self._rate.take(name, per_second, self._at_ms, 1)
        return payment
