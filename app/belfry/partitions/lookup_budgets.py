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
# How much of the time batches of a partition may wait for answers in the long run.
SHARE: Final = 0.1
# Before the name of a lane: what is its own whatever others have used up.
RESERVE: Final = b"!"

# What a lookup has used up, to be given back: rates by name, and how much a second each gives.
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


class PaidLookups:
    """What is looked up for one partition, and what that has used up; for one turn at a time."""

    def __init__(self, per_minute: int) -> None:
        """So many lookups a minute are on each account."""
        self._per_minute = per_minute
        self._budget = LookupBudget(per_minute)
        self._paid: dict[Need, Payment] = {}

    @property
    def under_way(self) -> Collection[Need]:
        """Needs that are looked up."""
        return self._paid.keys()

    def begin(self, now_s: float) -> None:
        """What follows is asked at this instant, in seconds of a monotonic clock."""
        self._budget.begin(now_s)

    def found(self, need: Need) -> None:
        """The lookup has found a schema of requests: it is not counted."""
        payment = self._paid.pop(need, None)
        if payment is not None:
            self._budget.give_back(payment)

    def ask(
        self, asked: Ask, needs: Iterable[Need], still_needed: Callable[[Need], bool]
    ) -> list[tuple[Need, Rejection]]:
        """Ask for what budgets allow; tells of what is beyond them and cannot come within them.

        `asked` asks for a need, and says whether there was room to.
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
                    # What is under way on the same account may still be given back.
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
            f"More than {self._per_minute} schemas were asked for within a minute that are none of"
            " requests."
        )


def unavailable(need: Need, why: str) -> Rejection:
    """What a request hears whose schema is not waited for any longer, for the reason given."""
    reference = need[1]
    name = UUID(bytes=reference) if isinstance(reference, bytes) else reference
    reason = f"{why} The value needs schema {name}: send the request again later."
    return Rejection("schema_unavailable", reason)
