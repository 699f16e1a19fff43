"""The verdict on a plain request is the lifecycle event that it stands for, and is written so."""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st

from belfry.kafka.step_records import told_record
from belfry.schedules.outcomes import Outcome
from belfry.transactions.batches import StepBatches, Writer
from belfry.transactions.placing import partitioner
from belfry.transactions.told_batches import add_told
from belfry.wire.accepted import (
    PlainAccepted,
    Told,
    accepted_record,
    accepted_value,
    accepted_values,
    whole,
)
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle, headers_of

NOW = 1_800_000_000_000
NAMES = st.text(min_size=1, max_size=80).map(str.encode)
NUMBERS = st.integers(0, 2**62) | st.integers(0, 70_000) | st.integers(NOW, NOW + 10**8)
MAYBE = st.none() | st.binary(max_size=5)


def accepted(
    tenant: bytes, schedule_id: bytes, request_id: bytes, due_ms: int, told: tuple[int, int, int]
) -> PlainAccepted:
    asked = tenant, schedule_id, request_id
    at, life, offset = told
    name = b"%b/%b" % asked[:2]
    return PlainAccepted(name, asked, due_ms, life, at, ("belfry.schedules", 3), offset)


ACCEPTED = st.builds(
    accepted, NAMES, NAMES, NAMES, NUMBERS, st.tuples(NUMBERS, st.integers(0, 2**63), NUMBERS)
)

TEXTS = st.text(max_size=80)
OTHERS = st.builds(
    LifecycleEvent,
    tenant=TEXTS,
    schedule_id=TEXTS,
    outcome=st.sampled_from(Outcome),
    at=NUMBERS,
    generation=st.none() | st.integers(0, 2**31 - 1),
    **{
        name: st.none() | NUMBERS | st.integers(-(2**63), -1)
        for name in ("version", "due_at", "source_offset")
    },
    **{name: st.none() | st.integers(0, 2**31 - 1) for name in ("attempt", "source_partition")},
    **{
        name: st.none() | TEXTS | TEXTS.map(lambda text: text * 300)
        for name in ("request_id", "fire_id", "code", "reason", "target", "source_topic")
    },
)


@given(ACCEPTED)
@example(accepted(b"t", b"a" * 63, b"r" * 63, NOW, (NOW, 2**31 - 2, 0)))
@example(accepted(b"t", b"a" * 64, b"r" * 63, NOW, (NOW, 2**31 - 1, 63)))
@example(accepted(b"t", b"a" * 63, b"r" * 64, 63, (64, 8191, 8192)))
def test_its_record_is_that_of_the_event(verdict: PlainAccepted) -> None:
    event = verdict.whole()
    about = f"{event.tenant}/{event.schedule_id}".encode()
    record = accepted_record(b"frame", verdict)
    assert record == (about, b"frame" + encode_lifecycle(event), headers_of(event))


def neighbours(chance: random.Random) -> PlainAccepted:
    """As a step's are: few tenants and sources, instants and offsets that lie together."""
    verdict = accepted(
        chance.choice([b"t", b"shop", b"x" * 100]),
        chance.choice([b"a", b"b" * 63, b"c" * 64]),
        chance.choice([b"r", b"s" * 63]),
        chance.choice([16_383, 16_384, NOW, NOW + 8_192]),
        (NOW + chance.randrange(2), 6, chance.choice([16_383, 16_384, 24_575, 24_576])),
    )
    sources = ("belfry.schedules", 3), ("belfry.schedules", 70), ("other", 3)
    return verdict._replace(source=chance.choice(sources))


def values_are_those_of_each(told: list[Told]) -> None:
    one_by_one = [
        accepted_value(b"frame", each) if isinstance(each, PlainAccepted) else None for each in told
    ]
    assert accepted_values(b"frame", told) == one_by_one


@given(st.lists(ACCEPTED | ACCEPTED.map(whole), max_size=30))
def test_values_of_many_are_those_of_each(told: list[Told]) -> None:
    values_are_those_of_each(told)


def test_so_are_those_of_neighbours() -> None:
    chance = random.Random(1)  # the same verdicts in each run
    values_are_those_of_each([neighbours(chance) for _ in range(2_000)])


@given(st.lists(ACCEPTED | OTHERS, max_size=30))
def test_outcomes_of_all_kinds_are_written_as_the_events_that_they_stand_for(
    told: list[Told],
) -> None:
    partition_of, writer = partitioner(), Writer(7, 3)
    many, each_alone = StepBatches(0, {}, NOW), StepBatches(0, {}, NOW)
    add_told(many, told, b"frame", "l", 3, partition_of)
    for event in told:
        key, value, headers = told_record(b"frame", whole(event))
        each_alone.add(("l", partition_of(key, 3)), key, value, headers)
    found = {batch.where: bytes(batch.data) for batch in many.finish(writer, {})}
    assert found == {batch.where: bytes(batch.data) for batch in each_alone.finish(writer, {})}


def test_it_is_read_and_compared_like_the_event() -> None:
    verdict = accepted(b"t", b"a", b"r", NOW + 5, (NOW, 6, 40))
    event = LifecycleEvent(
        tenant="t",
        schedule_id="a",
        outcome=Outcome.ACCEPTED,
        request_id="r",
        version=1,
        at=NOW,
        due_at=NOW + 5,
        source_topic="belfry.schedules",
        source_partition=3,
        source_offset=40,
        generation=7,
    )
    assert verdict == event == verdict == whole(verdict) == whole(event)
    assert type(whole(verdict)) is type(whole(event)) is LifecycleEvent
    assert not verdict != event  # noqa: SIM202  # it is asked for by itself
    assert (verdict.outcome, verdict.code, verdict.source_offset) == (Outcome.ACCEPTED, None, 40)
    other = verdict._replace(life=7)
    assert verdict != other != event
    again = accepted(b"t", b"a", b"r", NOW + 5, (NOW, 6, 40))
    assert {verdict, again, other} == {verdict, other}
    assert verdict.asked == (b"t", b"a", b"r")
