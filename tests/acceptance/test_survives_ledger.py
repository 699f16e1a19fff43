"""The auditor of the changelog notices: for each invariant doctored books, and the finding.

The good books tell of one partition: an owner that takes requests in and fires, a transaction that
its successor's fence aborted, and the successor, which takes in what lay in the log and fires.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.acceptance.harness.books import retries
from tests.acceptance.harness.changelog import Left, Manifest, Step, steps_of
from tests.acceptance.harness.copies import differences
from tests.acceptance.harness.evidence import rfc3339
from tests.acceptance.harness.ledger import LEDGER_INVARIANTS, Books, Ledger
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.segments import Batch, Transaction, Writers, batches, transactions
from tests.acceptance.harness.sent import UPSERT, Sent

T0 = 1_800_000_000_000
TOPIC = "doc.fired.demo"


def fired(schedule_id: str, due_ms: int, offset: int) -> Record:
    headers: list[tuple[str, bytes | None]] = [
        ("belfry-fire-id", f"fire-{schedule_id}".encode()),
        ("belfry-schedule-id", schedule_id.encode()),
        ("belfry-scheduled-at", rfc3339(due_ms)),
        ("belfry-occurrence", b"0"),
    ]
    return Record(TOPIC, 0, offset, due_ms + 5, b"k", b"v", headers)


def request(offset: int, appended_ms: int) -> Sent:
    return Sent(f"r{offset}", UPSERT, "demo", f"s{offset}", partition=0, offset=offset,
                appended_ms=appended_ms)  # fmt: skip


def step(seq: int, at: tuple[int, int], position: int, watermark_ms: int, *names: str) -> Step:
    """The transaction `seq` of the owner at[0], begun at[1] ms after T0, that fired `names`."""
    owner, after_ms = at
    digest = blake2b(b"".join(f"fire-{n}".encode() for n in names), digest_size=16).digest()
    first = 10 * seq
    wrote = Transaction(7, owner, first, first + 5, T0 + after_ms, T0 + after_ms + 20, "commit")
    manifest = Manifest(seq, owner, position, T0 + watermark_ms, 0, len(names), digest)
    left = [Left(f"demo/{name}".encode(), T0 + due(name)) for name in names]
    return Step(wrote, [manifest], left)


def due(name: str) -> int:
    return {"a": 1_000, "b": 2_000, "c": 9_000}[name]


def good() -> Books:
    """All is well: what the first owner left open, the second fenced."""
    lost = Step(Transaction(7, 1, 35, 37, T0 + 2_500, T0 + 7_900, "abort"))
    steps = [
        step(1, (1, 0), 0, 0),
        step(2, (1, 100), 3, 90),
        step(3, (1, 1_010), 3, 1_000, "a"),
        lost,
        step(4, (2, 8_000), 3, 1_000),
        step(5, (2, 8_100), 5, 1_000),
        step(6, (2, 8_200), 5, 8_190, "b"),
        step(7, (2, 9_010), 6, 9_000, "c"),
    ]
    records = [fired("a", T0 + 1_000, 0), fired("b", T0 + 2_000, 2), fired("c", T0 + 9_000, 4)]
    sent = [request(offset, T0 + 50 + offset) for offset in range(3)]
    sent += [request(3, T0 + 2_600), request(4, T0 + 2_700), request(5, T0 + 8_950)]
    ends = {(TOPIC, 0, record.offset): "commit" for record in records}
    return Books({0: steps}, records, ends, sent)


def manifest(books: Books, at: int, **changes: int | bytes) -> None:
    """Change what the step at this place says of itself."""
    one = books.steps[0][at]
    one.manifests = [one.manifests[0]._replace(**changes)]  # type: ignore[arg-type]


def wrote(books: Books, at: int, **changes: int | str) -> None:
    """Change who wrote the step at this place, and when."""
    one = books.steps[0][at]
    one.wrote = replace(one.wrote, **changes)  # type: ignore[arg-type]


def see_the_aborted(books: Books) -> None:
    books.ends[TOPIC, 0, 2] = "abort"


def see_the_open(books: Books) -> None:
    del books.ends[TOPIC, 0, 2]


def commit_of_the_fenced(books: Books) -> None:
    wrote(books, 6, epoch=1)


def commit_of_another_producer(books: Books) -> None:
    """Two may write in turn; one that comes back behind two others was fenced."""
    wrote(books, 3, producer=8)
    wrote(books, 4, producer=9)


def owner_goes_back(books: Books) -> None:
    manifest(books, 7, owner_epoch=1)


def two_manifests(books: Books) -> None:
    books.steps[0][2].manifests *= 2


def no_manifest(books: Books) -> None:
    books.steps[0][2].manifests.clear()


def rows_behind_it(books: Books) -> None:
    books.steps[0][2].behind_manifest = 1


def lose_a_step(books: Books) -> None:
    del books.steps[0][5]


def number_twice(books: Books) -> None:
    manifest(books, 5, txn_seq=4)


def other_digest(books: Books) -> None:
    manifest(books, 6, digest=bytes(16))


def lose_an_output(books: Books) -> None:
    books.fired.pop()


def count_too_few(books: Books) -> None:
    manifest(books, 6, fired=0)


def output_of_nobody(books: Books) -> None:
    books.fired.append(fired("d", T0 + 9_100, 6))
    books.ends[TOPIC, 0, 6] = "commit"


def position_goes_back(books: Books) -> None:
    manifest(books, 7, position=4)


def request_left_behind(books: Books) -> None:
    books.sent.append(request(6, T0 + 9_000))


def watermark_goes_back(books: Books) -> None:
    manifest(books, 7, watermark_ms=T0 + 8_000)


def open_for_long(books: Books) -> None:
    wrote(books, 3, begun_ms=T0 - 30_000)


def open_still(books: Books) -> None:
    wrote(books, 3, marker="", ended_ms=0)


def fire_at_once(books: Books) -> None:
    """The successor fires before it takes in what was sent while nobody ran."""
    manifest(books, 5, watermark_ms=T0 + 8_090, fired=1)


DOCTORED: list[tuple[Callable[[Books], None], str]] = [
    (see_the_aborted, "aborted"),
    (see_the_open, "aborted"),
    (commit_of_the_fenced, "fenced"),
    (commit_of_another_producer, "fenced"),
    (owner_goes_back, "fenced"),
    (two_manifests, "torn"),
    (no_manifest, "torn"),
    (rows_behind_it, "torn"),
    (lose_a_step, "gap"),
    (number_twice, "gap"),
    (other_digest, "manifest"),
    (lose_an_output, "manifest"),
    (count_too_few, "manifest"),
    (output_of_nobody, "unlisted"),
    (position_goes_back, "position"),
    (request_left_behind, "position"),
    (watermark_goes_back, "watermark"),
    (open_for_long, "open"),
    (open_still, "open"),
    (fire_at_once, "hasty"),
]


def test_good_books_have_no_findings() -> None:
    ledger = Ledger(good())
    assert ledger.run() == []
    assert ledger.digests == 7


@pytest.mark.parametrize(
    ("doctor", "invariant"), DOCTORED, ids=lambda each: getattr(each, "__name__", each)
)
def test_the_auditor_notices(doctor: Callable[[Books], None], invariant: str) -> None:
    books = good()
    doctor(books)
    findings = Ledger(books).run()
    assert invariant in {finding.invariant for finding in findings}, findings


def test_the_retry_of_a_webhook_is_found_where_deliveries_come_out() -> None:
    books = good()
    identity = "a1" * 16
    retry, first = fired(f"{identity}/0/2", T0 + 9_000, 7), fired("c", T0 + 9_000, 6)
    each = [replace(record, topic="doc.deliveries") for record in (first, retry)]
    manifested = books.steps[0][-1]
    name = f"{identity}/0/2"
    manifested.left.append(Left(f"belfry-deliveries/{name}".encode(), T0 + 9_000))
    digest = blake2b(b"fire-c" + f"fire-{name}".encode(), digest_size=16).digest()
    manifest(books, -1, fired=2, digest=digest)
    assert [found.invariant for found in Ledger(books).run()] == ["manifest"]
    found = retries(each)
    assert [record.offset for record in found] == [7]
    books.fired += found
    books.ends["doc.deliveries", 0, 7] = "commit"
    assert Ledger(books).run() == []


def test_each_invariant_has_doctored_books() -> None:
    assert {invariant for _, invariant in DOCTORED} == set(LEDGER_INVARIANTS)


# -- reading -------------------------------------------------------------------------------------


def record(key: bytes, value: bytes | None, offset: int) -> Record:
    return Record("doc.changelog", 0, offset, T0, key, value, [])


MANIFEST_BYTES = struct.pack(">BBHQIqqQI16s", 1, 4, 0, 9, 2, 7, T0, 3, 1, b"d" * 16)
MARKER_BYTES = struct.pack(">BBBBqqQII", 1, 2, 0, 0, T0 + 7, T0, 0, 1, 1)


def test_a_step_is_read_as_its_page_says() -> None:
    batch = Batch(3, 5, producer=1, epoch=0, transactional=True, marker="", at_ms=T0)
    end = replace(batch, first=6, last=6, marker="commit", at_ms=T0 + 9)
    rows = [
        record(b"demo/fired", MARKER_BYTES, 3),
        record(b"demo/waits", b"\x01\x01" + bytes(86), 4),
        record(b"\0m\0\x09", MANIFEST_BYTES, 5),
    ]
    (one,) = steps_of(Writers([batch, end]), rows)
    assert one.wrote == Transaction(1, 0, 3, 5, T0, T0 + 9, "commit")
    assert one.manifests == [Manifest(9, 2, 7, T0, 3, 1, b"d" * 16)]
    assert one.left == [Left(b"demo/fired", T0)]
    assert one.waiting == {b"demo/waits"}
    assert one.behind_manifest == 0


def segment_batch(base: int, epoch: int, control: int = -1) -> bytes:
    """A batch of one record; `control` 0 aborts and 1 commits."""
    key = struct.pack(">hh", 0, control)
    body = b"\x10\0\0\0" + bytes([len(key) * 2]) + key + b"\x01\0" if control >= 0 else b"\x02x"
    attributes = 0x10 | (0x20 if control >= 0 else 0)
    head = struct.pack(
        ">iBIhiqqqhii", 0, 2, 0, attributes, 0, T0 + base, T0 + base, 5, epoch, 0, 1
    )  # fmt: skip
    return struct.pack(">qi", base, len(head) + len(body)) + head + body


def test_only_the_first_fire_of_an_owner_has_to_wait() -> None:
    """Later fires of an owner leave requests waiting that have just come, as they may."""
    books = good()
    books.steps[0].append(step(8, (2, 15_000), 6, 14_990))
    books.sent.append(request(6, T0 + 9_900))
    books.steps[0].append(step(9, (2, 15_100), 7, 15_090))
    assert Ledger(books).run() == []


def test_segments_tell_how_transactions_end(tmp_path: Path) -> None:
    folder = tmp_path / "doc-0"
    folder.mkdir()
    content = b"".join((
        segment_batch(0, 1), segment_batch(1, 1, 1), segment_batch(2, 1), segment_batch(3, 2, 0),
        segment_batch(4, 2),
    ))  # fmt: skip
    (folder / "00000000000000000000.log").write_bytes(content + content[:30])
    found = transactions(batches(tmp_path, "doc", 0))
    assert [(one.first, one.epoch, one.marker) for one in found] == [
        (0, 1, "commit"), (2, 1, "abort"), (4, 2, ""),
    ]  # fmt: skip
    assert found[0].ended_ms == T0 + 1


def test_transactions_of_several_producers_may_interleave() -> None:
    def batch(at: int, producer: int, marker: str = "") -> Batch:
        return Batch(at, at, producer, 0, transactional=True, marker=marker, at_ms=T0 + at)

    writers = Writers([
        batch(0, 1), batch(1, 2), batch(2, 1), batch(3, 2, "commit"), batch(4, 2),
        batch(5, 1, "abort"), batch(6, 2, "commit"),
    ])  # fmt: skip
    wrote = [writers.of(offset) for offset in range(7)]
    assert [one and (one.producer, one.ended_ms - T0) for one in wrote] == [
        (1, 5), (2, 3), (1, 5), None, (2, 6), None, None,
    ]  # fmt: skip


# -- local copies ---------------------------------------------------------------------------------

PENDING_BYTES = b"\x01\x01" + bytes(86)
PLACE_BYTES = struct.pack(">BBBBqQ", 1, 5, 0, 0, T0, 3)
TIMELINE_KEY = struct.pack(">cIBqQ", b"t", T0 // 60_000, 0, T0, 3)
CHANGES = [record(b"demo/w", PENDING_BYTES, 0), record(b"demo/f", MARKER_BYTES, 1),
           record(b"demo/x", MARKER_BYTES, 2), record(b"demo/x", None, 3),
           record(b"demo/later", MARKER_BYTES, 9)]  # fmt: skip


def copy() -> dict[bytes, bytes]:
    """A store that is the fold of the first four changes."""
    return {
        b"mstate": (4).to_bytes(8, "big") + bytes(68),
        b"kdemo/w": PLACE_BYTES,
        TIMELINE_KEY: PENDING_BYTES,
        b"kdemo/f": MARKER_BYTES,
    }


def test_a_copy_that_is_the_fold_has_no_differences() -> None:
    assert differences(copy(), CHANGES) == []


def test_a_copy_is_followed_behind_a_lock() -> None:
    place = struct.pack(">BBBBqQ", 1, 5, 4, 0, T0, 3) + b"ggroup"
    held = b"hdemo\0g\x05group" + struct.pack(">qQ", T0, 3)
    store = {**copy(), b"kdemo/w": place, held: PENDING_BYTES}
    del store[TIMELINE_KEY]
    assert differences(store, CHANGES) == []
    assert differences({**store, held: PENDING_BYTES + b"?"}, CHANGES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"kdemo/f", None),
        (b"kdemo/f", MARKER_BYTES[:-1] + b"\x07"),
        (b"kdemo/x", MARKER_BYTES),
        (b"kdemo/later", MARKER_BYTES),
        (TIMELINE_KEY, None),
        (TIMELINE_KEY, PENDING_BYTES + b"?"),
        (TIMELINE_KEY[:-1] + b"\x04", PENDING_BYTES),
    ],
)
def test_a_copy_that_differs_is_noticed(key: bytes, value: bytes | None) -> None:
    store = {**copy(), key: value or b""}
    if value is None:
        del store[key]
    assert differences(store, CHANGES)


def test_the_auditors_share_no_code_with_belfry() -> None:
    folder = Path(__file__).parent / "harness"
    for name in ("changelog.py", "copies.py", "ledger.py", "segments.py"):
        text = (folder / name).read_text("utf-8")
        assert "import belfry" not in text
        assert "from belfry" not in text
