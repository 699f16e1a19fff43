"""Whether a schedule can fire when a TRIGGER asks: that needs its rule, its key and its payload.

    TRIGGER ─► payload in the row ─────────────► fires
            └► payload in a day file ─► refused (`payload_away`), and the file is asked back
                                          a second later ─► the same request fires

A step waits for no store, so the first request is refused, with an outcome of its own.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.day_files import file_of
from belfry.engine.payloads import why_undecryptable
from belfry.engine.reply import Reply
from belfry.engine.waiting import Waiting
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.pending import Away, Pending
from belfry.store.readable import why_unreadable
from belfry.tenants.effective import Tenant

# Files that are asked back at once; further ones are asked for by later requests.
MOST_RECALLED: Final = 10
PAYLOAD_AWAY: Final = (
    "The schedule's payload lies in a day file, which is asked back now: send the request again in"
    " some seconds. Nothing fired."
)


def not_fired(record: bytes, row: Pending, tenant: Tenant, waiting: Waiting) -> Reply | None:
    """Why a schedule cannot be fired now, None where it can; a payload that is away is recalled.

    A reference that a later release has written names no file here, so none is asked back.
    """
    why = why_unreadable(record)
    if not why and type(row.payload) is Away and (file := file_of(record)) is not None:
        if len(waiting.recalled) < MOST_RECALLED:
            waiting.recalled[file] = None
        return Reply(Outcome.REJECTED, code="payload_away", reason=PAYLOAD_AWAY)
    if why or (why := why_undecryptable(row, tenant)):
        reason = f"The schedule cannot be fired by this worker: {why}."
        return Reply(Outcome.REJECTED, code="unreadable_schedule", reason=reason)
    return None
