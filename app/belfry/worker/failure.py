"""Why a term of ownership failed, in words: for the log, `/healthz/ready` and whoever decides."""

from __future__ import annotations

from typing import Final

from belfry.store.identity import Contradiction
from belfry.telemetry.limited import LimitedLogger

# How often a partition that waits for somebody's choice looks whether it was made.
PAUSE_CONTRADICTED_S: Final = 3.0


def tell_failure(faults: LimitedLogger, error: Exception) -> tuple[str, bool]:
    """Log a failure after which the partition is taken over anew; the problem in words.

    And whether it waits for somebody's choice: that is no reason to give the partition to another
    worker, who would meet the same.
    """
    if isinstance(error, Contradiction):
        faults.error(
            error.code,
            "the partition stops: evidence contradicts itself",
            code=error.code, what=error.what, choices=error.choices, see="docs/recovery.md",
        )  # fmt: skip
        return str(error), True
    problem = f"{type(error).__name__}: {error}"
    faults.error("starts over", "the partition starts over", cause=problem, exc_info=True)
    return problem, False
