"""Outcomes of a request, an occurrence or a delivery: one list for the whole system.

The lifecycle schema, the label of `belfry_requests_total` and the command line use these names.

    a request      ACCEPTED UPDATED UNCHANGED PAUSED RESUMED TRIGGERED CANCELLED     it was taken in
                   NOT_FOUND TOO_LATE CONFLICT DUPLICATE REJECTED                    it was not
    an occurrence  FIRED MISSED                 a schedule   COMPLETED
    a delivery     DELIVERED FAILED

Each request has exactly one outcome.  A DUPLICATE has the first answer in its reason, so that a
sender who has lost that answer still learns it; the functions below write and read that.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """How something ended; the order is the schema's and only ever grows at its end."""

    UNKNOWN = "UNKNOWN"  # What readers see in place of a name that is newer than they are.
    ACCEPTED = "ACCEPTED"
    UPDATED = "UPDATED"
    UNCHANGED = "UNCHANGED"
    PAUSED = "PAUSED"
    RESUMED = "RESUMED"
    TRIGGERED = "TRIGGERED"
    CANCELLED = "CANCELLED"
    NOT_FOUND = "NOT_FOUND"
    TOO_LATE = "TOO_LATE"
    CONFLICT = "CONFLICT"
    DUPLICATE = "DUPLICATE"
    REJECTED = "REJECTED"
    FIRED = "FIRED"
    MISSED = "MISSED"
    COMPLETED = "COMPLETED"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"

    # Counted per event: Enum's own hash is a Python function, the text's is not.
    __hash__ = str.__hash__


# The code of a CONFLICT: the request's id belongs to another request.
ID_REUSED: Final = "request_id_reused"
_REPEATED: Final = re.compile(r"this request id was answered [A-Z_]+ \((\w+)\) before")


def repeat_reason(outcome: str, code: str) -> str:
    """The reason of a DUPLICATE, whose own code is the first outcome: the first answer."""
    return f"this request id was answered {outcome}{f' ({code})' if code else ''} before"


def first_code(reason: str | None) -> str | None:
    """The code of the first answer, by the reason of a DUPLICATE; None where it had none."""
    found = _REPEATED.fullmatch(reason or "")
    return found and found[1]


def reused_reason(request_id: str, first: str, outcome: str, code: str) -> str:
    """The reason of a CONFLICT with code `ID_REUSED`; `first` names the request that has the id."""
    return (
        f"request_id {request_id[:60]!r} belongs to another request, {first}, which was answered"
        f" {outcome}{f' ({code})' if code else ''} less than an hour before. This one asks for"
        " something else and changed nothing: give it a request_id of its own."
    )
