"""What a step may have been, in the order in which it is tried."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine.after_acks import GRACE_MS
from belfry.engine.job_counts import Budget
from belfry.playback.attempts import (
    ALWAYS,
    Attempt,
    attempts_at,
    likeliest,
    refusing,
    sizes_of,
    swept,
)
from belfry.playback.logged import LoggedStep
from belfry.store.layout.manifests import Manifest
from belfry.wire.record import SourceRecord

BEFORE: Final = Manifest(6, 3, 80, 900, 2, 0, bytes(16))
WRITTEN: Final = 5_000


def step(fired: int = 3, watermark_ms: int = 1_000) -> LoggedStep:
    """A step of which no row tells anything."""
    manifest = Manifest(7, 3, 90, watermark_ms, 2, fired, bytes(16))
    return LoggedStep(20, 30, WRITTEN, {}, {}, manifest, True)


def silent(now_ms: int) -> Attempt:
    return Attempt(now_ms, 100, fires=False)


def test_a_step_that_fired_is_tried_by_its_watermark_first() -> None:
    assert attempts_at(step(), BEFORE, None, 100) == [
        Attempt(1_000, 100),
        Attempt(1_000, 3),
        silent(WRITTEN),
        silent(1_000),
        # Of its fires, two or one may have been those of a TRIGGER.
        Attempt(1_000, 2),
        Attempt(1_000, 1),
        Attempt(1_000, 50),
        Attempt(1_000, 100, in_time=3),
    ]


def test_where_the_watermark_stood_it_may_not_have_looked_at_what_was_due() -> None:
    found = attempts_at(step(), BEFORE._replace(watermark_ms=1_000), None, 100)
    assert found[:3] == [silent(WRITTEN), silent(1_000), Attempt(1_000, 100)]
    late = attempts_at(step(watermark_ms=9_000), BEFORE._replace(watermark_ms=9_000), None, 100)
    assert late[0] == silent(9_000)


def test_a_step_that_fired_nothing_may_have_been_at_the_instant_of_its_record() -> None:
    assert attempts_at(step(fired=0), BEFORE, None, 100) == [
        Attempt(1_000, 100),
        Attempt(1_000, 1),
        Attempt(WRITTEN, 100),
        Attempt(WRITTEN, 1),
        silent(WRITTEN),
        silent(1_000),
        Attempt(1_000, 50),
        Attempt(WRITTEN, 50),
        Attempt(1_000, 100, in_time=1),
        Attempt(WRITTEN, 100, in_time=1),
    ]


def test_up_to_eight_fires_may_have_been_extra_ones() -> None:
    found = attempts_at(step(fired=12), BEFORE, None, 20)
    assert [each.at_most for each in found if each.fires and each.in_time is None] == [
        20, 12, *range(11, 3, -1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("chunk", "sizes"), [(200, (200, 100, 50)), (50, (50,)), (30, (30,)), (99, (99, 50))]
)
def test_a_pace_is_halved_down_to_fifty_and_doubled_up_to_its_chunk(
    chunk: int, sizes: tuple[int, ...]
) -> None:
    assert sizes_of(chunk) == sizes


def test_a_large_pace_begins_with_five_hundred_and_comes_wherever_it_is_halved_and_doubled() -> (
    None
):
    found = sizes_of(10_000)
    assert found[:2] == (500, 10_000)
    assert (min(found), max(found)) == (50, 10_000)
    for size in found:
        assert {min(2 * size, 10_000), max(size // 2, 50)} <= set(found)
    assert len(set(found)) == len(found)


def test_where_jobs_are_under_way_they_work_at_once_or_a_little_later() -> None:
    found = attempts_at(step(), BEFORE, {}, 100)
    plain = attempts_at(step(), BEFORE, None, 100)
    # No row of a job was written, so it is likelier that none did anything.
    assert found[: len(plain)] == plain
    worked = found[len(plain) :]
    assert {each.without_jobs for each in worked} == set(plain[:6])
    first = [each for each in worked if each.without_jobs == plain[0]]
    assert list(dict.fromkeys(each.later_ms - 1_000 for each in first)) == [
        0,
        2,
        5,
        10,
        20,
        50,
        100,
    ]
    at_once = [each for each in first if each.later_ms == 1_000]
    assert at_once[0].budget == Budget(1 << 30, 1 << 30)
    assert (at_once[0].allotted, at_once[1].allotted) == ((), None)
    assert [each.budget for each in at_once[1:4]] == [
        Budget(500, 50), Budget(1_000, 100), Budget(2_000, 200)
    ]  # fmt: skip
    assert len(at_once) == 17
    assert len(first) == 17 + 6


def test_the_likeliest_are_the_first_six_and_of_those_that_work_the_first_of_each() -> None:
    plain = [Attempt(n, 1) for n in range(9)]
    worked = [each._replace(budget=Budget(n, n)) for each in plain for n in (1, 2)]
    assert likeliest(plain) == plain[:6]
    assert likeliest([*plain, *worked]) == [*plain[:6], *worked[0:12:2]]


def test_sweeps_come_behind_at_the_instant_of_the_step() -> None:
    tries = [Attempt(n, 1) for n in range(9)]
    assert list(swept(step(), tries)) == [
        each._replace(sweeps=(each.now_ms,)) for each in tries[:6]
    ]
    assert GRACE_MS > 0


def request(offset: int) -> SourceRecord:
    return (offset, 0, None, b"", None)


def test_a_store_may_have_been_away_for_all_requests_or_to_one_side_of_some() -> None:
    tries = [Attempt(n, 1) for n in range(9)]
    found = list(refusing(tries, [request(90), request(91), request(95)]))
    assert found[:6] == [each._replace(away=ALWAYS) for each in tries[:6]]
    assert [each.away for each in found[6:]] == [
        range(91, ALWAYS.stop), range(91), range(95, ALWAYS.stop), range(95)
    ]  # fmt: skip
    assert {each._replace(away=range(0)) for each in found[6:]} == {tries[0]}
    assert len(list(refusing(tries, [request(n) for n in range(500)]))) == 6 + 2 * 200
    assert list(refusing(tries, []))[6:] == []
