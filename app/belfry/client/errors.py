"""What can go wrong for a user of the client: one small tree.

    BelfryError
    ├── BadProperty             a client property that librdkafka or the registry's client refuses
    ├── Refused                 belfry's verdict is no; `verdict` holds it
    │   ├── NotFound            the schedule never was, or was cancelled
    │   ├── Conflict            CREATE of an existing id, or another version than expected
    │   │   └── TooLate         it has fired already
    │   └── Rejected            the request is not allowed; `code` says why, for programs
    ├── HandlerFailed           a subscriber's handler raised in every try; `event` holds its event
    ├── Exhausted               `retry_later` has no tries left; `event` holds the event
    ├── ClaimBroken             a stored payload is missing, or was changed
    ├── NotDecrypted            a payload's key is gone, or the bytes were changed
    └── Unavailable             Kafka or belfry does not answer; try again
        ├── MissingTopic        belfry's topics have not been created
        └── NoVerdict           no worker answered in time; the request is in the log

Every message says what was given, what is wrong, what is allowed and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.client.fired_record import FiredRecord


class BelfryError(Exception):
    """Any error that the client raises on purpose."""


class BadProperty(BelfryError, ValueError):
    """A property of a Kafka or registry client is unknown or has a value that is not allowed."""


class Refused(BelfryError):
    """The verdict on a request is no."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class NotFound(Refused):
    """There is no such schedule."""


class Conflict(Refused):
    """The schedule is not in the state that the request counts on."""


class TooLate(Conflict):
    """The schedule has fired already."""


class Rejected(Refused):
    """The request itself is not allowed."""

    @property
    def code(self) -> str:
        """Stable code of the rejection, such as ``instant_in_seconds``."""
        return self.verdict.code or "unknown"


class HandlerFailed(BelfryError):
    """A handler raised in every try; its event and those behind it in its partition are unread."""

    def __init__(self, message: str, event: FiredRecord) -> None:
        super().__init__(message)
        self.event = event


class Exhausted(BelfryError):
    """An event was retried as often as its backoff allows."""

    def __init__(self, message: str, event: FiredRecord) -> None:
        super().__init__(message)
        self.event = event


class ClaimBroken(BelfryError):
    """The object of an event's claim is missing, cut short, or another one."""


class NotDecrypted(BelfryError):
    """The key of an event's payload is gone, or its bytes are not the encrypted ones."""


class Unavailable(BelfryError):
    """Kafka, the registry or the workers could not be reached in time."""


class MissingTopic(Unavailable):
    """A topic of belfry's does not exist."""


class NoVerdict(Unavailable):
    """A request was written and no verdict came in time."""

    def __init__(self, message: str, request_id: str) -> None:
        super().__init__(message)
        self.request_id = request_id


_REFUSALS: Final[dict[Outcome, type[Refused]]] = {
    Outcome.NOT_FOUND: NotFound,
    Outcome.CONFLICT: Conflict,
    Outcome.TOO_LATE: TooLate,
    Outcome.REJECTED: Rejected,
}
_ADVICE: Final[dict[Outcome, str]] = {
    Outcome.NOT_FOUND: "There is no such schedule: it never was, or it was cancelled.",
    Outcome.CONFLICT: "The schedule exists, or has another version than expected.",
    Outcome.TOO_LATE: "The schedule has fired already.",
    Outcome.REJECTED: "The request is not allowed.",
}


def refusal(verdict: Verdict) -> Refused | None:
    """The error that a verdict amounts to, or None when it is a yes.

    A DUPLICATE counts as the first answer: its code names that outcome.
    """
    repeated = verdict.outcome is Outcome.DUPLICATE
    decisive = verdict.code if repeated else verdict.outcome
    kind = next((kind for outcome, kind in _REFUSALS.items() if outcome == decisive), None)
    if kind is None or decisive is None:
        return None
    code = f" ({verdict.code})" if verdict.code else ""
    why = verdict.reason or _ADVICE[Outcome(decisive)]
    return kind(f"{verdict.outcome}{code} {verdict.name}: {why}", verdict)
