"""Shares of hosts: who answers is waited for, who hangs has its deliveries postponed."""

from __future__ import annotations

from belfry.delivery import under_way
from belfry.delivery.answers import End
from belfry.delivery.under_way import POSTPONE_MS, SHARE, SILENT_HOST_MS, HostRoom, UnderWay
from belfry.delivery.work import Work, WorkId
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

MOST = 4 * SHARE
T0 = 1_000.0


def filled(host: str = "slow") -> UnderWay:
    """A host has all of its share, from offset 0 on."""
    found = UnderWay(MOST)
    for offset in range(found.share):
        assert found.room_at(host, T0) is HostRoom.FREE
        found.begin(WorkId(1, 0, offset), host, 100, T0)
    return found


def test_a_host_has_its_share_and_others_have_room() -> None:
    found = filled()
    assert found.room_at("slow", T0) is HostRoom.WAIT
    assert found.room_at("other", T0) is HostRoom.FREE
    assert (len(found), found.room) == (found.share, MOST - found.share)


def test_a_host_that_says_nothing_for_a_second_is_silent_until_it_answers() -> None:
    found = filled()
    late_ms = T0 + SILENT_HOST_MS
    assert found.room_at("slow", late_ms - 1) is HostRoom.WAIT
    assert found.room_at("slow", late_ms) is HostRoom.SILENT
    assert found.end(WorkId(1, 0, 0), 100, late_ms)
    found.begin(WorkId(1, 0, 9), "slow", 100, late_ms)
    assert found.room_at("slow", late_ms + 1) is HostRoom.WAIT


def test_an_end_without_an_answer_is_no_sign_of_the_host() -> None:
    found = filled()
    assert found.end(WorkId(1, 0, 0), 100, None)
    found.begin(WorkId(1, 0, 9), "slow", 100, T0 + SILENT_HOST_MS)
    assert found.room_at("slow", T0 + SILENT_HOST_MS) is HostRoom.SILENT


def test_what_is_of_a_term_that_is_over_counts_for_nothing() -> None:
    found = filled()
    assert not found.end(WorkId(0, 0, 0), 100, T0)
    assert len(found) == found.share
    found.clear()
    assert (len(found), found.room) == (0, MOST)
    assert not found.end(WorkId(1, 0, 0), 100, T0)
    assert found.room_at("slow", T0) is HostRoom.FREE


def test_many_bytes_leave_no_room() -> None:
    found = UnderWay(MOST)
    found.begin(WorkId(1, 0, 0), "one", under_way.MOST_BYTES, T0)
    assert found.room == 0
    assert found.end(WorkId(1, 0, 0), under_way.MOST_BYTES, None)
    assert found.room == MOST


def test_what_is_postponed_says_why_and_until_when() -> None:
    event = FiredEvent("demo", "a", "f" * 32, 1, 0, 0, 0, 0)
    state = DeliveryState((HttpTarget("http://slow.example.com/"),))
    answer = UnderWay(MOST).postponed(Work(b"k", b"v", event, [], state), 7)
    assert (answer.end, answer.code) == (End.POSTPONED, "host_silent")
    assert answer.reason.startswith("4 deliveries wait for the host")
    assert answer.not_before_ms == 7 + POSTPONE_MS
