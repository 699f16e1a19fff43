"""Bulk jobs against what the topics say: one outcome for each schedule that was there (I24).

What waits when a job is taken in and fits its filter are its *candidates*.  Each has one outcome of
the job; it has none if it fired by the step in which the job ended, or if a later request replaced
or cancelled it.  Nothing else has one.  The outcomes also change what has to fire, and when: the
checker holds fires against that.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.broker import Entry
from tests.simulation.sent import Sent
from tests.simulation.stores import bare
from tests.simulation.trail import Step

JOB: Final = b"\0j"
HEAD_BYTES: Final = 2
REKEY: Final = "REKEY"
JOB_NAME: Final = re.compile(r"bulk job ([^.:]+)")
# The outcome that each action has for what waits.
OUTCOMES: Final = {
    "CANCEL": ("CANCELLED",),
    "MOVE": ("UPDATED",),
    "TRIGGER": ("TRIGGERED",),
    "PAUSE": ("PAUSED", "UNCHANGED"),
    "RESUME": ("RESUMED", "UNCHANGED"),
    "BACKFILL": ("TRIGGERED", "UNCHANGED", "REJECTED"),
    REKEY: ("UPDATED",),
}


@dataclass(slots=True)
class Definition:
    """An accepted definition: where it was accepted, and whether it has to fire.

    `first_ms` is when the first of the requests arrived that slide one instant.
    """

    sent: Sent
    accepted_in: Step
    seq: int
    must_fire: bool | None = None
    extras: int = 0
    moved_ms: int = 0
    first_ms: int = 0
    fired_in: list[tuple[Step, Entry]] = field(default_factory=list)
    # Extra fires that backfills have made.
    past: list[tuple[Step, Entry]] = field(default_factory=list)
    given_up_in: Step | None = None

    @property
    def due_ms(self) -> int:
        """When it is due, by the request, its run, and by what bulk jobs have moved."""
        longest_ms = self.longest_ms
        last_ms = self.sent.due_ms if longest_ms is None else self.first_ms + longest_ms
        return min(self.sent.due_ms, last_ms) + self.moved_ms

    @property
    def longest_ms(self) -> int | None:
        """How long after the first request of its run it fires at the latest."""
        longest_ms: int | None = self.sent.fields.get("max_wait_ms")
        return longest_ms

    def follow(self, before: Definition | None) -> None:
        """Begin a run, or go on with that of the definition which this one replaces."""
        goes_on = before is not None and None not in (before.longest_ms, self.longest_ms)
        self.first_ms = before.first_ms if before and goes_on else self.sent.appended_ms


@dataclass(slots=True)
class Standing:
    """What a schedule's name holds while the verdicts are folded.

    `last` is what fired last under the name, unless something else ended there since.
    """

    waiting: Definition | None = None
    fired: bool = False
    last: Definition | None = None


@dataclass(slots=True)
class JobSeen:
    """A job: what it asks for, its candidates by name, its outcomes, and the step that ended it."""

    sent: Sent
    spec: dict[str, Any]
    candidates: dict[str, Definition]
    outcomes: Counter[str] = field(default_factory=Counter)
    ended_in: int | None = None
    is_stopped: bool = False
    # Of a backfill: what was told of each candidate, and in which step.
    told: dict[str, tuple[dict[str, Any], Step]] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether its row says that it has ended, or a request has stopped it."""
        return self.ended_in is not None or self.is_stopped

    @property
    def rekeys(self) -> bool:
        """Whether it encrypts anew all that waits, what was asked for behind it as well."""
        return bool(self.spec["action"] == REKEY)

    def concerns(self, name: str) -> bool:
        """Whether the definition of this name is its business."""
        return self.rekeys or name in self.candidates

    def problems(self) -> list[str]:
        """What is wrong with a finished job."""
        if self.ended_in is None:
            return [f"I24 {self.sent.name} never ended"]
        found = []
        for name, times in self.outcomes.items():
            if times > 1:
                found.append(f"I24 {self.sent.name} had {times} outcomes for {name}")
        if self.rekeys:
            # What was under the newest key before has no outcome; the rows say the rest.
            return found
        for name, definition in self.candidates.items():
            if not self.outcomes[name] and not self.is_stopped and not self._excused(definition):
                found.append(f"I24 {self.sent.name} left {name} out")
        return found

    def _excused(self, definition: Definition) -> bool:
        """Whether it fired before the job ended, or somebody else ended it."""
        fired = sum(step.index <= (self.ended_in or 0) for step, _ in definition.fired_in)
        over = fired >= int(definition.sent.fields.get("max_fires", 1))
        return over or definition.must_fire is False


class JobsSeen:
    """The jobs of a world, as its topics tell of them."""

    def __init__(self, standing: dict[tuple[str, str], Standing]) -> None:
        self._standing = standing
        self._jobs: dict[tuple[str, str], JobSeen] = {}
        self._problems: list[str] = []
        # What jobs have paused and resumed: tenant and schedule, step, outcome.
        self.pauses: list[tuple[tuple[str, str], Step, str]] = []

    def stop(self, sent: Sent, outcome: str) -> None:
        """A job was to end: CANCELLED where it was under way."""
        job = self._jobs.get((sent.tenant, sent.schedule_id))
        # The row of a job that is stopped twice in one step is read behind both.
        wanted = "NOT_FOUND" if job is None else "UNCHANGED" if job.has_ended else "CANCELLED"
        if outcome not in ("DUPLICATE", wanted):
            self._problems.append(f"I24 {sent.name} (BULK_STOP) ended in {outcome}")
        if job is not None and outcome == "CANCELLED":
            job.is_stopped = True

    def begin(self, sent: Sent) -> None:
        """A job was taken in: what waits now and fits its filter is its business."""
        spec = json.loads(sent.fields["bulk"])
        candidates = {
            standing.waiting.sent.name: standing.waiting
            for (tenant, name), standing in self._standing.items()
            if tenant == sent.tenant
            and standing.waiting is not None
            and name.startswith(spec["prefix"])
            and spec["group"] in (None, standing.waiting.sent.fields.get("group"))
        }
        self._jobs[sent.tenant, sent.schedule_id] = JobSeen(sent, spec, candidates)

    def see(self, steps: list[Step], first: int, end: int) -> int:
        """See what jobs did in the steps from `first` on and before `end`; where to go on."""
        for step in steps[first:end]:
            for event in step.told:
                reason = event["reason"] or ""
                named = JOB_NAME.match(reason)
                # What a backfill fires is looked at in the output topics (`past`).
                if event["request_id"] is None and named and event["outcome"] != "FIRED":
                    self._outcome(event, named[1], step)
            for row in step.rows:
                self._row(row, step)
        return max(first, end)

    def problems(self) -> list[str]:
        """All that is wrong with the jobs."""
        return self._problems + [what for job in self.jobs() for what in job.problems()]

    def jobs(self) -> list[JobSeen]:
        """All jobs that were taken in."""
        return list(self._jobs.values())

    def _outcome(self, event: dict[str, Any], name: str, step: Step) -> None:
        job = self._jobs.get((event["tenant"], name))
        standing = self._standing[event["tenant"], event["schedule_id"]]
        waiting = standing.waiting
        what = f"{name} of {event['tenant']}: {event['outcome']} {event['schedule_id']}"
        if job is None or waiting is None or not job.concerns(waiting.sent.name):
            self._problems.append(f"I24 {what}, which is none of its business")
            return
        if event["outcome"] not in OUTCOMES[job.spec["action"]]:
            self._problems.append(f"I24 {what}, which cannot be")
            return
        if job.ended_in is not None and job.ended_in < step.index:
            self._problems.append(f"I24 {what}, and has ended")
        job.outcomes[waiting.sent.name] += 1
        if event["outcome"] in ("PAUSED", "RESUMED"):
            key = (event["tenant"], event["schedule_id"])
            self.pauses.append((key, step, event["outcome"]))
        elif job.rekeys:
            return
        elif job.spec["action"] == "BACKFILL":
            job.told[waiting.sent.name] = (event, step)
        elif event["outcome"] == "CANCELLED":
            waiting.must_fire, standing.waiting, standing.fired = False, None, False
        elif event["outcome"] == "UPDATED":
            waiting.moved_ms += job.spec["move_ms"]
            waiting.accepted_in = step
        elif event["outcome"] == "TRIGGERED":
            waiting.extras += 1

    def _row(self, row: Entry, step: Step) -> None:
        key = row.key or b""
        if not key.startswith(JOB) or row.value is None:
            return
        tenant, _, name = key[len(JOB) :].decode().partition("/")
        job = self._jobs.get((tenant, name))
        said = json.loads(bare(row.value)[HEAD_BYTES:])
        if job is not None and said["state"] != "RUNNING" and job.ended_in is None:
            job.ended_in = step.index
            if (said["state"] == "STOPPED") is not job.is_stopped:
                self._problems.append(f"I24 {name} of {tenant} ended as {said['state']}")
