"""What a partition may spend on a schema registry: the time of its batches, and lookups.

**Time.**  A batch may wait for answers for a moment, and all batches together for a tenth of the
time.

**Lookups.**  A tenant has `per_minute` to itself.  All strangers together have as many, because
names can be made up: a new name must not bring a new budget.  Nor must a name use up the budget of
others.  So the lanes of strangers (`engine/claims.py`) share one budget in two ways:

    part      where n lanes have asked within the last minute, each may use an n-th of the budget
    reserve   a 256th of the budget is kept for each lane, though others have used up all of it

    one name asks for unknown ids                60 a minute, while no other name asks
    another name begins to ask                   one at once, then 30 a minute for each of them
    200 names ask all the time                   each has one now, and then one in 200 s or more

Lookups from a reserve count against the common budget as well.  So all lanes together stay within
`per_minute` in the long run, and within 256 lookups more at once.  A lookup that finds a schema of
requests is given back, so the reserve is enough for a lane with real schemas, even beside 255 lanes
that make ids up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final
from uuid import UUID

from belfry.engine.aside import Need
from belfry.engine.claims import NOBODY, STRANGERS_LANES, account_of
from belfry.firing.rates import Rate
from belfry.schedules.rejections import Rejection
from belfry.wire.readings import Reference

MINUTE_MS: Final = 60_000
# The part of the time that batches of a partition may wait for answers in the long run.
SHARE: Final = 0.1
# The prefix of a lane's reserve among the names of rates.
RESERVE: Final = b"!"

# The charges of a lookup, to be given back: names of rates, and what each gives per second.
Payment = tuple[tuple[bytes, float], ...]
Ask = Callable[[bytes, Reference], bool]


class WaitBudget:
    """How long batches may wait for answers: up to `most_s` at once, `SHARE` of the time.

    Instants are monotonic seconds. `begin` and `end` come in pairs, from the partition's thread.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = self._left_s = most_s
        self._rested_at = 0.0

    def begin(self, now: float) -> float:
        """The instant until which to wait from now on."""
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
        """It is this instant (seconds); until the next call no budget grows."""
        # A monotonic clock may begin at 0, and a reserve is full from the beginning.
        self._at_ms = now * 1000 + STRANGERS_LANES * 1000 / self._per_second + MINUTE_MS

    def take(self, lane: bytes) -> Payment | None:
        """Charge one lookup to a lane; None where its budget is used up."""
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
        """The lookup has found a schema of requests, which every lane may use."""
        for name, per_second in payment:
            self._rate.take(name, per_second, self._at_ms, -1)

    def _asking(self, lane: bytes) -> int:
        """How many lanes of strangers have asked within a minute, this one included."""
        self._asked[lane] = self._at_ms
        since_ms = self._at_ms - MINUTE_MS
        return sum(at_ms > since_ms for at_ms in self._asked.values())

    def _room(self, each: tuple[bytes, float]) -> bool:
        return self._rate.room(*each, self._at_ms) > 0

    def _charge(self, payment: Payment) -> Payment:
        for name, per_second in payment:
            self._rate.take(name, per_second, self._at_ms, 1)
        return payment


class PaidLookups:
    """The lookups of one partition and their charges; for one turn at a time."""

    def __init__(self, per_minute: int) -> None:
        """Each account has `per_minute` lookups a minute."""
        self._per_minute = per_minute
        self._budget = LookupBudget(per_minute)
        self._paid: dict[Need, Payment] = {}

    @property
    def under_way(self) -> Collection[Need]:
        """Needs whose lookup is under way."""
        return self._paid.keys()

    def begin(self, now_s: float) -> None:
        """The following calls happen at this instant, in seconds of a monotonic clock."""
        self._budget.begin(now_s)

    def found(self, need: Need) -> None:
        """The lookup has found a schema of requests: it is not counted."""
        payment = self._paid.pop(need, None)
        if payment is not None:
            self._budget.give_back(payment)

    def ask(
        self, asked: Ask, needs: Iterable[Need], still_needed: Callable[[Need], bool]
    ) -> list[tuple[Need, Rejection]]:
        """Start the lookups that budgets allow; returns the needs that are beyond them for good.

        `asked` starts a lookup, and returns whether there was room for it.
        """
        for need in [need for need in self._paid if not still_needed(need)]:
            del self._paid[need]
        under_way = Counter(account_of(lane) for lane, _ in self._paid)
        beyond: list[tuple[Need, Rejection]] = []
        poor: set[bytes] = set()
        for need in needs:
            lane, account = need[0], account_of(need[0])
            if need not in self._paid:
                payment = None if lane in poor else self._budget.take(lane)
                if payment is None:
                    poor.add(lane)
                    # A lookup under way on the same account may still be given back.
                    if not under_way[account]:
                        beyond.append((need, unavailable(need, self._too_often)))
                    continue
                self._paid[need] = payment
                under_way[account] += 1
            if not asked(*need):
                beyond.append((need, unavailable(need, "Too many schemas are being looked up.")))
        return beyond

    @property
    def _too_often(self) -> str:
        return (
            f"More than {self._per_minute} lookups within a minute have found no schema of"
            " requests."
        )


def unavailable(need: Need, why: str) -> Rejection:
    """The rejection of a request whose schema is not waited for any longer, and why."""
    reference = need[1]
    name = UUID(bytes=reference) if isinstance(reference, bytes) else reference
    reason = f"{why} The value needs schema {name}: send the request again later."
    return Rejection("schema_unavailable", reason)
