"""A redrive from begin to end, on a log in memory: what it reads, when it begins, when it ends."""

from __future__ import annotations

import pytest

from belfry.client.errors import Unavailable
from belfry.client.redrive import Redrive
from belfry.client.redrive_source import AnotherRedrive, TooMuchToRedrive
from belfry.client.refired import FiredSource, RefireRange
from belfry.client.refusals import RedriveRange, RefusedSource
from tests.unit.client.redriven_log import NAMES, TOPIC, RedrivenLog, event, refusal

FAST = 1_000_000


def redrive(log: RedrivenLog, most_read: int | None = None, name: str = "redrive") -> Redrive:
    return Redrive(log, NAMES, FiredSource(TOPIC, RefireRange(0, 9, name=name)), most_read)


def test_each_event_is_sent_once_in_transactions_of_a_hundred() -> None:
    log = RedrivenLog([event(f"{n}") for n in range(250)])
    assert len(redrive(log).send(per_second=FAST).places) == 250
    assert log.transactions == [100, 100, 50]
    assert not redrive(log).send(per_second=FAST).places
    assert redrive(log).count().redriven == 250


def test_what_a_redrive_sends_does_not_make_it_too_much() -> None:
    log = RedrivenLog([event(f"{n}") for n in range(30)])
    for left in (30, 20, 10, 0):
        assert len(redrive(log, 30).send(per_second=FAST, at_most=10).places) == left
    # Copies under another name are read as well, and that is told before anything is sent.
    with pytest.raises(TooMuchToRedrive, match="More than 30 records"):
        redrive(log, 30, "other").send(per_second=FAST, at_most=10)
    with pytest.raises(TooMuchToRedrive):
        redrive(RedrivenLog([event(f"{n}") for n in range(31)]), 30).count()


def test_what_is_read_is_bounded_also_where_all_was_sent_before() -> None:
    log = RedrivenLog([])
    for number in range(46):
        mark = ("belfry-redriven", b"redrive@%d" % (2 * number))
        log.records += [event(f"{number}"), [*event(f"{number}"), mark]]
    with pytest.raises(TooMuchToRedrive):
        redrive(log, 30).count()
    assert log.read <= 92
    assert redrive(log, 31).count().redriven == 46


def test_requests_that_are_refused_again_do_not_make_it_too_much() -> None:
    log = RedrivenLog([refusal([]) for _ in range(30)], "belfry.rejected")
    log.at_ms = lambda offset: 1 if offset < 30 else 9
    source = RefusedSource("belfry.", RedriveRange("demo", 0, 9))
    for left in (30, 20, 10, 0):
        told = Redrive(log, NAMES, source, 30).send(per_second=FAST, at_most=10)
        assert (len(told.places), told.redriven) == (left, 30 - left)


def test_a_redrive_that_finds_nothing_ends_no_other_one() -> None:
    log = RedrivenLog([event(f"{n}") for n in range(150)])
    others = FiredSource(TOPIC, RefireRange(0, 9, prefix="none"))

    def another() -> None:
        assert not Redrive(log, NAMES, others).send().places

    log.commits = another
    assert len(redrive(log).send(per_second=FAST).places) == 150
    assert log.transactions == [100, 50]


def test_a_redrive_that_has_something_to_send_ends_the_other_one() -> None:
    log = RedrivenLog([event(f"{n}") for n in range(150)])
    sent: list[int] = []

    def begin(number: int) -> None:
        sent.append(number)
        if log.begun == 1:
            redrive(log).send(per_second=FAST)

    with pytest.raises(AnotherRedrive):
        redrive(log).send(per_second=FAST, told=begin)
    assert sent == [100]
    assert log.transactions == [100, 50]


def test_sending_ends_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    log, now_s, takes_s = RedrivenLog([event(f"{n}") for n in range(1_000)]), 0.0, 3.0
    waited: list[float] = []

    def takes() -> None:
        nonlocal now_s
        now_s += takes_s

    def pause(seconds: float) -> bool:
        nonlocal now_s
        now_s += seconds
        waited.append(seconds)
        return False

    log.commits = takes
    monkeypatch.setattr("belfry.client.redrive.monotonic", lambda: now_s)
    source = FiredSource(TOPIC, RefireRange(0, 9))
    sent: list[int] = []
    slow = Redrive(log, NAMES, source, pause=pause)
    # Its transactions begin at 0 s, 3 s, 6 s and 9 s.
    assert len(slow.send(per_second=10_000, told=sent.append, at_most_s=10.0).places) == 1_000
    assert sent == [100, 200, 300, 400]
    assert sum(waited) == 0
    # One a second, and the one that would begin at 10 s is not waited for.
    log.transactions.clear()
    takes_s = 0.25
    slow.send(per_second=25, at_most_s=10.0)
    assert log.transactions == [25] * 10
    assert waited[-9:] == [0.75] * 9


def test_an_end_is_asked_for_between_transactions_and_while_reading() -> None:
    log, ends = RedrivenLog([event(f"{n}") for n in range(1_000)]), False

    def begin(number: int) -> None:
        nonlocal ends
        ends = number >= 200

    source = FiredSource(TOPIC, RefireRange(0, 9))
    stopped = Redrive(log, NAMES, source, pause=lambda _: ends)
    assert len(stopped.send(per_second=FAST, told=begin).places) == 1_000
    assert log.transactions == [100, 100]
    log.read = 0
    for ask in (stopped.count, stopped.send):
        with pytest.raises(Unavailable, match="The process ends"):
            ask()
    assert log.read == 0
