"""A logger that stays readable in a flood: the first lines of a reason, then one sum per interval.

A tenant's poison would otherwise write as many lines as it sends records.  Each reason (a stable
code, never text of a user) has its own allowance, so a flood of one hides none of another.

    |-- interval ------------------|-- interval ----------
    a a a a a . . . . . . . . . .  S a a ...
    first 5   counted only         "11 more" before the next line, or at `flush`

The first lines name what has happened, with all that varies: they are enough to look into it.  The
sum says how much of the same there was.  It is written before the next line of its reason, so that
it never stands behind what came later; where no such line comes, `flush` writes it.

Reasons are remembered, and codes of belfry are few.  If ever more than `MAX_REASONS` come, all
others share one allowance, under the name "other".
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol

MAX_REASONS: Final = 1_000
OTHER_REASONS: Final = "other"


class Logger(Protocol):
    """The methods that are needed of a logger; structlog's bound loggers have them."""

    def log(self, level: int, event: str, **values: Any) -> Any:
        """Write one line."""


@dataclass(slots=True)
class _Allowance:
    """The lines that a reason has used of its interval, begun `since` (seconds of the clock)."""

    since: float
    level: int
    written: int = 0
    held_back: int = 0


class LimitedLogger:
    """Limits the lines of each reason; safe to share between threads."""

    def __init__(
        self,
        logger: Logger,
        *,
        first: int = 5,
        interval_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let `first` lines of a reason pass in each `interval_seconds` of `clock`."""
        self._logger = logger
        self._first = first
        self._interval = interval_seconds
        self._clock = clock
        self._lock = Lock()
        self._reasons: dict[str, _Allowance] = {}

    def info(self, reason: str, event: str, **values: Any) -> None:
        """Write a line of level info, if its reason has lines left."""
        self.log(logging.INFO, reason, event, **values)

    def warning(self, reason: str, event: str, **values: Any) -> None:
        """Write a line of level warning, if its reason has lines left."""
        self.log(logging.WARNING, reason, event, **values)

    def error(self, reason: str, event: str, **values: Any) -> None:
        """Write a line of level error, if its reason has lines left."""
        self.log(logging.ERROR, reason, event, **values)

    def log(self, level: int, reason: str, event: str, **values: Any) -> None:
        """Write a line, or count it, and sum up what the interval before held back."""
        with self._lock:
            held_back, may_write = self._take(level, reason)
        self._sum_up(level, reason, held_back)
        if may_write:
            self._logger.log(level, event, reason=reason, **values)

    def flush(self) -> None:
        """Sum up reasons whose interval is over; call it now and then, and before stopping."""
        with self._lock:
            due = [(name, kept.level, kept.held_back) for name, kept in self._over()]
            for name, _, _ in due:
                del self._reasons[name]
        for name, level, held_back in due:
            self._sum_up(level, name, held_back)

    def _over(self) -> list[tuple[str, _Allowance]]:
        """Reasons whose interval is over."""
        now = self._clock()
        return [
            (n, kept) for n, kept in self._reasons.items() if now - kept.since >= self._interval
        ]

    def _take(self, level: int, reason: str) -> tuple[int, bool]:
        """How many lines to sum up first, and whether this one may be written."""
        now = self._clock()
        name = (
            reason if reason in self._reasons or len(self._reasons) < MAX_REASONS else OTHER_REASONS
        )
        kept = self._reasons.get(name)
        held_back = 0
        if kept is None or now - kept.since >= self._interval:
            held_back = 0 if kept is None else kept.held_back
            kept = self._reasons[name] = _Allowance(now, level)
        if kept.written < self._first:
            kept.written += 1
            return held_back, True
        kept.held_back += 1
        return held_back, False

    def _sum_up(self, level: int, reason: str, held_back: int) -> None:
        if held_back:
            self._logger.log(
                level, "Lines of this reason were held back.", reason=reason, lines=held_back
            )
