"""Constants are differences between runs: what a start costs, and what a payload adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belfry.bench.calibration import CalibrationRun, IdleWorker, constants_of
from belfry.bench.result import Result
from belfry.capacity.constants import MEASURED

EVENTS, PAYLOAD, BIG = 1_000_000, 400, 2_000
START_S = 2.0
IDLE = IdleWorker(START_S, mb=150, many_mb=206)


def run(
    cpu_us: float, payload: int = PAYLOAD, *, seconds: float = 10.0, mb: float = 300.0
) -> CalibrationRun:
    """A run of a million events, which took so many microseconds of CPU each."""
    result = Result("x", EVENTS, seconds, EVENTS / seconds, payload_bytes=payload)
    return CalibrationRun(
        result.using(cpu_us, mb),
        broker_cpu_s=cpu_us * 2,
        state_bytes=EVENTS * (100 + payload),
        changelog_bytes=EVENTS * (150 + payload),
        request_bytes=EVENTS * (90 + payload),
        fired_bytes=160.0 + payload,
    )


def runs() -> dict[str, CalibrationRun]:
    return {
        "in": run(START_S + 10 + 0.01 * PAYLOAD),
        "in_bigger": run(START_S + 10 + 0.01 * BIG, BIG, mb=364),
        "in_one": run(START_S + 14, seconds=20, mb=210),
        # Five partitions have full buffers, and 27 have none.
        "in_many": run(START_S + 14, mb=180 + 32 * 2 + 5 * 28),
        # A worker that fires has started before.
        "out": run(16 + 0.005 * PAYLOAD, mb=300 + 4 * (2 + 8)),
        "out_bigger": run(16 + 0.005 * BIG, BIG, mb=364 + 4 * (2 + 40)),
        "out_one": run(18, seconds=25),
        "follow": run(START_S + 5),
        "follow_bigger": run(START_S + 4, BIG, seconds=12),
    }


def test_what_the_runs_say() -> None:
    found = constants_of(runs(), IDLE)
    assert found.keys() == set(MEASURED)
    expected = {
        "in_cpu_us": 10,
        "in_cpu_us_per_byte": 0.01,
        "out_cpu_us": 16,
        "out_cpu_us_per_byte": 0.005,
        # More bytes cannot cost less: that is chance.
        "follow_cpu_us": 5,
        "follow_cpu_us_per_byte": 0,
        "read_back_us": 9.5,
        "read_back_us_per_byte": 2 / 1_600,
        "in_per_second_of_a_partition": 50_000,
        "out_per_second_of_a_partition": 40_000,
        "worker_mb": 180,
        "partition_mb": 30,
        "partition_mb_per_byte": 64 / 4 / 1_600,
        "idle_partition_mb": 2,
        "full_partitions": 5,
        "firing_mb": 2,
        "firing_mb_per_byte": 0.02,
        "cores_of_a_process": 3.0,
        "request_bytes": 90,
        "row_bytes": 150,
        "ended_bytes": 0,
        "fired_bytes": 160,
        "state_bytes": 100,
        "state_bytes_per_byte": 1,
        "broker_in_cpu_us": 24,
        "broker_cpu_us_per_byte": 0.02,
        "broker_out_cpu_us": 4,
    }
    assert found == pytest.approx(expected)


def test_without_a_broker_of_this_machine_nothing_is_said_of_it() -> None:
    found = {name: replace(each, broker_cpu_s=None) for name, each in runs().items()}
    assert not any(name.startswith("broker") for name in constants_of(found, IDLE))


def test_memory_of_a_worker_is_never_less_than_nothing() -> None:
    """Peaks scatter: the run with more may have had less."""
    peaks = {"in_one": 400, "in_many": 250, "in_bigger": 200, "out": 290, "out_bigger": 190}
    less = runs() | {name: run(18, mb=mb) for name, mb in peaks.items()}
    found = constants_of(less, IdleWorker(START_S, mb=206, many_mb=150))
    assert found["worker_mb"] == 400
    assert found["full_partitions"] == 1
    others = ("partition_mb", "partition_mb_per_byte", "idle_partition_mb")
    assert [found[name] for name in (*others, "firing_mb", "firing_mb_per_byte")] == [0] * 5
