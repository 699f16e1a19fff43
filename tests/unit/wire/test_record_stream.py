"""Records out of an unpacked batch, byte by byte: what is read, what is cut, what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from belfry.wire import record_stream
from belfry.wire.record import SourceRecord
from belfry.wire.record_stream import KEPT_BYTES, MOST_RECORDS, Unreadable, records_of
from belfry.wire.unread import CUT, NO_TEXT, unread
from tests.unit.wire.test_record_batches import APPEND_TIME, batch, only

Header = tuple[bytes | None, bytes | None]
# The head of a batch says when its first record was made.
FIRST_MS, APPENDED_MS = 1_000, 2_000
LONG = 100


def number(value: int) -> bytes:
    """A signed number, zigzag, in base 128."""
    coded, out = (value << 1) ^ (value >> 63), bytearray()
    while coded > 0x7F:
        out.append(coded & 0x7F | 0x80)
        coded >>= 7
    return bytes((*out, coded))


def sized(given: bytes | None) -> bytes:
    return number(-1) if given is None else number(len(given)) + given


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[Header] = (),
    *,
    delta: int = 0,
    delta_ms: int = 0,
    count: int | None = None,
) -> bytes:
    carried = b"".join(sized(name) + sized(given) for name, given in headers)
    body = b"\0" + number(delta_ms) + number(delta) + sized(key) + sized(value)
    return sized(body + number(len(headers) if count is None else count) + carried)


def read(
    data: bytes, count: int = 1, *, most: int = LONG, attributes: int = 0, chunk: int = 10_000
) -> list[SourceRecord]:
    """The records of a batch from offset 10 on; it may hold ten."""
    head = only(batch(10, attributes=attributes, delta=9, count=count))
    chunks = (data[at : at + chunk] for at in range(0, len(data), chunk))
    return list(records_of(head, chunks, most))


@pytest.mark.parametrize("chunk", [1, 2, 7, 10_000])
def test_records_are_read_wherever_their_chunks_end(chunk: int) -> None:
    data = record(delta_ms=-5, headers=[(b"a", b"1"), (b"empty", b""), (b"null", None)])
    data += record(None, None, delta=3, delta_ms=70) + record(b"", b"", [(None, b"x")], delta=9)
    headers = [("a", b"1"), ("empty", b""), ("null", None)]
    assert read(data, 3, chunk=chunk) == [
        (10, FIRST_MS - 5, b"k", b"v", headers),
        (13, FIRST_MS + 70, None, None, None),
        (19, FIRST_MS, b"", b"", [("", b"x")]),
    ]


def test_the_brokers_time_is_that_of_all_records() -> None:
    data = record(delta_ms=5) + record(delta=1, delta_ms=6)
    assert [each[1] for each in read(data, 2, attributes=APPEND_TIME)] == [APPENDED_MS] * 2


def test_a_record_as_long_as_it_may_be_is_whole() -> None:
    data = record(value=b"v" * 89)
    size = len(data) - len(number(len(data)))
    assert read(data, most=size) == [(10, FIRST_MS, b"k", b"v" * 89, None)]
    assert read(data, most=size - 1)[0][4] is not None


def test_a_longer_one_keeps_its_beginning_and_says_why_it_is_refused() -> None:
    long = record(b"key" * 100, b"value" * 100, [(b"a", b"1")])
    size = len(long) - 2
    cut, whole = read(long + record(delta=1), 2)
    reason = (
        f"The record takes {size} bytes; at most 100 are unpacked of one in a batch as large as"
        " its own. Send it in a smaller batch; or store its content elsewhere and schedule the"
        " address (claim check)."
    )
    assert cut == (
        10, FIRST_MS, (b"key" * 100)[:100], (b"value" * 100)[:100],
        [("a", b"1"), (CUT, b"cut from %d bytes" % size), unread("request_too_large", reason)],
    )  # fmt: skip
    assert whole == (11, FIRST_MS, b"k", b"v", None)


@pytest.mark.parametrize(("size", "kept"), [(LONG - 1, True), (LONG, False)])
def test_headers_of_what_is_cut_are_kept_up_to_its_bound(size: int, kept: bool) -> None:
    """Their names and values count; a null takes nothing."""
    headers = [(b"", None), (b"n", b"x" * size), (b"later", b"y")]
    (found,) = read(record(headers=headers))
    named = [name for name, _ in found[4] or ()]
    assert named[: len(named) - 2] == (["", "n"] if kept else [""])


def test_thousands_of_headers_are_cut() -> None:
    carried, more = ([(b"n", b"")] * number for number in (2_048, 2_049))
    (whole,), (cut,) = (read(record(headers=each), most=100_000) for each in (carried, more))
    assert whole[4] == [("n", b"")] * 2_048
    assert cut[4] == [*[("n", b"")] * 1_500, (CUT, b"cut from 2049 headers")]


def test_a_header_whose_name_is_no_text_stands_for_all() -> None:
    (found,) = read(record(headers=[(b"a", b"1"), (b"\xff", b"2"), (b"b", b"3")]))
    assert found[4] == [NO_TEXT]


ENDS = "the records end in the middle of one"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", ENDS),
        (record()[:-1], ENDS),
        (record()[:1], ENDS),
        (number(-1), "a record has -1 bytes"),
        (number(0), ENDS),
        (record(count=-1), "a record has -1 headers"),
        (record(delta=10), "a record has the offset 20"),
        (record(delta=-1), "a record has the offset 9"),
        (b"\x80" * 10, "a number has no end"),
        # The key of a record that is cut goes on behind its end.
        (number(LONG + 1) + b"\0\0\0" + sized(b"k" * 200) + sized(b"") + number(0),
         "a record is longer than it says"),
    ],
)  # fmt: skip
def test_what_is_no_record_says_why(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(data)
    assert str(caught.value) == why


def test_a_batch_of_another_format_or_of_too_many_records_is_not_read() -> None:
    older = only(batch(10, magic=1))
    with pytest.raises(Unreadable) as caught:
        list(records_of(older, [record()], LONG))
    assert str(caught.value) == "it has the format of before Kafka 0.11, or is damaged"
    with pytest.raises(Unreadable, match=ENDS):
        read(b"", MOST_RECORDS)
    with pytest.raises(Unreadable) as caught:
        read(b"", MOST_RECORDS + 1)
    assert str(caught.value) == "it holds 1000001 records, and 1000000 are read of one batch"


def test_so_much_is_unpacked_of_a_batch_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    data = record() + record(delta=1)
    monkeypatch.setattr(record_stream, "MOST_BYTES", len(data))
    assert len(read(data, 2, chunk=3)) == 2
    monkeypatch.setattr(record_stream, "MOST_BYTES", len(data) - 1)
    with pytest.raises(Unreadable, match="it unpacks to more than 32000000 bytes"):
        read(data, 2)


def test_of_what_is_cut_so_much_is_kept_whatever_may_be_unpacked() -> None:
    most = 300_000
    for size in (KEPT_BYTES, KEPT_BYTES + 1):
        long = record(b"k" * size, b"v" * size, [(b"n", b"x" * (size - 1)), (b"m", b"")])
        (found,) = read(long, most=most)
        assert found[2] == b"k" * KEPT_BYTES
        assert found[3] == b"v" * KEPT_BYTES
        named = [name for name, _ in found[4] or ()]
        assert named[0] == ("n" if size == KEPT_BYTES else CUT)


def test_a_null_in_what_is_cut_stays_one() -> None:
    (found,) = read(record(None, b"v" * 200, [(None, None), (b"n", None)]))
    assert (found[2], found[3]) == (None, b"v" * LONG)
    assert (found[4] or [])[:2] == [("", None), ("n", None)]


def test_a_key_that_goes_on_for_ever_ends_where_unpacking_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record that is cut says a size which may be unpacked, and its key a longer one."""
    monkeypatch.setattr(record_stream, "MOST_BYTES", 1_000)
    endless = number(200) + b"\0\0\0" + number(1 << 40) + b"k" * 5_000
    with pytest.raises(Unreadable, match="it unpacks to more than 32000000 bytes"):
        read(endless, chunk=100)
    # What ends with the last byte that may be unpacked was too long before.
    monkeypatch.setattr(record_stream, "MOST_BYTES", 300)
    with pytest.raises(Unreadable, match="the records end in the middle of one"):
        read(endless[:301], chunk=100)
    with pytest.raises(Unreadable, match="it unpacks to more than 32000000 bytes"):
        read(endless[:500], chunk=100)
    monkeypatch.setattr(record_stream, "MOST_BYTES", 1_000)
    # One that ends before is only longer than it says.
    with pytest.raises(Unreadable, match="the records end in the middle of one"):
        read(endless[:900], chunk=100)


@pytest.mark.parametrize("size", [-2, -5])
def test_a_header_without_a_value_may_say_so_by_any_negative_size(size: int) -> None:
    body = b"\0\0\0" + sized(b"k") + sized(None) + number(1) + sized(b"n") + number(size)
    (found,) = read(sized(body))
    assert found[2:] == (b"k", None, [("n", None)])


def test_what_lies_behind_the_last_record_is_not_read() -> None:
    assert read(record() + b"anything") == read(record())
    assert read(b"", 0) == []


def test_numbers_of_many_bytes_are_read() -> None:
    late = record(delta_ms=-(2**40)) + record(delta=1, delta_ms=2**40 + 77)
    assert [each[1] for each in read(late, 2)] == [FIRST_MS - 2**40, FIRST_MS + 2**40 + 77]
