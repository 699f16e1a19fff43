"""What the simulated broker answers to the requests of the direct writer, in both protocols.

    InitProducerId      fences; CONCURRENT_TRANSACTIONS until the last marker is written
    AddPartitionsToTxn  v1: all partitions, or none
    Produce             each batch is judged alone: leader, epoch, transaction, sequence
    EndTxn              v1: by epoch alone, so a late one may end what came after
                        v2: gives the next epoch; a repeat is known, an older one is refused

Three nodes lead the partitions and coordinate the ids between them, and both may move at any time.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatch

from belfry.transactions.batches import ProducedBatch, Where
from belfry.transactions.produce import Produce, ProduceAdding, ProduceAnswer
from belfry.transactions.requests import (
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
)
from tests.simulation.broker import Broker, Coordinated, Record, Refused, Txn
from tests.simulation.machine import Machine

NODES: Final = (1, 2, 3)
FINE, UNKNOWN_TOPIC, NOT_LEADER, BLOCKED, OUT_OF_ORDER = 0, 3, 6, 29, 45
FENCED_EPOCH, STATE, CONCURRENT, NOT_ATTEMPTED, FENCED = 47, 48, 51, 55, 90
NOT_COORDINATOR: Final = 16
FORGOTTEN: Final = 49
# What strikes a batch of a Produce and leaves the others: told so though it was appended, or not.
TIMED_OUT, TOO_FEW, NO_DISK = 7, 19, 56
# So long at most a new leader does not know that it leads.
UNAWARE_MS: Final = 300.0
_PARTIAL: Final = (TIMED_OUT, TOO_FEW, NO_DISK)
# As many batches of a producer a log remembers, to know one that is sent twice.
REMEMBERED: Final = 5
# Producer id, epoch, sequence of the first record, count.
_PRODUCER: Final = struct.Struct(">qhii")
_PRODUCER_AT: Final = 43


@dataclass(slots=True)
class Sequences:
    """What a log knows of a producer: the next sequence of an epoch, and its last batches."""

    epoch: int
    following: int = 0
    last: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    # How many elections of the log this has been brought in line with.
    elections: int = 0

    def follow(self, cuts: list[int]) -> None:
        """Forget batches that elections have lost: a leader knows what is in its log."""
        for cut in cuts[self.elections :]:
            while self.last and sum(self.last[-1][1:]) > cut:
                self.following = self.last.pop()[0]
        self.elections = len(cuts)

    def offset_of(self, sequence: int, count: int) -> int | None:
        """Where this batch lies already; None for a new one."""
        for begun, counted, offset in self.last:
            if (begun, counted) == (sequence, count):
                return offset
        return None


class Nodes:
    """The brokers behind one log of everything: who leads what, and what each answers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._leaders: dict[Where, int] = {}
        # Who led a partition before, and how often its leader has moved.
        self._former: dict[Where, int] = {}
        self._epochs: Counter[Where] = Counter()
        # Until when its new leader does not know of it, in milliseconds.
        self._unaware: dict[Where, float] = {}
        self._coordinated_before: dict[str, int] = {}
        self._unaware_of: dict[tuple[int, str], float] = {}
        # Dice of their own, so that those of a seed fall as they did.
        self._words = Random(951)
        self._coordinators: dict[str, int] = {}
        self._sequences: dict[tuple[str, Where], Sequences] = {}

    def leader_of(self, where: Where) -> int:
        """The node that leads a partition."""
        return self._leaders.setdefault(where, NODES[(len(where[0]) + where[1]) % len(NODES)])

    def coordinator_of(self, name: str) -> int:
        """The node that coordinates a transactional id."""
        return self._coordinators.setdefault(name, NODES[len(name) % len(NODES)])

    def _coordinate(self, name: str, node: int) -> None:
        self._coordinated_before[name] = self.coordinator_of(name)
        self._coordinators[name] = node
        for each in NODES:
            unaware_ms = self._words.choice((0.0, self._words.uniform(0.0, UNAWARE_MS)))
            self._unaware_of[each, name] = self._broker.now_ms() + unaware_ms

    def _is_late(self, node: int, name: str) -> bool:
        """Whether a node has not heard yet that an id is coordinated elsewhere."""
        return self._broker.now_ms() < self._unaware_of.get((node, name), 0.0)

    def coordinator_said(self, name: str, informed: int | None) -> int:
        """The node that coordinates an id, as this one knows it, or one by chance."""
        node = self._words.choice(NODES) if informed is None else informed
        if self._is_late(node, name):
            return self._coordinated_before[name]
        return self.coordinator_of(name)

    def elect(self, gone: int, random: Random) -> list[Where]:
        """A node leads and coordinates nothing any more; what it led."""
        others = [node for node in NODES if node != gone]
        logs = [(log.topic, log.partition) for logs in self._broker.topics.values() for log in logs]
        led = [where for where in logs if self.leader_of(where) == gone]
        for where in led:
            self._move(where, random.choice(others))
        for name, node in list(self._coordinators.items()):
            if node == gone:
                self._coordinate(name, random.choice(others))
        return led

    def _move(self, where: Where, node: int) -> None:
        self._former[where] = self.leader_of(where)
        self._leaders[where] = node
        self._epochs[where] += 1
        if self._words.random() < 0.5:
            unaware_ms = self._words.uniform(0.0, UNAWARE_MS)
            self._unaware[where] = self._broker.now_ms() + unaware_ms

    def _leads(self, where: Where, node: int) -> bool:
        """Whether a node leads a partition, and knows it."""
        knows = self._broker.now_ms() >= self._unaware.get(where, 0.0)
        return knows and self.leader_of(where) == node

    def word_on(self, where: Where, node: int) -> tuple[int, int] | None:
        """What a node that does not lead says of who does: the truth, what was, or nothing."""
        kind = self._words.random()
        if kind < 0.6 and self.leader_of(where) != node:
            return self.leader_of(where), self._epochs[where]
        if kind < 0.9 and where in self._former:
            return self._former[where], self._epochs[where] - 1
        return None

    def producer_id(self, name: str) -> int:
        """The number of a transactional id, the same for ever."""
        return 1_000 + list(self._broker.coordinated).index(name)

    def answer(self, machine: Machine, node: int, request: Any) -> Any:
        """What this node does, and says."""
        if isinstance(request, Produce | ProduceAdding):
            return self._produce(machine, node, request)
        name = request._fields[0]
        if machine.weather.strikes(machine.weather.moved):
            machine.struck.append("moved coordinator")
            self._coordinate(name, machine.weather.random.choice(NODES))
        moved = self.coordinator_of(name) != node or self._is_late(node, name)
        if isinstance(request, AddPartitionsToTxn):
            return self._add(request, moved=moved)
        known = self._broker.coordinated.setdefault(name, Coordinated())
        if moved:
            return self._told(known, name, NOT_COORDINATOR)
        if isinstance(request, InitProducerId):
            return self._told(known, name, self._init(known, *request._fields[1:4]))
        assert isinstance(request, EndTxn | EndTxnWithEpoch)
        end = self._end_epoch if isinstance(request, EndTxnWithEpoch) else self._end
        code = end(known, (name, request._fields[2]), "commit" if request._fields[3] else "abort")
        if code == FENCED:
            machine.struck.append("refused EndTxn")
        return self._told(known, name, code)

    def _told(self, known: Coordinated, name: str, code: int) -> Any:
        given = {"producer_id": self.producer_id(name), "producer_epoch": known.epoch}
        return SimpleNamespace(throttle_time_ms=0, error_code=code, **given)

    # -- the coordinator ---------------------------------------------------------------------------

    def _init(self, known: Coordinated, timeout_ms: int, _producer_id: int, epoch: int) -> int:
        repeated = 0 <= epoch == known.replaced and epoch == known.epoch - 1
        if epoch >= 0 and epoch != known.epoch and not (repeated or known.forgotten):
            return FENCED
        if known.txn is not None:
            if not known.txn.outcome:
                known.epoch += 1
                self._broker.decide(known, "abort")
            return CONCURRENT
        if not repeated:
            known.epoch, known.replaced = known.epoch + 1, epoch
            known.timeout_ms, known.ended = timeout_ms, -1
        return FINE

    def _add(self, request: AddPartitionsToTxn, *, moved: bool) -> Any:
        name, _, epoch, named, _ = request._fields
        places = [(topic, number) for topic, numbers, _ in named for number in numbers]
        codes = self._adding((name, epoch), places)
        if moved:
            codes = dict.fromkeys(places, NOT_COORDINATOR)
        topics: Any = [
            (topic, [(number, codes[topic, number], {}) for number in numbers], {})
            for topic, numbers, _ in named
        ]
        return SimpleNamespace(throttle_time_ms=0, topics=topics)

    def _adding(self, producer: tuple[str, int], places: list[Where]) -> dict[Where, int]:
        known = self._broker.coordinated[producer[0]]
        if known.epoch != producer[1]:
            return dict.fromkeys(places, _stale(known, producer[1], FENCED))
        if known.txn is not None and known.txn.outcome:
            return dict.fromkeys(places, CONCURRENT)
        codes = {where: self._refusal(where) for where in places}
        if any(codes.values()):
            return {where: code or NOT_ATTEMPTED for where, code in codes.items()}
        txn = self._broker.begin(producer, known.timeout_ms)
        for where in places:
            self._broker.touch(txn, self._broker.log(*where))
        return codes

    def _refusal(self, where: Where) -> int:
        if where[0] in self._broker.refused:
            return BLOCKED
        return FINE if where[0] in self._broker.topics else UNKNOWN_TOPIC

    def _end(self, _known: Coordinated, producer: tuple[str, int], outcome: str) -> int:
        try:
            self._broker.end(producer, outcome)
        except Refused as refused:
            return _CODES.get(refused.kind, STATE)
        return FINE

    def _end_epoch(self, known: Coordinated, producer: tuple[str, int], outcome: str) -> int:
        """EndTxn of an epoch that no other transaction has."""
        txn, epoch = known.txn, producer[1]
        if epoch == known.epoch and (txn is None or not txn.outcome):
            if txn is not None:
                self._broker.decide(known, outcome)
            elif outcome == "commit":
                return STATE
            known.epoch, known.ended = epoch + 1, epoch
            return FINE
        if epoch != known.ended or epoch != known.epoch - 1:
            return _stale(known, epoch, FENCED)
        if txn is not None:
            return CONCURRENT if txn.outcome == outcome else FENCED
        return FINE if known.last_outcome == outcome else STATE

    # -- leaders -----------------------------------------------------------------------------------

    def _produce(self, machine: Machine, node: int, request: Any) -> ProduceAnswer:
        weather, adding = machine.weather, isinstance(request, ProduceAdding)
        answers, leaders = [], {}
        for batch in request.batches:
            if weather.strikes(weather.moved):
                machine.struck.append("moved leader")
                self._move(batch.where, weather.random.choice(NODES))
            code = FINE
            if weather.strikes(weather.partial):
                machine.struck.append("partial Produce")
                code = weather.random.choice(_PARTIAL)
            offset = appended_ms = -1
            if code in (FINE, TIMED_OUT):
                told, offset, appended_ms = self._append(request._fields[0], node, batch, adding)
                code = told or code
            answers.append((*batch.where, code, offset if not code else -1, appended_ms))
            if code == NOT_LEADER and adding and (word := self.word_on(batch.where, node)):
                machine.struck.append("told of a leader")
                leaders[batch.where] = word
        return ProduceAnswer(answers, 0, leaders)

    def _append(
        self, name: str, node: int, batch: ProducedBatch, adding: bool
    ) -> tuple[int, int, int]:
        """Append a batch, unless it is there already: error, offset, append time."""
        _, epoch, sequence, count = _PRODUCER.unpack_from(batch.data, _PRODUCER_AT)
        where, refusal = batch.where, self._refusal(batch.where)
        if refusal or not self._leads(where, node):
            return refusal or NOT_LEADER, -1, -1
        known = self._broker.coordinated[name]
        if known.epoch != epoch:
            return _stale(known, epoch, FENCED_EPOCH), -1, -1
        sequences = self._sequences.get((name, where))
        if sequences is None or sequences.epoch != epoch:
            sequences = self._sequences[name, where] = Sequences(epoch)
        log = self._broker.log(*where)
        if log.replicas is not None:
            sequences.follow(log.replicas.cuts)
        if (offset := sequences.offset_of(sequence, count)) is not None:
            return FINE, offset, self._appended_ms(where, self._broker.now_ms())
        txn = self._under_way(known, (name, epoch), where, adding)
        if isinstance(txn, int) or sequence != sequences.following:
            return txn if isinstance(txn, int) else OUT_OF_ORDER, -1, -1
        txn.in_batches = True
        entries = self._broker.append_all(txn, log, records_of(batch.data))
        sequences.following += count
        sequences.last.append((sequence, count, entries[0].offset))
        return FINE, entries[0].offset, self._appended_ms(where, entries[-1].timestamp_ms)

    def _under_way(
        self, known: Coordinated, producer: tuple[str, int], where: Where, adding: bool
    ) -> Txn | int:
        """The transaction that the batch belongs to, or why there is none."""
        log, txn = self._broker.log(*where), known.txn
        if adding:
            if txn is not None and txn.outcome:
                return CONCURRENT
            txn = self._broker.begin(producer, known.timeout_ms)
            self._broker.touch(txn, log)
            return txn
        return STATE if txn is None or txn.outcome or log not in txn.touched else txn

    def _appended_ms(self, where: Where, at_ms: int) -> int:
        kind = self._broker.configs.get(where[0], {}).get("message.timestamp.type")
        return at_ms if kind == "LogAppendTime" else -1


_CODES: Final = {"fenced": FENCED, "forgotten": FORGOTTEN}


def _stale(known: Coordinated, epoch: int, fenced: int) -> int:
    """What is said to an epoch that is not the present one: `fenced`, unless its id is unknown."""
    return FORGOTTEN if epoch < known.known_from else fenced


def records_of(data: bytes | bytearray) -> list[Record]:
    """What a finished batch holds; AssertionError where it is damaged."""
    batch = DefaultRecordBatch(bytearray(data))
    assert batch.validate_crc(), "a batch came with a wrong checksum"
    return [(each.key, each.value, list(each.headers)) for each in batch]
