"""A partition's transactions: what they carry, and what their mark may say of the source."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.mirror import lane as lanes
from belfry.mirror.beginnings import CannotMirror
from belfry.mirror.cuts import Together
from belfry.mirror.lane import ASK_EVERY_MS, Lane
from belfry.mirror.marks import KINDS, Activated, MirrorMark, decode_mark
from belfry.store.identity import encode_identity
from belfry.store.layout import keys
from tests.unit.mirror.stand_ins import (
    CHANGELOG_TOPIC,
    DAY_MS,
    REQUESTS_TOPIC,
    FakeLogs,
    fake_side,
)

NOW_MS: Final = 1_800_000_000_000


class FakeWriter:
    """Keeps what was committed: rows, and the last mark."""

    def __init__(self, *_: object) -> None:
        self.rows: list[tuple[bytes, bytes | None]] = []
        self.marks: list[MirrorMark] = []
        self.closed = False

    def begin(self, _topic_id: str) -> None:
        pass

    def row(self, key: bytes, value: bytes | None) -> None:
        self.rows.append((key, value))

    def beside(self, topic: str, _key: bytes | None, value: bytes, **_: Any) -> None:
        if topic == "belfry.mirror":
            self.marks.append(decode_mark(value))

    def commit(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Carried(SimpleNamespace):
    """A source, a lane of it into an empty side, and the writer of that side."""

    source: FakeLogs
    lane: Lane
    writer: FakeWriter
    target: Any


def made(
    monkeypatch: pytest.MonkeyPatch, mark: MirrorMark | None = None, *, now_ms: int = NOW_MS,
    **more: Any,
) -> Carried:  # fmt: skip
    source = FakeLogs()
    source.readable(monkeypatch)
    monkeypatch.setattr(lanes, "ChangelogWriter", FakeWriter)
    target = fake_side("b", FakeLogs(), mark)
    lane = Lane(fake_side("a", source), target, 0, now_ms, Together(1), **more)
    return Carried(source=source, lane=lane, writer=lane.writer, target=target)


def test_a_copy_that_begins_says_first_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    its.source.add(CHANGELOG_TOPIC, b"shop/a")
    its.source.seal()
    its.lane.turn(0, NOW_MS)
    whose = keys.IDENTITY_KEY, encode_identity(its.lane.source.here)
    assert its.writer.rows[0] == whose
    assert [key for key, _ in its.writer.rows].count(keys.IDENTITY_KEY) == 1
    its.lane.turn(0, NOW_MS + 1)
    its.source.seal(2)
    its.lane.turn(0, NOW_MS + 2)
    assert [key for key, _ in its.writer.rows].count(keys.IDENTITY_KEY) == 1


def test_a_mark_says_from_where_on_the_requests_of_its_source_lie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = MirrorMark(
        "cluster-b", "log-b", "log-a", 1, dict.fromkeys(KINDS, 0),
        activated=Activated(NOW_MS, True, dict.fromkeys(KINDS, 0)),
    )  # fmt: skip
    source, target = FakeLogs(), FakeLogs()
    source.readable(monkeypatch)
    monkeypatch.setattr(lanes, "ChangelogWriter", FakeWriter)
    for _ in range(3):
        target.add(REQUESTS_TOPIC)
    lane = Lane(fake_side("a", source, theirs), fake_side("b", target), 0, NOW_MS, Together(1))
    assert lane.mark.requests_from == 3
    resumed = Lane(
        fake_side("a", source, theirs), fake_side("b", target, lane.mark), 0, NOW_MS, Together(1)
    )
    target.add(REQUESTS_TOPIC)
    assert resumed.mark.requests_from == 3


def test_a_mark_says_up_to_which_request_the_rows_go(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    for _ in range(3):
        its.source.add(REQUESTS_TOPIC)
    its.source.seal(position=2)
    its.lane.turn(0, NOW_MS)
    assert (its.lane.mark.judged, its.lane.mark.positions["schedules"]) == (2, 3)
    its.source.add(REQUESTS_TOPIC)
    its.lane.turn(0, NOW_MS + 1)
    assert (its.lane.mark.judged, its.lane.mark.positions["schedules"]) == (2, 4)


def test_a_take_over_of_an_empty_side_says_whose_it_is_and_where_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    its = made(monkeypatch, takes_over=True)
    its.source.seal()
    its.lane.leave()
    assert its.writer.rows == [(keys.IDENTITY_KEY, encode_identity(its.lane.source.here))]
    [left] = its.writer.marks
    assert left.leaving
    assert left.positions == dict.fromkeys(KINDS, 0)
    its.lane.turn(0, NOW_MS)
    assert [key for key, _ in its.writer.rows].count(keys.IDENTITY_KEY) == 1
    assert its.writer.marks[-1].leaving


def test_a_source_that_is_cut_off_is_not_carried_up_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    its.source.seal()
    its.lane.turn(0, NOW_MS)
    assert its.lane.mark.level_ms == its.lane.level_ms == NOW_MS
    its.source.cut_off = True
    # Nothing comes, and nobody has asked yet.
    its.lane.turn(0, NOW_MS + ASK_EVERY_MS - 1)
    with pytest.raises(ConnectionError):
        its.lane.turn(0, NOW_MS + ASK_EVERY_MS)
    assert its.writer.marks[-1].level_ms == NOW_MS


def test_an_idle_source_is_level_as_often_as_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    for each in range(4):
        its.lane.turn(0, NOW_MS + each * ASK_EVERY_MS // 2)
    said = [each.level_ms for each in its.writer.marks]
    assert sorted(set(said)) == [NOW_MS, NOW_MS + ASK_EVERY_MS]


def test_neither_what_comes_nor_what_is_held_says_that_all_is_carried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    its = made(monkeypatch)
    ends = {"changelog": 2, "schedules": 1, "lifecycle": 0, "rejected": 0}
    monkeypatch.setattr(its.lane.reader, "ends", lambda: ends)
    # A row whose manifest is not there yet; a producer's clock that is ahead.
    its.source.add(CHANGELOG_TOPIC, b"shop/a")
    its.source.add(REQUESTS_TOPIC, at_ms=NOW_MS + 86_400_000)
    its.lane.turn(0, NOW_MS)
    assert (its.lane.mark.level_ms, its.lane.behind()) == (0, 2)
    its.source.seal()
    its.lane.turn(0, NOW_MS + 1)
    assert (its.lane.mark.level_ms, its.lane.behind()) == (NOW_MS, 0)


def test_one_that_lags_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    ends = {"changelog": 0, "schedules": 1, "lifecycle": 0, "rejected": 0}
    monkeypatch.setattr(its.lane.reader, "ends", lambda: dict(ends))
    its.lane.turn(0, NOW_MS)
    ends["schedules"] = 2
    its.source.add(REQUESTS_TOPIC)
    its.lane.turn(0, NOW_MS + ASK_EVERY_MS)
    assert (its.lane.mark.level_ms, its.lane.behind()) == (NOW_MS, 1)


def test_one_that_was_away_for_half_as_long_as_deletions_are_kept_does_not_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    positions = dict.fromkeys(KINDS, 0)
    mark = MirrorMark("cluster-a", "log-a", "log-b", 1, positions, level_ms=NOW_MS)
    full = FakeLogs()
    full.seal()
    monkeypatch.setattr(lanes, "ChangelogWriter", FakeWriter)
    for late_ms, allowed in ((DAY_MS // 2, True), (DAY_MS // 2 + 1, False)):
        FakeLogs().readable(monkeypatch)
        with nullcontext() if allowed else pytest.raises(CannotMirror, match=r"12\.0 h ago"):
            Lane(
                fake_side("a", FakeLogs()),
                fake_side("b", full, mark),
                0,
                NOW_MS + late_ms,
                Together(1),
            )


def test_one_that_is_not_level_in_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    its = made(monkeypatch)
    ends = {"changelog": 9, "schedules": 0, "lifecycle": 0, "rejected": 0}
    monkeypatch.setattr(its.lane.reader, "ends", lambda: ends)
    its.source.seal()
    its.lane.turn(0, NOW_MS + DAY_MS)
    with pytest.raises(CannotMirror, match="raise delete"):
        its.lane.turn(0, NOW_MS + DAY_MS + ASK_EVERY_MS)
    assert its.writer.marks[-1].level_ms == 0


def test_a_lane_gives_its_writer_up_also_where_its_reader_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    its = made(monkeypatch)

    def fails() -> None:
        raise RuntimeError("the reader")

    monkeypatch.setattr(its.lane.reader, "close", fails)
    with pytest.raises(RuntimeError):
        its.lane.close()
    assert its.writer.closed
