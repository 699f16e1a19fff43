"""Fired events as batches: the very bytes that aiokafka's own builder makes of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.record._crecords.default_records import DefaultRecordBatchBuilder
from aiokafka.record.default_records import DefaultRecordBatch

from belfry.engine.effects import Fired
from belfry.kafka.outcome import TopicGone
from belfry.schedules.identity import partition_of
from belfry.transactions import event_batches
from belfry.transactions.batches import ProducedBatch, StepBatches, Where, Writer
from belfry.transactions.event_batches import Counts, EventBatches
from belfry.transactions.joined_batch import BATCH_HEAD, LENGTH_BYTES
from belfry.transactions.packing import CODECS, packed
from belfry.transactions.placing import partitioner
from belfry.transactions.record_bytes import (
    LOOKED_UP,
    EncodedHeaders,
    numbered_anew,
    record_body,
    varint,
)
from belfry.wire.record import Headers

NOW_MS = 1_700_000_000_000
WRITER = Writer(7, 3)
PARTITIONS = 3
MOST = 1_000_000


def headers_of(number: int, *more: tuple[str, bytes | None], instant: bytes = b"now") -> Headers:
    identity: Headers = [
        ("belfry-fire-id", b"%032x" % number),
        ("belfry-schedule-id", b"order-%d" % number),
        ("belfry-scheduled-at", instant),
    ]
    return [*identity, *more]


def among(keyed: int, grouped: int | None = None) -> Counts:
    return Counts(lambda _: keyed, lambda _: keyed if grouped is None else grouped)


def batches_of(
    fired: Sequence[Fired], most: int = MOST, codec: str = "none", sequences: Any = None
) -> list[ProducedBatch]:
    step = StepBatches(CODECS[codec], {}, NOW_MS)
    events = EventBatches(NOW_MS, lambda _: most, among(PARTITIONS), partitioner())
    events.add(fired)
    step.begin_with(events.filled())
    return step.finish(WRITER, sequences or {})


def built(fired: list[Fired], codec: str, sequence: int = 0) -> bytes:
    """A batch of them by aiokafka's builder, packed afterwards."""
    made: Any = DefaultRecordBatchBuilder(2, 0, True, *WRITER, sequence, 1 << 30)
    for number, (_, key, _, value, headers) in enumerate(fired):
        assert made.append(number, NOW_MS, key, value, headers)
    return bytes(packed(made.build(), CODECS[codec]))


def by_place(fired: list[Fired]) -> dict[Where, list[Fired]]:
    found: defaultdict[Where, list[Fired]] = defaultdict(list)
    for each in fired:
        where = partition_of(each[1] if each[2] is None else each[2], PARTITIONS)
        found[each[0], where].append(each)
    return found


def any_event(chance: random.Random, number: int) -> Fired:
    more: Headers = chance.choice(
        [
            [("belfry-occurrence", b"0"), ("belfry-schedule-tenant", b"a")],
            [("belfry-occurrence", b"%d" % number)],
            [],
            [("nothing", None)],
        ]
    )
    headers = headers_of(number, *more)
    users: Headers = [("lang", b"de"), ("grüße", "ä".encode()), ("none", None), ("long", b"x" * 90)]
    # Also such as belfry never writes: the encoder believes nothing of names.
    others = [*users, *headers], users[:1] + headers[1:], headers[:1] + users[:1] + headers[2:]
    headers = chance.choice([headers] * 8 + [*others, [], users])
    sizes = 0, 1, 63, 64, 400, LOOKED_UP - 1, LOOKED_UP, 70_000
    value = None if chance.random() < 0.1 else chance.randbytes(chance.choice(sizes))
    key = chance.randbytes(chance.choice([0, 1, 12, 63, 64, 300]))
    group = chance.choice([None, None, b"g%d" % chance.randrange(5)])
    return chance.choice("abc"), key, group, value, headers


# Those of gzip hold the time at which they were packed.
@pytest.mark.parametrize("codec", sorted(CODECS.keys() - {"gzip"}))
def test_batches_are_those_of_aiokafkas_builder_to_the_byte(codec: str) -> None:
    chance = random.Random(codec)  # the same events in each run
    fired = [any_event(chance, number) for number in range(400)]
    sequences = {("a", 1): 40}
    found = batches_of(fired, 1 << 30, codec, sequences)
    want = by_place(fired)
    assert {batch.where for batch in found} == want.keys()
    for batch in found:
        events = want[batch.where]
        assert batch.records == len(events)
        assert bytes(batch.data) == built(events, codec, sequences.get(batch.where, 0))


def test_topics_of_one_event_each_have_their_own_headers_beside_those_of_all() -> None:
    fired: list[Fired] = [
        (
            f"fired.t{number}",
            b"k",
            None,
            b"v",
            headers_of(
                number, ("belfry-schedule-tenant", b"t%d" % number), ("x", None), ("y", b"")
            ),
        )
        for number in range(20)
    ]
    made = {batch.where[0]: bytes(batch.data) for batch in batches_of(fired)}
    assert made == {each[0]: built([each], "none") for each in fired}


def test_a_full_batch_is_followed_by_another_with_the_next_sequence() -> None:
    fired = [("t", b"k", None, b"v" * 100, headers_of(number)) for number in range(200)]
    found = batches_of(fired, most=1_000)
    assert len(found) > 20
    assert all(len(batch.data) <= 1_000 for batch in found)
    # Another record would not have had room.
    assert all(len(batch.data) > 700 for batch in found[:-1])
    read: list[Any] = [DefaultRecordBatch(batch.data) for batch in found]
    assert all(each.validate_crc() for each in read)
    before = [sum(batch.records for batch in found[:number]) for number in range(len(found))]
    assert [each.base_sequence for each in read] == before
    records = [list(each) for each in read]
    assert [[r.offset for r in some] for some in records] == [[*range(len(s))] for s in records]
    ids = [dict(record.headers)["belfry-fire-id"] for some in records for record in some]
    assert ids == [b"%032x" % number for number in range(200)]


def test_an_event_that_is_larger_than_a_batch_has_one_to_itself() -> None:
    sizes = 10, 3_000, 10
    fired = [("t", b"k", None, bytes(size), headers_of(0)) for size in sizes]
    assert [batch.records for batch in batches_of(fired, most=1_000)] == [1, 1, 1]


@pytest.mark.parametrize(("keyed", "grouped"), [(3, 7), (7, 3)])
def test_groups_go_by_the_look_at_topics_and_keys_by_the_writer(keyed: int, grouped: int) -> None:
    """Partitions are added: other owners of the group's events heard of it as this one did."""
    events = EventBatches(NOW_MS, lambda _: MOST, among(keyed, grouped), partitioner())
    names = [b"name-%d" % number for number in range(40)]
    plain = [("t", name, None, b"", headers_of(0)) for name in names]
    events.add([*plain, *(("t", b"key", name, b"", headers_of(1)) for name in names), *plain])
    found = {place[1]: sum(each.count for each in some) for place, some in events.filled().items()}
    want = Counter(partition_of(name, keyed) for name in names * 2)
    assert found == want + Counter(partition_of(name, grouped) for name in names)


def test_a_topic_is_gone_for_groups_where_the_look_has_not_found_it() -> None:
    def gone(topic: str) -> int:
        raise TopicGone(topic)

    events = EventBatches(NOW_MS, lambda _: MOST, Counts(lambda _: 3, gone), partitioner())
    events.add([("t", b"key", None, b"", headers_of(0))])
    with pytest.raises(TopicGone):
        events.add([("t", b"key", b"group", b"", headers_of(0))])


def test_what_is_added_by_itself_comes_behind_the_events_of_its_partition() -> None:
    step = StepBatches(0, {}, NOW_MS)
    events = EventBatches(NOW_MS, step.most, among(1), partitioner())
    events.add([("t", b"event", None, b"", headers_of(0))])
    step.begin_with(events.filled())
    step.add(("t", 0), b"other", b"", [])
    step.add(("u", 0), b"alone", b"", [])
    assert step.places == {("t", 0), ("u", 0)}
    found = [(batch.where[0], DefaultRecordBatch(batch.data)) for batch in step.finish(WRITER, {})]
    told = [(topic, each.base_sequence, [r.key for r in each]) for topic, each in found]
    assert told == [("t", 0, [b"event"]), ("u", 0, [b"alone"]), ("t", 1, [b"other"])]


@pytest.mark.parametrize("number", [0, 1, 63, 64, 8_191, 8_192, 1 << 20])
def test_a_record_becomes_the_first_one_of_the_next_batch(number: int) -> None:
    about = b"key", b"value", headers_of(1)
    assert numbered_anew(record_body(number, *about)) == record_body(0, *about)


def test_numbers_are_zigzag_varints() -> None:
    assert [varint(n) for n in (0, -1, 1, 63, 64, -64)] == [
        b"\0", b"\1", b"\2", b"\x7e", b"\x80\1", b"\x7f",
    ]  # fmt: skip


def test_a_batch_is_never_larger_than_its_topic_takes_and_filled_up_to_that() -> None:
    fired = [("t", b"k", None, b"v" * 100, headers_of(number)) for number in range(9)]
    body = len(record_body(0, b"k", b"v" * 100, headers_of(0)))
    # Room is counted with the longest length that a record can have.
    each = body + LENGTH_BYTES
    for most in range(BATCH_HEAD + 3 * each, BATCH_HEAD + 4 * each):
        found = batches_of(fired, most=most)
        assert [batch.records for batch in found] == [3, 3, 3]
        assert max(len(batch.data) for batch in found) <= most
    # A third length of two bytes, of the five that were counted, makes no room for another record.
    assert batches_of(fired, most=BATCH_HEAD + 3 * each - 1)[0].records == 2


def test_lengths_of_one_and_more_bytes_than_are_looked_up_are_the_builders() -> None:
    """Sizes around the bound of the table: of a value, of a record, and beside a number."""
    sizes = range(LOOKED_UP - 130, LOOKED_UP + 3)
    fired: list[Fired] = [("t", b"", None, b"v" * n, headers_of(n, ("x", b"y"))) for n in sizes]
    for each in fired:
        assert [bytes(batch.data) for batch in batches_of([each])] == [built([each], "none")]
    plain: Fired = ("t", b"", None, b"", headers_of(0, ("x", b"y")))
    many = [plain] * (LOOKED_UP + 2)
    (batch,) = batches_of(many)
    assert bytes(batch.data) == built(many, "none")


def test_each_topic_has_its_own_limit_and_partitions() -> None:
    keyed, grouped, most = {"a": 2, "b": 5}, {"a": 4, "b": 9}, {"a": 400, "b": MOST}
    counts = Counts(keyed.__getitem__, grouped.__getitem__)
    events = EventBatches(NOW_MS, most.__getitem__, counts, partitioner())
    names = [b"name-%d" % number for number in range(60)]
    for topic in most:
        events.add([(topic, name, None, b"", headers_of(0)) for name in names])
        events.add([(topic, b"key", name, b"", headers_of(1)) for name in names])
    filled = events.filled()
    found = {place: sum(each.count for each in some) for place, some in filled.items()}
    want = Counter((topic, partition_of(name, keyed[topic])) for topic in most for name in names)
    want += Counter((topic, partition_of(name, grouped[topic])) for topic in most for name in names)
    assert found == want
    sizes = {
        topic: [len(b.finished(WRITER, 0, 0)) for at, some in filled.items() for b in some
                if at[0] == topic]
        for topic in most
    }  # fmt: skip
    assert max(sizes["a"]) <= 400
    assert len(sizes["a"]) > 20
    assert len(sizes["b"]) == len([place for place in filled if place[0] == "b"])


class _Counted(EncodedHeaders):
    """Headers that count how often each one is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[Any] = Counter()

    def __getitem__(self, header: Any) -> bytes:
        self.asked[header] += 1
        return super().__getitem__(header)


def test_headers_that_events_have_in_common_are_encoded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thundering minute costs no encoder of each field."""
    counted, apart = _Counted(), list[Any]()
    monkeypatch.setattr(event_batches, "EncodedHeaders", lambda: counted)
    monkeypatch.setattr(event_batches, "record_body", lambda *about: apart.append(about))
    common = ("belfry-schedule-tenant", b"a"), ("belfry-occurrence", b"0")
    events = EventBatches(NOW_MS, lambda _: MOST, among(PARTITIONS), partitioner())
    events.add([("t", b"k%d" % n, None, b"v", headers_of(n, *common)) for n in range(50)])
    assert apart == []
    assert counted.asked == dict.fromkeys([("belfry-scheduled-at", b"now"), *common], 1)
