"""The engine against its model: colliding requests, clocks, aborts, crashes, held tenants.

After every rule the engine, its store, and stores that are rebuilt from the changelog (from
nothing, and from an older snapshot and the changelog's tail) have to say the same as the model.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from belfry.engine.effects import Effects
from belfry.schedules.outcomes import Outcome
from belfry.store.buckets import differing
from belfry.store.layout import keys
from belfry.store.layout.pending_bytes import paused
from belfry.store.layout.records import ANSWERED, LOCATION, MARKER, PENDING, ZONES, check_format
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from tests.property.engine_model import Model
from tests.unit.engine.driver import HOUR, T0, Driver, Step, check_lines

TENANTS: Final = ("t1", "t2")
EVENTS: Final = ("step_back", "sweep", "hold", "pause", "release", "release", "save")
ACTIONS: Final = (
    *("UPSERT", "UPSERT", "UPSERT", "CREATE", "CANCEL", "CANCEL", "TRIGGER"),
    *("PAUSE", "RESUME", "RESUME"),
)
# Outcomes by which a late one no longer waits.
AWAY: Final = frozenset({Outcome.CANCELLED, Outcome.UPDATED, Outcome.PAUSED})
SOON: Final = st.integers(0, 4)
ADVANCES: Final = st.one_of(SOON, SOON, SOON, SOON, st.sampled_from([100, 61_000, HOUR, 25 * HOUR]))
DELAYS: Final = st.one_of(SOON, SOON, SOON, SOON, st.sampled_from([60_000, 2 * HOUR, 30 * HOUR]))
WINDOWS: Final = st.sampled_from([None, None, None, None, 1, 3, 60_000, 24 * HOUR])
RESUMING: Final = {"action": "RESUME", "at": None, "request_id": None, "expected_version": None}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request whose instants are relative to the moment it is sent."""
    kind = draw(st.sampled_from(["AT", "AT", "AT", "AFTER"]))
    delay_ms = draw(DELAYS)
    longest_ms = delay_ms + draw(SOON) if kind == "AFTER" and draw(st.booleans()) else None
    late_ms = draw(st.sampled_from([0, 0, 0, 0, 1, 5, 90_000]))
    return {
        "tenant": draw(st.sampled_from(TENANTS)),
        "schedule_id": draw(st.sampled_from("abcdef")),
        "action": draw(st.sampled_from(ACTIONS)),
        "kind": kind,
        "at": delay_ms - late_ms if kind == "AT" else None,
        "delay_ms": delay_ms if kind == "AFTER" else None,
        "max_wait_ms": longest_ms,
        "throttle_ms": draw(WINDOWS) if longest_ms is None else None,
        "jitter_ms": draw(st.sampled_from([None, None, None, None, 0, 7])),
        "group": draw(st.sampled_from([None, None, "g"])),
        "payload": draw(st.sampled_from([None, b"", b"x"])),
        "key": draw(st.sampled_from([None, b"", b"k"])),
        "expected_version": draw(st.sampled_from([None] * 6 + [0, 1, 2])),
        "request_id": draw(st.sampled_from([None] * 4 + ["r1", "r2", "r3"])),
    }


class Partition(RuleBasedStateMachine):
    """One partition, its model, and all that it ever committed."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.model = Model()
        self.asked: list[dict[str, Any]] = []
        self.now_ms = T0
        self.snapshot = (0, MemoryMap())
        self.watermark_ms = 0
        self.non_transactional = False
        self.fired_up_to_ms = 0

    @initialize(level=st.sampled_from(Level))
    def claim(self, level: Level) -> None:
        self.driver = Driver(level)
        self.driver.engine.claim(b'{"partitions": 1}')
        self.driver.end(self.now_ms)

    # -- what happens to a partition -------------------------------------------------------------

    @rule(several=st.lists(requests(), max_size=3), by_ms=SOON)
    def go_on(self, several: list[dict[str, Any]], by_ms: int) -> None:
        """A step as most are."""
        self.step(several, by_ms, at_most=4, fire=True, take=None, commit=True)

    @rule(
        several=st.lists(requests(), max_size=5),
        by_ms=ADVANCES,
        at_most=st.integers(1, 6),
        fire=st.sampled_from([True, True, True, False]),
        take=st.one_of(st.none(), st.none(), st.integers(0, 6)),
        commit=st.sampled_from([True, True, True, False]),
    )
    def step(
        self,
        several: list[dict[str, Any]],
        by_ms: int,
        at_most: int,
        fire: bool,
        take: int | None,
        commit: bool,
    ) -> None:
        """Requests are sent, time passes, and the partition makes a step."""
        self.send(several)
        self.now_ms += by_ms
        self.make_step(at_most, fire=fire, take=take, commit=commit)

    @rule(event=st.sampled_from(EVENTS), number=st.integers(1, 9))
    def happen(self, event: str, number: int) -> None:
        """What happens between steps, as one rule, so that most rules are steps."""
        getattr(self, event)(number)

    @rule(warm=st.booleans(), kept=st.floats(0, 1), tombstones=st.booleans(), by=st.integers(1, 20))
    def crash(self, warm: bool, kept: float, tombstones: bool, by: int) -> None:
        """The owner dies; the next one starts with a store that is rebuilt from the changelog."""
        compacted = int(kept * len(self.driver.changelog))
        self.driver.start(
            self.rebuilt(warm=warm, compacted=compacted, tombstones=tombstones, by=by)
        )
        self.non_transactional = False

    def step_back(self, by_ms: int) -> None:
        """The clock is set back a little; what is due is still never fired early or again."""
        self.now_ms -= by_ms

    def sweep(self, rows: int) -> None:
        """Later than it could: what was swept stays over when the clock is set back."""
        self.driver.sweep(self.now_ms - 1_000, rows)

    def hold(self, number: int) -> None:
        """A tenant's topic goes."""
        tenant = TENANTS[number % 2]
        self.driver.tenants.hold(tenant, "its topic is missing")
        self.model.held.add(tenant)

    def pause(self, number: int) -> None:
        """A tenant's kill switch is thrown."""
        self.model.held.add(self.switch(number, paused=True))

    def release(self, number: int) -> None:
        """A tenant's topic is back, and its kill switch too."""
        tenant = self.switch(number, paused=False)
        self.driver.tenants.hold(tenant, "")
        self.model.held.discard(tenant)

    def switch(self, number: int, *, paused: bool) -> str:
        tenant = TENANTS[number % 2]
        self.driver.apply(tenant, paused=paused)
        return tenant

    def save(self, _number: int) -> None:
        """Somebody copies the store's directory, or dies and leaves it behind."""
        self.snapshot = (len(self.driver.changelog), copy.deepcopy(self.driver.rows))

    # -- what has to hold ------------------------------------------------------------------------

    @invariant()
    def as_many_wait_as_were_accepted(self) -> None:
        assert self.driver.engine.pending == len(self.model.waiting)

    @invariant()
    def the_store_holds_what_waits(self) -> None:
        held = {name for name, row in view(self.driver.rows).items() if row[1] == PENDING}
        assert held == {"/".join(name).encode() for name in self.model.waiting}

    @invariant()
    def the_watermark_never_goes_back(self) -> None:
        watermark_ms = self.driver.engine.manifest.watermark_ms
        assert watermark_ms >= self.watermark_ms
        self.watermark_ms = watermark_ms

    @invariant()
    def the_next_due_instant_is_right(self) -> None:
        next_ms = self.driver.engine.next_due_ms()
        if self.now_ms < self.fired_up_to_ms:
            return
        if self.ready():
            assert next_ms is not None
            assert next_ms <= self.now_ms
            return
        awake = [each.due_ms for each in self.model.waiting.values() if not each.paused]
        future = [due_ms for due_ms in awake if due_ms > self.now_ms]
        non_transactional = self.non_transactional or any(self.model.due(self.now_ms))
        assert next_ms == min(future, default=None) or (
            non_transactional and next_ms is not None and next_ms <= self.now_ms
        )

    @invariant()
    def the_changelog_leads_to_the_same_store(self) -> None:
        live = view(self.driver.rows)
        assert view(self.rebuilt(by=7)) == live
        assert view(self.rebuilt(compacted=len(self.driver.changelog), by=1_000)) == live
        assert view(self.rebuilt(warm=True, by=3)) == live

    def teardown(self) -> None:
        """Faults end: everything fires, once."""
        for number, _ in enumerate(TENANTS):
            self.release(number)
        self.now_ms = max(self.now_ms, self.fired_up_to_ms) + 100 * HOUR
        self.make_step(1_000, fire=True, take=None, commit=True)
        for tenant, name in [name for name, each in self.model.waiting.items() if each.paused]:
            self.send([{**RESUMING, "tenant": tenant, "schedule_id": name}])
        self.make_step(1_000, fire=True, take=None, commit=True)
        for _ in range(100):
            if self.driver.engine.next_due_ms() is None:
                break
            self.make_step(3, fire=True, take=0, commit=True)
        assert not self.model.waiting
        self.as_many_wait_as_were_accepted()

    # -- driving and comparing -------------------------------------------------------------------

    def send(self, several: list[dict[str, Any]]) -> None:
        for asked in several:
            at_ms = None if asked["at"] is None else asked["at"] + self.now_ms
            self.asked.append({**asked, "at": at_ms})
            self.driver.ask(timestamp_ms=self.now_ms, **self.asked[-1])

    def make_step(self, at_most: int, *, fire: bool, take: int | None, commit: bool) -> None:
        start = self.driver.engine.position
        was_due = self.ready()
        if fire:
            self.fired_up_to_ms = max(self.fired_up_to_ms, self.now_ms)
        step = self.driver.step(self.now_ms, at_most, fire=fire, take=take, commit=commit)
        after = self.model.copy()
        self.compare_fires(after, step.effects)
        self.compare_outcomes(self.expected(after, start, step.taken), step)
        assert not (fire and was_due) or self.regular(step), "something is due, and nothing fired"
        if commit:
            # Late ones that were cancelled are counted as waiting for a step or two more.
            self.non_transactional |= bool(AWAY & step.effects.outcomes.keys())
            self.model = after
        else:
            assert self.driver.engine.position == start

    def ready(self) -> bool:
        """Whether something is due that nobody holds, and the clock has not gone back."""
        due = self.model.due(self.now_ms) if self.now_ms >= self.fired_up_to_ms else ()
        return any(name[0] not in self.model.held for name, _ in due)

    def regular(self, step: Step) -> bool:
        """Whether a step fired something by the clock, or moved something aside."""
        shots = [shot for shot in step.shots if shot.header("belfry-occurrence") != b"-1"]
        return bool(shots) or step.effects.moved

    def compare_fires(self, model: Model, effects: Effects) -> None:
        for shot in Step(effects).shots:
            tenant = shot.topic.rpartition(".")[2]
            identity = shot.header("belfry-fire-id")
            assert identity is not None
            if shot.header("belfry-occurrence") == b"-1":
                assert tenant not in model.held, "a held tenant's event fired"
                assert identity not in model.fire_ids
                model.fire_ids.add(identity)
            else:
                model.fire((tenant, shot.id), identity, self.now_ms)

    def compare_outcomes(self, expected: list[str], step: Step) -> None:
        counted = {**step.effects.outcomes}
        counted.pop(Outcome.FIRED, None)
        assert counted == Counter(expected)
        told = self.driver.tenants.of(TENANTS[0]).written
        if Outcome.ACCEPTED in told:
            assert step.outcomes == expected
        else:
            wanted = [each for each in expected if Outcome(each) in told]
            assert [each for each in step.outcomes if each in told] == wanted

    def expected(self, model: Model, start: int, taken: int) -> list[str]:
        return [
            model.decide(asked, record[:2], self.now_ms)
            for asked, record in zip(
                self.asked[start : start + taken],
                self.driver.source[start : start + taken],
                strict=True,
            )
        ]

    def rebuilt(
        self, *, by: int, warm: bool = False, compacted: int = 0, tombstones: bool = False
    ) -> MemoryMap:
        """A store from the changelog, whose first rows were compacted, read `by` rows at a time."""
        offset, rows = copy.deepcopy(self.snapshot) if warm else (0, MemoryMap())
        log = compact(self.driver.changelog, compacted, tombstones=tombstones or warm)
        replay = Replay(ScheduleStore(rows))
        assert replay.offset == offset
        left = [each for each in log if each[0] >= offset]
        for at in range(0, len(left), by):
            some = left[at : at + by]
            offsets = [each[0] for each in some]
            replay.apply([each[1] for each in some], offsets, self.now_ms)
        replay.finish(self.now_ms)
        assert replay.settings == b'{"partitions": 1}'
        return rows


def compact(
    changelog: list[tuple[bytes, bytes | None]], upto: int, *, tombstones: bool
) -> list[tuple[int, tuple[bytes, bytes | None]]]:
    """Rows with their offsets; before `upto` only the last of each key is left."""
    last = {key: offset for offset, (key, _) in enumerate(changelog)}
    return [
        (offset, row)
        for offset, row in enumerate(changelog)
        if offset >= upto or (last[row[0]] == offset and (tombstones or row[1] is not None))
    ]


def view(rows: MemoryMap) -> dict[bytes, bytes]:
    """What a store says of each name: the pending record wherever it lies, else the row itself."""
    store = ScheduleStore(rows)
    found: dict[bytes, bytes] = {}
    for key, row in rows.scan(keys.NAMED_PREFIX, keys.NAMED_END):
        name = key[1:]
        if name == keys.SETTINGS_KEY:
            found[name] = row
            continue
        letter = check_format(row)
        assert letter in (LOCATION, MARKER, ANSWERED, ZONES)
        found[name] = store.pending_at(name, row) if letter == LOCATION else row
    assert list(differing(rows)) == []
    lying_paused = dict(rows.scan(keys.PAUSED_PREFIX, keys.PAUSED_END))
    assert all(paused(row) for row in lying_paused.values())
    waiting = sum(row[1] == PENDING for row in found.values() if row[:1] == b"\1")
    lying = [*rows.scan(keys.TIMELINE_PREFIX, keys.TIMELINE_END)]
    lying += rows.scan(keys.BACKLOG_PREFIX, keys.CATCH_UP_END)
    assert not any(paused(row) for _, row in lying)
    lying += lying_paused.items()
    check_lines(rows)
    assert len(lying) == waiting, "a row lies in timeline or backlog that no name leads to"
    return found


TestPartition = Partition.TestCase
