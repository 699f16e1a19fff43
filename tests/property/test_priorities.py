"""Priorities in random histories: nothing that is held back is overtaken by what is less urgent.

What a tenant's backlog holds before a step, with the priority that each record says, is compared
with what the step fired.  A row that may leave, and still lies where it did, was overtaken by each
of lower priority that fired.  And all histories come to rest, as those without priorities do.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from belfry.schedules.rule import decode_rule
from belfry.store.layout import keys
from belfry.store.layout.pending import decode_pending
from tests.property.test_rest import Resting
from tests.unit.engine.driver import FIRED, Step

EVENTS: Final = 40
SEEDS: Final = range(1, 25)
PRIORITIES: Final = (None, None, 0, -9, -1, 1, 5, 9)


class Held(NamedTuple):
    """A row of a backlog: whose, of which priority, and when it is due."""

    name: bytes
    priority: int
    due_ms: int

    @property
    def tenant(self) -> bytes:
        return keys.tenant_of(self.name)


class Prioritised(Resting):
    """A history whose schedules have priorities, and whose backlogs are looked at."""

    compared = 0

    def _request(self) -> dict[str, Any]:
        asked = super()._request()
        if "payload" in asked and not asked["group"]:
            asked["priority"] = self.random.choice(PRIORITIES)
        return asked

    def _held(self) -> dict[bytes, Held]:
        found = {}
        for key, record in self.driver.rows.scan(keys.BACKLOG_PREFIX, keys.BACKLOG_END):
            row = decode_pending(record)
            found[key] = Held(row.name, decode_rule(row.extra).priority or 0, keys.due_of(key))
        return found

    def step(self, at_most: int, *, commit: bool = True, take: int | None = None) -> Step:
        before = self._held()
        until_ms = min(self.now_ms, self.engine._step.scan.watermark_ms)
        step = super().step(at_most, commit=commit, take=take)
        if commit and before:
            self._compare(before, until_ms, step)
        return step

    def _compare(self, before: dict[bytes, Held], until_ms: int, step: Step) -> None:
        fired = {f"{shot.topic.removeprefix(FIRED)}/{shot.id}".encode() for shot in step.shots}
        after = self._held()
        left = [row for key, row in before.items() if key not in after and row.name in fired]
        slowed = self.engine._parts.waiting.slowed
        for key, row in before.items():
            if key not in after or row.due_ms > until_ms or row.tenant in slowed:
                continue
            for other in left:
                if other.tenant == row.tenant:
                    self.compared += 1
                    assert other.priority >= row.priority, f"{other} overtook {row}"


def test_what_is_more_urgent_is_not_overtaken() -> None:
    compared = 0
    for seed in SEEDS:
        history = Prioritised(seed)
        for _ in range(EVENTS):
            history.go_on()
        history.end()
        compared += history.compared
    # Else these histories hold nothing back.
    assert compared > len(SEEDS)
