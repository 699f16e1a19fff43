"""Curves of `belfry bench curve` as SVG: a line of the JSON results, no library needed.

    python benchmarks/plot.py benchmarks/results

Each `curve-NAME.jsonl` becomes `curve-NAME.svg`: events a second over the varied figure.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 640, 360, 60


def svg(points: list[tuple[float, float]], title: str) -> str:
    """A line chart: x logarithmic where it spans more than two powers of ten."""
    xs = [math.log10(max(x, 1)) for x, _ in points]
    top = max(y for _, y in points) * 1.1
    low, high = min(xs), max(xs) or 1
    place = [
        (
            MARGIN + (x - low) / ((high - low) or 1) * (WIDTH - 2 * MARGIN),
            HEIGHT - MARGIN - y / top * (HEIGHT - 2 * MARGIN),
        )
        for x, (_, y) in zip(xs, points, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">{given:,.0f}</text>'
        f'<text x="{x:.1f}" y="{y - 10:.1f}" text-anchor="middle">{figure:,.0f}/s</text>'
        for (x, y), (given, figure) in zip(place, points, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">'
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="15">{escape(title)}</text>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="2"/>'
        f"{marks}</svg>"
    )


def main(folder: Path) -> None:
    """Draw every curve in a folder."""
    for path in sorted(folder.glob("curve-*.jsonl")):
        lines = path.read_text().splitlines()
        results = [json.loads(line) for line in lines if line.startswith("{")]
        varied = path.stem.removeprefix("curve-")
        points = [(float(each["varied"]), float(each["events_per_second"])) for each in results]
        path.with_suffix(".svg").write_text(svg(points, f"events a second by {varied}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
