"""What the other side does by itself, as a list of losses reckons with it: bulk jobs that move."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.mirror.judged_anew import JudgedAnew, job_under_way, lost_request
from belfry.mirror.losses import FiresBehind, stood_before
from belfry.mirror.requests_behind import RequestsBehind, WaitingRows
from belfry.schedules.bulk import BulkSpec
from belfry.schedules.identity import generation_at
from belfry.store.layout import keys
from belfry.store.layout.jobs import DONE, HEAD_OF_JOB, RUNNING, JobRow, encode_job, job_key
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.layout.records import Marker, encode_marker
from belfry.verification.rows import Logged
from belfry.wire.record import SourceRecord, origin_of
from tests.acceptance.harness.requests import request

TOPIC: Final = "belfry.schedules"
DUE: Final = 5_000
LIFE: Final = generation_at(1, 30)
KEY: Final = job_key("shop", "later")
MOVES: Final = BulkSpec(action="MOVE", prefix="a", move_ms=60_000)


def waits(name: bytes, version: int, life: int = LIFE, group: bytes = b"") -> tuple[bytes, bytes]:
    tenant, _, schedule_id = name.partition(b"/")
    row = Pending(
        DUE, DUE, 0, 7, life, version, 0, 0, DUE, 0, tenant, schedule_id, group, b"", None, b"",
        b"", b"x",
    )  # fmt: skip
    return name, encode_pending(row)


def sealed(*rows: tuple[bytes, bytes | None], at: int, fired: int = 0) -> list[Logged]:
    """A transaction of a changelog, from this offset on."""
    manifest = encode_manifest(Manifest(9, 1, 41, DUE + 5, 1, fired, bytes(16)))
    found = [Logged(at + each, 900, *row) for each, row in enumerate(rows)]
    return [*found, Logged(at + len(rows), 900, keys.manifest_key(9), manifest)]


def job(spec: BulkSpec = MOVES, *, state: str = RUNNING, cursor: str = "") -> bytes:
    return encode_job(JobRow(spec.text(), 35, 900, (1, 35), state=state, cursor=cursor))


def told(
    before: list[Logged], behind: list[Logged], *asked: SourceRecord
) -> list[tuple[bool, bool]]:
    """Of each fire behind the mark: whether it comes again, and surely by the same id.

    `asked` are requests of partition 1 that were carried ahead of their verdicts.
    """
    waiting = WaitingRows(lambda record: origin_of(record, TOPIC, 1))
    names = frozenset(each.key for each in behind if not waiting.changes(each.key))
    sorting = RequestsBehind({1: 6})
    for record in asked:
        sorting.take(1, record, True, None, (TOPIC, 1, record[0]))
    known = stood_before(waiting.seen(before), names)
    sorting.wait(1, waiting)
    fires = FiresBehind(known, sorting.anew())
    return [(each.again, each.same_id) for each in fires.of(behind)]


def moved(name: bytes, version: int = 2, life: int = LIFE, group: bytes = b"") -> list[Logged]:
    """Behind the mark a schedule comes to this version, by a job, and fires."""
    log = sealed((KEY, job(cursor=name.decode())), waits(name, version, life, group), at=5)
    marker = encode_marker(Marker(0, DUE + 3, DUE, life, version, 1))
    return log + sealed((name, marker), at=10, fired=1)


def test_what_a_job_under_way_has_moved_in_the_source_comes_here_too() -> None:
    """Perhaps by the id that it had: what is due fires before the job reaches it."""
    before = sealed(waits(b"shop/a", 1), (KEY, job()), at=0)
    assert told(before, moved(b"shop/a")) == [(True, False)]
    # No job moves a schedule twice, so another request of its tenant is among the lost ones.
    assert told(before, moved(b"shop/a", 3)) == [(False, False)]


def test_what_fired_as_it_was_carried_comes_by_the_same_id_beside_a_job() -> None:
    before = sealed(waits(b"shop/a", 1), (KEY, job()), at=0)
    assert told(before, moved(b"shop/a", 1)) == [(True, True)]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (job(cursor="shop/a"), b"shop/a"),
        (job(cursor="shop/ab"), b"shop/a"),
        (job(state=DONE), b"shop/a"),
        (job(), b"shop/b"),
        (job(), b"shop2/a"),
        (job(BulkSpec(action="MOVE", schedule_id="a", move_ms=1)), b"shop/ab"),
        (job(BulkSpec(action="MOVE", group="us", move_ms=1)), b"shop/a"),
        (job(BulkSpec(action="PAUSE")), b"shop/a"),
        (b"", b"shop/a"),
        (HEAD_OF_JOB + b"[]", b"shop/a"),
        (HEAD_OF_JOB + b'{"origin": [1]}', b"shop/a"),
    ],
    ids=[
        "was there", "was beyond", "over", "another id", "another tenant", "one id", "a group",
        "moves nothing", "no row", "no object", "half an object",
    ],
)  # fmt: skip
def test_what_no_job_moves_any_more_was_changed_by_a_lost_request(row: bytes, name: bytes) -> None:
    before = sealed(waits(name, 1, group=b"eu"), (KEY, row or None), at=0)
    assert told(before, moved(name, group=b"eu")) == [(False, False)]


@pytest.mark.parametrize(
    "spec",
    [
        BulkSpec(action="MOVE", move_ms=1),
        BulkSpec(action="MOVE", schedule_id="a", move_ms=1),
        BulkSpec(action="MOVE", group="eu", move_ms=1),
    ],
    ids=["all", "one", "its group"],
)
def test_each_part_of_a_filter_that_a_row_tells_is_asked(spec: BulkSpec) -> None:
    before = sealed(waits(b"shop/a", 1, group=b"eu"), (KEY, job(spec)), at=0)
    assert told(before, moved(b"shop/a", group=b"eu")) == [(True, False)]


def asked_job(offset: int) -> SourceRecord:
    value = request("shop", "later", action="BULK", bulk=MOVES.text())
    return offset, 900, b"shop", value, None


def test_a_job_that_was_carried_ahead_of_its_verdict_moves_what_was_asked_for_before() -> None:
    before = sealed(waits(b"shop/a", 1), at=0)
    assert told(before, moved(b"shop/a"), asked_job(41)) == [(True, False)]
    assert told(before, moved(b"shop/a")) == [(False, False)]
    # One that began behind the job is none of its business.
    asks = request("shop", "a", at=DUE)
    for offset, comes in ((40, True), (42, False)):
        record = offset, 900, b"shop", asks, None
        fires = moved(b"shop/a", life=generation_at(1, offset))
        assert told([], fires, record, asked_job(41)) == [(comes, False)]


def test_a_job_in_several_homes_moves_a_schedule_once() -> None:
    spec = job_under_way(KEY, JobRow(MOVES.text(), 35, 900, (1, 35), homes=2))
    assert spec is not None
    anew = JudgedAnew()
    for at in ((0, 12), (1, 35)):
        anew.take_job(at, spec)
    known = stood_before(sealed(waits(b"shop/a", 1), at=0), frozenset({b"shop/a"}))
    was = known[b"shop/a"]
    comes = [anew.comes(b"shop/a", was, was._replace(version=each)) for each in (1, 2, 3)]
    assert comes == [(True, True), (True, False), (False, False)]


def test_only_what_names_a_registrys_schema_may_ask_for_anything() -> None:
    for value, unread in ((b"\0\0\0\0\x2a\x02a", True), (b"no request", False), (None, False)):
        assert lost_request((18, 901, b"key", value, None)).unread is unread
