"""The benchmark of the console opens each of its views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from belfry.console.routes import console_routes

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "console_views.py"


def test_each_view_is_measured() -> None:
    app: Any = None
    routes: list[Any] = console_routes(app, is_open=True).routes
    views = {each.path for each in routes if "GET" in each.methods}
    text = BENCHMARK.read_text("utf-8")
    assert [view for view in sorted(views) if f'"{view}' not in text] == []
