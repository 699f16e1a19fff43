"""What a sweep has forgotten in the log: it is forgotten as well where its time was over."""

from __future__ import annotations

import pytest

from belfry.engine.job_counts import Budget
from belfry.playback.logged import LoggedRow
from belfry.schedules.bulk import BulkSpec
from belfry.store.layout.jobs import KEPT_MS, decode_job, job_key
from belfry.store.layout.records import MARKER_MS, decode_marker, is_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, decode_verdict, is_answer
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.trail import Leaving, is_manifest, play

JOB = job_key("demo", "job")


def over() -> tuple[Leaving, dict[bytes, int]]:
    """A schedule that has ended, and the answer to its request; until when each is kept."""
    trail, kept = Leaving(), dict[bytes, int]()
    trail.ask(T0, at=T0 + 10, request_id="r")
    trail.step(T0 + 5)
    trail.run(T0 + 20)
    for each in trail.log:
        if each.row and is_marker(each.row):
            kept[each.key] = decode_marker(each.row).ended_ms + MARKER_MS
        elif each.row and is_answer(each.row):
            kept[each.key] = decode_verdict(each.row).at_ms + REQUEST_ID_MS
    assert len(kept) == 2
    return trail, kept


def tombstones(trail: Leaving) -> list[bytes]:
    return [each.key for each in trail.log if each.row is None]


def forged(trail: Leaving, key: bytes) -> list[LoggedRow]:
    """The log with a tombstone in its last transaction."""
    at = max(n for n, each in enumerate(trail.log) if is_manifest(each))
    return [*trail.log[:at], LoggedRow(0, T0, key, None), *trail.log[at:]]


@pytest.mark.parametrize("which", [0, 1], ids=["answer", "marker"])
def test_ends_are_kept_up_to_the_request_by_which_their_time_is_over(which: int) -> None:
    for early_ms in (0, 1):
        trail, kept = over()
        key, until_ms = sorted(kept.items(), key=lambda each: each[1])[which]
        trail.ask(until_ms - early_ms, schedule_id="b", at=until_ms + HOUR)
        trail.step(until_ms + 5)
        trail.ask(until_ms + 10, schedule_id="c", at=until_ms + HOUR)
        trail.step(until_ms + 20)
        found = play(trail, forged(trail, key)).differs
        assert (None if found is None else found.name) == (key.decode() if early_ms else None)


@pytest.mark.parametrize("early_ms", [0, 1])
def test_ends_are_kept_for_as_long_as_the_policy_of_their_tenant_says(early_ms: int) -> None:
    trail = Leaving()
    trail.set(T0 - HOUR, tenant="demo", remember_ms=HOUR)
    trail.ask(T0, schedule_id="a/b", at=T0 + 10)
    trail.step(T0 + 5)
    trail.run(T0 + 20)
    (ended,) = [decode_marker(each.row) for each in trail.log if each.row and is_marker(each.row)]
    until_ms = ended.ended_ms + HOUR
    trail.ask(until_ms - early_ms, schedule_id="b", at=until_ms + HOUR)
    trail.step(until_ms + 5)
    trail.ask(until_ms + 10, schedule_id="c", at=until_ms + HOUR)
    trail.step(until_ms + 20)
    found = play(trail, forged(trail, b"demo/a/b")).differs
    assert (None if found is None else found.name) == ("demo/a/b" if early_ms else None)


def done() -> tuple[Leaving, int]:
    """A job that has ended, and when."""
    trail = Leaving()
    trail.ask(T0, schedule_id="s", at=T0 + HOUR)
    trail.step(T0 + 5)
    spec = BulkSpec(action="CANCEL", prefix="s", per_second=10_000).text()
    trail.ask(T0 + 10, schedule_id="job", action="BULK", bulk=spec)
    trail.step(T0 + 12)
    trail.ask(T0 + 20, schedule_id="beside", at=T0 + HOUR)
    trail.step(T0 + 21)
    while trail.engine.jobs.under_way:
        trail.engine.advance_jobs(T0 + 300, Budget(1_000, 100))
        trail.end(T0 + 300)
    row = [each.row for each in trail.log if each.key == JOB][-1]
    ended_ms = decode_job(row or b"").ended_ms
    assert ended_ms is not None
    return trail, ended_ms


@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_job_is_kept_for_a_week_by_the_clock(early_ms: int) -> None:
    trail, ended_ms = done()
    trail.sweep(ended_ms + KEPT_MS)
    assert tombstones(trail)[-1] == JOB
    # As if the record had been written within the millisecond, or too early by one.
    log = [
        each._replace(written_ms=min(each.written_ms, ended_ms + KEPT_MS - early_ms))
        for each in trail.log
    ]
    found = play(trail, log).differs
    assert (None if found is None else found.name) == (JOB.decode() if early_ms else None)


def test_a_job_that_is_under_way_is_not_forgotten() -> None:
    trail, _ = done()
    beside = next(n for n, each in enumerate(trail.log) if each.key == b"demo/beside")
    trail.log = trail.log[: beside + 2]
    assert is_manifest(trail.log[-1])
    assert play(trail).differs is None
    found = play(trail, forged(trail, JOB)).differs
    assert found is not None
    assert (found.name, found.logged) == (JOB.decode(), "a tombstone")
