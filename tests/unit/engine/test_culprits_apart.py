"""Whoever is blamed is blamed alone: what failed for one is done as ever for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.rerouting import Rerouting
from belfry.engine.transitions import Transitions
from belfry.schedules.identity import Homes
from belfry.tenants.effective import Level
from belfry.wire.record import Origin, origin_headers
from tests.unit.engine.driver import HOUR, T0, TOPIC, Driver, request

MUCH: Final = Budget(1_000, 1_000)
FAULTY: Final = b"demo/fault"


def faulty(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    meets: Callable[..., bool],
    error: type[Exception] = KeyError,
) -> None:
    """Let a function of a class raise where it is given what it `meets`."""
    sound = getattr(owner, name)

    def planted(*given: Any, **named: Any) -> Any:
        if meets(*given):
            raise error("planted")
        return sound(*given, **named)

    monkeypatch.setattr(owner, name, planted)


# -- requests ------------------------------------------------------------------------------------


def test_one_that_fails_sends_no_plain_one_the_general_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Transitions, "begin", lambda *_: True)
    # A tenant that is told of each of its requests has none that is plain.
    driver = Driver(Level.FAILURES)
    driver.note(held="")
    for name in ("a", "b"):
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.ask(schedule_id="fault", kind="EVERY", interval_ms=HOUR)
    driver.ask(schedule_id="c", at=T0 + 5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"]
    assert driver.run(T0 + 5) == ["a", "b", "c"]


def test_a_request_that_cannot_be_sent_on_unread_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, Rerouting, "send", lambda _, record, *__: record[2] == b"fault/a")
    driver = Driver(partition=1, partitions=1)
    unread = b"\0\0\0\0\x4d" + b"nobody knows its schema"
    for key in (b"good/a", b"fault/a", b"good/b"):
        driver.send(unread, key)
    engine = driver.engine
    effects = engine.accept(driver.batch(), T0, {})
    assert [each.key for each in effects.rerouted] == [b"good/a", b"good/b"]
    assert [each.key for each in effects.rejected] == [b"fault/a"]
    assert engine.position == 3


def test_a_home_that_follows_and_fails_gives_no_second_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faulty(monkeypatch, KeptJobs, "follow", lambda *_: True)
    spread = 8
    first, second, third = Homes(8).all_of("demo", (spread,))[:3]
    driver = Driver(partition=second, partitions=8)
    driver.apply(spread=spread)
    asked = request(action="BULK", schedule_id="job", request_id="r", bulk='{"action": "PAUSE"}')
    origin = Origin(TOPIC, first, 7, T0, rerouted=True)
    driver.send(asked, headers=origin_headers(origin, 1))
    step = driver.step(T0)
    assert (step.codes, step.outcomes) == (["check_failed"], [])
    assert [each.partition for each in step.effects.rerouted] == [third]
    assert not driver.engine._parts.culprits.some


def test_a_trace_that_fails_is_not_told_and_its_request_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def planted(*_: Any) -> Any:
        raise KeyError

    monkeypatch.setattr("belfry.engine.traces.sampled_in", planted)
    driver = Driver(traces=True)
    driver.ask(kind="EVERY", interval_ms=HOUR)
    step = driver.step(T0)
    assert (step.codes, step.outcomes) == ([], ["ACCEPTED"])
    assert (len(step.effects.failed_checks), step.effects.traced) == (1, [])
