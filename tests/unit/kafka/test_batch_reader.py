"""Whatever a batch unpacks to, its records come out in order, some megabytes at a time."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
import zstandard
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

from belfry.kafka import batch_reader
from belfry.kafka.batch_reader import WHOLE_BYTES, BatchReader
from belfry.kafka.fetch_position import Fetched
from belfry.kafka.opened_batches import RECORD_BYTES, SLICE_BYTES, StreamedBatch
from belfry.kafka.unpacking import chunks_of
from belfry.wire.record import SourceRecord
from belfry.wire.record_batches import batches_in, end_of
from belfry.wire.record_stream import MOST_RECORDS, Unreadable, records_of
from belfry.wire.unread import MOST_CARRIED, NO_TEXT, refused_unread

WHERE: Final = ("belfry.schedules", 0)
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
TRANSACTIONAL, CONTROL, BROKERS_TIME = 0x10, 0x20, 0x08


def number(value: int) -> bytes:
    """A signed number of variable length."""
    coded, found = (value << 1) ^ (value >> 63), b""
    while coded > 0x7F:
        found += bytes([coded & 0x7F | 0x80])
        coded >>= 7
    return found + bytes([coded])


def run(value: bytes | None) -> bytes:
    return number(-1) if value is None else number(len(value)) + value


def stored(delta: int, value: bytes | None, *headers: tuple[bytes, bytes]) -> bytes:
    """A record of a batch."""
    body = b"\0" + number(0) + number(delta) + run(None) + run(value) + number(len(headers))
    body += b"".join(run(name) + run(given) for name, given in headers)
    return number(len(body)) + body


def batch(
    base: int, records: bytes, count: int, *, attributes: int = 0, producer: int = -1
) -> bytes:
    """A batch around records that are packed already."""
    head = struct.pack(
        ">ibIhiqqqhii", 0, 2, 0, attributes, count - 1, 1_000, 2_000, producer, 0, 0, count
    )
    return struct.pack(">qi", base, len(head) + len(records)) + head + records


def zstd(values: Sequence[bytes | None], base: int = 10, **more: Any) -> bytes:
    packed = zstandard.compress(b"".join(stored(n, value) for n, value in enumerate(values)))
    return batch(base, packed, len(values), attributes=ZSTD, **more)


def answer(data: bytes, *aborted: tuple[int, int], offset: int = 10) -> Fetched:
    return Fetched(WHERE, offset, end_of(data)[0], data, aborted)


def all_of(
    data: bytes, offset: int = 10, *aborted: tuple[int, int], at_most: int = 1_000
) -> tuple[list[SourceRecord], int]:
    """Every record of what was fetched, and where reading goes on."""
    reader = BatchReader(WHERE, offset)
    reader.add(answer(data, *aborted, offset=offset))
    records: list[SourceRecord] = []
    while not reader.empty:
        records += reader.take(at_most)
    return records, reader.position


def refusal(record: SourceRecord) -> str:
    """The code by which a record is to be refused, "" for none."""
    rejection = refused_unread(record[4] or [("", None)])
    return "" if rejection is None else rejection.code


def test_records_come_in_order_with_what_they_hold() -> None:
    packed = gzip.compress(stored(0, b"a", (b"name", b"given")) + stored(1, None) + stored(2, b""))
    reader = BatchReader(WHERE, 10)
    reader.add(answer(batch(10, packed, 3, attributes=GZIP | BROKERS_TIME)))
    found = reader.take(1_000)
    assert found == [
        (10, 2_000, None, b"a", [("name", b"given")]),
        (11, 2_000, None, None, None),
        (12, 2_000, None, b"", None),
    ]
    assert (reader.appended, reader.position, reader.empty) == (True, 13, True)


def test_a_producers_time_is_told_from_the_brokers() -> None:
    reader = BatchReader(WHERE, 10)
    reader.add(answer(batch(10, stored(0, b"a"), 1)))
    assert reader.take(1_000) == [(10, 1_000, None, b"a", None)]
    assert not reader.appended


@pytest.mark.parametrize("at_most", [1, 2, 3, 1_000])
@pytest.mark.parametrize("size", [1, WHOLE_BYTES // 6])
def test_reading_begins_where_it_was_left_off_amid_a_batch(size: int, at_most: int) -> None:
    values = [b"%d" % n * size for n in range(8)]
    found, end = all_of(zstd(values), 13, at_most=at_most)
    assert [(each[0], each[3]) for each in found] == [(10 + n, values[n]) for n in range(3, 8)]
    assert end == 18


def test_a_small_batch_is_read_the_quick_way_in_as_many_portions_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(StreamedBatch):
        def __init__(self, *_: Any) -> None:
            raise AssertionError("a batch that unpacks to little is read as a stream")

    monkeypatch.setattr(batch_reader, "StreamedBatch", Slow)
    values = [b"%d" % number for number in range(8)]
    found, end = all_of(zstd(values), at_most=3)
    assert [each[3] for each in found] == values
    assert end == 18


CODECS = {
    "gzip": (GZIP, gzip_encode),
    "snappy in blocks": (SNAPPY, snappy_encode),
    "snappy as one": (SNAPPY, lambda data: snappy_encode(data, xerial_compatible=False)),
    "lz4": (LZ4, lz4_encode),
    "zstd": (ZSTD, zstd_encode),
}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
@pytest.mark.parametrize("size", [1, 200_000, 1_000_000])
def test_every_codec_is_read_however_much_it_unpacks_to(codec: Any, size: int) -> None:
    """Small ones by the parser in C, large ones as a stream: the same comes out."""
    number_of, pack = codec
    values = [random.Random(n).randbytes(99) * (size // 99 + 1) for n in range(30)]
    values = [value[: RECORD_BYTES - 100] for value in values]
    data = b"".join(stored(n, value) for n, value in enumerate(values))
    found, end = all_of(batch(10, pack(data), len(values), attributes=number_of))
    late = [refusal(each) for each in found]
    assert [each[0] for each in found] == [*range(10, 40)]
    assert end == 40
    if size < RECORD_BYTES:
        assert [each[3] for each in found] == values
        assert set(late) == {""}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
def test_a_gigabyte_is_never_in_memory(codec: Any) -> None:
    """150 records of a megabyte: a slice is what is held, and nothing of what was taken before.

    What lies behind the first 32 MB is not unpacked; it is refused as one, and reading goes on.
    """
    number_of, pack = codec
    packed = pack(b"".join(stored(n, bytes(1_000_000)) for n in range(150)))
    reader = BatchReader(WHERE, 10)
    reader.add(answer(batch(10, packed, 150, attributes=number_of)))
    tracemalloc.start()
    try:
        count, refused = 0, []
        while some := reader.take(1_000):
            assert sum(len(each[3] or b"") for each in some) <= SLICE_BYTES + 1_000_000
            count += len(some)
            refused += [each for each in some if refusal(each)]
            del some
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, reader.position) == (31 + 1, 10 + 150)
    assert [(each[0], refusal(each)) for each in refused] == [(10 + 31, "unreadable_batch")]
    assert peak < 2 * WHOLE_BYTES + 2 * SLICE_BYTES


@pytest.mark.parametrize("at_most", [1, 4, 1_000])
def test_an_owner_that_begins_amid_a_bounded_batch_finds_what_the_last_one_left(
    at_most: int,
) -> None:
    """Wherever it begins: what is read, and what is refused as one, does not move."""
    values = [bytes([number]) * 1_000_000 for number in range(40)]
    data = zstd(values)
    whole, end = all_of(data)
    read = [each[0] for each in whole]
    assert (len(whole), end) == (31 + 1, 10 + 40)
    for position in (*read, read[-1] + 1, end - 1):
        found, behind = all_of(data, position, at_most=at_most)
        assert behind == end
        kept = [each for each in whole[:-1] if each[0] >= position]
        assert [each[:4] for each in found[:-1]] == [each[:4] for each in kept]
        assert found[-1][0] == max(position, read[-1])
        assert refusal(found[-1]) == "unreadable_batch"


def test_no_record_makes_more_of_a_batch_be_unpacked_than_is_read_of_one() -> None:
    taken = 0

    def chunks() -> Iterator[bytes]:
        nonlocal taken
        yield number(400_000_000) + b"\0" + number(0) + number(0) + number(-1) + number(399_000_000)
        while True:
            taken += 1_000_000
            yield bytes(1_000_000)

    (head,) = batches_in(batch(10, b"", 1, attributes=GZIP))
    with pytest.raises(Unreadable, match="unpacks to more than 32000000 bytes"):
        list(records_of(head, chunks(), RECORD_BYTES))
    assert taken == 0


def test_a_key_that_says_to_go_on_for_ever_makes_no_more_be_unpacked() -> None:
    """Its record says that it ends within the bound, and is cut: its key would be passed over."""
    taken = 0

    def chunks() -> Iterator[bytes]:
        nonlocal taken
        yield number(RECORD_BYTES + 1) + b"\0" + number(0) + number(0) + number(400_000_000)
        while taken < 400_000_000:
            taken += 1_000_000
            yield bytes(1_000_000)

    (head,) = batches_in(batch(10, b"", 1, attributes=GZIP))
    with pytest.raises(Unreadable, match="unpacks to more than 32000000 bytes"):
        list(records_of(head, chunks(), RECORD_BYTES))
    assert taken < 35_000_000


@pytest.mark.parametrize("length", range(-1, 5))
def test_a_batch_that_ends_before_its_magic_is_left_for_a_later_fetch(length: int) -> None:
    data = struct.pack(">qi", 10, length) + bytes(60)
    assert [*batches_in(data)] == []
    assert end_of(data) == (-1, -1)


def test_a_record_beyond_the_bound_is_cut_and_refused_and_the_next_one_is_read() -> None:
    values = [b"a", bytes(WHOLE_BYTES), b"c"]
    found, end = all_of(zstd(values))
    assert [each[0] for each in found] == [10, 11, 12]
    assert [refusal(each) for each in found] == ["", "request_too_large", ""]
    assert len(found[1][3] or b"") < RECORD_BYTES // 4
    assert found[2][3] == b"c"
    assert end == 13


def test_a_name_that_is_no_text_costs_no_other_record() -> None:
    records = stored(0, b"a") + stored(1, b"b", (b"\xff", b"")) + stored(2, b"c")
    found, end = all_of(batch(10, records, 3))
    assert [(each[3], each[4]) for each in found] == [(b"a", None), (b"b", [NO_TEXT]), (b"c", None)]
    assert end == 13


def test_very_many_headers_are_cut() -> None:
    found, _ = all_of(batch(10, stored(0, b"a", *[(b"", b"")] * (MOST_CARRIED + 1)), 1))
    assert len(found[0][4] or ()) < MOST_CARRIED


GARBAGE = {
    "no zstd": batch(10, b"garbage" * 10, 5, attributes=ZSTD),
    "an early end": batch(10, zstandard.compress(stored(0, b"a" * 99))[:-9], 5, attributes=ZSTD),
    "no gzip": batch(10, b"garbage" * 10, 5, attributes=GZIP),
    "no codec": batch(10, b"garbage" * 10, 5, attributes=7),
    "a head that is cut": batch(10, b"", 1)[:8] + struct.pack(">i", 26) + batch(10, b"", 1)[12:38],
    "no records": batch(10, zstandard.compress(b"\xff" * 99), 5, attributes=ZSTD),
    "too many records": batch(10, b"", MOST_RECORDS + 1, attributes=ZSTD),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_cannot_be_read_is_refused_once_and_passed(data: bytes) -> None:
    behind = 10 + struct.unpack_from(">i", data, 23)[0] + 1
    found, end = all_of(data + batch(behind, stored(0, b"next"), 1))
    assert [(each[0], refusal(each)) for each in found] == [(10, "unreadable_batch"), (behind, "")]
    assert end == behind + 1


def test_records_before_the_damage_are_read() -> None:
    good = zstandard.compress(stored(0, b"a") + stored(1, b"b") + b"\xff" * 20)
    found, end = all_of(batch(10, good, 5, attributes=ZSTD))
    assert [each[3] for each in found] == [b"a", b"b", None]
    assert [(each[0], refusal(each)) for each in found][2:] == [(12, "unreadable_batch")]
    assert end == 15


def test_what_was_rolled_back_is_passed_over() -> None:
    packed = zstandard.compress(stored(0, b"x"))
    rolled_back = batch(10, packed, 1, attributes=ZSTD | TRANSACTIONAL, producer=7)
    marker = batch(11, stored(0, b"\0\0"), 1, attributes=CONTROL | TRANSACTIONAL, producer=7)
    assert all_of(rolled_back + marker, 10, (7, 10)) == ([], 12)
    found, end = all_of(rolled_back + marker)
    assert ([each[3] for each in found], end) == ([b"x"], 12)


@pytest.mark.parametrize("codec", [*CODECS.values(), (0, bytes)], ids=[*CODECS.keys(), "none"])
def test_damaged_batches_end_in_records_or_in_refusals(codec: Any) -> None:
    """Bytes changed at random: never an error, never a step back, never a record twice."""
    number_of, pack = codec
    chance = random.Random(3)
    records = b"".join(stored(n, b"v" * n * 9, (b"name", b"given")) for n in range(20))
    for _ in range(300):
        data = bytearray(batch(10, pack(records), 20, attributes=number_of))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(61, len(data))] = chance.randrange(256)
        found, end = all_of(bytes(data), at_most=chance.choice((1, 3, 100)))
        assert end == 30
        offsets = [each[0] for each in found]
        assert offsets == sorted({*offsets} & {*range(10, 30)})


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
@pytest.mark.parametrize("size", [0, 1, 70, 70_000, 3_000_000])
def test_pieces_make_up_what_was_packed(codec: Any, size: int) -> None:
    number_of, pack = codec
    chance, data = random.Random(size), b""
    while len(data) < size:
        data += chance.choice((bytes(3_000), chance.randbytes(50_000), data[-60_000:][:9_000]))
    data = data[:size]
    pieces = [*chunks_of(number_of, memoryview(pack(data)))]
    assert b"".join(pieces) == data
    assert max(map(len, pieces), default=0) <= 4 * 1024 * 1024


def test_one_batch_that_unpacks_to_much_is_read_at_a_time() -> None:
    """Other partitions are read by the same thread: they wait for one of them, not for all."""
    size = WHOLE_BYTES + 1
    data = b"".join(
        batch(base, gzip_encode(stored(0, b"x", (b"h", b"\0" * size))), 1, attributes=GZIP)
        for base in (10, 11, 12)
    )
    reader = BatchReader(WHERE, 10)
    reader.add(answer(data))
    turns = [[record[0] for record in reader.take(500)] for _ in range(3)]
    assert turns == [[10], [11], [12]]
    assert reader.empty
