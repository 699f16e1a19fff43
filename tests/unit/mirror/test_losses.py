"""What is lost is named by the rows behind the mark, and what they do not name is counted."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.mirror.judged_anew import JudgedAnew, LostRequest, lost_request
from belfry.mirror.losses import FiredBehind, FiresBehind, stood_before
from belfry.mirror.requests_behind import RequestsBehind
from belfry.schedules.identity import generation_at
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.layout.records import Marker, encode_marker
from belfry.verification import rows
from belfry.verification.row_fires import remembered
from belfry.verification.rows import Logged
from belfry.wire.moves import GIVEN, MOVE, ROWS, MoveRecord, encode_move, pack_rows
from belfry.wire.record import SentBy
from tests.acceptance.harness.requests import request

DUE: Final = 1_000
LIFE: Final = 7


def waits(name: str, *, occurrence: int = 0, life: int = LIFE, version: int = 1) -> bytes:
    return encode_pending(
        Pending(
            DUE, DUE, 0, 7, life, version, occurrence, 0, DUE, 0, b"shop", name.encode(), b"", b"",
            None, b"", b"", b"x",
        )
    )  # fmt: skip


def log(*rows: tuple[bytes, bytes | None], at: int = 0, fired: int = 0) -> list[Logged]:
    """A transaction as it lies in the changelog."""
    manifest = encode_manifest(Manifest(9, 1, 5, DUE + 5, 1, fired, bytes(16)))
    found = [Logged(at + each, 0, *row) for each, row in enumerate(rows)]
    return [*found, Logged(at + len(rows), 0, keys.manifest_key(9), manifest)]


def over(life: int = LIFE, version: int = 1) -> bytes:
    """A marker of a one-shot that fired."""
    return encode_marker(Marker(0, DUE + 3, DUE, life, version, 1))


MARKER: Final = over()
NOTHING_ANEW: Final = JudgedAnew()


def anew(*requests: tuple[int, str]) -> JudgedAnew:
    """What the requests at these offsets, carried ahead of their verdicts, ask for."""
    found = JudgedAnew()
    for offset, name in requests:
        asked = lost_request((offset, 900, b"shop", request("shop", name, at=DUE), None))
        found.take(2, asked, ("belfry.schedules", 2, offset))
    return found


def told(before: list[Logged], behind: list[Logged], more: JudgedAnew) -> tuple[bool, bool]:
    """What is said of the one fire behind the mark: whether it comes again, and by the same id."""
    names = frozenset(each.key for each in behind)
    [found] = FiresBehind(stood_before(before, names), more).of(behind)
    return found.again, found.same_id


def test_fires_behind_the_mark_are_named() -> None:
    before = log((b"shop/a", waits("a")), (b"shop/b", waits("b")), (b"shop/c", waits("c")))
    names = frozenset({b"shop/a", b"shop/b"})
    behind = log((b"shop/a", MARKER), (b"shop/b", waits("b", occurrence=2)), at=10, fired=3)
    fires = FiresBehind(stood_before(before, names), NOTHING_ANEW)
    assert list(fires.of(behind)) == [
        FiredBehind(True, True, b"shop/a", DUE, 1, 10),
        FiredBehind(True, True, b"shop/b", DUE, 2, 11),
    ]
    assert fires.told == 3


def test_what_was_changed_and_did_not_fire_is_not_named() -> None:
    fires = FiresBehind({}, NOTHING_ANEW)
    behind = log((b"shop/a", waits("a")), (b"shop/b", waits("b")), at=10)
    behind += log((b"shop/a", None), (b"shop/b", MARKER), at=20, fired=1)
    found = list(fires.of(behind))
    assert [each.name for each in found if each.times] == [b"shop/b"]
    # Nobody here knows of them, so neither fires once more.
    assert not any(each.again for each in found)
    # It was due, and may have fired before it was cancelled.
    assert [(each.name, each.times) for each in found if not each.times] == [(b"shop/a", None)]
    assert fires.told == 1


def test_what_a_carried_request_begins_comes_here_too_by_an_id_of_this_side() -> None:
    # The rows of request 41 lie behind the mark, and the request itself does not.
    accepted = log((b"shop/a", waits("a", life=generation_at(2, 41))), at=10)
    fired = log((b"shop/a", over(generation_at(2, 41))), at=20, fired=1)
    assert told([], accepted + fired, anew((40, "b"), (41, "a"))) == (True, False)
    assert told([], fired, anew((41, "a"))) == (True, False)
    # That of a request which was not carried does not, whatever was asked before under its name.
    assert told([], accepted + fired, anew((40, "a"))) == (False, False)


def test_what_a_carried_request_changes_comes_here_too_by_the_same_id() -> None:
    before = log((b"shop/a", waits("a")))
    changed = log((b"shop/a", waits("a", version=2)), at=10)
    fired = log((b"shop/a", over(version=2)), at=20, fired=1)
    assert told(before, changed + fired, anew((41, "a"))) == (True, True)
    assert told(before, changed + fired, anew((41, "b"))) == (False, False)
    again = log((b"shop/a", over(version=3)), at=20, fired=1)
    third = log((b"shop/a", waits("a", version=3)), at=15)
    assert told(before, changed + third + again, anew((41, "a"))) == (False, False)


def test_only_later_requests_change_what_one_has_begun() -> None:
    life = generation_at(2, 41)
    fired = log((b"shop/a", over(life, 2)), at=20, fired=1)
    assert told([], fired, anew((40, "a"), (41, "a"))) == (False, False)
    assert told([], fired, anew((41, "a"), (42, "a"))) == (True, False)


def test_a_schedule_that_moved_comes_here_from_the_partition_that_has_it() -> None:
    arrived = log((b"shop/a", waits("a")), (b"shop/b", MARKER), at=10, fired=1)
    left = log((b"shop/c", None), at=15, fired=1)
    fired = log((b"shop/a", MARKER), at=20, fired=1)
    other = stood_before(log((b"shop/a", waits("a"))), frozenset({b"shop/a"}))
    here = stood_before(log((b"shop/c", waits("c"))), frozenset({b"shop/c"}))
    moved = frozenset({b"shop/a", b"shop/b", b"shop/c"})
    fires = FiresBehind(here, NOTHING_ANEW, other, moved)
    # A row that comes or goes is no fire.
    assert list(fires.of(arrived + left + fired)) == [
        FiredBehind(True, True, b"shop/a", DUE, 1, 20),
    ]


def test_what_is_sent_on_is_lost_or_judged_anew_as_its_first_request_is() -> None:
    sorting = RequestsBehind({0: 6, 1: 3})
    for partition, offset, name, carried, by, first in (
        (0, 41, "a", True, None, 41),
        (0, 42, "b", False, None, 42),
        (1, 90, "a", True, SentBy(0, 7), 41),
        (1, 91, "b", True, SentBy(0, 7), 42),
        (1, 92, "c", False, SentBy(0, 8), 40),
    ):
        record = offset, 900, b"shop", request("shop", name, at=DUE), None
        sorting.take(partition, record, carried, by, ("belfry.schedules", 0, first))
    assert {at: [each.offset for each in lost] for at, lost in sorting.lost.items()} == {0: [42]}
    found = sorting.anew()
    for key, offset, comes in ((b"shop/a", 90, True), (b"shop/b", 91, False)):
        its = rows.schedule(waits(key[5:].decode(), life=generation_at(1, offset)))
        assert isinstance(its, rows.WaitingRow)
        known = remembered(Logged(1, 0, key, b""), its, None)
        assert known is not None
        assert found.comes(key, None, known).again is comes


def test_rows_on_their_way_are_known_unless_they_are_sent_once_more() -> None:
    def move(kind: int, body: bytes = b"") -> bytes:
        return encode_move(MoveRecord(kind, 9, 1, 17, 0, body))

    body = b"\0" + pack_rows([(b"shop/a", waits("a"))])
    sorting = RequestsBehind({0: 6})
    place = "belfry.schedules", 0, 0
    sorting.take(1, (5, 900, b"key group 9", move(ROWS, body), None), True, SentBy(0, 7), place)
    assert (sorting.moved, sorting.under_way) == ({b"shop/a"}, {})
    sorting.take(1, (4, 900, b"key group 9", move(ROWS, body), None), True, SentBy(0, 6), place)
    assert sorting.under_way.keys() == {b"shop/a"}
    sorting.take(0, (6, 900, b"key group 9", move(GIVEN), None), False, SentBy(0, 7), place)
    sorting.take(0, (7, 900, b"key group 9", move(MOVE), None), False, None, place)
    [[asked]] = sorting.lost.values()
    assert (asked.offset, asked.action, asked.tenant) == (7, "MOVE", "")


@pytest.mark.parametrize("odd", [b"\1\1", b"\1\2"])
def test_rows_that_cannot_be_read_count_for_nothing(odd: bytes) -> None:
    """Anybody may write such a record, and its partition refuses it."""
    body = b"\0" + pack_rows([(b"shop/a", waits("a")), (b"shop/b", odd)])
    value = encode_move(MoveRecord(ROWS, 9, 1, 17, 0, body))
    sorting = RequestsBehind({0: 6})
    sorting.take(1, (4, 900, b"key", value, None), True, None, ("belfry.schedules", 1, 4))
    assert (sorting.moved, sorting.under_way, sorting.lost) == (set(), {}, {})


def test_a_request_is_listed_with_what_it_says_and_one_that_says_nothing_with_its_key() -> None:
    value = request("shop", "a", at=5_000)
    assert lost_request((17, 900, b"shop", value, None)) == LostRequest(
        17, 900, b"shop", "UPSERT", "shop", "a"
    )
    assert lost_request((18, 901, b"key", b"no request", None)) == LostRequest(18, 901, b"key")
