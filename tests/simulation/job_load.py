"""Requests about many: the past of what recurs, jobs that are stopped, and what is paused."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.sent import Sent

if TYPE_CHECKING:
    from tests.simulation.load import Load


class JobLoad:
    """Draws backfills and pauses, and schedules for them."""

    def __init__(self, load: Load, random: Random) -> None:
        self._load, self._random = load, random
        self._jobs: list[Sent] = []
        self._pausing: list[Sent] = []

    def past(self, tenant: str, number: int) -> Sent:
        """A backfill, or a schedule that has a past; sometimes the end of a job."""
        draw = self._random.random()
        stoppable = [job for job in self._jobs if job.tenant == tenant]
        if draw < 0.08 and stoppable:
            name = self._random.choice(stoppable).schedule_id
            return Sent(f"s{number}", tenant, name, "BULK_STOP", {}, f"id-{number}")
        if draw < 0.6:
            return self._every(f"e{number}", tenant, f"past-{number}")
        from_ms = self._load.broker.now_ms() - self._random.randint(2_000, 25_000)
        return self._job(
            tenant,
            number,
            action="BACKFILL",
            prefix=self._random.choice(("past-", "past-", "p")),
            range_from=from_ms,
            range_until=from_ms + self._random.randint(1_000, 30_000),
        )

    def _every(self, name: str, tenant: str, schedule_id: str) -> Sent:
        now_ms = self._load.broker.now_ms()
        fields: dict[str, Any] = {
            "kind": "EVERY",
            "start_at": now_ms - self._random.randint(1_000, 20_000),
            "interval_ms": self._random.choice((70, 700, 1_000, 2_300)),
            "max_fires": self._random.randint(3, 9),
            "misfire": "FIRE_ALL",
        }
        self._load.expect(now_ms + 10 * 2_300)
        return Sent(name, tenant, schedule_id, "UPSERT", fields, None)

    def _job(self, tenant: str, number: int, **said: Any) -> Sent:
        said |= {"group": None, "per_second": self._random.choice((20, 100, 100))}
        self._load.expect(self._load.broker.now_ms() + 20_000)
        fields = {"bulk": json.dumps(said)}
        job = Sent(f"j{number}", tenant, f"job-{number}", "BULK", fields, f"id-{number}")
        self._jobs.append(job)
        return job

    def pause(self, tenant: str, number: int) -> Sent:
        """A schedule that is paused now and then, or who pauses or resumes some."""
        known = [sent for sent in self._pausing if sent.tenant == tenant][-4:]
        draw, action = self._random.random(), self._random.choice(("PAUSE", "PAUSE", "RESUME"))
        if known and draw < 0.35:
            name = self._random.choice(known).schedule_id
            return Sent(f"u{number}", tenant, name, action, {}, f"id-{number}")
        if known and draw < 0.5:
            return self._job(tenant, number, action=action, prefix="pau-")
        if draw < 0.75:
            at_ms = self._load.broker.now_ms() + self._random.randint(300, 5_000)
            fields = {"at": at_ms}
            sent = Sent(f"n{number}", tenant, f"pau-{number}", "UPSERT", fields, f"id-{number}")
        else:
            sent = self._every(f"n{number}", tenant, f"pau-{number}")
        self._pausing.append(sent)
        return sent

    def end(self) -> None:
        """Resume all that may be paused, when the jobs that may pause it are over."""
        if self._pausing:
            self._load.broker.stage.later(20_000, self._resume)
            self._load.expect(self._load.broker.now_ms() + 40_000)

    def _resume(self) -> None:
        for sent in self._pausing:
            number = len(self._load.sent)
            name = f"u{number}"
            self._load.send(Sent(name, sent.tenant, sent.schedule_id, "RESUME", {}, f"id-{number}"))
