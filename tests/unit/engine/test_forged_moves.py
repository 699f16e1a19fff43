"""Records of moves that no home has sent, or that are sent once more: they change nothing."""

from __future__ import annotations

import pytest

from belfry.store.layout.groups import HELD, GroupRow
from belfry.wire.moves import (
    END,
    FORGET,
    GIVE,
    GIVEN,
    INVITE,
    MOVE,
    READY,
    ROWS,
    MoveRecord,
    encode_move,
)
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing


def forge(ring: MovingRing, partition: int, record: MoveRecord) -> None:
    ring.sign(partition, record)


def others(ring: MovingRing) -> list[int]:
    return [each for each in range(PARTITIONS) if each != ring.home("demo")]


@pytest.mark.parametrize("kind", [MOVE, INVITE, READY, GIVE, ROWS, END, GIVEN, FORGET])
def test_where_moves_are_not_allowed_each_record_of_one_is_refused(kind: int) -> None:
    ring = MovingRing(moves=False)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    for partition in range(PARTITIONS):
        for target in range(PARTITIONS):
            forge(ring, partition, MoveRecord(kind, ring.group("demo"), target))
    ring.settle()
    assert ring.refused == ["bad_move"] * PARTITIONS**2
    assert ring.pending()[ring.home("demo")] == 1
    assert not any(driver.engine.manifest.grouped for driver in ring.drivers)


def test_where_workers_share_no_secret_nothing_begins() -> None:
    """Everybody who may write to the topic could sign as well as they."""
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring)
    for driver in ring.drivers:
        driver.place = driver.place._replace(origin_keys=())
        driver.start(driver.rows)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", target)
    forge(ring, target, MoveRecord(INVITE, ring.group("demo"), target))
    ring.settle()
    assert ring.refused == ["bad_move"] * 2
    assert ring.pending()[home] == 1 == sum(ring.pending())


@pytest.mark.parametrize("headers", [None, [("belfry-origin-topic", b"belfry.schedules")]])
def test_what_no_worker_has_signed_begins_nothing(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring)
    value = encode_move(MoveRecord(MOVE, ring.group("demo"), target))
    ring.drivers[home].send(value, headers=headers, timestamp_ms=ring.now_ms)
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert not ring.drivers[home].engine._parts.groups.homes


def test_a_home_gives_nothing_away_that_it_does_not_move() -> None:
    ring = MovingRing()
    home, (target, other) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    forge(ring, home, MoveRecord(GIVE, ring.group("demo"), target))
    ring.settle()
    ring.move("demo", target)
    ring.step(home)
    # It is asked for by now, and has not said that it takes the group in.
    move = ring.drivers[home].engine._parts.groups.homes[ring.group("demo")].move
    forge(ring, home, MoveRecord(GIVE, ring.group("demo"), other, move))
    ring.settle()
    assert ring.refused == ["bad_move"] * 2
    assert ring.pending()[target] == 1 == sum(ring.pending())


def test_a_move_of_before_is_not_made_again_by_its_own_records() -> None:
    ring = MovingRing()
    home, (one, two) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    for where in (one, two, one):
        ring.move("demo", where)
        ring.settle()
    move = ring.drivers[one].engine._parts.groups.lies[ring.group("demo")].move
    for each in range(move + 1):
        forge(ring, one, MoveRecord(GIVE, ring.group("demo"), two, each))
    ring.settle()
    assert set(ring.refused) == {"bad_move"}
    assert ring.pending()[one] == 1 == sum(ring.pending())
    assert home != one


def test_an_invitation_of_before_takes_the_place_of_no_later_one() -> None:
    ring = MovingRing()
    home, (one, _) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.ask("demo", schedule_id="b", at=T0 + HOUR)
    ring.settle()
    ring.move("demo", one)
    ring.step(home)
    ring.step(one)
    forge(ring, one, MoveRecord(INVITE, ring.group("demo"), one))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[one] == 2 == sum(ring.pending())


def test_a_request_whose_event_begins_as_a_record_of_a_move_is_a_request() -> None:
    ring = MovingRing()
    home, (target, _) = ring.home("demo"), others(ring)
    value = encode_move(MoveRecord(MOVE, ring.group("demo"), target))
    # Its id is missing.
    headers: list[tuple[str, bytes | None]] = [("belfry-tenant", b"demo"), ("belfry-in", b"5m")]
    ring.drivers[home].send(value, headers=headers, timestamp_ms=ring.now_ms)
    ring.settle()
    assert ring.refused == ["bad_schedule_id"]
    assert not ring.drivers[home].engine._parts.groups.homes


@pytest.mark.parametrize("kind", [INVITE, READY])
def test_a_record_that_comes_twice_calls_nothing_off(kind: int) -> None:
    """Rows are on their way by then, and would be refused where nobody awaits them."""
    ring = MovingRing()
    home, (one, _) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.move("demo", one)
    ring.step(home)
    group = ring.group("demo")
    move = ring.drivers[home].engine._parts.groups.homes[group].move
    ring.step(one)
    forge(ring, one if kind == INVITE else home, MoveRecord(kind, group, one, move))
    # Before the first of its rows is there.
    ring.step(one)
    ring.step(home)
    ring.step(one)
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[one] == 1 == sum(ring.pending())


def test_a_home_whose_offsets_are_lower_than_before_is_told_that_the_group_stays() -> None:
    """Its input was made anew: else it would let requests wait for ever."""
    ring = MovingRing()
    home, (one, two) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", one)
    ring.settle()
    groups, group = ring.drivers[one].engine._parts.groups, ring.group("demo")
    dict.__setitem__(groups.lies, group, groups.lies[group]._replace(move=1_000))
    ring.move("demo", two)
    ring.ask("demo", schedule_id="b", at=T0 + HOUR)
    ring.settle()
    assert ring.at_rest()
    assert [end.why for end in ring.ends] == ["", "older: it came by the move 1000"]
    assert ring.pending()[one] == 2 == sum(ring.pending())
    assert home != one


def test_a_home_that_knows_of_a_higher_move_names_the_next_one_behind_it() -> None:
    """As behind a take-over by a mirror, where the rows are those of the other cluster."""
    ring = MovingRing()
    home, (one, two) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.move("demo", one)
    ring.settle()
    group = ring.group("demo")
    for rows in (
        ring.drivers[one].engine._parts.groups.lies,
        ring.drivers[home].engine._parts.groups.homes,
    ):
        dict.__setitem__(rows, group, rows[group]._replace(move=1_000))
    for where in (two, one, home):
        ring.move("demo", where)
        ring.settle()
        assert ring.pending()[where] == 1 == sum(ring.pending())
    assert [(end.why, end.move) for end in ring.ends[1:]] == [("", 1_001), ("", 1_002), ("", 1_003)]


def test_a_word_that_does_not_say_whether_a_group_has_left_counts_for_nothing() -> None:
    ring = MovingRing()
    home, (one, _) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.move("demo", one)
    for each in (home, one, home):
        ring.step(each)
    group = ring.group("demo")
    move = ring.drivers[home].engine._parts.groups.homes[group].move
    forge(ring, home, MoveRecord(GIVEN, group, one, move))
    ring.step(home, 2)
    assert ring.refused == ["bad_move"]
    ring.settle()
    assert ring.at_rest()
    assert ring.pending()[one] == 1 == sum(ring.pending())


@pytest.mark.parametrize("secret", [True, False])
def test_where_moves_are_no_longer_allowed_a_group_stays_where_it_lies(secret: bool) -> None:
    """Without a secret anybody could ask for a group that lies away, and empty it so."""
    ring = MovingRing()
    home, (one, two) = ring.home("demo"), others(ring)
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.move("demo", one)
    ring.settle()
    for driver in ring.drivers:
        driver.options = driver.options._replace(moves=False)
        driver.place = driver.place._replace(origin_keys=driver.place.origin_keys if secret else ())
        driver.start(driver.rows)
    forge(ring, one, MoveRecord(GIVE, ring.group("demo"), two, 1_000))
    ring.settle()
    assert ring.pending()[one] == 1 == sum(ring.pending())
    # And where it is asked for by its home it is told so.
    groups = ring.drivers[home].engine._parts.groups
    groups.note_home(ring.group("demo"), GroupRow(HELD, one, two, 2_000))
    ring.ask("demo", schedule_id="b", at=T0 + HOUR)
    forge(ring, one, MoveRecord(GIVE, ring.group("demo"), two, 2_000))
    ring.settle()
    assert ring.at_rest()
    assert [end.why for end in ring.ends[1:]] == ["off: the workers allow no moves"]
    assert ring.pending()[one] == 2 == sum(ring.pending())
    ring.ask("demo", schedule_id="a", action="CANCEL")
    ring.settle()
    assert ring.pending()[one] == 1 == sum(ring.pending())
