"""Recurring schedules against a model that counts on its fingers.

The model knows an interval, a limit and a policy, and walks occurrence by occurrence.  It objects
to each fire and each occurrence given up that does not follow from the one before.  Rows and stores
that are rebuilt from the changelog have to say the same.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.layout.records import PENDING
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from tests.property.test_engine_model import compact, view
from tests.unit.engine.driver import T0, Driver

POLICIES: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
INTERVALS: Final = (20, 70, 500, 60_000)
LIMITS: Final = (0, 5, 300)
REASON: Final = re.compile(
    r"(\d+) occurrences? did not fire, from (\S+) (to|on:) (?:the one of )?(\S+)"
)


@dataclass
class Life:
    """One schedule, and where it stands."""

    next_ms: int
    arrived_ms: int
    interval_ms: int
    limit_ms: int
    policy: str
    group: str | None
    max_fires: int | None
    payload: bytes
    fires: int = 0
    version: int = 1
    paused: bool = False

    def is_new(self) -> bool:
        """Whether it waits for its first instant, which its last request says."""
        return not self.fires and self.next_ms == self.arrived_ms + self.interval_ms

    def place_ms(self, now_ms: int) -> int:
        """Where it stands among its group: for a late run at the run's last."""
        last_ms = now_ms - self.limit_ms - 1
        if self.policy != "FIRE_ONCE" or last_ms < self.next_ms:
            return self.next_ms
        return last_ms - (last_ms - self.next_ms) % self.interval_ms


@dataclass
class Model:
    """Schedules by name."""

    lives: dict[str, Life] = field(default_factory=dict)
    fire_ids: set[str] = field(default_factory=set)

    def late(self, life: Life, now_ms: int) -> bool:
        return now_ms - life.next_ms > life.limit_ms

    def give_up(self, name: str, event: LifecycleEvent, now_ms: int) -> int:
        """Occurrences were given up: the next ones, all of them late, and as the policy says."""
        life = self.lives[name]
        match = REASON.match(event.reason or "")
        assert match is not None, event.reason
        number, first, word, last = match.groups()
        assert parse_instant(first) == life.next_ms
        for _ in range(int(number)):
            assert self.late(life, now_ms), f"{name}: {life.next_ms} was in time"
            life.next_ms += life.interval_ms
        if word == "on:":
            assert life.policy == "FIRE_ONCE"
            assert parse_instant(last) == life.next_ms
        else:
            assert life.policy == "SKIP"
            assert parse_instant(last) == life.next_ms - life.interval_ms
            assert not self.late(life, now_ms), f"{name}: {life.next_ms} is late too"
        return int(number)

    def fire(self, name: str, event: LifecycleEvent, now_ms: int) -> None:
        """The next occurrence fired, and it was to."""
        life = self.lives[name]
        assert event.due_at == life.next_ms <= now_ms, f"{name} is out of step"
        assert not life.paused
        assert event.fire_id not in self.fire_ids
        self.fire_ids.add(event.fire_id or "")
        late = self.late(life, now_ms)
        assert not (late and life.policy == "SKIP"), f"{name} was to be skipped"
        after = replace(life, next_ms=life.next_ms + life.interval_ms)
        if late and life.policy == "FIRE_ONCE" and not life.group:
            # One of a group may have waited for its place meanwhile.
            assert not self.late(after, now_ms), f"{name} fired, and a later one is late too"
        for other, each in self.lives.items():
            same = each.group is not None and each.group == life.group and not each.paused
            in_time = each.place_ms(now_ms) >= life.next_ms
            assert not same or in_time, f"{name} overtook {other}"
        life.next_ms = after.next_ms
        life.fires += 1

    def complete(self, name: str) -> None:
        """The schedule is over: it fired as often as it may."""
        life = self.lives.pop(name)
        assert life.fires == life.max_fires

    def ask(self, asked: dict[str, Any], arrived_ms: int) -> str:
        """Outcome of a request, which counts from its arrival."""
        name, action = asked["schedule_id"], asked["action"]
        life = self.lives.get(name)
        if action == "UPSERT":
            return self._upsert(name, asked, arrived_ms)
        if life is None:
            return ""
        if action == "CANCEL":
            del self.lives[name]
            return "CANCELLED"
        if action == "TRIGGER":
            return "TRIGGERED"
        same = life.paused is (action == "PAUSE")
        life.paused = action == "PAUSE"
        return "UNCHANGED" if same else f"{action}D"

    def _upsert(self, name: str, asked: dict[str, Any], arrived_ms: int) -> str:
        fields = (asked["interval_ms"], asked["max_lateness_ms"], asked["misfire"])
        rest = (asked["group"], asked["max_fires"], asked["payload"])
        life = self.lives.get(name)
        # What the old rhythm has fired, or given up, the new one does not fire again.
        passed_ms = 0 if life is None or life.is_new() else life.next_ms - life.interval_ms
        first_ms = max(arrived_ms, passed_ms) + asked["interval_ms"]
        fresh = Life(first_ms, arrived_ms, *fields, *rest)
        if life is None:
            self.lives[name] = fresh
            return "ACCEPTED"
        if life.interval_ms == fresh.interval_ms:
            if definition(fresh) == definition(life):
                return "UNCHANGED"
            if fresh.max_fires is not None and life.fires >= fresh.max_fires:
                return "REJECTED"
            fresh.next_ms, fresh.fires, fresh.paused = life.next_ms, life.fires, life.paused
        fresh.version = life.version + 1
        self.lives[name] = fresh
        return "UPDATED"


def definition(life: Life) -> list[tuple[str, Any]]:
    names = ("interval_ms", "limit_ms", "policy", "group", "max_fires", "payload")
    return [(name, getattr(life, name)) for name in names]


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    actions = ("UPSERT", "UPSERT", "PAUSE", "RESUME", "RESUME", "TRIGGER", "CANCEL")
    return {
        "schedule_id": draw(st.sampled_from("abcd")),
        "action": draw(st.sampled_from(actions)),
        "kind": "EVERY",
        "interval_ms": draw(st.sampled_from(INTERVALS)),
        "max_lateness_ms": draw(st.sampled_from(LIMITS)),
        "misfire": draw(st.sampled_from(POLICIES)),
        "group": draw(st.sampled_from([None, "g"])),
        "max_fires": draw(st.sampled_from([None, None, 1, 5])),
        "payload": draw(st.sampled_from([b"1", b"2"])),
    }


class Recurring(RuleBasedStateMachine):
    """One partition of recurring schedules."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.driver.engine.claim(b"{}")
        self.driver.end(T0)
        self.model = Model()
        self.asked: list[tuple[dict[str, Any], int]] = []
        self.now_ms = T0

    @rule(
        several=st.lists(requests(), max_size=3),
        by_ms=st.sampled_from([0, 1, 3, 10, 40, 90, 700, 1_500]),
        at_most=st.sampled_from([1, 2, 5, 50]),
        commit=st.sampled_from([True, True, True, False]),
    )
    def step(self, several: list[dict[str, Any]], by_ms: int, at_most: int, commit: bool) -> None:
        for asked in several:
            self.asked.append((asked, self.now_ms))
            self.driver.ask(timestamp_ms=self.now_ms, **asked)
        self.now_ms += by_ms
        self.make_step(at_most, commit=commit)

    @rule(switch=st.sampled_from(["held", "paused", "free", "free"]))
    def stop_or_release(self, switch: str) -> None:
        """The tenant's topic goes, its kill switch is thrown, or it is free again."""
        self.driver.apply(paused=switch == "paused")
        self.driver.tenants.hold("demo", "its topic is missing" if switch == "held" else "")

    @rule(kept=st.floats(0, 1), by=st.integers(1, 20))
    def crash(self, kept: float, by: int) -> None:
        """The owner dies; the next one has nothing but the changelog."""
        self.driver.start(self.rebuilt(int(kept * len(self.driver.changelog)), by))

    @rule(by_ms=st.integers(1, 9))
    def step_back(self, by_ms: int) -> None:
        """The clock is set back: nothing fires early, and nothing twice."""
        self.now_ms -= by_ms

    def make_step(self, at_most: int, *, commit: bool = True) -> None:
        start = self.driver.engine.position
        step = self.driver.step(self.now_ms, at_most, commit=commit)
        after, given_up = copy.deepcopy(self.model), 0
        told = map(whole, step.effects.lifecycle)
        stopped = self.driver.tenants.of("demo").stopped
        verdicts: list[LifecycleEvent] = []
        for event in told:
            if event.outcome is Outcome.MISSED:
                given_up += after.give_up(event.schedule_id, event, self.now_ms)
            elif event.outcome is Outcome.FIRED:
                after.fire(event.schedule_id, event, self.now_ms)
            elif event.outcome is Outcome.COMPLETED:
                after.complete(event.schedule_id)
            else:
                verdicts.append(event)
                continue
            assert not stopped, "a stopped tenant's schedule fired"
            assert not verdicts, "firing comes before intake"
        assert step.effects.outcomes[Outcome.MISSED] == given_up
        for (asked, arrived_ms), event in zip(self.asked[start:], verdicts, strict=True):
            expected = after.ask(asked, arrived_ms)
            if expected == "TRIGGERED" and stopped:
                expected = "REJECTED"
            assert event.outcome in ({expected} if expected else {"NOT_FOUND", "TOO_LATE"})
        if commit:
            self.model = after

    def rebuilt(self, compacted: int, by: int) -> MemoryMap:
        rows = MemoryMap()
        replay = Replay(ScheduleStore(rows))
        log = compact(self.driver.changelog, compacted, tombstones=False)
        for at in range(0, len(log), by):
            some = log[at : at + by]
            offsets = [each[0] for each in some]
            replay.apply([each[1] for each in some], offsets, self.now_ms)
        replay.finish(self.now_ms)
        return rows

    @invariant()
    def rows_say_what_the_model_says(self) -> None:
        found = {
            name.decode().removeprefix("demo/"): row
            for name, row in view(self.driver.rows).items()
            if row[:2] == bytes([1, PENDING])
        }
        assert found.keys() == self.model.lives.keys()
        assert self.driver.engine.pending == len(found)
        for name, row in found.items():
            kept, life = decode_pending(row), self.model.lives[name]
            assert (kept.nominal_ms, kept.occurrence) == (life.next_ms, life.fires)
            assert (kept.version, paused(row)) == (life.version, life.paused)

    @invariant()
    def the_changelog_leads_to_the_same_rows(self) -> None:
        assert view(self.rebuilt(len(self.driver.changelog), 1_000)) == view(self.driver.rows)

    def teardown(self) -> None:
        """Faults end: whatever is due has fired, or was given up, and the next lies ahead."""
        self.stop_or_release("free")
        self.now_ms += 1_000
        for _ in range(300):
            self.make_step(200)
            self.now_ms += 5
            soon = self.now_ms - 25
            if all(each.next_ms > soon or each.paused for each in self.model.lives.values()):
                break
        else:
            raise AssertionError(f"still not caught up: {self.model.lives}")
        self.rows_say_what_the_model_says()


TestRecurring = Recurring.TestCase
# Each step replays the whole changelog: a few long stories show what many short ones would.
TestRecurring.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
