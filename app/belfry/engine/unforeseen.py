"""A check that raises: a fault of belfry, which must not stop a partition.

A partition whose step raises starts over and reads the same request again.  So one request that
meets such a fault would stop all that is due behind it.  It is refused instead, and others go on:

    check raises ─┬─► check_failed ─► `belfry.rejected`, as for any refusal
                  └─► effects.failed_checks ─► the worker's log, once the step is committed

A check has changed nothing when it raises.  The log tells the error's type and the lines that led
to it, but not its message, which may have a part of the request in it.  What has no memory left is
no fault of a check, and is raised.
"""

from __future__ import annotations

from traceback import format_tb
from typing import Final

from belfry.engine.step import Step
from belfry.schedules.checks import RequestChecks
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request

# So many of a step are told of in the log; all of them are counted by their code.
MOST_TOLD: Final = 5


def problem_of(
    checks: RequestChecks, request: Request, now_ms: int, step: Step
) -> Rejection | None:
    """First reason to refuse a request at `now_ms`, or None."""
    try:
        return checks.problem(request, now_ms)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # nobody foresaw it
        kind, told = type(error).__name__, step.effects.failed_checks
        if len(told) < MOST_TOLD:
            told.append(f"{''.join(format_tb(error.__traceback__))}{kind}")
        return Rejection(
            "check_failed",
            f"The request could not be judged: a check of it ended in {kind}. It"
            " was not taken, and nothing has changed. The fault is belfry's: report it, with this"
            " record and with what the worker's log says of it.",
        )
