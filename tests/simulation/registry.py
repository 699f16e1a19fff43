"""The schema registry of a simulated world: ids known, slow, late, gone or never answered.

    fast      known at once                        late      registered amid the run, none before
    slow      known after up to 3 s                gone      deleted amid the run
    never     no answer, ever                      unknown   "there is no such schema", at once

Half of the worlds have a prompt registry: it is never silent, and no id is slow or never answered.
In the others these wait, and nobody else is refused for it: what the registry knows and answers at
once is read in all worlds, unless it says nothing while the request waits.

A worker's memory of answers ends with its process, so the next owner may hear something else.  Now
and then it says nothing at all.  Each worker has `SimLookups` in the place of `Lookups`,
whose threads ask over HTTP; what decides who waits and for how long (`Resolver`) runs as shipped.
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import Final

from belfry.schedules.rejections import Rejection
from belfry.wire.catalogue import schema
from belfry.wire.readings import Reading, Reference, reading_of
from tests.simulation.stage import here

PROMPT: Final = ("fast", "fast", "fast", "late", "gone", "unknown")
KINDS: Final = (*PROMPT, "slow", "never")
IDS: Final = 12
# For how long a worker believes that there is no schema; runs are short, so a tenth of the shipped.
MISSING_MS: Final = 1_000.0
SLOWEST_MS: Final = 3_000.0
PROMPT_MS: Final = 300.0


class SimRegistry:
    """What is registered, and when it answers."""

    def __init__(self, random: Random, length_ms: float) -> None:
        self._prompt = random.random() < 0.5
        kinds = PROMPT if self._prompt else KINDS
        self.kinds = {1 + number: random.choice(kinds) for number in range(IDS)}
        self._random = random
        # When a late schema comes and a gone one goes.
        self._turns_ms = {each: random.random() * length_ms for each in self.kinds}
        # Stretches in which nothing is answered.
        self.silences: list[tuple[float, float]] = []

    def be_silent(self, now_ms: float, lasts_ms: float) -> None:
        """Answer nothing for a while, unless the registry is a prompt one."""
        if not self._prompt:
            self.silences.append((now_ms, now_ms + lasts_ms))

    def silent_since(self, now_ms: float) -> float | None:
        """Since when nothing is answered, None where something is."""
        return next((begun for begun, end in self.silences if begun <= now_ms < end), None)

    def answer_after_ms(self, schema_id: int) -> float:
        """How long an answer takes, as drawn for this question."""
        kind = self.kinds[schema_id]
        if kind == "never":
            return inf
        return self._random.random() * (SLOWEST_MS if kind == "slow" else PROMPT_MS)

    def knows(self, schema_id: int, now_ms: float) -> bool:
        """Whether an id stands for a schema now."""
        kind, turn_ms = self.kinds[schema_id], self._turns_ms[schema_id]
        return {"late": now_ms >= turn_ms, "gone": now_ms < turn_ms}.get(kind, kind != "unknown")

    def may_be_refused(self, schema_id: int, appended_ms: float, refused_ms: float) -> bool:
        """Whether a request that was appended then may be refused then for want of its schema.

        Not where the registry knew it in good time, and has said so all the while.
        """
        kind = self.kinds[schema_id]
        settled = kind == "fast" or (
            kind == "late" and appended_ms > self._turns_ms[schema_id] + 2 * MISSING_MS
        )
        silent = any(begun <= refused_ms and end >= appended_ms for begun, end in self.silences)
        return silent or not settled

    def may_be_read(self, schema_id: int) -> bool:
        """Whether a request with this id can ever be read."""
        return self.kinds[schema_id] not in ("never", "unknown")


class SimLookups:
    """One worker's lookups: each is answered after a while, and forgotten with the process."""

    def __init__(self, registry: SimRegistry, wait_ms: float) -> None:
        self._registry = registry
        self._wait_ms = wait_ms
        self._asked: dict[Reference, tuple[float, float]] = {}
        self._found: dict[Reference, tuple[float, Reading]] = {}

    def ask(self, _lane: bytes, reference: Reference) -> bool:
        """Want an answer."""
        now_ms = here().now_ms
        if reference not in self._asked:
            assert isinstance(reference, int)
            due_ms = now_ms + self._registry.answer_after_ms(reference)
            self._asked[reference] = now_ms, due_ms
        return True

    def answer(self, _lane: bytes, reference: Reference) -> Reading | None:
        """How records with this reference are read, or why not; None if it is not known yet."""
        now_ms = here().now_ms
        until_ms, found = self._found.get(reference, (0.0, None))
        if found is not None and now_ms < until_ms:
            return found
        asked = self._asked.get(reference)
        if asked is None or now_ms < asked[1] or self._registry.silent_since(now_ms) is not None:
            return None
        del self._asked[reference]
        assert isinstance(reference, int)
        if self._registry.knows(reference, now_ms):
            self._found[reference] = inf, reading_of(schema("ScheduleRequest"))
        else:
            missing = Rejection("unknown_schema_id", f"There is no schema {reference}.")
            self._found[reference] = now_ms + MISSING_MS, missing
        return self._found[reference][1]

    def waited_s(self, _lane: bytes, reference: Reference) -> float:
        """For how long an answer has been waited for; each goes out at once here."""
        asked_ms, _ = self._asked.get(reference, (-inf, inf))
        return (here().now_ms - asked_ms) / 1000

    def silent(self, _lane: bytes, _reference: Reference) -> str:
        """Why nobody should wait for an answer; empty where there may be one soon."""
        since_ms = self._registry.silent_since(here().now_ms)
        waited = since_ms is not None and here().now_ms - since_ms >= self._wait_ms
        return "it says nothing" if waited else ""
