"""What is looked at of both sides: which requests are lost, and which come here anew."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.cli.mirror_sides import status_line
from belfry.cli.mirror_take_over import _shown
from belfry.cli.shown import Output, Printer
from belfry.mirror import looking
from belfry.mirror.judged_anew import LostRequest
from belfry.mirror.losses import FiredBehind
from belfry.mirror.marks import Activated, MirrorMark
from belfry.mirror.requests_behind import WaitingRows
from belfry.schedules.identity import generation_at
from belfry.store.layout import keys
from belfry.store.layout.aside import Waits, aside_key, encode_aside
from belfry.store.layout.groups import held_key
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending import Pending, encode_pending
from belfry.store.layout.records import Marker, encode_marker
from belfry.verification.rows import Logged
from belfry.wire.record import Origin, SourceRecord, origin_headers, origin_of, sent_by_headers
from tests.acceptance.harness.requests import request
from tests.unit.mirror.stand_ins import REQUESTS_TOPIC, FakeLogs, fake_side

MARK: Final = MirrorMark("a", "log-a", "log-b", 1, {"changelog": 5, "schedules": 43}, judged=41)


def asked(offset: int, sent_on: tuple[int, int] | None = None) -> SourceRecord:
    """A request, which a worker may have sent on from a partition and offset."""
    headers = None
    if sent_on is not None:
        headers = origin_headers(Origin(REQUESTS_TOPIC, *sent_on, 900, rerouted=True))
    return offset, 900, b"shop", request("shop", f"at-{offset}", at=5_000), headers


def test_requests_that_were_carried_come_anew_also_where_they_had_been_sent_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = {
        0: [asked(40), asked(42), asked(43)],
        # Sent on by the source from a request that was carried and not judged, or long before.
        1: [asked(44, (0, 42)), asked(45, (0, 40)), asked(46, (0, 43))],
    }

    def requests(_source: object, partition: int, at: int) -> Iterator[SourceRecord]:
        return (each for each in logs[partition] if each[0] >= at)

    monkeypatch.setattr(looking, "_requests", requests)
    monkeypatch.setattr(looking, "_rows", lambda *_: iter(()))
    target: Any = fake_side("b", FakeLogs(), MARK, homes=2)
    found = list(looking.losses(fake_side("a", FakeLogs(), homes=2), target))
    assert [(at, each.offset) for at, each in found if isinstance(each, LostRequest)] == [
        (0, 43),
        (1, 45),
        (1, 46),
    ]


@pytest.mark.parametrize(("theirs", "mine"), [(1, 2), (2, 2), (2, 1)])
def test_what_a_side_was_given_since_it_took_over_hides_no_loss(
    monkeypatch: pytest.MonkeyPatch, theirs: int, mine: int
) -> None:
    marks = MARK, None
    monkeypatch.setattr(looking, "_requests", lambda *_: iter([asked(44)]))
    monkeypatch.setattr(looking, "_rows", lambda *_: iter(()))
    target: Any = fake_side("b", FakeLogs(), homes=mine, grown_from=1)
    target.mark = lambda each: marks[each]
    found = looking.losses(fake_side("a", FakeLogs(), homes=theirs), target)
    assert [at for at, each in found if isinstance(each, LostRequest)] == list(range(theirs))


def sealed(*rows: tuple[bytes, bytes | None], at: int, fired: int = 0) -> list[Logged]:
    """A transaction of a changelog, from this offset on."""
    manifest = encode_manifest(Manifest(9, 1, 41, 5_005, 1, fired, bytes(16)))
    found = [Logged(at + each, 900, *row) for each, row in enumerate(rows)]
    return [*found, Logged(at + len(rows), 900, keys.manifest_key(9), manifest)]


def pending(name: str, life: int, version: int = 1) -> bytes:
    return encode_pending(
        Pending(
            5_000, 5_000, 0, 7, life, version, 0, 0, 5_000, 0, b"shop", name.encode(), b"", b"",
            None, b"", b"", b"x",
        )
    )  # fmt: skip


def fires_of(
    monkeypatch: pytest.MonkeyPatch, logs: dict[int, list[Logged]], *sent_on: SourceRecord
) -> list[tuple[int, FiredBehind]]:
    """What is said of fires behind the mark in these changelogs, when no request lies behind it
    but what was `sent_on` to partition 0.
    """

    def rows(_side: object, partition: int, at: int | None) -> Iterator[Logged]:
        return (each for each in logs.get(partition, ()) if each.offset >= (at or 0))

    monkeypatch.setattr(looking, "_requests", lambda _, at, __: iter(() if at else sent_on))
    monkeypatch.setattr(looking, "_rows", rows)
    target: Any = fake_side("b", FakeLogs(), MARK, homes=2)
    found = looking.losses(fake_side("a", FakeLogs(), homes=2), target)
    return [(at, each) for at, each in found if isinstance(each, FiredBehind)]


@pytest.mark.parametrize("key", [held_key(9, 40), aside_key(40)], ids=["its group", "its schema"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_request_that_waited_in_a_row_at_the_mark_is_judged_there_too(
    monkeypatch: pytest.MonkeyPatch, key: bytes, waits: bool
) -> None:
    """Its partition had read on behind it, to 41: the group came home, and it was taken in."""
    row = encode_aside(Waits(b"shop", asked(40), appended=True))
    name = b"shop/at-40"
    life = generation_at(1, 40)
    log = sealed((key, row), at=0)
    # One that waits no more at the mark was judged before it, so this is a life that nobody knows.
    log += sealed(*() if waits else ((key, None),), at=2)
    log += sealed((key, None), (name, pending("at-40", life)), at=5)
    log += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, 1, 1))), at=10, fired=1)
    told = FiredBehind(waits, False, name, 5_000, 1, 10)
    assert fires_of(monkeypatch, {1: log}) == [(1, told)]


def test_a_request_that_waited_changes_what_was_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    row = encode_aside(Waits(b"shop", asked(40), appended=True))
    key, name, life = held_key(9, 40), b"shop/at-40", generation_at(1, 30)
    log = sealed((name, pending("at-40", life)), (key, row), at=0)
    log += sealed((key, None), (name, pending("at-40", life, 2)), at=5)
    log += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, 2, 1))), at=10, fired=1)
    told = FiredBehind(True, True, name, 5_000, 1, 10)
    assert fires_of(monkeypatch, {1: log}) == [(1, told)]


@pytest.mark.parametrize(("version", "comes"), [(2, True), (3, False)])
def test_a_request_that_waited_and_was_sent_on_then_counts_once(
    monkeypatch: pytest.MonkeyPatch, version: int, comes: bool
) -> None:
    """From the home of its group, 1, to 0, where another one that is lost may have come behind."""
    key, name, life = held_key(9, 40), b"shop/at-40", generation_at(0, 30)
    home = sealed((key, encode_aside(Waits(b"shop", asked(40), appended=True))), at=0)
    home += sealed((key, None), at=5)
    there = sealed((name, pending("at-40", life)), at=0)
    there += sealed((name, pending("at-40", life, version)), at=5)
    there += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, version, 1))), at=9, fired=1)
    headers = origin_headers(Origin(REQUESTS_TOPIC, 1, 40, 900, rerouted=True))
    record = 77, 900, b"shop", asked(40)[3], [*headers, *sent_by_headers(1, 9)]
    told = FiredBehind(comes, comes, name, 5_000, 1, 9)
    assert fires_of(monkeypatch, {0: there, 1: home}, record) == [(0, told)]


@pytest.mark.parametrize("back", [0, 1])
def test_who_gave_a_schedule_away_before_does_not_know_better_how_it_stood(
    monkeypatch: pytest.MonkeyPatch, back: int
) -> None:
    """It went from one partition to the other, was changed there, and came back behind the mark."""
    there, name, life = 1 - back, b"shop/a", generation_at(0, 7)
    went = sealed((name, pending("a", life)), at=0) + sealed((name, None), at=2)
    came = sealed((name, pending("a", life, 2)), at=5)
    came += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, 2, 1))), at=10, fired=1)
    changed = sealed((name, pending("a", life)), at=0) + sealed((name, pending("a", life, 2)), at=2)
    changed += sealed((name, None), at=5)
    told = FiredBehind(True, True, name, 5_000, 1, 10)
    assert fires_of(monkeypatch, {back: went + came, there: changed}) == [(back, told)]


@pytest.mark.parametrize("former", [0, 1])
def test_who_keeps_the_marker_of_an_earlier_life_does_not_know_better_how_it_stood(
    monkeypatch: pytest.MonkeyPatch, former: int
) -> None:
    """Its tenant was spread, and asked for it again when its former home remembered it no more."""
    now, name, life = 1 - former, b"shop/a", generation_at(1 - former, 7)
    kept = sealed((name, encode_marker(Marker(0, 3, 2, generation_at(former, 3), 1, 1))), at=0)
    waits = sealed((name, pending("a", life)), at=0)
    waits += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, 1, 1))), at=10, fired=1)
    told = FiredBehind(True, True, name, 5_000, 1, 10)
    assert fires_of(monkeypatch, {former: kept, now: waits}) == [(now, told)]


def test_a_request_that_still_waits_in_the_source_has_changed_nothing_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of another partition, at the same offset there, was taken in."""
    key, name, life = aside_key(40), b"shop/at-40", generation_at(1, 30)
    waiting = sealed((name, pending("at-40", life)), at=0)
    waiting += sealed((key, encode_aside(Waits(b"?", asked(40), appended=True))), at=2)
    waiting += sealed((name, pending("at-40", life, 2)), at=5)
    waiting += sealed((name, encode_marker(Marker(0, 5_003, 5_000, life, 2, 1))), at=10, fired=1)
    odd = Waits(b"?", (40, 900, b"books", request("books", "b", at=5_000), None), appended=True)
    taken_in = sealed((key, encode_aside(odd)), at=0) + sealed((key, None), at=5)
    told = FiredBehind(False, False, name, 5_000, 1, 10)
    assert fires_of(monkeypatch, {0: taken_in, 1: waiting}) == [(1, told)]


@pytest.mark.parametrize("more", [0, 1])
def test_a_request_that_nobody_can_read_here_may_have_begun_or_changed_a_schedule(
    monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """Its schema is not looked up, so it may ask for any schedule, and for one version of it."""
    record = 40, 900, b"shop/a", b"\0\0\0\0\x2a\x02a", None
    key, row = aside_key(40), encode_aside(Waits(b"?", record, appended=True))
    for life, version in ((generation_at(1, 40), 1 + more), (generation_at(1, 30), 2 + more)):
        log = sealed((b"shop/a", pending("a", generation_at(1, 30))), (key, row), at=0)
        log += sealed((key, None), (b"shop/a", pending("a", life, version)), at=5)
        marker = encode_marker(Marker(0, 5_003, 5_000, life, version, 1))
        log += sealed((b"shop/a", marker), at=10, fired=1)
        told = FiredBehind(not more, False, b"shop/a", 5_000, 1, 10)
        assert fires_of(monkeypatch, {1: log}) == [(1, told)]


def test_payloads_of_requests_that_waited_are_not_kept() -> None:
    large = encode_aside(Waits(b"shop", (40, 900, b"shop", b"x" * 100_000, None), appended=True))
    waiting = WaitingRows(lambda record: origin_of(record, REQUESTS_TOPIC, 1))
    found = [Logged(each, 900, aside_key(each), large) for each in range(20)]
    assert all(waiting.changes(each.key) for each in found)
    assert len(list(waiting.seen(found))) == len(waiting.requests) == 20
    assert len(pickle.dumps(waiting.requests)) < 10_000


def test_a_side_that_was_given_away_neither_follows_nor_is_active() -> None:
    follows = MARK._replace(level_ms=7)
    active = follows._replace(leaving=True, activated=Activated(9, True, {}))
    marks = [None, follows, active, active]
    given = [None, "nobody asks", None, "cluster-a"]
    target: Any = SimpleNamespace(homes=4, mark=marks.__getitem__, given_to=given.__getitem__)
    found = list(looking.statuses(None, target))
    assert [each.given for each in found] == [None, None, None, "cluster-a"]
    assert [each.stands for each in found] == [False, True, True, False]
    assert [status_line(each, 10)[0]["what"] for each in found] == [
        "alone", "follows", "active", "given",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("marks", "alone", "code", "said"),
    [
        ([MARK, MARK], True, 0, "--apply takes over"),
        ([MARK, None], True, 1, "would be refused: this side follows nobody in partition 1"),
        ([MARK, None], False, 0, "--apply takes over"),
    ],
)
def test_a_take_over_that_would_be_refused_is_not_announced(
    capsys: pytest.CaptureFixture[str],
    marks: list[MirrorMark | None],
    alone: bool,
    code: int,
    said: str,
) -> None:
    found = [looking.LaneStatus(each, mark, None) for each, mark in enumerate(marks)]
    session: Any = SimpleNamespace(printer=Printer(Output.TEXT))
    assert _shown(session, found, alone=alone) == code
    assert said in capsys.readouterr().err
