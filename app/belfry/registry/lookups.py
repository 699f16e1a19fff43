"""Lookups: schemas that requests refer to, asked of the registry by a few threads of a worker.

    ask(reference)  ──►  wanted  ──►  a thread asks  ──►  answer(reference)
                           ▲               │
                           └── no answer ──┘   again a second later, while somebody wants it

Partitions' threads ask and look for answers; they never wait here, and no value that a thread is
given changes afterwards.

Three lookups without an answer in a row, and the registry is in doubt: from then on one lookup at a
time goes out, a second apart, until one is answered.  If it has been in doubt for `wait_s`, it is
`silent`: whoever needs it should wait no longer.  The probes go on without anybody asking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final, Protocol

import structlog

from belfry.registry.answers import Missing, RegistryUnreachable, Unusable, WriterSchema
from belfry.registry.client import MISSING_S
from belfry.schedules.rejections import Rejection
from belfry.wire.requests import MOST_SCHEMAS, Reading, Reference, reading_of

THREADS: Final = 4
AGAIN_S: Final = 1.0
# Lookups in a row without an answer after which the registry is in doubt.
DOUBTS: Final = 3
# Who waits for an answer asks again many times a second; for whom nobody asks is not looked up.
WANTED_S: Final = 5.0
MOST_WANTED: Final = 1_000

log = structlog.get_logger(__name__)


class SchemaSource(Protocol):
    """What is asked; answers within seconds, and never raises."""

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""


class Lookups:
    """Asks one registry for all partitions of a worker.

    `known` are readings that need no registry; `clock` gives seconds.  All methods may be called
    from any thread.
    """

    def __init__(
        self,
        registry: SchemaSource,
        wait_s: float,
        known: Mapping[Reference, Reading] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._registry = registry
        self._wait_s = wait_s
        self._clock = clock
        self._changed = Condition()
        self._known = dict(known or {})
        self._found: dict[Reference, Reading] = {}
        # What was refused, and until when that counts.
        self._refused: dict[Reference, tuple[float, Rejection]] = {}
        # When each was last asked for, and from when on it may go out.
        self._wanted: dict[Reference, tuple[float, float]] = {}
        # When each was last asked for, and when it went out.
        self._under_way: dict[Reference, tuple[float, float]] = {}
        self._unanswered = 0
        self._doubted_from = self._again_at = 0.0
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

    def answer(self, reference: Reference) -> Reading | None:
        """How records with this reference are read, or why not; None where nobody knows yet."""
        with self._changed:
            found = self._known.get(reference) or self._found.get(reference)
            if found is not None:
                return found
            until, refused = self._refused.get(reference, (-inf, None))
            return refused if self._clock() < until else None

    def ask(self, reference: Reference) -> bool:
        """Want an answer; again and again while it is waited for.  False where there is no room."""
        now = self._clock()
        with self._changed:
            if reference in self._under_way:
                self._under_way[reference] = (now, self._under_way[reference][1])
                return True
            known = self._wanted.get(reference)
            if known is None and len(self._wanted) >= MOST_WANTED:
                return False
            self._wanted[reference] = (now, 0.0 if known is None else known[1])
            if known is None:
                self._changed.notify()
        return True

    @property
    def silent(self) -> str:
        """Why nobody should wait for an answer, as a clause; empty where there may be one soon."""
        now = self._clock()
        with self._changed:
            if self._unanswered >= DOUBTS and now - self._doubted_from >= self._wait_s:
                return self._why
            begun = [begun for _, begun in self._under_way.values()]
            if len(begun) == THREADS and now - max(begun) >= self._wait_s:
                return f"no lookup has ended for {self._wait_s:.0f} s"
        return ""

    # -- the threads -----------------------------------------------------------------------------

    def _run(self) -> None:
        while (reference := self._take()) is not None:
            try:
                if isinstance(reference, int):
                    answer = self._registry.writer_schema(reference)
                else:
                    answer = self._registry.writer_schema_by_guid(reference)
            except Exception as error:  # noqa: BLE001  # nobody can say, and the thread goes on
                answer = RegistryUnreachable(f"{type(error).__name__}: {error}")
            reading = _reading(answer)
            with self._changed:
                asked, _ = self._under_way.pop(reference)
                if isinstance(answer, RegistryUnreachable):
                    self._missed(reference, asked, answer.reason)
                elif reading is not None:
                    lasts_s = MISSING_S if isinstance(answer, Missing) else inf
                    self._heard(reference, reading, lasts_s)
                self._changed.notify_all()

    def _take(self) -> Reference | None:
        """The next reference to ask for, when there is one; None at the end."""
        with self._changed:
            while not self._closing:
                now = self._clock()
                reference = self._next(now)
                if reference is not None:
                    self._under_way[reference] = (self._wanted.pop(reference)[0], now)
                    return reference
                self._changed.wait(0.1 if self._wanted else None)
        return None

    def _next(self, now: float) -> Reference | None:
        if self._unanswered >= DOUBTS:
            if self._under_way or now < self._again_at:
                return None
            # The oldest, also one that nobody waits for any more: it is the probe.
            return next(iter(self._wanted), None)
        for reference, (asked, not_before) in list(self._wanted.items()):
            if now - asked > WANTED_S:
                del self._wanted[reference]
            elif now >= not_before:
                return reference
        return None

    def _missed(self, reference: Reference, asked: float, why: str) -> None:
        now = self._clock()
        self._why = why
        self._unanswered += 1
        if self._unanswered == 1:
            self._doubted_from = now
        if self._unanswered == DOUBTS:
            log.warning("the schema registry does not answer", reason=why)
        self._again_at = now + AGAIN_S
        self._wanted[reference] = (asked, self._again_at)

    def _heard(self, reference: Reference, reading: Reading, lasts_s: float) -> None:
        if self._unanswered >= DOUBTS:
            log.warning("the schema registry answers again")
        self._unanswered = 0
        if isinstance(reading, Rejection):
            _make_room(self._refused)
            self._refused[reference] = (self._clock() + lasts_s, reading)
        else:
            _make_room(self._found)
            self._found[reference] = reading


def _make_room(kept: dict[Reference, Any]) -> None:
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
