"""Outcomes as batches: the very records that they are one by one, in their order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from belfry.kafka.step_records import told_record
from belfry.schedules.outcomes import Outcome
from belfry.transactions import told_batches
from belfry.transactions.batches import ProducedBatch, StepBatches, Writer
from belfry.transactions.packing import CODECS
from belfry.transactions.placing import partitioner
from belfry.transactions.told_batches import add_told
from belfry.wire.accepted import PlainAccepted, Told

NOW_MS = 1_700_000_000_000
WRITER = Writer(7, 3)
HEAD = b"frame"
PARTITIONS = 3


def verdict(chance: random.Random, number: int) -> Told:
    """A verdict; few are those of other requests than plain ones."""
    tenant, schedule_id = b"t%d" % chance.randrange(5), b"a" * chance.choice([1, 5, 63, 64, 200])
    asked = tenant, schedule_id, b"r" * chance.choice([1, 36, 63, 64])
    life, at = chance.choice([0, 6, 2**31 - 2, 3 << 40]), NOW_MS + number // 7
    name, source = b"%b/%b" % asked[:2], ("belfry.schedules", 3)
    plain = PlainAccepted(name, asked, NOW_MS + number, life, at, source, number * 99)
    if chance.random() < 0.8:
        return plain
    event = plain.whole()
    event.outcome, event.reason = Outcome.REJECTED, "no" * chance.choice([1, 9_000])
    event.generation = chance.choice([None, 5])
    return event


def batches_of(told: list[Told], codec: str = "none", most: int = 1 << 20) -> list[ProducedBatch]:
    step = StepBatches(CODECS[codec], {"l": most}, NOW_MS)
    add_told(step, told, HEAD, "l", PARTITIONS, partitioner())
    return step.finish(WRITER, {})


def one_by_one(told: list[Told], codec: str) -> list[ProducedBatch]:
    step = StepBatches(CODECS[codec], {}, NOW_MS)
    for event in told:
        key, value, headers = told_record(HEAD, event)
        step.add(("l", partitioner()(key, PARTITIONS)), key, value, headers)
    return step.finish(WRITER, {})


# Those of gzip hold the time at which they were packed.
@pytest.mark.parametrize("codec", sorted(CODECS.keys() - {"gzip"}))
def test_batches_are_those_of_records_added_one_by_one_to_the_byte(codec: str) -> None:
    chance = random.Random(codec)  # the same outcomes in each run
    told = [verdict(chance, number) for number in range(600)]
    found = {batch.where: bytes(batch.data) for batch in batches_of(told, codec)}
    assert found == {batch.where: bytes(batch.data) for batch in one_by_one(told, codec)}
    assert len(found) == PARTITIONS


def test_a_full_batch_is_followed_by_another_in_the_same_order() -> None:
    chance = random.Random(1)
    told = [verdict(chance, number) for number in range(600)]
    found = batches_of(told, most=1_000)
    for partition in range(PARTITIONS):
        mine = [batch for batch in found if batch.where == ("l", partition)]
        assert len(mine) > 20
        assert all(len(batch.data) <= 1_000 for batch in mine if batch.records > 1)
        read: list[Any] = [DefaultRecordBatch(batch.data) for batch in mine]
        assert [each.base_sequence for each in read] == [
            sum(before.records for before in mine[:number]) for number in range(len(mine))
        ]
        records = [list(each) for each in read]
        numbers = [[r.offset for r in some] for some in records]
        assert numbers == [[*range(batch.records)] for batch in mine]
        found_here = [(r.key, r.value, r.headers) for some in records for r in some]
        all_of_them = [told_record(HEAD, event) for event in told]
        assert found_here == [
            each for each in all_of_them if partitioner()(each[0], PARTITIONS) == partition
        ]


def test_a_record_of_a_high_number_is_encoded_field_by_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(2)
    told = [verdict(chance, number) for number in range(50)]
    wanted = [bytes(batch.data) for batch in batches_of(told)]
    monkeypatch.setattr(told_batches, "LOOKED_UP", 120)
    assert [bytes(batch.data) for batch in batches_of(told)] == wanted


def test_records_that_are_added_one_by_one_lie_behind_them_in_the_same_batch() -> None:
    """Up to the byte: a batch that one more record would overfill is followed by another."""
    alone: Any = [(b"k%d" % n, b"v" * 50, [("h", b"1")]) for n in range(6)]
    chance = random.Random(3)
    told = [verdict(chance, number) for number in range(4)]
    sizes: set[tuple[int, ...]] = set()
    for most in (*range(1_000, 1_150), 20_000):
        step = StepBatches(0, {"l": most}, NOW_MS)
        add_told(step, told, HEAD, "l", 1, partitioner())
        for each in alone:
            step.add(("l", 0), *each)
        found = step.finish(WRITER, {})
        assert all(len(batch.data) <= most for batch in found if batch.records > 1)
        read = [record for batch in found for record in DefaultRecordBatch(batch.data)]
        assert [(r.key, r.value, r.headers) for r in read] == [
            *(told_record(HEAD, event) for event in told),
            *alone,
        ]
        sizes.add(tuple(batch.records for batch in found))
    assert (10,) in sizes, "where there is room they lie together"
    assert len(sizes) > 2


def test_a_batch_of_two_is_never_larger_than_its_topic_takes() -> None:
    drawn = [verdict(random.Random(number), number) for number in range(9)]
    told = next(each for each in drawn if isinstance(each, PlainAccepted))
    counts = set()
    for most in range(300, 1_100):
        step = StepBatches(0, {"l": most}, NOW_MS)
        add_told(step, [told], HEAD, "l", 1, partitioner())
        step.add(("l", 0), b"k", b"v" * 40, [])
        found = step.finish(WRITER, {})
        counts.add(len(found))
        assert all(len(batch.data) <= most for batch in found if batch.records > 1)
    assert counts == {1, 2}


def test_outcomes_that_are_told_later_lie_in_the_same_batch() -> None:
    chance = random.Random(4)
    told = [verdict(chance, number) for number in range(20)]
    step = StepBatches(0, {}, NOW_MS)
    for some in (told[:9], told[9:]):
        add_told(step, some, HEAD, "l", 1, partitioner())
    (batch,) = step.finish(WRITER, {})
    assert batch.records == len(told)
