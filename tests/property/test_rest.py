"""Every history comes to rest: where time stands still, work is done until nothing more is due.

An engine that says that something is due, and then does nothing about it, keeps its partition busy
for ever.  So at one instant each few steps fire, give up or let go something; and when the next
event is said to be due later, nothing that may leave is left.
"""

from __future__ import annotations

from typing import Final

import pytest

from belfry.firing import hot_tenants
from belfry.store.layout import keys
from belfry.store.layout.pending import decode_pending
from tests.property.histories import TENANTS, History

# What was due moves behind locks, to and fro between queues, before the next thing fires.
MOST_IDLE: Final = 8
EVENTS: Final = 40
SEEDS: Final = range(1, 41)


class Resting(History):
    """A history that is looked at where time stands still."""

    def rest(self) -> None:
        idle, at_most = 0, self.random.choice([1, 3, 20, 200])
        while (due_ms := self.engine.next_due_ms()) is not None and due_ms <= self.now_ms:
            step = self.step(at_most, take=0)
            did = step.effects.fired or any(step.effects.outcomes.values())
            idle = 0 if did else idle + 1
            assert idle <= MOST_IDLE, f"due at {due_ms}, and nothing is done about it"
            if did and self.random.random() < 0.3:
                # Amid an instant, the next owner goes on where this one was.
                self.restart()
        self.nothing_is_due()

    def nothing_is_due(self) -> None:
        """Whatever the engine remembers of it: what its store holds is due later, or may not go."""
        rows = self.driver.rows
        waiting = self.engine._parts.waiting
        if max(self.engine._step.scan.reached_ms, waiting.held_up_to_ms) > self.now_ms:
            # The clock was set back: what is late waits until it is where it was.
            return
        for key, _ in rows.scan(keys.TIMELINE_PREFIX, keys.TIMELINE_END):
            assert keys.timeline_sort_key(key)[0] > self.now_ms, "it is due, and nobody looks at it"
        for key, record in rows.scan(keys.BACKLOG_PREFIX, keys.CATCH_UP_PREFIX):
            tenant = self.driver.tenants.of_bytes(decode_pending(record)[10])
            limited = tenant.effective.policy.max_fires_per_second is not None
            assert limited or tenant.stopped or keys.due_of(key) > self.now_ms, "it waits"

    def end(self) -> None:
        """All tenants are free, and a minute passes."""
        for tenant in TENANTS:
            self.driver.apply(tenant, paused=False, max_fires_per_second=None)
            self.driver.tenants.hold(tenant, "")
        self.rest()
        self.now_ms += 61_000
        self.rest()


@pytest.fixture
def _small_crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three requests of one minute make a tenant a hot one."""
    monkeypatch.setattr(hot_tenants, "HOT_FROM", 3)
    monkeypatch.setattr(hot_tenants, "EVERY", 1)


@pytest.mark.usefixtures("_small_crowds")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_history_comes_to_rest(seed: int) -> None:
    history = Resting(seed)
    for _ in range(EVENTS):
        history.go_on()
    history.end()
