"""The changelog is read in whole batches, and nothing that workers wrote is passed over."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any, Final

import pytest
import zstandard
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

from belfry.kafka import changelog_batches, fetcher
from belfry.kafka.changelog_reader import MORE_S, PLENTY, ChangelogReader
from belfry.kafka.fetch_position import Fetched, OffsetGone
from belfry.kafka.log_bounds import OutOfRange
from belfry.kafka.unpacking import ZSTD, chunks_of
from belfry.store.row_judge import Judge
from belfry.store.signatures import FILLER, SIGNATURE, RowKeys
from belfry.wire.record_batches import HEAD_BYTES, end_of
from belfry.wire.record_stream import Unreadable
from tests.unit.kafka.test_batch_reader import CONTROL, TRANSACTIONAL, batch, number, run

WHERE: Final = ("belfry.changelog", 3)
CODECS: Final = {
    "none": (0, bytes),
    "gzip": (1, gzip_encode),
    "snappy": (2, snappy_encode),
    "lz4": (3, lz4_encode),
    "zstd": (4, zstd_encode),
}
ROW: Final = b"\1\2row"


def stored(delta: int, key: bytes, value: bytes | None, *headers: tuple[bytes, bytes]) -> bytes:
    """A record of a batch."""
    body = b"\0" + number(0) + number(delta) + run(key) + run(value) + number(len(headers))
    body += b"".join(run(name) + run(given) for name, given in headers)
    return number(len(body)) + body


def rows(base: int, names: str, codec: str = "none", *, producer: int = -1, more: int = 0) -> bytes:
    """A batch of rows under these names, a letter each."""
    code, packed = CODECS[codec]
    records = b"".join(stored(at, b"t/%c" % ord(name), ROW) for at, name in enumerate(names))
    kind = code | more | (TRANSACTIONAL if producer >= 0 else 0)
    return batch(base, bytes(packed(records)), len(names), attributes=kind, producer=producer)


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    """The end of a transaction."""
    record = stored(0, b"\0\0" + (b"\0\1" if commits else b"\0\0"), bytes(6))
    kind = CONTROL | TRANSACTIONAL
    return batch(base, record, 1, attributes=kind, producer=producer)


class Fetches:
    """Hands out what a test put there, as a fetcher does."""

    def __init__(self) -> None:
        self.answers: deque[Fetched] = deque()
        self.followed: list[dict[Any, int]] = []
        self.waits_s: list[float] = []

    def bring(self, data: bytes, *aborted: tuple[int, int]) -> None:
        """One answer more, of whole batches."""
        self.answers.append(Fetched(WHERE, 0, end_of(data)[0], data, aborted))

    def fail(self, error: Exception) -> None:
        """An answer that tells of an error."""
        self.answers.append(Fetched(WHERE, 0, 0, error=error))

    def follow(self, positions: dict[Any, int]) -> None:
        self.followed.append(positions)

    def take(self, wait_s: float) -> Fetched | None:
        self.waits_s.append(wait_s)
        return self.answers.popleft() if self.answers else None


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Fetches:
    found = Fetches()
    monkeypatch.setattr(fetcher, "Fetcher", lambda _: found)
    return found


@pytest.fixture
def log(fetches: Fetches) -> ChangelogReader:
    ends: Any = SimpleNamespace(ends=lambda *_: (0, 10_000), end=lambda *_: 10_000)
    found = ChangelogReader({}, *WHERE, ends)
    found.seek(10)
    return found


def read(log: ChangelogReader, at_most: int = 100) -> str:
    """The names that come with the next call."""
    return "".join((each.key or b"")[2:].decode() for each in log.read(at_most, 0.0))


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_in_their_order_and_the_position_is_behind_them(
    fetches: Fetches, log: ChangelogReader, codec: str
) -> None:
    fetches.bring(rows(10, "ab", codec) + rows(12, "c", codec))
    fetches.bring(rows(13, "d", codec))
    found = log.read(100, 0.0)
    assert log.changes(found) == ([(b"t/%c" % ord(name), ROW) for name in "abcd"], [*range(10, 14)])
    assert (log.position, log.newest_ms) == (14, found[-1].timestamp)
    assert log.read(100, 0.0) == []


def test_what_was_rolled_back_is_passed_over_and_the_position_moves(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(10, "ab", producer=7) + marker(12, 7, commits=False), (7, 10))
    assert (read(log), log.position) == ("", 13)
    fetches.bring(rows(13, "c", producer=7) + marker(14, 7, commits=True))
    assert (read(log), log.position) == ("c", 15)


def test_what_lies_before_the_position_in_its_batch_was_read_before(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(8, "abcd"))
    assert read(log) == "cd"
    assert fetches.followed == [{}, {WHERE: 10}]


def test_no_more_batches_are_opened_than_are_asked_for(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(10, "ab") + rows(12, "cd") + rows(14, "e"))
    assert (read(log, 3), log.position) == ("abcd", 14)
    assert (read(log, 3), log.position) == ("e", 15)


@pytest.mark.parametrize(("count", "wait_s"), [(PLENTY - 1, MORE_S), (PLENTY, 0.0)])
def test_behind_many_records_nothing_is_waited_for(
    fetches: Fetches, log: ChangelogReader, count: int, wait_s: float
) -> None:
    """The next answer comes while they are applied."""
    fetches.bring(rows(10, "a" * count))
    assert len(log.read(10 * PLENTY, 0.3)) == count
    assert fetches.waits_s == [0.3, wait_s]


def test_an_answer_without_rows_is_waited_for_once(fetches: Fetches, log: ChangelogReader) -> None:
    """Transactions that are rolled back again and again keep no standby from its other work."""
    fetches.bring(rows(10, "ab", producer=7) + marker(12, 7, commits=False), (7, 10))
    assert (log.read(100, 0.3), log.position) == ([], 13)
    assert fetches.waits_s == [0.3, MORE_S]


def test_what_has_come_already_is_read_behind_many_records(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(10, "a" * PLENTY))
    fetches.bring(rows(10 + PLENTY, "bc"))
    assert len(log.read(10 * PLENTY, 0.3)) == PLENTY + 2


def test_who_seeks_anew_gets_nothing_of_what_was_fetched_before(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(10, "ab") + rows(12, "cd"))
    assert read(log, 1) == "ab"
    fetches.fail(ConnectionError("away"))
    log.seek(5)
    fetches.answers.clear()
    fetches.bring(rows(5, "x"))
    assert (read(log), log.position) == ("x", 6)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(OffsetGone("cut off"), OutOfRange), (ConnectionError("denied"), ConnectionError)],
    ids=["the log was cut off", "no right"],
)
def test_records_beside_an_error_come_first(
    fetches: Fetches, log: ChangelogReader, error: Exception, raised: type[Exception]
) -> None:
    fetches.bring(rows(10, "ab"))
    fetches.fail(error)
    fetches.bring(rows(12, "c"))
    assert read(log) == "ab"
    with pytest.raises(raised, match=str(error)):
        log.read(100, 0.0)
    assert read(log) == "c"


def test_a_batch_that_cannot_be_read_is_an_error_and_is_not_passed_over(
    fetches: Fetches, log: ChangelogReader
) -> None:
    broken = rows(12, "cd", "lz4")
    broken = broken[:HEAD_BYTES] + bytes(4) + broken[HEAD_BYTES + 4 :]
    fetches.bring(rows(10, "ab") + broken + rows(14, "e"))
    assert (read(log), log.position) == ("ab", 12)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="changelog/3: the batch at offset 12 cannot be"):
            log.read(100, 0.0)
    assert log.position == 12


def test_a_batch_that_unpacks_to_very_much_is_an_error(
    fetches: Fetches, log: ChangelogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog_batches, "MOST_UNPACKED_BYTES", 1_000)
    fetches.bring(batch(10, zstd_encode(stored(0, b"t/a", bytes(2_000))), 1, attributes=4))
    with pytest.raises(ConnectionError, match="unpacks to more than 1000 bytes"):
        log.read(100, 0.0)


def test_a_header_that_is_no_text_costs_no_row(fetches: Fetches, log: ChangelogReader) -> None:
    records = stored(0, b"t/a", ROW) + stored(1, b"t/b", None, (b"\xff", b"x"))
    fetches.bring(batch(10, records + stored(2, b"t/c", ROW), 3))
    assert log.changes(log.read(100, 0.0)) == (
        [(b"t/a", ROW), (b"t/b", None), (b"t/c", ROW)],
        [10, 11, 12],
    )


def test_a_batch_of_which_compaction_has_left_nothing_is_passed(
    fetches: Fetches, log: ChangelogReader
) -> None:
    fetches.bring(rows(10, "ab") + batch(12, b"", 1)[:-4] + bytes(4) + rows(13, "c"))
    assert (read(log), log.position) == ("abc", 14)


def test_the_proof_of_a_tombstone_is_its_header(fetches: Fetches, log: ChangelogReader) -> None:
    by = RowKeys(b"k" * 32, "log-1", 3)
    log.sieve._judge = Judge([by], required=True)
    proofs = [b"\2" + by.token(10), b"\2" + by.token(10)]
    records = [
        stored(at, b"t/%d" % at, None, (SIGNATURE.encode(), proof))
        for at, proof in enumerate(proofs)
    ]
    fetches.bring(batch(10, b"".join(records), 2))
    assert log.changes(log.read(100, 0.0)) == ([(b"t/0", None)], [10])


def test_what_no_worker_wrote_is_counted_and_fillers_are_not(
    fetches: Fetches, log: ChangelogReader
) -> None:
    told: list[tuple[str, int]] = []
    log.sieve._counted = lambda *counted: told.append(counted)
    records = stored(0, b"a stranger's", b"text") + stored(1, FILLER, None)
    fetches.bring(batch(10, records + stored(2, b"t/c", ROW), 3))
    assert log.changes(log.read(100, 0.0)) == ([(b"t/c", ROW)], [12])
    assert told == [(WHERE[0], 1)]


def test_zstd_of_a_brokers_highest_level_is_read(fetches: Fetches, log: ChangelogReader) -> None:
    """Its frames refer back by 128 MiB, which strangers' requests may not."""
    packer = zstandard.ZstdCompressor(level=22, write_content_size=False).compressobj()
    packed = packer.compress(stored(0, b"t/a", ROW)) + packer.flush()
    with pytest.raises(Unreadable):
        b"".join(chunks_of(ZSTD, memoryview(packed)))
    fetches.bring(batch(10, packed, 1, attributes=4))
    assert read(log) == "a"


def test_a_sieve_goes_on_from_where_another_one_has_got_to() -> None:
    """A copy of a row of before the last manifest is not believed behind it."""
    by = RowKeys(b"k" * 32, "log-1", 3)
    before = Judge([by])
    before.restart(90)
    after = Judge([by])
    after.go_on_from(before)
    assert after.manifest_at == 90
