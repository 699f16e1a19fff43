"""How many connections a port has, and which makes room for another."""

from __future__ import annotations

import pytest

from belfry.api.server.room import REFUSED_SHARE, Connections


class Caller:
    """A connection that notes its end."""

    ended = False

    def make_room(self) -> None:
        assert not self.ended
        self.ended = True


def entered(room: Connections, hosts: list[str]) -> list[Caller]:
    found = []
    for host in hosts:
        found.append(Caller())
        assert room.enter(found[-1], host) == ""
    return found


def test_the_oldest_that_never_asked_makes_room_first() -> None:
    room = Connections(3, 3)
    asked, older, newer = entered(room, ["1.1.1.1", "1.1.1.2", "1.1.1.3"])
    room.answered(asked)
    room.idles(asked)
    for expected in (older, newer):
        new = Caller()
        assert room.enter(new, "1.1.1.4") == ""
        room.answered(new)
        assert expected.ended
        assert not asked.ended
    assert room.enter(Caller(), "1.1.1.5") == ""
    assert asked.ended


def test_who_is_answered_makes_no_room() -> None:
    room = Connections(10, 2)
    first, second = entered(room, ["1.1.1.1", "1.1.1.1"])
    room.answered(first)
    room.answered(second)
    assert "2 of your address" in room.enter(Caller(), "1.1.1.1")
    assert room.enter(Caller(), "1.1.1.2") == ""
    assert not first.ended
    assert not second.ended


def test_one_address_never_takes_what_others_need() -> None:
    room = Connections(100, 20)
    others = entered(room, [f"10.0.0.{each}" for each in range(60)])
    entered(room, ["1.1.1.1"] * 500)
    assert not any(other.ended for other in others)


@pytest.mark.parametrize(
    ("hosts", "together"),
    [
        (["2001:db8::1", "2001:db8::2:3"], True),
        (["2001:db8::1", "2001:db8:0:1::1"], False),
        (["::ffff:1.2.3.4", "1.2.3.4"], True),
        (["1.2.3.4", "1.2.3.5"], False),
        (["10.1.2.3", "10.1.2.3"], False),  # A proxy.
        (["", ""], False),
    ],
)
def test_what_counts_as_one_address(hosts: list[str], together: bool) -> None:
    room = Connections(10, 1, ["10.0.0.0/8", "a name"])
    first, _ = entered(room, hosts)
    assert first.ended is together


def test_what_has_ended_is_forgotten() -> None:
    room = Connections(2, 2)
    for _ in range(10):
        (caller,) = entered(room, ["1.1.1.1"])
        room.answered(caller)
        room.leave(caller)
        room.leave(caller)
    assert not room.is_overrun
    assert room.enter(Caller(), "1.1.1.1") == ""


def test_even_refusals_have_a_bound() -> None:
    room = Connections(10, 10)
    for caller in entered(room, ["1.1.1.1"] * 10):
        room.answered(caller)
    for _ in range(int(10 * (REFUSED_SHARE - 1)) + 1):
        refused = Caller()
        assert room.enter(refused, "1.1.1.1") != ""
        room.answered(refused)
    assert room.is_overrun
