"""Steps of all partitions hold four full ones together, or one; who waits for room has it soon."""

from __future__ import annotations

from random import Random
from unittest.mock import MagicMock

import pytest

from belfry.kafka.outcome import Unknown
from belfry.partitions.step_shares import (
    CROWD,
    FEW,
    FULL,
    HALF,
    LEAST,
    LONGEST_S,
    OF_MANY,
    TIMEOUT_S,
    TOGETHER,
    WORTHWHILE,
    StepRoom,
    StepShare,
)
from tests.unit.partitions.still_clock import Clock


class Woken:
    """Shares of a room by number, and the numbers of those that were woken, in order."""

    def __init__(self, room: StepRoom, number: int) -> None:
        self.woken: list[int] = []
        self.shares = [
            StepShare(room, lambda n=n: self.woken.append(n))  # type: ignore[misc]
            for n in range(number)
        ]

    def ask(self) -> list[int]:
        """Let all ask in turn; how much each has at once."""
        for share in self.shares:
            share.wants = FULL
            share.ask()
        return [share.parts for share in self.shares]


def test_four_partitions_always_do_full_steps() -> None:
    room = StepRoom()
    four = Woken(room, 4)
    for number in range(40):
        share = four.shares[number % 4]
        with share:
            share.keep(0.5)
            share.ask()
            assert (share.parts, share.of(500), share.wait_s()) == (FULL, 500, 0.0)
        assert room.held == 0
    assert four.ask() == [FULL] * 4
    assert four.woken == []


def test_a_step_asks_for_twice_what_the_one_before_has_held() -> None:
    share, asked = StepShare(StepRoom(), MagicMock()), []
    for done in (1.0, 0.2, 0.4, 0.9, 0.01):
        with share:
            share.ask()
            asked.append(share.parts)
            share.keep(done)
    assert asked == [WORTHWHILE, FULL, 4_000, 8_000, FULL]
    with share:
        share.ask()
        assert share.parts == WORTHWHILE


def test_many_fire_a_quarter_of_a_step_each_at_first() -> None:
    room = StepRoom()
    shares = [StepShare(room, MagicMock()) for _ in range(64)]
    for share in shares:
        share.ask()
    assert [share.parts for share in shares] == [WORTHWHILE] * 4 + [0] * 60
    assert room.held == OF_MANY
    for share in shares[:4]:
        share.keep(1 / 16)
    assert [share.parts for share in shares[4:]] == [WORTHWHILE] * 3 + [0] * 57
    assert room.held == OF_MANY


def test_who_waits_is_woken_in_turn_by_what_is_given_back() -> None:
    room = StepRoom()
    seven = Woken(room, 7)
    assert seven.ask() == [FULL] * 4 + [0] * 3
    seven.shares[2].keep(0.2)
    seven.shares[1].keep(0.2)
    seven.shares[3].keep(0.05)
    assert seven.woken == [], "four hold more than one full step"
    seven.shares[0].keep(0.25, 0.05)
    assert (seven.woken, seven.shares[4].parts) == ([4], 3_000), "it has what is left"
    with seven.shares[1]:
        pass
    assert seven.woken == [4], "what is left is not worth a transaction"
    with seven.shares[3]:
        pass
    assert (seven.woken, seven.shares[5].parts) == ([4, 5], FULL), "three hold some"
    with seven.shares[4]:
        pass
    assert (seven.woken, seven.shares[6].parts) == ([4, 5, 6], FULL)
    assert room.held == 2_500 + 2_000 + FULL + FULL


@pytest.mark.parametrize("seed", range(20))
def test_nobody_waits_while_room_is_free_and_all_have_their_turns(seed: int) -> None:
    random, room = Random(seed), StepRoom()
    many = Woken(room, 64)
    idle, waiting, at_work = list(range(64)), list[int](), list[int]()
    turns = [0] * 64
    for _ in range(5_000):
        if idle and random.random() < 0.6:
            number = idle.pop(random.randrange(len(idle)))
            many.shares[number].ask()
            waiting.append(number)
        elif at_work:
            number = random.choice(at_work)
            if random.random() < 0.5:
                many.shares[number].keep(random.random())
            else:
                with many.shares[number]:
                    at_work.remove(number)
                idle.append(number)
        while waiting and many.shares[waiting[0]].parts:
            turns[waiting[0]] += 1
            at_work.append(waiting.pop(0))
        assert not any(many.shares[number].parts for number in waiting), "first come, first served"
        assert room.held == sum(share.parts for share in many.shares) <= TOGETHER
        holders = sum(1 for share in many.shares if share.parts)
        most = TOGETHER if holders < FEW else OF_MANY
        assert not waiting or most - room.held < WORTHWHILE
    assert min(turns) > 5


def test_nobody_waits_for_commits_that_hang(clock: Clock) -> None:
    room = StepRoom()
    eight = Woken(room, 8)
    eight.ask()
    last = eight.shares[7]
    assert last.wait_s() == TIMEOUT_S
    clock.now_s += TIMEOUT_S - 0.25
    assert last.wait_s() == 0.25
    clock.now_s += 0.25
    for share in eight.shares[4:]:
        assert (share.wait_s(), share.of(1_600)) == (0.0, 100)
    assert room.held == TOGETHER + 4 * LEAST
    for share in eight.shares[4:]:
        for _ in range(9):
            with share:
                pass
            share.wants = FULL
            share.ask()
            assert share.wait_s() == 0.0, "nor does it wait anew for each step"
            assert share.of(1_600) == 100
    assert eight.woken == [], "small steps leave no room for others"
    for share in eight.shares:
        with share:
            pass
    assert eight.ask() == [FULL] * 4 + [0] * 4
    assert last.wait_s() == TIMEOUT_S


def test_who_does_not_wait_any_longer_leaves_the_queue() -> None:
    room = StepRoom()
    seven = Woken(room, 7)
    seven.ask()
    assert seven.shares[4].of(FULL) == LEAST
    with seven.shares[5]:
        pass
    with seven.shares[0]:
        pass
    assert seven.woken == [6]
    assert [share.parts for share in seven.shares[4:]] == [LEAST, 0, FULL - LEAST]
    for share in seven.shares:
        with share:
            pass
    assert room.held == 0


def test_nobody_waits_for_long_though_others_are_given_shares(clock: Clock) -> None:
    """Three commits hang, and all others wait for what the fourth partition gives back."""
    room = StepRoom()
    many = Woken(room, 64)
    many.ask()
    last, waited_s = many.shares[63], 0.0
    for number in range(3, 60):
        if not last.wait_s():
            break
        with many.shares[number]:
            clock.now_s += 0.75
            waited_s += 0.75
    assert waited_s == 2.25 >= LONGEST_S
    assert last.of(1_600) == 100
    with last:
        pass
    last.ask()
    assert 0 < last.wait_s() <= TIMEOUT_S, "it is counted from when it asks anew"


def test_all_of_a_crowd_have_their_turns_before_they_have_waited_for_long(clock: Clock) -> None:
    """Twelve partitions always have more due than a step may hold; a full one fires for 0.25 s."""
    room = StepRoom()
    many, turns = Woken(room, 12), [0] * 12
    many.ask()
    at_work = [0, 1, 2, 3]
    for _ in range(120):
        number = at_work.pop(0)
        share = many.shares[number]
        clock.now_s += share.parts / FULL / 4
        share.keep(share.parts / FULL)
        with share:
            pass
        turns[number] += 1
        share.ask()
        at_work += many.woken
        many.woken.clear()
        assert all(each.parts or each.wait_s() for each in many.shares)
    assert turns == [10] * 12
    assert room.held == 4 * HALF


def test_all_that_are_given_room_at_once_are_woken() -> None:
    room = StepRoom()
    eight = Woken(room, 8)
    first, *others = eight.shares
    first.wants = FULL
    first.ask()
    for share in others:
        share.ask()
    for share in others[:3]:
        share.keep(0.01)
    assert eight.woken == []
    first.keep(0.01)
    assert eight.woken == [4, 5, 6]
    assert [share.parts for share in others[3:]] == [WORTHWHILE] * 3 + [0]


def test_a_share_is_full_unless_a_crowd_wants_room() -> None:
    room = StepRoom()
    eight = Woken(room, CROWD)
    assert eight.ask() == [FULL] * 4 + [0] * 4
    for share in eight.shares[:5]:
        with share:
            pass
    assert [share.parts for share in eight.shares[4:]] == [0, FULL, FULL, FULL]
    many = Woken(StepRoom(), CROWD + 1)
    many.ask()
    with many.shares[0]:
        pass
    assert many.shares[4].parts == HALF


def test_room_that_is_given_to_who_just_leaves_is_given_back() -> None:
    """As where its clock is not trusted any more, or its producer is fenced, when it has waited."""
    room = StepRoom()
    five = Woken(room, 5)
    five.ask()
    first, last = five.shares[0], five.shares[4]
    with last:
        # In another thread, right before the lock is held here.
        before = MagicMock()
        others = iter([first.__exit__])
        before.__enter__.side_effect = lambda: [happens() for happens in others]
        room._lock = before
    assert five.woken == [4]
    assert (last.parts, room.held) == (0, 3 * FULL)


def test_a_share_of_little_is_one_at_least() -> None:
    room = StepRoom()
    assert StepShare(room, MagicMock()).of(3) == 1


def test_a_share_is_given_back_however_the_step_ends() -> None:
    room = StepRoom()
    share = StepShare(room, MagicMock())
    share.wants = FULL

    def fails() -> None:
        with share:
            share.ask()
            raise Unknown("nobody knows")

    with pytest.raises(Unknown):
        fails()
    assert room.held == 0
    with share:
        share.ask()
        share.keep(0.5)
        share.keep(3.0)
        assert room.held == FULL // 2
    assert (room.held, share.parts) == (0, 0)


def test_who_waits_keeps_its_place_from_step_to_step(clock: Clock) -> None:
    room = StepRoom()
    six = Woken(room, 6)
    six.ask()
    first = six.shares[4]
    for _ in range(3):
        with first:
            first.ask()
            assert first.awaits()
    with six.shares[0]:
        pass
    assert (six.woken, first.parts) == ([4], FULL), "it was there before the sixth"
    with first:
        first.ask()
        assert not first.awaits()
    assert (six.woken, first.parts) == ([4, 5], 0)


def test_who_asks_again_while_it_waits_does_not_wait_anew(clock: Clock) -> None:
    room = StepRoom()
    many = Woken(room, 9)
    many.ask()
    last = many.shares[8]
    for number in range(3):
        with last:
            last.ask()
            assert last.awaits()
        with many.shares[number]:
            clock.now_s += 0.6
    clock.now_s += 0.2
    with last:
        last.ask()
        assert not last.awaits(), "others were given shares, and two seconds are over"
        assert last.of(1_600) == 100
    assert room.held == sum(share.parts for share in many.shares)


def test_room_that_is_given_amid_a_step_is_held_for_the_next_one(clock: Clock) -> None:
    room = StepRoom()
    five = Woken(room, 5)
    five.ask()
    last = five.shares[4]
    with last:
        last.ask()
        assert last.awaits()
        with five.shares[0]:
            pass
        assert (five.woken, last.parts) == ([4], FULL)
    assert (last.parts, room.held) == (FULL, TOGETHER)
    with last:
        last.ask()
        assert not last.awaits()
    assert (last.parts, room.held) == (0, 3 * FULL)


def test_a_step_that_fails_loses_its_place(clock: Clock) -> None:
    room = StepRoom()
    five = Woken(room, 5)
    five.ask()

    def fails(share: StepShare) -> None:
        with share:
            share.ask()
            assert share.awaits()
            raise Unknown("nobody knows")

    with pytest.raises(Unknown):
        fails(five.shares[4])
    with five.shares[0]:
        pass
    assert (five.woken, room.held) == ([], 3 * FULL)


def test_who_leaves_gives_to_others_what_it_was_given(clock: Clock) -> None:
    room = StepRoom()
    six = Woken(room, 6)
    six.ask()
    with six.shares[4] as fifth:
        assert fifth.awaits()
    with six.shares[0]:
        pass
    assert six.woken == [4]
    fifth.leave()
    assert (six.woken, room.held) == ([4, 5], TOGETHER)
    fifth.leave()
    assert room.held == TOGETHER
