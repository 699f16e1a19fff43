"""Nothing grows: a leak of each kind is seen, and ``make soak HOURS=1`` looks for real ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from belfry.devstack import Stack
from tests.acceptance.harness import sent
from tests.acceptance.harness.load import Shape
from tests.acceptance.harness.site import Site
from tests.soak.samples import Sample, grown, growth, late, sample
from tests.soak.soaking import Soak

HOURS = float(os.environ.get("HOURS", "0"))
PER_SECOND = int(os.environ.get("PER_SECOND", "200"))
EVENTS = 600_000


def flat() -> list[Sample]:
    """An hour of a worker that is well: it warms up, then swings a little around one level."""
    return [
        Sample(
            at_s=10.0 * number,
            memory_mb=min(180.0, 100.0 + 2.0 * number) + number % 3,
            handles=90 + number % 4,
            threads=40 + number % 2,
            disk_mb=0.05 * number + 4.0 * (number % 5),
        )
        for number in range(360)
    ]


def leaking(**by: float) -> list[Sample]:
    """The same hour, with something more in every sample than in the one before."""
    return [
        replace(each, **{name: getattr(each, name) + step * number for name, step in by.items()})
        for number, each in enumerate(flat())
    ]


def test_a_worker_that_is_well_stays_flat() -> None:
    assert grown(flat(), EVENTS) == []


@pytest.mark.parametrize(
    ("leak", "word"),
    [
        ({"memory_mb": 0.2}, "memory"),
        ({"handles": 0.05}, "handles"),
        ({"threads": 0.03}, "threads"),
        ({"disk_mb": 3.0}, "disk"),
    ],
)
def test_each_leak_is_seen(leak: dict[str, float], word: str) -> None:
    (told,) = grown(leaking(**leak), EVENTS)
    assert word in told


def test_a_rising_lateness_is_seen() -> None:
    assert late([12.0] * 60) == []
    assert late([12.0 + 5.0 * minute for minute in range(60)])


def test_growth_is_what_a_line_gains_over_the_warm_part() -> None:
    line = [Sample(float(at), 100.0 + at, 0, 0, 0.0) for at in range(101)]
    assert growth(line, lambda each: each.memory_mb) == pytest.approx(80.0)


def test_a_sample_is_of_a_real_process(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"x" * 50_000)
    one = sample(os.getpid(), tmp_path, 0.0)
    assert one.memory_mb > 10
    assert one.handles >= 3
    assert one.threads >= 1
    assert one.disk_mb == pytest.approx(0.05)


if HOURS:  # Under CI a skip is a failure, and nobody waits an hour there.

    @pytest.mark.timeout(int(HOURS * 3600 + 1800))
    def test_nothing_grows(
        kafka: str, idle_stack: Stack, tmp_path: Path, unique: Callable[[str], str]
    ) -> None:
        calm = {"SESSION_TIMEOUT_MS": "6000", "HEARTBEAT_INTERVAL_MS": "1000"}
        with Site(kafka, unique("soak"), tmp_path, **calm) as site:
            shape = Shape(PER_SECOND, (1.0, 60.0), 1)
            soak = Soak(site, shape, HOURS * 3600, idle_stack.kafka.log_dir)
            report = soak.run()
            sent.write(soak.sent, tmp_path / "sent.jsonl")
            (tmp_path / "samples.json").write_text(json.dumps([asdict(s) for s in soak.samples]))
            print("\n" + json.dumps(soak.figures(report)))  # noqa: T201  # the run's result
            assert not report.findings, report.summary()
            assert not soak.not_flat(report), soak.not_flat(report)
