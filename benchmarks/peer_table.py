"""The table of `make bench-peer`, from the JSON lines of its runs.

    python benchmarks/peer_table.py benchmarks/results/peer.jsonl

A row for each of belfry and Kafka Streams, and for each number of output topics: medians over the
rounds, and rates as parts of the median of `raw`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

HEAD: Final = (
    "| | topics | fires /s | of `raw` | late p50, p99 | CPU | memory |",
    "|---|---:|---:|---:|---|---:|---:|",
)
Run = dict[str, Any]


def table(runs: list[Run]) -> str:
    """The table, and the rate of `raw` below it."""
    raw = median(run["events_per_second"] for run in runs if run["who"] == "raw")
    cells: dict[tuple[str, str, int], list[Run]] = defaultdict(list)
    for run in runs:
        if run["who"] != "raw":
            cells[run["bench"], run["who"], run["topics"]].append(run)
    rows = [_row(*key, found, raw) for key, found in sorted(cells.items())]
    return "\n".join([*HEAD, *rows, "", f"raw: {_told(raw)} /s"])


def _row(bench: str, who: str, topics: int, runs: list[Run], raw: float) -> str:
    def middle(name: str) -> float:
        return median(run[name] for run in runs)

    if bench == "lateness":
        figures = f"| | | {middle('p50_ms'):.0f}, {middle('p99_ms'):.0f} ms"
    else:
        rate = middle("events_per_second")
        figures = f"| {_told(rate)} | {rate / raw:.2f} |"
    cost = f"{middle('cpu_seconds'):.1f} s | {middle('peak_rss_mb'):.0f} MB"
    return f"| {bench}, {who} | {topics} {figures} | {cost} |"


def _told(figure: float) -> str:
    return f"{figure:,.0f}".replace(",", " ")


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    print(table([json.loads(line) for line in lines]))
