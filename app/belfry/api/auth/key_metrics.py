"""API keys as the metrics show them."""

from __future__ import annotations

from collections.abc import Callable

from belfry.api.auth.key_uses import KeyRow
from belfry.telemetry.key_metrics import KeyFigures


def figures_of(
    rows: Callable[[], list[KeyRow]], now_ms: Callable[[], float]
) -> Callable[[], list[KeyFigures]]:
    """What tells the figures of each key at the moment it is called."""

    def figures() -> list[KeyFigures]:
        at_ms = now_ms()
        return [
            KeyFigures(
                row.id, row.state(at_ms), _seconds(row.expires_ms), _seconds(row.last_ms), row.uses
            )
            for row in rows()
        ]

    return figures


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
