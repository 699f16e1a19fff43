"""Payloads that lie in day files for a while change nothing that anybody sees, if they are back.

The same random history is played twice: with payloads put aside at random and brought back before
they are needed, and with none.  And once more with payloads that come back late, or when they like:
what fires then has its payload, and no id comes twice.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from belfry.engine.day_files import PutAside
from belfry.store.layout.day_files import Entry, may_go, of_row, payload_in, reference_to
from belfry.store.layout.day_reference import DayFile, decode_reference
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import away
from tests.property.histories import History
from tests.unit.engine.driver import Step

SEEDS: Final = 12
STEPS: Final = 70
LONG: Final = b"a payload that is worth a file " * 5


class Filed(History):
    """A history whose payloads go and come between its steps; `late`: not always in time."""

    def __init__(self, seed: int, *, files: bool, late: bool = False) -> None:
        super().__init__(seed)
        self.told: list[tuple[Any, ...]] = []
        self.values: list[bytes | None] = []
        self.gone = self.back = 0
        self._files = files
        self._late = late
        self._dice = Random(seed + 1)
        # Where TRIGGERs lie in the source.
        self._triggers: list[int] = []
        self._stored: dict[DayFile, list[Entry]] = {}

    def step(self, *args: Any, **how: Any) -> Step:
        # What the step before has told, and needed no transaction for, is told by now.
        self.driver.end(self.now_ms)
        if self._files:
            self._put_aside()
            self._put_back()
        step = super().step(*args, **how)
        effects = step.effects
        self.told.append((effects.fired, effects.lifecycle, effects.outcomes))
        self.values += [fired[3] for fired in effects.fired]
        return step

    def records(self) -> list[bytes]:
        return list(self.engine._store.all_pending())

    def put_back_all(self) -> None:
        while waiting := [each for each in self.records() if away(each)]:
            self._read(decode_reference(of_row(waiting[0]) or b"").file)

    def _put_aside(self) -> None:
        found = [each for each in self.records() if may_go(each) and self._dice.random() < 0.5]
        if not found:
            return
        file = DayFile(7, 0, self._dice.randbytes(8))
        rows = list[PutAside]()
        for offset, record in enumerate(found):
            name, payload = decode_pending(record).name, payload_in(record)
            rows.append(PutAside(name, record, reference_to(file, offset, payload)))
            self._stored.setdefault(file, []).append(Entry(name, offset, payload))
        self.engine.put_aside(self.now_ms, rows)
        self.gone += self.engine.day_files.changed
        self._end()

    def _put_back(self) -> None:
        """What is due, or may fire by a request of this step; or what the dice say."""
        for record in self.records():
            if not away(record):
                continue
            wanted = self._asked_now() or decode_pending(record).due_ms <= self.now_ms
            if wanted if not self._late else self._dice.random() < 0.05:
                self._read(decode_reference(of_row(record) or b"").file)

    def _asked_now(self) -> bool:
        """Whether a TRIGGER may be taken in, which is refused while a payload is away."""
        return any(each >= self.engine.position for each in self._triggers)

    def _read(self, file: DayFile) -> None:
        self.engine.put_back(self.now_ms, file, self._stored[file])
        assert self.engine.day_files.damaged == 0
        if self.engine.day_files.changed:
            self.back += self.engine.day_files.changed
            self._end()

    def _end(self) -> None:
        self.driver.end(self.now_ms, commit=self._dice.random() < 0.9)

    def _request(self) -> dict[str, Any]:
        asked = super()._request()
        if asked["action"] == "TRIGGER":
            self._triggers.append(len(self.driver.source))
        if asked.get("kind") in ("AT", "AFTER") and self.random.random() < 0.7:
            said = "at", "delay_ms", "kind", "tenant", "schedule_id", "action"
            asked = {name: asked[name] for name in said if name in asked} | {"payload": b"1"}
        return {**asked, "payload": LONG + asked["payload"]} if "payload" in asked else asked


def played(seed: int, *, files: bool, late: bool = False) -> Filed:
    history = Filed(seed, files=files, late=late)
    for _ in range(STEPS):
        history.go_on()
    return history


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_history_gives_the_same_events(seed: int) -> None:
    assert played(seed, files=True).told == played(seed, files=False).told


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_comes_back_late_fires_whole_and_once(seed: int) -> None:
    history = played(seed, files=True, late=True)
    history.put_back_all()
    history.now_ms += 100_000
    for _ in range(20):
        History.step(history, 50)
    assert {value for value in history.values if value} <= {LONG + b"1", LONG + b"2"}
    held = [each for each in history.records() if away(each)]
    assert held == []


def test_histories_put_payloads_aside_and_back() -> None:
    seen = [played(seed, files=True) for seed in range(SEEDS)]
    assert sum(each.gone for each in seen) > 100
    assert sum(each.back for each in seen) > 50
    late = [played(seed, files=True, late=True) for seed in range(SEEDS)]
    assert any(each.engine.day_files.awaited for each in late)
