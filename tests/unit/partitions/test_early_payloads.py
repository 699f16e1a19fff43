"""A slow store holds the intake of a partition up, and no event; a store that is away neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.outputs import payload_store as module
from belfry.partitions.early_payloads import EarlyPayloads
from belfry.wire.claim_check import digest_of
from tests.unit.engine.driver import T0, Driver, Step
from tests.unit.outputs.test_payload_store import Files, Place, wait_for

PAYLOAD: Final = b"p" * 1_000


class Partition:
    """An engine that takes requests in as the steps of a partition do."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.driver = Driver()
        self.driver.tenants = place.tenants
        self.driver.start(self.driver.rows)
        self.driver.apply(claim_check_over_bytes=100)
        self.early = EarlyPayloads(place.store)
        self.rolled_back = 0

    def step(self, now_ms: int) -> Step | None:
        """Fire, take in what may be taken in, and commit; None for a step that was put off."""
        driver, engine = self.driver, self.driver.engine
        effects: Any = engine.fire_due(now_ms, 100)
        taken = 0
        if not self.early.under_way:
            batch = driver.batch(None)
            effects, taken = engine.accept(batch, now_ms), len(batch.records)
        owned: Any = SimpleNamespace(engine=engine, rolled_back=self._back)
        if self.early.puts_off(owned, effects):
            return None
        self.place.store.put(effects.objects)
        if not effects.empty:
            driver.end(now_ms)
        return Step(effects, taken)

    def _back(self) -> None:
        self.rolled_back += 1


@pytest.fixture
def partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Partition]:
    monkeypatch.setattr(module, "PUT_S", 0.3)
    monkeypatch.setattr(module, "AGAIN_S", 0.02)
    place = Place(tmp_path / "store", Files())
    found = Partition(place)
    found.driver.ask(schedule_id="waits", at=T0 + 5, payload=b"small")
    assert found.step(T0) is not None
    found.driver.ask(schedule_id="large", at=T0 + 6, payload=PAYLOAD)
    yield found
    place.files.problem = None
    place.files.go.set()
    place.store.stop()


def taken_in(partition: Partition, now_ms: int) -> Step:
    """Steps until the request is taken in; what the last one did."""
    found: list[Step] = []

    def done() -> bool:
        step = partition.step(now_ms)
        if step is not None and step.taken:
            found.append(step)
        return bool(found)

    wait_for(done)
    return found[0]


def test_a_quick_store_costs_no_second_step(partition: Partition) -> None:
    partition.place.store.put({("demo", digest_of(PAYLOAD)): PAYLOAD})
    step = partition.step(T0 + 1)
    assert step is not None
    assert step.outcomes == ["ACCEPTED"]
    assert partition.rolled_back == 0


def test_events_fire_while_a_slow_store_is_waited_for(partition: Partition) -> None:
    partition.place.files.go.clear()
    assert partition.step(T0 + 1) is None
    assert partition.rolled_back == 1
    fired = partition.step(T0 + 5)
    assert fired is not None
    assert (fired.ids, fired.taken) == (["waits"], 0)
    partition.place.files.go.set()
    assert taken_in(partition, T0 + 5).outcomes == ["ACCEPTED"]
    step = partition.step(T0 + 6)
    assert step is not None
    assert step.ids == ["large"]


def test_what_was_due_in_a_step_that_is_put_off_fires_in_the_next(partition: Partition) -> None:
    partition.place.files.go.clear()
    assert partition.step(T0 + 5) is None
    fired = partition.step(T0 + 5)
    assert fired is not None
    assert fired.ids == ["waits"]


@pytest.mark.parametrize("hangs", [False, True])
def test_where_the_store_is_away_the_request_is_refused_and_told(
    partition: Partition, *, hangs: bool
) -> None:
    if hangs:
        partition.place.files.go.clear()
    else:
        partition.place.files.problem = OSError("away")
    assert partition.step(T0 + 1) is None
    refused = taken_in(partition, T0 + 1)
    assert (refused.outcomes, refused.codes) == (["REJECTED"], ["payload_not_stored"])
    # From then on it costs nobody anything.
    partition.driver.ask(schedule_id="large", at=T0 + 6, payload=PAYLOAD + b"2")
    again = partition.step(T0 + 1)
    assert again is not None
    assert again.codes == ["payload_not_stored"]
    partition.place.files.problem = None
    partition.place.files.go.set()
    wait_for(lambda: not partition.place.tenants.store_problem)
    partition.driver.ask(schedule_id="large", at=T0 + 6, payload=PAYLOAD)
    assert taken_in(partition, T0 + 1).outcomes == ["ACCEPTED"]
