"""Hosts that somebody has broken get nothing, and one that is closed is tried at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belfry.api.workers.host_breaks import MOST, HostBreak, HostBreaks
from belfry.delivery.answers import End
from belfry.delivery.attempts import BROKEN_STEP_MS
from belfry.delivery.hosts import FAILURES
from belfry.host.clock import SystemClock
from tests.unit.delivery.test_http_sender import Desk

FOR_EVER = 2**53


def now_ms() -> int:
    return int(SystemClock().wall_ms())


def broken(host: str, since_ms: int = 0, until_ms: int = FOR_EVER) -> HostBreak:
    return HostBreak(host, since_ms, until_ms, "ann", "maintenance")


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.sender.stop()


def test_nothing_is_posted_to_a_broken_host_and_its_deliveries_wait(desk: Desk) -> None:
    desk.means.breaks.open(broken("ok.com"))
    desk.hand_in("ok.com")
    ((_, answer),) = desk.wait(1)
    assert (answer.end, answer.code) == (End.POSTPONED, "host_broken")
    assert answer.reason == "ann has broken ok.com: maintenance"
    # It is looked at again long before the end of the break, which somebody may bring forward.
    assert 0 < answer.not_before_ms - now_ms() <= BROKEN_STEP_MS
    desk.hand_in("other.com")
    assert desk.wait(1)[0][1].end is End.DELIVERED
    desk.means.breaks.close("ok.com", now_ms())
    desk.hand_in("ok.com")
    assert desk.wait(1)[0][1].end is End.DELIVERED
    assert [host for host, _ in desk.net.posted] == ["other.com", "ok.com"]


def test_a_break_ends_by_itself(desk: Desk) -> None:
    desk.means.breaks.open(broken("ok.com", until_ms=now_ms()))
    desk.hand_in("ok.com")
    assert desk.wait(1)[0][1].end is End.DELIVERED


def test_a_target_beside_a_broken_one_gets_the_event(desk: Desk) -> None:
    desk.means.breaks.open(broken("ok.com"))
    desk.hand_in("ok.com", "other.com", strategy="FIRST_AVAILABLE")
    assert desk.wait(1)[0][1].end is End.DELIVERED


def test_closing_has_one_post_tried_past_the_open_circuit_breaker(desk: Desk) -> None:
    for _ in range(FAILURES):
        desk.hand_in("dead.com")
    assert {answer.code for _, answer in desk.wait(FAILURES)} == {"timeout"}
    desk.hand_in("dead.com")
    assert desk.wait(1)[0][1].code == "host_silent"
    desk.means.breaks.close("dead.com", now_ms())
    codes = []
    for _ in range(2):
        desk.hand_in("dead.com")
        codes.append(desk.wait(1)[0][1].code)
    assert codes == ["timeout", "host_silent"]


def test_only_so_many_hosts_are_broken_and_one_of_them_may_be_broken_anew() -> None:
    breaks = HostBreaks()
    assert all(breaks.open(broken(f"h{n}", until_ms=1_000)) for n in range(MOST))
    assert not breaks.open(broken("one.more"))
    assert breaks.open(broken("h0", until_ms=2_000))
    # Those that have ended make room.
    assert breaks.open(broken("one.more", since_ms=1_000))
    assert [each.host for each in breaks.all(1_000)] == ["h0", "one.more"]


def test_closing_tells_whether_there_was_a_break() -> None:
    breaks = HostBreaks()
    breaks.open(broken("h", until_ms=1_000))
    assert [breaks.close("h", 0), breaks.close("h", 0)] == [True, False]
    assert [breaks.is_tried("h"), breaks.is_tried("h"), breaks.is_tried("other")] == [
        True,
        False,
        False,
    ]
