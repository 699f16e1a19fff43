"""A benchmark tells how far it is while it writes and while it waits for workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belfry.bench import runs, workload
from belfry.bench.plan import BenchPlan
from belfry.bench.worker import WorkerFailed
from belfry.bench.workload import Workload, write


class Waiting:
    """A cluster in which more is taken in at each look."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.taken_in = iter([0, 400, 1000])

    def tell(self, what: str, done: int, of: int) -> None:
        self.told.append((what, done, of))

    def pending(self) -> int:
        return next(self.taken_in)


def awaited(cluster: Any, count: Callable[[], int]) -> None:
    runs._await(count, 1000, runs.TAKEN_IN, cluster)


def test_a_wait_tells_what_is_there_until_all_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belfry.bench.runs.time.sleep", lambda _: None)
    cluster = Waiting()
    awaited(cluster, cluster.pending)
    what = "requests taken in"
    assert cluster.told == [(what, 0, 1000), (what, 400, 1000), (what, 1000, 1000)]


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.001, 0.2), (0.02, 0.4), (3.0, 1.0)])
def test_who_answers_slowly_is_asked_less_often(
    took_s: float, pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of 10 000 tenants would work on answers, and be measured at that."""
    slept: list[float] = []
    monkeypatch.setattr("belfry.bench.runs.time.sleep", slept.append)
    counts, now = iter([400, 1000]), [0.0]
    monkeypatch.setattr("belfry.bench.runs.time.monotonic", lambda: now[0])

    def answer() -> int:
        now[0] += took_s
        return next(counts)

    awaited(Waiting(), answer)
    assert slept == [pytest.approx(pause_s)]


def test_a_wait_that_is_in_vain_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LONGEST_S", -1.0)
    with pytest.raises(WorkerFailed, match="7 of 1000 requests taken in, and no more"):
        awaited(Waiting(), lambda: 7)


def test_a_wait_lasts_as_long_as_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """To take 30 000 000 requests in takes longer than any run may stand still."""
    now, counts = [0.0], iter([0, 300, 600, 1000])

    def slept(_: float) -> None:
        now[0] += 0.9 * runs.LONGEST_S

    monkeypatch.setattr("belfry.bench.runs.time.sleep", slept)
    monkeypatch.setattr("belfry.bench.runs.time.monotonic", lambda: now[0])
    awaited(Waiting(), lambda: next(counts))
    with pytest.raises(WorkerFailed, match="700 of 1000 requests taken in, and no more for 600 s"):
        awaited(Waiting(), lambda: 700)


def test_requests_that_are_taken_in_when_they_are_due_are_no_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "_now_ms", lambda: 9_000)
    plan = BenchPlan("fire", events=1000)
    assert runs._in_time(1000, plan, 10_000) == 1000
    with pytest.raises(WorkerFailed, match="taken in too late: 7 of 1000 waited"):
        awaited(Waiting(), lambda: runs._in_time(7, plan, 9_999))


def test_writing_tells_how_many_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Producer:
        def __init__(self, _properties: dict[str, Any]) -> None:
            self.poll = self.produce = lambda *_given, **_named: None
            self.flush = lambda: None

    monkeypatch.setattr(workload, "Producer", Producer)
    told: list[tuple[int, int]] = []
    write({}, "belfry.schedules", Workload(5000, 0), lambda _, done, of: told.append((done, of)))
    assert told == [(0, 5000), (4096, 5000), (5000, 5000)]
