"""A background goes on after a turn that failed, ends when it is asked to, and is found."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.host.background import END, Background, started

WAIT_S = 10


class Log:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **values: Any) -> None:
        self.lines.append((event, values))


@pytest.mark.parametrize(
    ("error", "traced"),
    [
        (ValueError("of its own"), True),
        (OSError("disk"), False),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), False),
        # As a client of the group raises it whose place another one has taken.
        (KafkaError(KafkaError.FENCED_INSTANCE_ID), False),
    ],
)
def test_a_turn_that_fails_is_told_and_ends_nothing(error: Any, traced: bool) -> None:
    turns, again, log = list[int](), Event(), Log()

    def work() -> None:
        turns.append(1)
        if len(turns) == 1:
            raise error
        again.set()
        background.stopping.wait(WAIT_S)

    background = Background("tested", work, log, "not done", again_s=0.0)
    background.start()
    assert again.wait(WAIT_S)
    assert background.alive
    assert background.stop(WAIT_S)
    assert background.failures == 1
    assert log.lines == [("not done", {"reason": str(error), "exc_info": traced})]


def test_the_last_thing_is_done_in_the_thread_after_the_last_turn() -> None:
    done = list[str]()
    background = Background("tested", lambda: background.stopping.wait(WAIT_S), Log(), "not done")
    background.last = lambda: done.append("last")
    background.start()
    assert not done
    assert background.stop(WAIT_S)
    assert done == ["last"]


def test_one_that_was_not_started_ends_at_once() -> None:
    background = Background("tested", lambda: None, Log(), "not done")
    assert background.stop()
    assert background not in started()


def test_one_that_hangs_is_told_of() -> None:
    goes_on = Event()
    background = Background("hangs", lambda: goes_on.wait(WAIT_S), Log(), "not done")
    background.start()
    assert background in started()
    assert not background.stop(0.01)
    goes_on.set()
    assert background.stop(WAIT_S)
    assert background not in started()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_ended_by_itself_is_found_dead() -> None:
    def work() -> None:
        raise SystemExit

    background = Background("dies", work, Log(), "not done")
    background.start()
    background._thread.join(WAIT_S)
    assert [each for each in started() if not each.alive] == [background]
    background.stop()


def test_who_begins_and_ends_while_others_look_is_found_alive_or_not_at_all() -> None:
    """Partitions' loops begin and end threads all the time, and liveness looks at all of them."""
    over, dead = Event(), list[str]()

    def churn() -> object:
        each = Background("brief", lambda: END, Log(), "not done")
        each.start()
        each.join(WAIT_S)
        return END if over.is_set() else None

    churning = [Background(f"churning-{number}", churn, Log(), "not done") for number in range(4)]
    for each in churning:
        each.start()
    for _ in range(2_000):
        dead += [each.name for each in started() if each.name == "brief" and not each.begun]
    over.set()
    assert all(each.stop(WAIT_S) for each in churning)
    assert not dead
    assert "brief" not in {each.name for each in started()}
