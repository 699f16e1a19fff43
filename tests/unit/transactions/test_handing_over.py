"""A step's requests leave in one hand-over to the loop, in two where something waits amid them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.engine.read_lease import ReadLease
from belfry.host.clock import SystemClock
from belfry.kafka.client_loop import ClientLoop
from belfry.kafka.non_transactional import Undelivered
from belfry.kafka.outcome import Misplaced
from belfry.transactions import producer
from belfry.transactions.producer import DirectProducer

CHANGELOG = ("changelog", 0)
BATCHES: Any = [SimpleNamespace(where=CHANGELOG, last_offset=7)]


class _Around:
    """A producer between a writer and what is sent beside it; `seen` is what was done, in order."""

    def __init__(self, loop: ClientLoop, *, hurt: bool = False, lies: bool = True) -> None:
        self.seen: list[str] = []
        self.hand_overs = 0
        self.late = threading.Event()
        self.held = self.deaf = False
        made: Any = object.__new__(DirectProducer)
        made.lease = ReadLease()
        made.signer = SimpleNamespace(fillers=0, lies_as_signed=lambda _at: lies)
        made._changelog, made._clock, made._loop = CHANGELOG, SystemClock(), self
        made._failpoint = self.seen.append
        made._stops_amid_commit = lambda: hurt
        made._non_transactional = SimpleNamespace(settle=lambda: self.seen.append("settled"))
        self.producer: Any = made
        self._loop = loop

    def run(self, work: Any, most_s: float) -> Any:
        self.hand_overs += 1
        return self._loop.run(work, most_s)

    async def write(self, _batches: Any) -> None:
        while self.held:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self.late.set()
                if self.deaf:
                    break
                raise
        self.seen.append("written")

    async def end(self, *, commit: bool, signed: bool) -> None:
        assert commit
        assert signed
        self.seen.append(f"ended, {self.producer.lease.settled}")

    def commit(self, *, beside: bool = False) -> Any:
        return self.producer._written_and_ended(self, BATCHES, beside)


@pytest.fixture
def loop() -> Iterator[ClientLoop]:
    made = ClientLoop("test-hand-over")
    made.enter()
    yield made
    made.leave()


def test_one_hand_over_ends_the_transaction_behind_the_lease(loop: ClientLoop) -> None:
    here = _Around(loop)
    assert here.commit().manifest is BATCHES[0]
    assert here.seen == ["written", "S5", "ended, False"]
    assert here.hand_overs == 1


def test_what_was_sent_beside_is_acknowledged_before_the_end(loop: ClientLoop) -> None:
    here = _Around(loop)
    here.commit(beside=True)
    assert here.seen == ["written", "settled", "S5", "ended, False"]
    assert here.hand_overs == 2


def test_a_failpoint_does_not_hold_the_loop(loop: ClientLoop) -> None:
    here, threads = _Around(loop, hurt=True), list[str]()
    here.producer._failpoint = lambda _: threads.append(threading.current_thread().name)
    here.commit()
    assert threads == [threading.current_thread().name]


@pytest.mark.parametrize("beside", [False, True])
def test_rows_that_lie_elsewhere_are_not_committed(loop: ClientLoop, beside: bool) -> None:
    here = _Around(loop, lies=False)
    with pytest.raises(Misplaced):
        here.commit(beside=beside)
    assert "written" in here.seen
    assert not [each for each in here.seen if each.startswith("ended")]
    assert here.producer.lease.settled


def test_what_was_not_acknowledged_beside_commits_nothing(loop: ClientLoop) -> None:
    here = _Around(loop)

    def settle() -> None:
        raise Undelivered("late")

    here.producer._non_transactional = SimpleNamespace(settle=settle)
    with pytest.raises(Undelivered):
        here.commit(beside=True)
    assert here.seen == ["written"]


@pytest.mark.parametrize("deaf", [False, True])
def test_a_step_that_was_given_up_while_it_was_written_is_not_ended(
    loop: ClientLoop, monkeypatch: pytest.MonkeyPatch, deaf: bool
) -> None:
    """Also where the answer comes in the moment in which it is given up."""
    for name in ("WRITE_S", "END_S", "MARGIN_S"):
        monkeypatch.setattr(producer, name, 0.02)
    here = _Around(loop)
    here.held, here.deaf = True, deaf
    with pytest.raises(TimeoutError):
        here.commit()
    assert here.late.wait(5)
    here.held = False
    loop.run(asyncio.sleep(0.05), 5)
    assert here.seen == (["written"] if deaf else [])
    assert here.producer.lease.settled
