"""What `make bench` makes of its results: the table and the curves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from belfry.bench.plan import SWEEPS, BenchPlan, curve
from belfry.bench.result import BenchRuns, Result

ROOT = Path(__file__).parents[2]
PLAN = BenchPlan("ingest")


def run(bench: str, rate: float, **figures: Any) -> str:
    result = Result.of(BenchPlan(bench), 1000, 1000 / rate)
    return json.dumps({**json.loads(result.line()), **figures})


def made(script: str, folder: Path) -> str:
    command = [sys.executable, str(ROOT / "benchmarks" / script), str(folder)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return ran.stdout


def test_the_table_has_medians_and_ratios_to_raw(tmp_path: Path) -> None:
    raws = [run("raw", 90_000), run("raw", 110_000), run("raw", 100_000), run("raw", 100_000)]
    (tmp_path / "raw.jsonl").write_text("\n".join(["# belfry bench raw", *raws]))
    rates = [40_000, 60_000, 50_000, 50_000]
    runs = [run("ingest", rate, peak_rss_mb=200.0) for rate in rates]
    (tmp_path / "ingest.jsonl").write_text("\n".join(["# belfry bench ingest", *runs]))
    late = run("lateness", 1000, p50_ms=8.0, p99_ms=15.0, p999_ms=20.0)
    (tmp_path / "late.jsonl").write_text(f"# belfry bench lateness\n{late}")
    lines = made("table.py", tmp_path).splitlines()
    rated = next(line for line in lines if "bench ingest" in line)
    assert "50 000 /s" in rated
    assert "40 000 to 60 000" in rated
    assert "| 0.50 |" in rated
    assert "200 MB" in rated
    assert "p50 8.0 ms, p99 15.0 ms" in next(line for line in lines if "bench lateness" in line)


def test_a_curve_becomes_a_picture(tmp_path: Path) -> None:
    points = [run("ingest", 50_000 - step, varied=step) for step in (10, 1000, 10_000)]
    (tmp_path / "curve-pending.jsonl").write_text("\n".join(points))
    made("plot.py", tmp_path)
    picture = ET.fromstring((tmp_path / "curve-pending.svg").read_text())
    assert len(picture.findall("{http://www.w3.org/2000/svg}circle")) == 3


def test_a_spread_is_its_median_and_its_range() -> None:
    results = [Result.of(PLAN, 1000, seconds) for seconds in (1.0, 0.5, 2.0)]
    assert BenchRuns(results).median().events_per_second == 1000
    assert BenchRuns(results).text() == "median 1,000.0 /s of 3 runs, 500.0 to 2,000.0"


def test_each_step_of_a_curve_says_what_it_varies() -> None:
    for sweep, (name, values) in SWEEPS.items():
        steps = curve(PLAN, sweep)
        assert tuple(varied for _, varied in steps) == values
        assert [getattr(plan, name) for plan, _ in steps] == list(values)


def test_the_table_of_peers_has_medians_over_rounds_and_parts_of_raw(tmp_path: Path) -> None:
    def line(bench: str, who: str, topics: int, rate: float, late: float | None = None) -> str:
        figures = {"who": who, "topics": topics, "cpu_seconds": 2.0, "peak_rss_mb": 100.0}
        return run(bench, rate, **figures, p50_ms=late, p99_ms=late and 2 * late)

    rounds = [
        line("raw", "raw", 0, 200_000),
        *(line("fire", "belfry", 97, rate) for rate in (90_000, 100_000, 170_000)),
        *(line("fire", "Kafka Streams", 1, rate) for rate in (40_000, 50_000, 60_000)),
        *(line("lateness", "belfry", 97, 5_000, late) for late in (4, 8, 50)),
    ]
    (tmp_path / "peer.jsonl").write_text("\n".join(rounds))
    said = made("peer_table.py", tmp_path / "peer.jsonl")
    assert "| fire, belfry | 97 | 100 000 | 0.50 | | 2.0 s | 100 MB |" in said
    assert "| fire, Kafka Streams | 1 | 50 000 | 0.25 | | 2.0 s | 100 MB |" in said
    assert "| lateness, belfry | 97 | | | 8, 16 ms | 2.0 s | 100 MB |" in said
    assert said.endswith("raw: 200 000 /s\n")
