"""Random histories of one partition: requests of all kinds, policies, clocks, crashes.

`History(seed)` makes the same one each time.  It takes no part in what is right or wrong but for
what holds at every step: nothing fires before its instant, and no fire id comes twice.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from belfry.engine.partition import PartitionEngine
from belfry.schedules.outcomes import Outcome
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.property.test_engine_model import compact
from tests.unit.engine.driver import FIRED, T0, Driver, Step

TENANTS: Final = ("t1", "t2", "t3")
ACTIONS: Final = (*["UPSERT"] * 8, "PAUSE", "RESUME", "RESUME", "TRIGGER", "CANCEL", *["ACK"] * 3)
KINDS: Final = ("AT", "AT", "AFTER", "EVERY", "EVERY", "EVERY", "CRON")
INTERVALS: Final = ((20, 70, 500), (30, 50, 200), (500, 60_000, 1_000))
CRONS: Final = ("* * * * * *", "*/5 * * * * *", "* * * * *")
OVERLAPS: Final = (
    *("ALLOW", "SKIP", "QUEUE_ONE", "QUEUE_ONE"),
    *("QUEUE_ALL", "CANCEL_OTHER", "TERMINATE_OTHER"),
)
POLICIES: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
EVENTS: Final = (
    *(["requests"] * 10 + ["policy", "policy", "topic", "topic", "rest", "rest"]),
    *("rebuild", "restart", "clock_back", "outage", "sweep"),
)


class History:
    """One partition and all that happens to it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.driver = Driver(self.random.choice([Level.ALL, Level.ALL, Level.FAILURES]))
        self.driver.engine.claim(b"{}")
        self.driver.end(T0)
        self.now_ms = T0 + self.random.choice([0, 0, 17, 59_000])
        self._intervals = self.random.choice(INTERVALS)
        self._fire_ids: set[bytes] = set()
        self._acknowledgeable: list[tuple[str, str, str]] = []

    @property
    def engine(self) -> PartitionEngine:
        """The engine that owns the partition now."""
        return self.driver.engine

    def go_on(self) -> None:
        """The next thing happens."""
        getattr(self, self.random.choice(EVENTS))()

    def step(self, at_most: int, *, commit: bool = True, take: int | None = None) -> Step:
        """One step, after which nothing is early and no fire id is there twice."""
        step = self.driver.step(self.now_ms, at_most, take=take, commit=commit)
        for told in step.effects.lifecycle:
            if told.outcome in (Outcome.FIRED, Outcome.MISSED):
                assert (told.due_at or 0) <= self.now_ms, f"early: {told}"
        if commit:
            fresh = set(step.effects.fire_ids)
            assert len(fresh) == len(step.effects.fire_ids)
            assert not fresh & self._fire_ids, "a fire id came twice"
            self._fire_ids |= fresh
            for shot in step.shots:
                identity = (shot.header("belfry-fire-id") or b"").decode()
                tenant = shot.topic.removeprefix(FIRED)
                self._acknowledgeable.append((tenant, shot.id, identity))
            del self._acknowledgeable[:-30]
        return step

    # -- what happens ----------------------------------------------------------------------------

    def requests(self) -> None:
        """Requests are sent, some time passes, and the partition makes a step."""
        for _ in range(self.random.choice([0, 1, 1, 2, 4])):
            late_ms = self.random.choice([0, 0, 0, 1, 50])
            self.driver.ask(timestamp_ms=self.now_ms - late_ms, **self._request())
        self.now_ms += self.random.choice([0, 0, 1, 3, 10, 40, 90, 700])
        at_most = self.random.choice([1, 2, 3, 5, 50])
        self.step(at_most, commit=self.random.random() < 0.8)

    def policy(self) -> None:
        """A tenant's policy changes; a rate of none at all is one too."""
        choice = self.random.choice
        policy = TenantPolicy(
            choice(TENANTS),
            lifecycle=choice(["ALL", "FAILURES"]),
            priority=choice([0, 0, -1, 1]),
            max_fires_per_second=choice([None, None, None, 5.0, 100.0, 3_000.0, 0.0]),
            paused=choice([False] * 5 + [True]),
            misfire=choice([None, *POLICIES]),
            look_back_ms=choice([86_400_000, 1_000, 50, 0]),
            max_pending=choice([None, None, 3]),
        )
        self.driver.tenants.follow(EffectivePolicy(policy))

    def topic(self) -> None:
        """A tenant's topic goes, or is back."""
        why = self.random.choice(["", "", "its topic is missing"])
        self.driver.tenants.hold(self.random.choice(TENANTS), why)

    def rest(self) -> None:
        """Time stands still until nothing more is due; overridden by who looks at it."""

    def rebuild(self) -> None:
        """The owner dies, and the next one has the changelog alone."""
        rows = MemoryMap()
        replay = Replay(ScheduleStore(rows))
        changelog = self.driver.changelog
        log = compact(changelog, int(self.random.random() * len(changelog)), tombstones=False)
        by = self.random.choice([1, 7, 1_000])
        for at in range(0, len(log), by):
            some = log[at : at + by]
            offsets = [each[0] for each in some]
            replay.apply([each[1] for each in some], offsets, self.now_ms)
        replay.finish(self.now_ms)
        self.driver.start(rows)

    def restart(self) -> None:
        """The owner is stopped, and comes back to its store: amid an instant, it goes on there."""
        self.driver.start(self.driver.rows)

    def clock_back(self) -> None:
        """The clock is set back."""
        self.now_ms -= self.random.choice([1, 5, 30, 1_500])

    def outage(self) -> None:
        """Nobody runs for a while."""
        self.now_ms += self.random.choice([1_500, 5_000, 61_000])

    def sweep(self) -> None:
        """Later than it could: what was swept stays over when the clock is set back."""
        self.driver.sweep(self.now_ms - 2_000, self.random.choice([1, 1_000]))

    # -- requests --------------------------------------------------------------------------------

    def _request(self) -> dict[str, Any]:
        choice = self.random.choice
        asked = {
            "tenant": choice(TENANTS),
            "schedule_id": choice("abcdef"),
            "action": choice(ACTIONS),
        }
        if asked["action"] == "ACK" and self._acknowledgeable:
            tenant, name, identity = choice(self._acknowledgeable[-9:])
            return {**asked, "tenant": tenant, "schedule_id": name, "fire_id": identity}
        if asked["action"] != "UPSERT":
            return {**asked, "action": choice(ACTIONS[8:13])}
        return {**asked, "payload": choice([b"1", b"2"]), **self._rule(), **self._extras()}

    def _rule(self) -> dict[str, Any]:
        choice = self.random.choice
        kind = choice(KINDS)
        if kind == "AT":
            away_ms = choice([-90_000, -5, -1, 0, 0, 1, 2, 3, 5, 20, 100, 1_000, 60_000])
            return {"kind": kind, "at": self.now_ms + away_ms}
        if kind == "AFTER":
            return {"kind": kind, "delay_ms": choice([0, 1, 5, 50, 1_000])}
        found: dict[str, Any] = {"kind": kind, "overlap": choice([None, None, *OVERLAPS])}
        found["max_fires"] = choice([None, None, None, None, 1, 2, 5])
        found["end_at"] = choice([None] * 9 + [self.now_ms + 5_000])
        found["except_cron"] = choice([None] * 4 + ["*/2 * * * *"])
        if kind == "CRON":
            return {**found, "cron": choice(CRONS)}
        start_at = choice([None] * 4 + [self.now_ms - 70, self.now_ms + 50])
        return {**found, "interval_ms": choice(self._intervals), "start_at": start_at}

    def _extras(self) -> dict[str, Any]:
        choice = self.random.choice
        group = choice([None, None, "g", "g", "h"])
        return {
            "group": group,
            "serial": choice([None, True]) if group else None,
            "ack_timeout_ms": choice([None, 1, 5, 50, 1_000, 60_000]),
            "max_lateness_ms": choice([None, None, 0, 0, 5, 300, 60_000]),
            "misfire": choice([None, *POLICIES]),
            "jitter_ms": choice([None, None, None, 1, 7, 30, 100, 700]),
        }
