"""Lookups: a few threads of a worker ask the registry for schemas that requests refer to.

    ask(lane, reference)  ──►  wants of the lane  ──►  a thread asks  ──►  answer(lane, reference)
                                      ▲                      │
                                      └───── no answer ──────┘   again a second later, while wanted

Partitions' threads ask and look for answers; they never wait here, and a value that a thread has
got never changes.

Each request belongs to a lane, and lanes take turns (`lanes.py`): an id without an answer only
costs turns of the lane that wants it.

**Silence.** After three lookups in a row without an answer, of any lanes, the registry is in doubt.
If it has been in doubt for `wait_s`, it is silent. Then a lane that needs a schema stops waiting
once its own lookup had no answer: the silence may only be about the ids of others.

**Memory.** A schema counts for all lanes. "There is none" counts for a while, and for lanes of the
same account that had asked when the lookup went out. So a producer that registers a schema and then
uses it never gets an older answer of other accounts, even if they ask for each id in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final, Protocol

import structlog

from belfry.engine.claims import account_of
from belfry.host.errors import named
from belfry.registry.answers import Missing, RegistryUnreachable, Unusable, WriterSchema
from belfry.registry.lanes import DOUBTS, THREADS, Lanes, Lookup
from belfry.registry.schema_memory import MISSING_S
from belfry.schedules.rejections import Rejection
from belfry.wire.readings import Reading, Reference, reading_of
from belfry.wire.requests import MOST_SCHEMAS

# A lookup without an answer ends sooner than this (`client.TIMEOUT_S`), unless it is held back.
STUCK_S: Final = 5.0

log = structlog.get_logger(__name__)


class SchemaSource(Protocol):
    """The source of schemas; it answers within seconds, and never raises."""

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""


class Lookups:
    """Asks one registry for all partitions of a worker.

    `known` are readings that need no registry; `clock` gives seconds; `told` is called for each
    lookup: "answered" or "unanswered".  All methods may be called from any thread.
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
        # By lane and reference: the refusal of a missing schema, and until when it counts.
        self._missing: dict[tuple[bytes, Reference], tuple[float, Rejection]] = {}
        self._lanes = Lanes()
        self._unanswered = 0
        self._doubted_from = 0.0
        self._why = ""
        self._closing = False
        self._started = False
        self._begun = self._idle = 0

    def start(self) -> Lookups:
        """Begin to ask. The first want starts a thread; more start while all are busy."""
        with self._changed:
            self._started = True
            self._keep_one_waiting()
        return self

    def close(self) -> None:
        """Stop asking; a lookup that is under way does not delay the end of the process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def answer(self, lane: bytes, reference: Reference) -> Reading | None:
        """How records with this reference are read, or why not; None if it is not known yet."""
        with self._changed:
            return self._answer(lane, reference)

    def _answer(self, lane: bytes, reference: Reference) -> Reading | None:
        found = self._known.get(reference) or self._found.get(reference)
        if found is not None:
            return found
        until, missing = self._missing.get((lane, reference), (-inf, None))
        return missing if self._clock() < until else None

    def ask(self, lane: bytes, reference: Reference) -> bool:
        """Want an answer; to be called again while the caller waits. False if there is no room.

        If the answer has come since the caller last looked, the registry is not asked again.
        """
        with self._changed:
            if self._answer(lane, reference) is not None:
                return True
            known = self._lanes.want(lane, reference) is not None
            wanted = self._lanes.ask(lane, reference, self._clock())
            if wanted and not known:
                self._keep_one_waiting()
                self._changed.notify()
        return wanted

    def waited_s(self, lane: bytes, reference: Reference) -> float:
        """How long a lane has waited, as far as other lanes are not the cause.

        While its lookup has not gone out because others come first, the wait does not count. It
        counts once the lookup has gone out, and before that if the lane's own lookups or its doubt
        delay it.
        """
        with self._changed:
            want = self._lanes.want(lane, reference)
            if want is None:
                return inf
            return self._lanes.waited(lane, want, self._clock(), self._stuck_s)

    def silent(self, lane: bytes, reference: Reference) -> str:
        """Why a lane should not wait for this, as a clause; empty if an answer may come soon."""
        now = self._clock()
        with self._changed:
            want = self._lanes.want(lane, reference)
            doubted = self._unanswered >= DOUBTS and now - self._doubted_from >= self._wait_s
            if doubted and want is not None and want.missed:
                return self._why
            stuck = self._lanes.stuck(account_of(lane), now, self._stuck_s)
            return f"no lookup has ended for {self._stuck_s:.0f} s" if stuck else ""

    def doubt(self) -> str:
        """Why the last lookups had no answer, as a clause; empty if the last one had an answer."""
        return self._why if self._unanswered >= DOUBTS else ""

    # -- the threads -----------------------------------------------------------------------------

    def _keep_one_waiting(self) -> None:
        """Begin a thread if there are wants and none waits: one sees when a lane's turn comes."""
        busy = not self._idle and self._lanes.waiting
        if self._started and busy and self._begun < THREADS:
            name = f"belfry-registry-{self._begun}"
            Thread(target=self._run, name=name, daemon=True).start()
            self._begun += 1

    def _run(self) -> None:
        while (turn := self._take()) is not None:
            reference = turn.reference
            try:
                if isinstance(reference, int):
                    answer = self._registry.writer_schema(reference)
                else:
                    answer = self._registry.writer_schema_by_guid(reference)
            except Exception as error:  # noqa: BLE001  # no answer; the thread goes on
                answer = RegistryUnreachable(named(error))
            reading = _reading(answer)
            with self._changed:
                self._lanes.ended(turn)
                if isinstance(answer, RegistryUnreachable):
                    self._missed(turn, answer.reason)
                elif reading is not None:
                    self._heard(turn, reading, for_ever=not isinstance(answer, Missing))
                self._changed.notify_all()

    def _take(self) -> Lookup | None:
        """The next lookup, once there is one; None at the end."""
        with self._changed:
            while not self._closing:
                now = self._clock()
                turn = self._lanes.next(now)
                if turn is not None:
                    self._lanes.goes_out(turn, now)
                    self._keep_one_waiting()
                    return turn
                self._idle += 1
                self._changed.wait(0.1 if self._lanes.waiting else None)
                self._idle -= 1
        return None

    def _missed(self, turn: Lookup, why: str) -> None:
        now = self._clock()
        self._lanes.missed(turn, now)
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
        self._unanswered = 0
        missing = reading if isinstance(reading, Rejection) and not for_ever else None
        lanes = self._lanes.heard(turn, by_all=missing is None)
        if missing is None:
            _make_room(self._found)
            self._found[turn.reference] = reading
            return
        for lane in lanes:
            _make_room(self._missing)
            self._missing[lane, turn.reference] = self._clock() + MISSING_S, missing


def _make_room(kept: dict[Any, Any]) -> None:
    """Make room for one more: the oldest entry is removed, and asked for again if it is needed."""
    while len(kept) >= MOST_SCHEMAS:
        del kept[next(iter(kept))]


def _reading(answer: WriterSchema) -> Reading | None:
    """How records of a schema are read, or why they are refused; None without an answer."""
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
