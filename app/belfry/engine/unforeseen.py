"""A check that raises: a fault of belfry, which must not stop a partition.

A partition whose step raises starts over and reads the same request again.  So one request that
meets such a fault would stop all that is due behind it.  It is refused instead, and others go on:

    check raises ─┬─► check_failed ─► `belfry.rejected`, as for any refusal
                  └─► effects.faults ─► the worker's log, once the step is committed

A check has changed nothing when it raises.  What has no memory left is no fault of a check, and is
raised.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.step import Step
from belfry.schedules.checks import RequestChecks
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request

# Faults of one step that are told of in the log; all of them are counted by their code.
MOST_FAULTS: Final = 5


def problem_of(
    checks: RequestChecks, request: Request, now_ms: int, step: Step
) -> Rejection | None:
    """First reason to refuse a request at `now_ms`, or None."""
    try:
        return checks.problem(request, now_ms)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # nobody foresaw it
        if len(step.effects.faults) < MOST_FAULTS:
            step.effects.faults.append(error)
        return Rejection(
            "check_failed",
            f"The request could not be judged: a check of it ended in {type(error).__name__}. It"
            " was not taken, and nothing has changed. The fault is belfry's: report it, with this"
            " record and with what the worker's log says of it.",
        )
