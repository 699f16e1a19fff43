"""Unforeseen faults of belfry, met amid a request, which must not stop a partition.

A partition whose step raises starts over and reads the same request again.  So one request that
meets such a fault would stop all that is due behind it.  It is refused instead, and others go on:

    its reader raises        ─┐
    a check of it raises     ─┼─► check_failed ─► `belfry.rejected`, as for any refusal
    the step raises amid it  ─┘  (done again)  └─► effects.failed_checks ─► the worker's log,
                                                   once the step is committed

Readers and checks have changed nothing when they raise.  A step may have, so it is done again
without the request (`culprits.py`).  The log tells the error's type and the lines that led to it,
but not its message, which may have a part of the request in it.  Where there is no memory left, or
a disk fails, that is no fault of a request, and is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from belfry.engine.culprits import NO_FAULTS, REQUEST, Culprits, Fault
from belfry.engine.step import Step
from belfry.schedules.checks import RequestChecks
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import PlainRequest, Request
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

CODE: Final = "check_failed"
# So many of a step are told of in the log; all of them are counted by their code.
MOST_TOLD: Final = 5


def problem_of(
    checks: RequestChecks, request: Request, now_ms: int, step: Step
) -> Rejection | None:
    """First reason to refuse a request at `now_ms`, or None."""
    try:
        return checks.problem(request, now_ms)
    except NO_FAULTS:
        raise
    except Exception as error:  # noqa: BLE001  # nobody foresaw it
        return _refused("judged: a check of it", Fault.of(error), step)


def read_whole(reader: RequestReader, record: SourceRecord, step: Step) -> Request | Rejection:
    """The request in a record with all of its fields, or why it cannot be read."""
    try:
        return reader.read_whole(record)
    except NO_FAULTS:
        raise
    except Exception as error:  # noqa: BLE001  # nobody foresaw it
        return _refused("read: its reader", Fault.of(error), step)


def read_all(
    reader: RequestReader, records: Sequence[SourceRecord], step: Step
) -> list[Request | Rejection | PlainRequest]:
    """The requests in records, plain ones as bytes; one by one only where one of them raises."""
    read = reader.read
    try:
        return [read(each) for each in records]
    except NO_FAULTS:
        raise
    except Exception:  # noqa: BLE001  # nobody foresaw it
        return [_read(reader, each, step) for each in records]


def failed_amid(culprits: Culprits, record: SourceRecord, step: Step) -> Rejection | None:
    """Why a request is refused amid which the step has failed before; None for any other."""
    fault = culprits.of(REQUEST, record[0])
    return None if fault is None else _refused("carried out: what does so", fault, step)


def pass_over(culprits: Culprits, looked_at: tuple[str, bytes], step: Step) -> bool:
    """Whether the step has failed amid a look (its kind, the schedule's name); then it is told."""
    fault = culprits.of(*looked_at)
    if fault is not None:
        name = looked_at[1]
        tell(fault, step)
        step.effects.unreadable.append((name, f"a look at it ended in {fault.kind}"))
    return fault is not None


def tell(fault: Fault, step: Step) -> None:
    """Tell of a fault in the log, if the step has not told of many."""
    told = step.effects.failed_checks
    if len(told) < MOST_TOLD:
        told.append(fault.where)


def _read(reader: RequestReader, record: SourceRecord, step: Step) -> Any:
    try:
        return reader.read(record)
    except NO_FAULTS:
        raise
    except Exception as error:  # noqa: BLE001  # nobody foresaw it
        return _refused("read: its reader", Fault.of(error), step)


def _refused(how: str, fault: Fault, step: Step) -> Rejection:
    tell(fault, step)
    return Rejection(
        CODE,
        f"The request could not be {how} ended in {fault.kind}. It"
        " was not taken, and nothing has changed. The fault is belfry's: report it, with this"
        " record and with what the worker's log says of it.",
    )
