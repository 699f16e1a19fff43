"""A redrive from begin to end, on a log in memory: what it reads, when it begins, when it ends."""

from __future__ import annotations

import pytest

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
    log, sent = RedrivenLog([event(f"{n}") for n in range(150)]), []

    def begin(number: int) -> None:
        sent.append(number)
        if log.begun == 1:
            redrive(log).send(per_second=FAST)

    with pytest.raises(AnotherRedrive):
        redrive(log).send(per_second=FAST, told=begin)
    assert sent == [100]
    assert log.transactions == [100, 50]
