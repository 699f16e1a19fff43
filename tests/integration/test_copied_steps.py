"""A stranger copies all that is written to the changelog, as soon as it can be read there.

It neither stops an owner, whichever writer that has, nor does anything count that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from belfry.engine.effects import Effects
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.changelog_sieve import Sieve
from belfry.kafka.client_properties import LINGER_MS, MESSAGE_TIMEOUT_MS
from belfry.kafka.outcome import Aborted
from belfry.kafka.row_signing import BATCH_RECORDS, RowSigner
from belfry.kafka.step_producer import StepProducer
from belfry.kafka.transactions import PartitionProducer
from belfry.recovery.partition_evidence import CannotRecover
from belfry.recovery.recovery_plan import NOTHING, RecoveryPlan
from belfry.recovery.recovery_write import RecoveryWriter
from belfry.settings import Settings
from belfry.store.identity import Identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.ordered_map import MemoryMap
from belfry.store.row_judge import Judge
from belfry.store.schedules import ScheduleStore
from belfry.store.signatures import FILLER, NEAR, RowKeys
from belfry.wire.worker_keys import Purpose, first
from tests.integration.test_direct_writer import Place

pytestmark = pytest.mark.slow

BY = RowKeys(b"k" * 32, "log", 0)
STEPS = 24
TRIES = 40
# What the stranger knows its own records by.
MARK = ("copied", b"1")


@contextmanager
def copying(servers: str, topic: str) -> Iterator[list[int]]:
    """Copy each record at once, and add one of its own; the list counts them."""
    stop, copied = Event(), [0]
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "copies",
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    # Its connection stands before anybody else writes.
    producer.produce(topic, b"rubbish", b"order/1", partition=0, headers=[MARK])
    assert producer.flush(20) == 0

    def copy() -> None:
        given: Any = producer
        while not stop.is_set():
            given.produce(topic, b"rubbish", b"order/1", partition=0, headers=[MARK])
            for record in consumer.consume(500, 0.002):
                headers: list[Any] = [*(record.headers() or ())]
                if record.error() is None and record.key() != FILLER and MARK not in headers:
                    headers.append(MARK)
                    given.produce(topic, record.value(), record.key(), partition=0, headers=headers)
                    copied[0] += 1
            producer.poll(0)

    thread = Thread(target=copy)
    thread.start()
    try:
        yield copied
    finally:
        stop.set()
        thread.join()
        producer.flush(20)
        consumer.close()


def owner(place: Place, writer: str) -> StepProducer:
    if writer == "direct":
        return place.owner()
    place.properties |= {
        "linger.ms": LINGER_MS,
        "message.timeout.ms": MESSAGE_TIMEOUT_MS,
        "batch.num.messages": BATCH_RECORDS,
    }
    made: PartitionProducer = place.by_librdkafka()
    return made


def commit(producer: StepProducer, number: int, part: bytes) -> bool:
    """Commit a step; False if it was rolled back."""
    rows: dict[bytes, bytes | None] = {b"t/%b-%d" % (part, each): b"\1\2row" for each in range(40)}
    rows[b"t/gone"] = None
    rows[keys.manifest_key(number)] = b"\1\4manifest %d" % number
    try:
        producer.commit(Effects(rows=rows))
    except Aborted:
        return False
    return True


@pytest.mark.parametrize("writer", ["direct", "librdkafka"])
@pytest.mark.timeout(120)
def test_who_copies_all_the_time_stops_nobody_and_adds_nothing(
    kafka: str, unique: Callable[[str], str], writer: str
) -> None:
    place = Place(kafka, unique("copied"), "lz4")
    topic, fails = place.topic("changelog"), [False]

    def reach(step: str) -> None:
        if step == "S5" and fails[0]:
            raise BufferError("rolled back where all of it lies in the log")

    place.reach.side_effect = reach
    log = ChangelogReader({"bootstrap.servers": kafka}, topic, 0)
    log.sieve = Sieve(Judge([BY], required=True))
    producer = owner(place, writer)
    stranger = Producer({"bootstrap.servers": kafka})
    stranger.produce(topic, b"the partition has a leader", b"order/0", partition=0)
    stranger.flush(20)
    producer.signer = RowSigner(BY, log.log_end(), log.log_end)
    tries = 0
    with copying(kafka, topic) as copied:
        for number in range(STEPS):
            fails[0] = True
            assert not commit(producer, number, b"lost")
            fails[0] = False
            while not commit(producer, number, b"kept"):
                tries += 1
                assert tries < TRIES, "the stranger holds the owner up"
    producer.close()
    assert copied[0] > 40 * STEPS
    found: list[bytes] = []
    log.seek(0)
    for messages in log.read_until(log.ends()[1], 5_000):
        changes, _ = log.changes(messages)
        found += [key for key, _ in changes]
    log.close()
    assert not [key for key in found if key.startswith(b"t/lost")]
    told = [key for key in found if key.startswith(keys.MANIFEST_PREFIX)]
    assert told == [keys.manifest_key(number) for number in range(STEPS)]
    assert {key for key in found if key.startswith(b"t/kept")} == {
        b"t/kept-%d" % each for each in range(40)
    }
    assert all(len(part) >= NEAR for part in fillers_of(kafka, topic))


def fillers_of(servers: str, topic: str) -> list[list[int]]:
    """Offsets of fillers in the log, with nothing between those of a list."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "looks",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    offsets: list[int] = []
    while True:
        for record in consumer.consume(5_000, 1.0):
            if record.error() is not None:
                consumer.close()
                return _runs(offsets)
            if record.key() == FILLER:
                offsets.append(record.offset() or 0)


def _runs(offsets: list[int]) -> list[list[int]]:
    runs = [offsets[:1]]
    for before, after in pairwise(offsets):
        if after == before + 1:
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


@pytest.mark.parametrize("copies", [False, True], ids=["alone", "beside a stranger"])
def test_a_recovery_counts_in_its_place_or_is_not_committed(
    kafka: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, copies: bool
) -> None:
    place = Place(kafka, unique("recovered"), "lz4")
    topic = place.topic("changelog")
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", f"{place.name}.")
    monkeypatch.setenv("BELFRY_CLUSTER__APP_ID", place.name)
    settings = Settings(bootstrap_servers=kafka, changelog="required", http_worker_secret="s" * 32)
    here = Identity("cluster", "log-1", "in-1", 1)
    rows = MemoryMap()
    rows.write({keys.named_key(b"t/%d" % each): b"\x01\x06row" for each in range(3_000)})
    before = Manifest(60, 1, 50, 0, 7, 0, bytes(16))
    found: Any = SimpleNamespace(logged=before, store=ScheduleStore(rows), here=here)
    plan = RecoveryPlan(
        0, NOTHING, None, before, 50, here, rewrites=True, earlier_input=False, lines=[]
    )
    writer = RecoveryWriter(settings, 0)
    with copying(kafka, topic) if copies else nullcontext():
        if copies:
            with pytest.raises(CannotRecover, match="somebody else writes there"):
                writer.write(found, plan)
        else:
            writer.write(found, plan)
    writer.close()
    by = RowKeys(first(settings.worker_keys(Purpose.CHANGELOG)), here.changelog, 0)
    log = ChangelogReader({"bootstrap.servers": kafka}, topic, 0)
    log.sieve = Sieve(Judge([by], required=True))
    log.seek(0)
    changes = [
        change
        for messages in log.read_until(log.ends()[1], 5_000)
        for change in log.changes(messages)[0]
    ]
    log.close()
    assert len(changes) == (0 if copies else 3_003)
