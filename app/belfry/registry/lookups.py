"""Lookups: schemas that requests refer to, asked of the registry by a few threads of a worker.

    ask(lane, reference)  ──►  wants of the lane  ──►  a thread asks  ──►  answer(lane, reference)
                                      ▲                      │
                                      └───── no answer ──────┘   again a second later, while wanted

Partitions' threads ask and look for answers; they never wait here, and no value that a thread is
given changes afterwards.

**Lanes take turns.**  Who asks is a *lane* (`engine/claims.py`), on an *account*: a tenant's own,
or the one that all strangers share.  An account has so many lookups under way at a time, never all
threads; a lane has two.  The account that was served longest ago comes next, and of its lanes the
same.  So ids that nobody answers use up the turns of who asks for them, and of nobody else:

    mallory   900 901 902 …  each takes 2 s ─┐ 2 at a time; then one at a time, a second apart
    strangers 77 78          ────────────────┤ 4 at a time, 2 of a lane
    victim    42             ────────────────┴─► goes out at once

A lane is *doubted* after three lookups in a row without an answer.  Doubted lanes come behind all
others, have half of the threads, and one lookup each.

**Silence.**  Three lookups in a row without an answer, whoever asked, and the registry is in doubt.
If it has been so for `wait_s`, it is silent.  Who needs a schema waits no longer then, once a
lookup of its own has gone unanswered: the silence may be about the ids of others alone.

**What is remembered.**  A schema counts for everybody.  "There is none" counts for a while, and for
lanes of the same account that had asked when the lookup went out.  So who registers a schema and
uses it then is never told what others heard before, though they ask for each id in advance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

import structlog

from belfry.engine.claims import NOBODY, account_of
from belfry.host.errors import named
from belfry.registry.answers import Missing, RegistryUnreachable, Unusable, WriterSchema
from belfry.registry.client import MISSING_S
from belfry.schedules.rejections import Rejection
from belfry.wire.readings import Reading, Reference, reading_of
from belfry.wire.requests import MOST_SCHEMAS

THREADS: Final = 8
# Lookups under way at a time: of a tenant or a lane, and of all strangers together.
AT_ONCE: Final = 2
STRANGERS_AT_ONCE: Final = 4
AGAIN_S: Final = 1.0
# Lookups in a row without an answer after which a lane, or the registry, is in doubt.
DOUBTS: Final = 3
# Who waits for an answer asks again many times a second; for whom nobody asks is not looked up.
WANTED_S: Final = 5.0
# A lookup that has no answer ends sooner than that (`client.TIMEOUT_S`), unless it is held back.
STUCK_S: Final = 5.0
# How long it is remembered that the lookups of a lane went unanswered.
REMEMBERED_S: Final = 60.0
FORGET_S: Final = 1.0
# Of each lane.
MOST_WANTED: Final = 1_000

log = structlog.get_logger(__name__)


class SchemaSource(Protocol):
    """What is asked; answers within seconds, and never raises."""

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""


@dataclass(slots=True)
class Want:
    """A schema that a lane waits for: since when, and when it was last asked for (seconds).

    `waited` is for how long it has waited up to `asked`, as far as others are not the reason.
    `out` is when the lookup under way went out, None for none; `begun` is whether one ever did.
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
    """What one lane wants, and how its lookups went."""

    name: bytes
    account: bytes
    wants: dict[Reference, Want] = field(default_factory=dict)
    served: float = -inf
    out: int = 0
    misses: int = 0
    again_at: float = 0.0

    @property
    def doubted(self) -> bool:
        """Whether its last lookups went unanswered."""
        return self.misses >= DOUBTS

    def may_go_out(self, now: float) -> bool:
        """Whether a lookup more may be under way, as far as the lane's own are concerned."""
        if self.doubted:
            return not self.out and now >= self.again_at
        return self.out < AT_ONCE

    def count(self, want: Want, now: float) -> float:
        """For how long it has waited for something up to now, others' turns left out."""
        own = want.begun or self.served > want.since or not self.may_go_out(now)
        held_until = self.again_at if self.doubted else want.asked
        want.waited += max(0.0, (now if own else min(now, held_until)) - want.asked)
        want.asked = now
        return want.waited

    def next(self, now: float) -> Reference | None:
        """What it wants to be asked for next; what nobody waits for any more is forgotten."""
        for reference, want in list(self.wants.items()):
            if want.out is not None:
                continue
            if now - want.asked > WANTED_S:
                del self.wants[reference]
            elif now >= want.not_before:
                return reference
        return None


class Lookup(NamedTuple):
    """One lookup: for whom, and of what."""

    lane: AskingLane
    reference: Reference


class Lookups:
    """Asks one registry for all partitions of a worker.

    `known` are readings that need no registry; `clock` gives seconds; `told` hears of each lookup:
    "answered" or "unanswered".  All methods may be called from any thread.
    """

    def __init__(
        self,
        registry: SchemaSource,
        wait_s: float,
        known: Mapping[Reference, Reading] | None = None,
        clock: Callable[[], float] = monotonic,
        told: Callable[[str], object] = str,
    ) -> None:
        self._registry, self._told = registry, told
        self._wait_s = wait_s
        self._stuck_s = max(wait_s, STUCK_S)
        self._clock = clock
        self._changed = Condition()
        self._known = dict(known or {})
        self._found: dict[Reference, Reading] = {}
        # By lane: what there is none of, and until when that counts.
        self._missing: dict[tuple[bytes, Reference], tuple[float, Rejection]] = {}
        self._lanes: dict[bytes, AskingLane] = {}
        self._served: dict[bytes, float] = {}
        self._out: Counter[bytes] = Counter()
        self._unanswered = 0
        self._forgets_at = -inf
        self._doubted_from = self._went_out = 0.0
        self._why = ""
        self._closing = False
        self._threads = [
            Thread(target=self._run, name=f"belfry-registry-{number}", daemon=True)
            for number in range(THREADS)
        ]

    def start(self) -> Lookups:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()
        return self

    def close(self) -> None:
        """Ask no more; a lookup that is under way does not hold up the end of the process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def answer(self, lane: bytes, reference: Reference) -> Reading | None:
        """How records with this reference are read, or why not; None where nobody knows yet."""
        with self._changed:
            found = self._known.get(reference) or self._found.get(reference)
            if found is not None:
                return found
            until, missing = self._missing.get((lane, reference), (-inf, None))
            return missing if self._clock() < until else None

    def ask(self, lane: bytes, reference: Reference) -> bool:
        """Want an answer; again and again while it is waited for.  False where there is no room."""
        now = self._clock()
        with self._changed:
            asking = self._lanes.get(lane)
            if asking is None:
                self._forget(now)
                asking = self._lanes[lane] = AskingLane(lane, account_of(lane))
            want = asking.wants.get(reference)
            if want is not None:
                asking.count(want, now)
                return True
            if len(asking.wants) >= MOST_WANTED:
                return False
            asking.wants[reference] = Want(now, now)
            self._changed.notify()
        return True

    def waited_s(self, lane: bytes, reference: Reference) -> float:
        """For how long a lane has waited, as far as others are not the reason.

        While its lookup has not gone out because others come first, nothing counts.  All counts
        once it has gone out, and before that where the lane's own lookups or its doubt are why not.
        """
        now = self._clock()
        with self._changed:
            asking = self._lanes.get(lane)
            want = None if asking is None else asking.wants.get(reference)
            if asking is None or want is None:
                return inf
            stuck = not want.begun and self._stuck(asking.account, now)
            return now - want.since if stuck else asking.count(want, now)

    def silent(self, lane: bytes, reference: Reference) -> str:
        """Why a lane should not wait for this, as a clause; empty where an answer may come soon."""
        now = self._clock()
        with self._changed:
            asking = self._lanes.get(lane)
            want = None if asking is None else asking.wants.get(reference)
            doubted = self._unanswered >= DOUBTS and now - self._doubted_from >= self._wait_s
            if doubted and want is not None and want.missed:
                return self._why
            stuck = self._stuck(account_of(lane), now)
            return f"no lookup has ended for {self._stuck_s:.0f} s" if stuck else ""

    def doubt(self) -> str:
        """Why the last lookups had no answer, as a clause; empty where the last one had."""
        return self._why if self._unanswered >= DOUBTS else ""

    # -- the threads -----------------------------------------------------------------------------

    def _stuck(self, account: bytes, now: float) -> bool:
        """Whether the registry has held back all that an account, or anybody, may ask for."""
        waiting = self._out.total() == THREADS and now - self._went_out >= self._stuck_s
        own = now - self._served.get(account, now) >= self._stuck_s
        return waiting or (own and self._out[account] >= _at_once(account))

    def _run(self) -> None:
        while (turn := self._take()) is not None:
            reference = turn.reference
            try:
                if isinstance(reference, int):
                    answer = self._registry.writer_schema(reference)
                else:
                    answer = self._registry.writer_schema_by_guid(reference)
            except Exception as error:  # noqa: BLE001  # nobody can say, and the thread goes on
                answer = RegistryUnreachable(named(error))
            reading = _reading(answer)
            with self._changed:
                self._ended(turn.lane)
                if isinstance(answer, RegistryUnreachable):
                    self._missed(turn, answer.reason)
                elif reading is not None:
                    self._heard(turn, reading, for_ever=not isinstance(answer, Missing))
                self._changed.notify_all()

    def _take(self) -> Lookup | None:
        """The next thing to ask for, when there is one; None at the end."""
        with self._changed:
            while not self._closing:
                now = self._clock()
                turn = self._next(now)
                if turn is not None:
                    self._goes_out(turn, now)
                    return turn
                wanted = any(lane.wants for lane in self._lanes.values())
                self._changed.wait(0.1 if wanted else None)
        return None

    def _next(self, now: float) -> Lookup | None:
        """Whose turn it is: doubted lanes come last, and who was served longest ago first."""
        found: tuple[tuple[bool, float, float], Lookup] | None = None
        doubted_out = sum(lane.out for lane in self._lanes.values() if lane.doubted)
        for lane in self._lanes.values():
            if not self._has_room(lane, doubted_out, now):
                continue
            rank = lane.doubted, self._served.get(lane.account, -inf), lane.served
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

    def _goes_out(self, turn: Lookup, now: float) -> None:
        lane, want = turn.lane, turn.lane.wants[turn.reference]
        lane.count(want, now)
        want.out, want.begun = now, True
        lane.served = self._served[lane.account] = self._went_out = now
        lane.out += 1
        self._out[lane.account] += 1

    def _ended(self, lane: AskingLane) -> None:
        lane.out -= 1
        self._out[lane.account] -= 1

    def _missed(self, turn: Lookup, why: str) -> None:
        now, lane = self._clock(), turn.lane
        want = lane.wants.pop(turn.reference)
        want.out, want.missed, want.not_before = None, True, now + AGAIN_S
        # What has not gone out yet comes before it.
        lane.wants[turn.reference] = want
        lane.misses += 1
        lane.again_at = now + AGAIN_S
        self._why = why
        self._unanswered += 1
        self._told("unanswered")
        if self._unanswered == 1:
            self._doubted_from = now
        if self._unanswered == DOUBTS:
            log.warning("the schema registry does not answer", reason=why)

    def _heard(self, turn: Lookup, reading: Reading, *, for_ever: bool) -> None:
        self._told("answered")
        if self._unanswered >= DOUBTS:
            log.warning("the schema registry answers again")
        self._unanswered = turn.lane.misses = 0
        went_out = turn.lane.wants[turn.reference].out or 0.0
        missing = reading if isinstance(reading, Rejection) and not for_ever else None
        if missing is None:
            _make_room(self._found)
            self._found[turn.reference] = reading
        for lane in self._lanes.values():
            want = lane.wants.get(turn.reference)
            if want is None or (lane is not turn.lane and want.out is not None):
                continue
            # "There is none" is no answer to who has asked after the lookup went out.
            same = lane.account == turn.lane.account and want.since <= went_out
            if missing is not None and same:
                _make_room(self._missing)
                self._missing[lane.name, turn.reference] = self._clock() + MISSING_S, missing
            if missing is None or same:
                del lane.wants[turn.reference]

    def _forget(self, now: float) -> None:
        """Forget lanes that want nothing, and whose doubt is old; looked at once a second."""
        if now < self._forgets_at:
            return
        self._forgets_at = now + FORGET_S
        for name, lane in list(self._lanes.items()):
            if not lane.wants and now - lane.served > REMEMBERED_S:
                del self._lanes[name]
        accounts = {lane.account for lane in self._lanes.values()}
        self._served = {name: at for name, at in self._served.items() if name in accounts}


def _at_once(account: bytes) -> int:
    """How many lookups of an account may be under way at a time."""
    return STRANGERS_AT_ONCE if account == NOBODY else AT_ONCE


def _make_room(kept: dict[Any, Any]) -> None:
    """Room for one more: the oldest goes, and is asked for again if it comes again."""
    while len(kept) >= MOST_SCHEMAS:
        del kept[next(iter(kept))]


def _reading(answer: WriterSchema) -> Reading | None:
    """How records of a schema are read, or why they are refused; None where nobody can say."""
    if isinstance(answer, RegistryUnreachable):
        return None
    if isinstance(answer, Missing):
        reason = (
            f"The value names a schema that nobody can read it with: {answer.reason}. Register"
            " ScheduleRequest first, or point producer and belfry at the same registry."
        )
        return Rejection("unknown_schema_id", reason)
    if isinstance(answer, Unusable):
        return Rejection("schema_unsafe", f"The writer's schema is not decoded: {answer.reason}.")
    return reading_of(answer)
