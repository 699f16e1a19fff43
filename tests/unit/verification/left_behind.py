"""Histories in which a step that is rolled back leaves events of some tenants in the output.

Who is content with at least once has events produced beside the transaction.  They are in the
output before it is decided of the step, so a roll-back does not take them back.  The next owner
takes requests in before it fires, and does not do the same step again.
"""

from __future__ import annotations

from typing import Any, Final

from belfry.engine.effects import Effects
from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.property.histories import POLICIES, History
from tests.unit.engine.driver import FIRED, Step
from tests.unit.verification.trace import Recording, Trace, Verification, verified

# Tenants whose events may come twice, and those whose events come once.
LOOSE: Final = ("t1", "t3", "t5")
FIRM: Final = ("t2", "t4")
TENANTS: Final = tuple(sorted(LOOSE + FIRM))
FLOORS: Final = {FIRED + tenant: -1 for tenant in TENANTS}


class LeftBehind(History):
    """A history whose steps are often rolled back; `left` counts the events that stay then."""

    driver: Recording

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.left = 0
        for tenant in TENANTS:
            self._treat(tenant, remember_ms=self.random.choice([0, 86_400_000]))

    @property
    def trace(self) -> Trace:
        """What the topics hold."""
        return self.driver.trace

    def go_on(self) -> None:
        """The next thing happens: most of the time, requests and steps."""
        if self.random.random() < 0.6:
            self.requests()
        else:
            super().go_on()

    def requests(self) -> None:
        """Requests come in, time passes, and steps fire few of what is due."""
        for _ in range(self.random.choice([0, 1, 2, 4, 8])):
            self.driver.ask(timestamp_ms=self.now_ms, **self._request())
        if self.random.random() < 0.15:
            self._ask_for_job()
        for _ in range(self.random.choice([1, 2, 3])):
            self.now_ms += self.random.choice([0, 0, 1, 3, 10, 40, 90, 700])
            commit = self.random.random() < 0.6
            self.step(self.random.choice([1, 2, 3, 5, 50]), commit=commit)

    def step(self, at_most: int, *, commit: bool = True, take: int | None = None) -> Step:
        """A step may fire, take in some of the requests, and go on with jobs."""
        engine, random = self.engine, self.random
        effects = engine.fire_due(self.now_ms, at_most) if random.random() < 0.6 else None
        batch = self.driver.batch(random.choice([take, None, 1, 2]))
        if batch.records or effects is None:
            effects = engine.accept(batch, self.now_ms)
        if engine.jobs.under_way and random.random() < 0.7:
            engine.advance_jobs(self.now_ms, Budget(100, random.choice([1, 3, 7])))
        if not effects.empty:
            self.driver.end(self.now_ms, commit=commit)
            if not commit:
                self._leave_behind(effects)
        return Step(effects, len(batch.records))

    def _leave_behind(self, effects: Effects) -> None:
        """Those of each output partition arrived in their order, up to some one."""
        beside = [each for each in effects.fired if each[0] in effects.non_transactional]
        ends = [self.random.choice([0, 1, len(beside), len(beside)]) for _ in range(2)]
        stay: list[Any] = []
        for number, end in enumerate(ends):
            stay += [each for each in beside if len(each[1]) % 2 == number][:end]
        effects.fired[:] = [each for each in beside if each in stay]
        self.left += len(effects.fired)
        self.trace.came_out(effects, self.now_ms)

    def _ask_for_job(self) -> None:
        choice = self.random.choice
        action = choice(["TRIGGER", "CANCEL", "PAUSE", "RESUME", "BACKFILL"])
        said: dict[str, Any] = {}
        if action == "BACKFILL":
            said = {"range_from": self.now_ms - 3_000, "range_until": self.now_ms - 1_000}
        spec = BulkSpec(action=action, per_second=10_000, **said).text()
        job = {"tenant": choice(TENANTS), "schedule_id": choice("jkl")}
        self.driver.ask(timestamp_ms=self.now_ms, action="BULK", bulk=spec, **job)

    def policy(self) -> None:
        """A tenant's policy changes, but for what it is promised."""
        choice = self.random.choice
        self._treat(
            choice(TENANTS),
            priority=choice([0, 0, -1, 1]),
            max_fires_per_second=choice([None, None, 100.0, 3_000.0]),
            paused=choice([False] * 5 + [True]),
            misfire=choice([None, *POLICIES]),
            remember_ms=choice([0, 86_400_000]),
        )

    def _treat(self, tenant: str, **treated: Any) -> None:
        guarantee: Any = "AT_LEAST_ONCE" if tenant in LOOSE else "EXACTLY_ONCE"
        policy = TenantPolicy(tenant, lifecycle="ALL", guarantee=guarantee, **treated)
        self.driver.tenants.follow(EffectivePolicy(policy))


def judged(trace: Trace) -> Verification:
    """What a verification finds that knows what each tenant is promised."""
    repeats = frozenset(LOOSE)
    return verified(trace, floors=FLOORS, tenants_that_repeat=repeats, held=frozenset(TENANTS))
