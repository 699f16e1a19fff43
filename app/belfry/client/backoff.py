"""Trying again later: how long to wait, and a retry that is itself a schedule.

    @handlers.on("payment.due")
    def charge(event: FiredRecord) -> None:
        try:
            ...
        except BankIsAway:
            retry_later(belfry, event, Backoff(first="1m", factor=2, most="1h", attempts=10))

The retry is a one-shot schedule of the same tenant that carries the event's own key, headers and
payload, so it outlives the process and blocks nobody.  It has an id of its own, made of the fire
id: when the handler runs twice for one event, there is still one retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from belfry.client.asking import Asking
from belfry.client.errors import Conflict, Exhausted
from belfry.client.fired_record import FiredRecord
from belfry.client.options import Definition, Duration
from belfry.client.requests import duration_ms
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import ID_REUSED

ATTEMPT: Final = "retry-attempt"
# Attributes of a CloudEvent that belfry makes anew for each fire.
_MADE: Final = frozenset({"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time"})


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow: `first`, then `factor` times as long each time, never above `most`.

    `attempts` counts all tries, the first one too; after the last there is no wait.
    """

    first: Duration = "1s"
    factor: float = 2.0
    most: Duration = "1h"
    attempts: int = 8

    def delay_ms(self, failed: int) -> int | None:
        """Milliseconds to wait after so many failed tries (1 and up); None: no more tries."""
        if failed >= self.attempts:
            return None
        most_ms = duration_ms(self.most)
        try:
            wait_ms = duration_ms(self.first) * self.factor ** (failed - 1)
        except OverflowError:
            return most_ms
        return min(int(wait_ms), most_ms)


def attempt_of(event: FiredRecord) -> int:
    """How often an event has been retried: 0 for one that comes for the first time."""
    text = event.header(ATTEMPT)
    return int(text) if text is not None and text.isdecimal() else 0


def retry_later(belfry: Asking, event: FiredRecord, backoff: Backoff | None = None) -> Verdict:
    """Let an event fire once more after a wait; raises `Exhausted` when no tries are left.

    The verdict is waited for, so the event may be counted as handled when this returns.  The last
    of the `backoff`'s attempts has no retry; `attempt_of` tells a handler which one it sees.
    """
    failed = attempt_of(event) + 1
    delay_ms = (backoff or Backoff()).delay_ms(failed)
    tenant, fire_id = event.tenant, event.fire_id
    if tenant is None or fire_id is None:
        raise ValueError(f"{event.topic} offset {event.offset} is no event that belfry fired.")
    if delay_ms is None:
        raise Exhausted(
            f"{tenant}/{event.schedule_id} failed {failed} times, which is all that its backoff"
            " allows: put it aside, or give it more attempts.",
            event,
        )
    # An event that a redrive has sent again is tried again as well, within the hour too.
    retry = "/".join(filter(None, ("retry", fire_id, event.redriven)))
    definition = Definition(
        in_=delay_ms,
        payload=event.payload,
        key=event.own_key,
        headers=[*_own_headers(event), (ATTEMPT, str(failed))],
        request_id=retry,
    )
    if event.event_type:
        definition["event_type"] = event.event_type
    if event.event is not None and event.event["group"]:
        definition["group"] = event.event["group"]
    try:
        return belfry.schedule(tenant, retry, **definition)
    except Conflict as conflict:
        if conflict.verdict.code != ID_REUSED:
            raise
        # Put back already, a moment ago, by a handler with another backoff.
        return conflict.verdict


def _own_headers(event: FiredRecord) -> list[tuple[str, bytes | None]]:
    """The user's headers: without belfry's, and without the CloudEvent that belfry made."""
    made = event.header("ce_id") == event.fire_id
    return [
        (name, value)
        for name, value in event.headers
        if not name.startswith("belfry-") and name != ATTEMPT and not (made and name in _MADE)
    ]
