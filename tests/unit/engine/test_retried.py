"""Records that consumers send back: each comes again when its wait is over, once, and then ends."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.wire.record import REDRIVEN_FROM, Headers
from tests.unit.engine.driver import T0, Driver, Shot

RETRY: Final = ("belfry-retry", b"first=5s factor=2 attempts=4")
FIRST: Final[Headers] = [
    ("belfry-tenant", b"demo"),
    ("belfry-id", b"charges/0/17"),
    ("belfry-type", b"charge"),
    ("content-type", b"text/plain"),
]


def back(driver: Driver, shot: Shot, now_ms: int, *more: tuple[str, bytes | None]) -> None:
    """What a consumer does with what it could not handle: all as it came, and one header more."""
    driver.send(shot.value, shot.key, [*shot.headers, *(more or (RETRY,))], now_ms)


def due(driver: Driver, now_ms: int) -> int:
    """Take the request in; when it is due, and not a millisecond before."""
    step = driver.step(now_ms)
    assert step.outcomes == ["ACCEPTED"], step.codes
    due_ms = next(told.due_at for told in step.effects.lifecycle if told.due_at is not None)
    assert driver.step(due_ms - 1).shots == []
    return due_ms


def fired(driver: Driver, now_ms: int) -> Shot:
    (shot,) = driver.step(now_ms).shots
    return shot


def test_a_record_comes_again_with_waits_that_grow_and_ends_as_a_dead_letter() -> None:
    driver = Driver()
    driver.send(b"card 4711", b"4711", [*FIRST, RETRY])
    now_ms = T0
    waits: list[int] = []
    for failed in (1, 2, 3):
        due_ms = due(driver, now_ms)
        waits.append(due_ms - now_ms)
        now_ms = due_ms
        shot = fired(driver, now_ms)
        assert (shot.topic, shot.key, shot.value) == ("belfry.fired.demo", b"4711", b"card 4711")
        assert shot.headers[:2] == [
            ("content-type", b"text/plain"),
            ("retry-attempt", b"%d" % failed),
        ]
        assert shot.header("belfry-schedule-type") == b"charge"
        names = [name for name, _ in shot.headers]
        assert len(names) == len(set(names)), "a header stands there twice"
        back(driver, shot, now_ms)
    assert waits == [5_000, 10_000, 20_000]
    step = driver.step(now_ms)
    (letter,) = step.effects.rejected
    assert (step.codes, step.outcomes) == (["retries_exhausted"], ["REJECTED"])
    assert (letter.key, letter.value) == (b"4711", b"card 4711")
    assert dict(letter.headers)["belfry-error-tenant"] == b"demo"
    assert driver.step(now_ms + 10**9).shots == []


def test_a_record_that_is_sent_back_twice_comes_again_once() -> None:
    """A consumer that dies before it has committed its offset does so."""
    driver = Driver()
    driver.send(b"v", b"k", [*FIRST, RETRY])
    due_ms = due(driver, T0)
    shot = fired(driver, due_ms)
    back(driver, shot, due_ms)
    back(driver, shot, due_ms + 9)
    assert driver.step(due_ms + 9).outcomes == ["ACCEPTED", "DUPLICATE"]
    assert len(driver.step(due_ms + 10_000).shots) == 1
    back(driver, shot, due_ms + 20_000)
    assert driver.step(due_ms + 20_000).outcomes == ["DUPLICATE"]
    assert driver.step(due_ms + 99_000).shots == []


def test_a_step_that_is_rolled_back_gives_the_same_instant() -> None:
    driver = Driver()
    driver.send(b"v", b"k", [*FIRST, ("belfry-retry", b"first=5s jitter=50%")])
    once = driver.step(T0, commit=False).effects.lifecycle
    later = driver.step(T0 + 777).effects.lifecycle
    assert [told.due_at for told in once] == [told.due_at for told in later]


def test_a_dead_letter_that_is_sent_again_begins_anew() -> None:
    driver = Driver()
    given: Headers = [*FIRST, ("retry-attempt", b"3"), RETRY]
    driver.send(b"v", b"k", given)
    assert driver.step(T0).codes == ["retries_exhausted"]
    driver.send(b"v", b"k", [*given, (REDRIVEN_FROM, b"belfry.rejected/0@0")])
    due_ms = due(driver, T0)
    assert due_ms == T0 + 5_000
    assert fired(driver, due_ms).header("retry-attempt") == b"1"


@pytest.mark.parametrize("cloud_event", [False, True])
def test_a_cloud_event_of_belfrys_is_made_anew(cloud_event: bool) -> None:
    driver = Driver()
    driver.apply(cloudevents=cloud_event)
    driver.send(b"v", b"k", [*FIRST, RETRY])
    shot = fired(driver, due(driver, T0))
    back(driver, shot, T0 + 5_000)
    again = fired(driver, due(driver, T0 + 5_000))
    assert again.header("belfry-fire-id") != shot.header("belfry-fire-id")
    ids = [given for name, given in again.headers if name == "ce_id"]
    assert ids == ([again.header("belfry-fire-id")] if cloud_event else [])


def test_a_group_stays_a_group() -> None:
    driver = Driver()
    driver.send(b"v", b"k", [*FIRST, ("belfry-group", b"card"), RETRY])
    shot = fired(driver, due(driver, T0))
    back(driver, shot, T0 + 5_000)
    again = fired(driver, due(driver, T0 + 5_000))
    assert (again.group, again.header("belfry-schedule-group")) == (b"card", b"card")


@pytest.mark.parametrize("key", [b"4711", b"demo/4711", None])
def test_a_record_of_the_topic_that_tenants_share_keeps_its_key(key: bytes | None) -> None:
    """There its tenant stands before its key, and would be added with each try."""
    driver = Driver()
    driver.apply(output="SHARED")
    driver.send(b"v", key, [*FIRST, RETRY])
    keys: list[bytes] = []
    now_ms = T0
    for _ in range(3):
        now_ms = due(driver, now_ms)
        shot = fired(driver, now_ms)
        assert shot.topic == "belfry.fired"
        keys.append(shot.key)
        back(driver, shot, now_ms)
    assert keys == [b"demo/" + (b"charges/0/17" if key is None else key)] * 3


def test_a_key_that_begins_with_the_tenant_stays_where_belfry_has_not_put_it_there() -> None:
    driver = Driver()
    driver.send(b"v", b"demo/4711", [*FIRST, RETRY])
    shot = fired(driver, due(driver, T0))
    back(driver, shot, T0 + 5_000)
    assert fired(driver, due(driver, T0 + 5_000)).key == b"demo/4711"
