"""A broker that answers by a script: what a writer asks is noted, and told in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from belfry.kafka.moved_leaders import MovedLeaders
from belfry.transactions.asking import now
from belfry.transactions.batches import ProducedBatch, StepBatches, Where
from belfry.transactions.brokers import Lost
from belfry.transactions.packing import NONE
from belfry.transactions.produce import ProduceAnswer
from belfry.transactions.requests import (
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
)
from belfry.transactions.writer import TransactionWriter

FINE = 0
LOST = "lost"
Answer = int | str | Callable[[Any], Any]


class Script:
    """Brokers 1 and 2: the leader of a partition is its number plus one, the coordinator is 1.

    `answers` has, by the kind of a request, what becomes of the next ones: an error code, "lost",
    or a function of the request.  Where nothing is left all goes well.
    """

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, int]] = []
        self.sent: list[Any] = []
        self.epoch = -1
        self.offset = 100
        self.leaders: dict[Where, int | None] = {}
        self.told = MovedLeaders()
        self.doubted: list[Where] = []
        self.missing: set[str] = set()
        self.looks = 0
        self.throttle_ms = 0

    async def send(self, node: int, request: Any) -> Any:
        kind = KINDS.get(type(request), "produce")
        self.asked.append((kind, node))
        self.sent.append(request)
        script = self.answers.get(kind, [])
        answer = script.pop(0) if script else FINE
        if answer == LOST:
            raise Lost("cut")
        if callable(answer):
            return answer(request)
        return getattr(self, f"_{kind}")(request, answer)

    async def coordinator_of(self, _name: str, informed: int | None = None) -> Any:
        self.asked.append(("find", informed or 0))
        script = self.answers.get("find", [])
        answer = script.pop(0) if script else FINE
        return 1 if answer == FINE else (None, answer)

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        self.looks += 1

    def partitions_of(self, topic: str) -> int:
        return 0 if topic in self.missing else 2

    def leader_of(self, where: Where) -> int | None:
        told = self.told.leader_of(where, now())
        return self.leaders.get(where, where[1] + 1) if told is None else told

    def tell_leader(self, where: Where, leader: int, epoch: int) -> bool:
        return self.told.tell(where, leader, epoch, now())

    def is_told(self, where: Where) -> bool:
        return self.told.leader_of(where, now()) is not None

    def doubt(self, where: Where, node: int) -> None:
        self.doubted.append(where)
        self.told.doubt(where, node)

    def _init(self, _request: Any, code: int) -> Any:
        self.epoch += not code
        return self._told(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _add(self, request: Any, code: int) -> Any:
        topics: Any = [
            (t, [(p, code, {}) for p in parts], {}) for t, parts, _ in request._fields[3]
        ]
        return self._told(topics=topics)

    def _end(self, request: Any, code: int) -> Any:
        self.epoch += isinstance(request, EndTxnWithEpoch) and not code
        return self._told(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _produce(self, request: Any, code: int) -> Any:
        return ProduceAnswer(
            [(*batch.where, code, -1 if code else self.offset, -1) for batch in request.batches],
            self.throttle_ms,
        )

    def _told(self, **fields: Any) -> Any:
        return SimpleNamespace(throttle_time_ms=self.throttle_ms, **fields)

    @property
    def kinds(self) -> list[str]:
        """Requests in order, without those that look for a coordinator."""
        return [kind for kind, _ in self.asked if kind != "find"]


KINDS: dict[Any, str] = {
    InitProducerId: "init",
    AddPartitionsToTxn: "add",
    EndTxn: "end",
    EndTxnWithEpoch: "end",
}


def told(codes: dict[str, int]) -> Callable[[Any], Any]:
    """An answer to Produce with an error for some topics."""
    return lambda request: ProduceAnswer(
        [(*each.where, codes.get(each.where[0], FINE), 100, -1) for each in request.batches], 0
    )


async def opened(script: Script, *, own_epochs: bool) -> TransactionWriter:
    writer = TransactionWriter(script, "belfry.0", 10_000, own_epochs=own_epochs)
    await writer.begin()
    return writer


def batches(writer: TransactionWriter, *places: Where, records: int = 3) -> list[ProducedBatch]:
    """A step of so many records for each of these partitions."""
    step = StepBatches(NONE, writer.limits, 1_700_000_000_000)
    for where in places or (("changelog", 0), ("fired", 1)):
        for number in range(records):
            step.add(where, b"k%d" % number, b"v", [])
    return writer.finish(step)
