"""The table of `docs/performance.md`, from the JSON lines that `make bench` leaves.

    python benchmarks/table.py benchmarks/results

A row a file: the command, median and range of its runs, and the ratio to the mean of all `raw` runs
of the same folder, which is the yardstick of rates.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, median
from typing import Any

Run = dict[str, Any]
RATED = ("ingest", "fire")


def read(folder: Path) -> dict[str, tuple[str, list[Run]]]:
    """Of each file its command and its runs."""
    found = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        lines = path.read_text().splitlines()
        runs = [json.loads(line) for line in lines if line.startswith("{")]
        if lines and runs and not path.stem.startswith("curve"):
            found[path.stem] = (lines[0].removeprefix("# "), runs[:-1] if runs[1:] else runs)
    return found


def row(command: str, runs: list[Run], raw: float) -> str:
    """One line of the table."""
    if runs[0]["p50_ms"] is not None:
        p50, p99 = (median(run[name] for run in runs) for name in ("p50_ms", "p99_ms"))
        worst = [run["p99_ms"] for run in runs]
        figure = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms"
        spread = f"p99 {min(worst):.0f} to {max(worst):.0f} ms"
        return f"| `{command}` | {figure} | {spread} | | {_memory(runs)} |"
    rates = [run["events_per_second"] for run in runs]
    rated = runs[0]["bench"] in RATED and raw
    ratio = f"{median(rates) / raw:.2f}" if rated else ""
    spread = f"{_thousands(min(rates))} to {_thousands(max(rates))}"
    seconds = median(run["seconds"] for run in runs)
    figure = f"{_thousands(median(rates))} /s ({seconds:.1f} s)"
    return f"| `{command}` | {figure} | {spread} | {ratio} | {_memory(runs)} |"


def _memory(runs: list[Run]) -> str:
    peak = max(run["peak_rss_mb"] or 0 for run in runs)
    return f"{peak:.0f} MB" if peak else ""


def _thousands(figure: float) -> str:
    return f"{figure:,.0f}".replace(",", " ")


def main(folder: Path) -> None:
    """Print the table."""
    results = read(folder)
    raws = [run["events_per_second"] for _, runs in results.values() for run in runs
            if run["bench"] == "raw"]  # fmt: skip
    raw = mean(raws) if raws else 0.0
    print("| command | median | range | of `raw` | memory of a worker |")
    print("|---|---:|---:|---:|---:|")
    for command, runs in results.values():
        print(row(command, runs, raw))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
