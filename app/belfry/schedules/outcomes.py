"""What can become of a request, an occurrence or a delivery: one list for all who speak of it.

The lifecycle schema, the label of `belfry_requests_total` and the command line use these names.
"""

from __future__ import annotations

from enum import StrEnum


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
