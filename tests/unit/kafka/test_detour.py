"""Whatever a batch unpacks to, its records come out in order, some megabytes at a time."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Sequence
from typing import Any, Final

import pytest
import zstandard
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME as APPENDED
from confluent_kafka import KafkaError, Message

from belfry.kafka import partition_log
from belfry.kafka.detour import RECORD_BYTES, SLICE_BYTES, Detours
from belfry.kafka.one_fetch import Fetched, OffsetGone
from belfry.kafka.partition_log import OutOfRange, PartitionLog
from belfry.kafka.record_headers import headers_of
from belfry.wire.headers import refused_unread
from belfry.wire.record_stream import MOST_RECORDS

WHERE: Final = ("belfry.schedules", 0)
GZIP, ZSTD = 1, 4
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


def detours(data: bytes, *aborted: tuple[int, int]) -> Detours:
    return Detours({}, lambda _properties, _where, _offset: Fetched(data, aborted))


def all_of(found: Detours, offset: int) -> tuple[list[Message], int]:
    """Every record of a batch, and where reading goes on."""
    found.begin(WHERE, offset)
    messages: list[Message] = []
    while some := found.take(1_000):
        messages += some
    ends = found.ended()
    assert WHERE not in found
    return messages, ends[WHERE]


def refusal(message: Message) -> str:
    """The code by which a record is to be refused, "" for none."""
    rejection = refused_unread(headers_of([message])[0] or [("", None)])
    return "" if rejection is None else rejection.code


def test_records_come_in_order_with_what_they_hold() -> None:
    packed = gzip.compress(stored(0, b"a", (b"name", b"given")) + stored(1, None) + stored(2, b""))
    data = batch(10, packed, 3, attributes=GZIP | BROKERS_TIME)
    messages, end = all_of(detours(data), 10)
    assert [(m.offset(), m.value()) for m in messages] == [(10, b"a"), (11, None), (12, b"")]
    assert messages[0].headers() == [("name", b"given")]
    assert messages[0].timestamp() == (APPENDED, 2_000)
    assert (messages[0].topic(), messages[0].partition()) == WHERE
    assert end == 13


def test_reading_begins_where_it_was_left_off_amid_a_batch() -> None:
    messages, end = all_of(detours(zstd([b"a", b"b", b"c"])), 11)
    assert [m.value() for m in messages] == [b"b", b"c"]
    assert end == 13


def test_a_gigabyte_is_never_in_memory() -> None:
    """300 records of a megabyte: a slice is what is held, and nothing of what was taken before.

    Large ones behind the first megabytes are cut, and each is refused by itself.
    """
    found = detours(zstd([bytes(1_000_000)] * 300))
    found.begin(WHERE, 10)
    tracemalloc.start()
    try:
        count = cut = 0
        while some := found.take(1_000):
            assert sum(len(m.value() or b"") for m in some) <= SLICE_BYTES + 1_000_000
            count += len(some)
            cut += sum("belfry-unread" in dict(headers_of([m])[0] or ()) for m in some)
            del some
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, cut) == (300, 300 - 64)
    assert peak < 4 * SLICE_BYTES


def test_a_record_beyond_the_bound_is_cut_and_refused_and_the_next_one_is_read() -> None:
    values = [b"a", bytes(RECORD_BYTES + 1), b"c"]
    messages, end = all_of(detours(zstd(values)), 10)
    assert [m.offset() for m in messages] == [10, 11, 12]
    assert [refusal(m) for m in messages] == ["", "request_too_large", ""]
    assert len(messages[1].value() or b"") < RECORD_BYTES // 4
    assert messages[2].value() == b"c"
    assert end == 13


GARBAGE = {
    "no zstd": batch(10, b"garbage" * 10, 5, attributes=ZSTD),
    "an early end": batch(10, zstandard.compress(stored(0, b"a" * 99))[:-9], 5, attributes=ZSTD),
    "no gzip": batch(10, b"garbage" * 10, 5, attributes=GZIP),
    "no codec": batch(10, b"garbage" * 10, 5, attributes=7),
    "no records": batch(10, zstandard.compress(b"\xff" * 99), 5, attributes=ZSTD),
    "too many records": batch(10, b"", MOST_RECORDS + 1, attributes=ZSTD),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_cannot_be_read_is_refused_once_and_passed(data: bytes) -> None:
    messages, end = all_of(detours(data), 10)
    assert [(m.offset(), refusal(m)) for m in messages] == [(10, "unreadable_batch")]
    assert end == 10 + struct.unpack_from(">i", data, 23)[0] + 1


def test_records_before_the_damage_are_read() -> None:
    good = zstandard.compress(stored(0, b"a") + stored(1, b"b") + b"\xff" * 20)
    messages, end = all_of(detours(batch(10, good, 5, attributes=ZSTD)), 10)
    assert [m.value() for m in messages] == [b"a", b"b", None]
    assert [(m.offset(), refusal(m)) for m in messages][2:] == [(12, "unreadable_batch")]
    assert end == 15


def test_what_was_rolled_back_is_passed_over() -> None:
    packed = zstandard.compress(stored(0, b"x"))
    rolled_back = batch(10, packed, 1, attributes=ZSTD | TRANSACTIONAL, producer=7)
    marker = batch(11, stored(0, b"\0\0"), 1, attributes=CONTROL | TRANSACTIONAL, producer=7)
    messages, end = all_of(detours(rolled_back + marker, (7, 10)), 10)
    assert (messages, end) == ([], 12)
    messages, end = all_of(detours(rolled_back + marker), 10)
    assert ([m.value() for m in messages], end) == ([b"x"], 11)


class Client:
    """A consumer that hands out what a test put there, and notes where it was assigned."""

    def __init__(self, *rounds: list[Any]) -> None:
        self._rounds = list(rounds)
        self.assigned: list[int] = []

    def assign(self, places: list[Any]) -> None:
        self.assigned.append(places[0].offset)

    def unassign(self) -> None:
        self.assigned.append(-1)

    def poll(self, _wait_s: float) -> Any:
        return self._rounds[0].pop(0) if self._rounds else None

    def consume(self, _at_most: int, _wait_s: float) -> list[Any]:
        return self._rounds.pop(0)


def stuck(offset: int) -> Any:
    make: Any = Message
    return make(topic=WHERE[0], partition=0, offset=offset, error=KafkaError(STUCK))


def plain(offset: int) -> Any:
    make: Any = Message
    return make(topic=WHERE[0], partition=0, offset=offset, value=b"plain", timestamp=(2, 1_000))


STUCK: Final = KafkaError._BAD_COMPRESSION


def reader(monkeypatch: pytest.MonkeyPatch, client: Client, found: Detours | None) -> PartitionLog:
    given: Any = client
    monkeypatch.setattr(partition_log, "Consumer", lambda _: given)
    monkeypatch.setattr(partition_log, "Detours", lambda _: found)
    log = PartitionLog({}, WHERE[0], 0, requests=found is not None)
    log.position = 9
    return log


def test_a_consumer_that_is_stuck_goes_on_behind_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client([plain(9), stuck(10), stuck(10)], [plain(13)])
    log = reader(monkeypatch, client, detours(zstd([b"a", b"b", b"c"])))
    assert [m.offset() for m in log.read(100, 0.1)] == [9]
    assert client.assigned == [-1, -1]
    assert [m.value() for m in log.read(2, 0.1)] == [b"a", b"b"]
    assert log.position == 12
    assert [m.value() for m in log.read(100, 0.1)] == [b"c"]
    assert log.read(100, 0.1) == []
    assert (client.assigned[2:], log.position) == ([13], 13)
    assert [m.offset() for m in log.read(100, 0.1)] == [13]


def test_where_an_offset_is_gone_the_log_is_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> Fetched:
        raise OffsetGone("gone")

    log = reader(monkeypatch, Client([stuck(9)]), Detours({}, gone))
    assert log.read(100, 0.1) == []
    with pytest.raises(OutOfRange):
        log.read(100, 0.1)


def test_of_what_workers_write_nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    log = reader(monkeypatch, Client([stuck(9)]), None)
    with pytest.raises(ConnectionError):
        log.read(100, 0.1)
