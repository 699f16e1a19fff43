"""Why a request that is well formed is not carried out, as far as its schedule is the reason.

    unexpected           another version, or another generation, than the request counts on
    throttled            the schedule waits, or has fired within the request's `throttle_ms`
    over, over_since     it has fired or ended; an import meets what fired after the export
    used_up              an update would leave nothing to fire
    oversize             its fired record would not fit the tenant's topic
    changed_too_often    its version has no room to grow

Each gives the `Reply`, with the sentence that says what to do.  Refusals by a tenant's policy are
in `admission.py`.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.asked_rows import Asked
from belfry.engine.reply import Reply
from belfry.schedules.identity import expected_in, generation_of
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import KEEPING
from belfry.schedules.throttle import CODE, is_within
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    decode_marker,
    is_marker,
)
from belfry.store.overlaid import Overlaid
from belfry.tenants.effective import Tenant

# The reply to a request that comes too late: code, and the end of the schedule.
ENDS: Final = {
    ENDED_FIRED: ("fired", "has fired"),
    ENDED_COMPLETED: ("completed", "was completed"),
    ENDED_MISSED: ("missed", "was given up as too late"),
}


def unexpected(expected: int, asked: Asked) -> Reply | None:
    """The reply to a request that counts on another version or generation, or None.

    `expected` is the field `expected_version`; `schedules.identity.expected_in` says how one number
    holds both.  HTTP calls this If-Match (RFC 9110, 13.1.1):

        12:00   A reads      etag 7.2              generation 7, version 2
        12:01   B updates    etag 7.3
        12:02   A updates, expecting 7.2           CONFLICT, wrong_version: B's update stays
        12:03   C cancels, and creates anew        etag 9.1
        12:04   B cancels, expecting 7.1           CONFLICT, wrong_generation: another schedule

    Requests of a schedule are judged in the order of its partition, so of two that expect the same
    version exactly one is carried out.
    """
    generation, version = expected_in(expected)
    there = 0 if asked.generation is None else generation_of(asked.generation)
    if version and not asked.version:
        code = "wrong_generation" if generation else "wrong_version"
        reason = (
            f"expected_version is {version}, but no schedule has this id: leave it out to make one."
        )
        return Reply(Outcome.CONFLICT, asked.version, None, code, reason)
    if generation and generation != there:
        reason = (
            f"expected_version is {version} of generation {generation}, but the schedule of this id"
            f" is another one now: version {asked.version} of generation {there}. Look at it again."
        )
        return Reply(Outcome.CONFLICT, asked.version, None, "wrong_generation", reason)
    if version == asked.version:
        return None
    reason = f"expected_version is {version}, but the schedule's version is {asked.version}."
    return Reply(Outcome.CONFLICT, asked.version, None, "wrong_version", reason)


def throttled(asked: Asked, arrived_ms: int, store: Overlaid) -> Reply | None:
    """The reply to a request that its `throttle_ms` drops, or None.

        row under the name      pending            ─► dropped: it waits
                                marker of a fire   ─► dropped within the window after it
                                marker of no fire, or none ─► taken in

    The reply is UNCHANGED with the code `throttled`, and names the instant from which on a request
    is taken in again.  `schedules/throttle.py` draws the window.  A schedule that was given up has
    not fired, and a cancelled one is not remembered: neither counts.
    """
    window_ms, remember_ms = asked.request["throttle_ms"], asked.tenant.remember_ms
    if window_ms is None or asked.request["action"] not in KEEPING:
        return None
    if window_ms > remember_ms:
        reason = (
            f"throttle_ms {window_ms} is longer than the tenant remembers that a schedule is over"
            f" (remember_ms {remember_ms}): make it shorter, or remember_ms longer."
        )
        return Reply(Outcome.REJECTED, asked.version, None, "bad_throttle", reason)
    if not asked.version:
        return None
    assert asked.row is not None
    if not is_marker(asked.row):
        due_ms = decode_pending(store.pending_at(asked.name, asked.row)).due_ms
        reason = "The schedule waits already, and throttle_ms leaves it as it is."
        return Reply(Outcome.UNCHANGED, asked.version, due_ms, CODE, reason)
    ended = decode_marker(asked.row)
    never = ended.how == ENDED_MISSED or not ended.occurrence
    if never or not is_within(arrived_ms, ended.ended_ms, window_ms):
        return None
    reason = (
        f"The schedule has fired at {format_instant(ended.ended_ms)}, and throttle_ms leaves room"
        f" for the next one from {format_instant(ended.ended_ms + window_ms)} on."
    )
    return Reply(Outcome.UNCHANGED, asked.version, ended.due_ms, CODE, reason)


def not_found() -> Reply:
    """The reply where there is no schedule, or none that is remembered."""
    return Reply(Outcome.NOT_FOUND, code="not_found", reason="No schedule has this id.")


def over(asked: Asked) -> Reply:
    """The reply to a request that comes too late: the schedule is over."""
    assert asked.row is not None
    marker = decode_marker(asked.row)
    code, became = ENDS[marker.how]
    reason = f"The schedule {became} within the last 24 hours."
    return Reply(Outcome.TOO_LATE, asked.version, marker.due_ms, code, reason)


def over_since(asked: Asked, due_ms: int) -> Reply | None:
    """The answer to an import of a schedule that fired or ended after its export; else None.

    A marker of a later due instant than the imported one says that this one is over as well.
    """
    if not asked.version or asked.row is None:
        return None
    marker = decode_marker(asked.row)
    if due_ms > marker.due_ms:
        return None
    code, became = ENDS[marker.how]
    at = format_instant(marker.ended_ms)
    reason = f"It {became} since, at {at}: an import does not begin it again."
    return Reply(Outcome.TOO_LATE, marker.version, marker.due_ms, code, reason)


def changed_too_often(version: int) -> Reply:
    """The reply to an update of a schedule whose version has no room to grow."""
    reason = (
        f"The schedule's version is {version}, the largest there is: cancel it, and create it anew."
    )
    return Reply(Outcome.REJECTED, None, None, "version_used_up", reason)


def used_up(asked: Asked, fires: int) -> Reply:
    """The reply to an update by which nothing would be left to fire."""
    reason = (
        f"max_fires is {asked.request['max_fires']}, and the schedule has fired {fires} times: give"
        " more, or cancel it."
    )
    return Reply(Outcome.REJECTED, None, None, "bad_max_fires", reason)


def all_passed(row: Pending, until_ms: int) -> Reply | None:
    """The reply to another rhythm with nothing due behind the last fire (epoch ms), else None."""
    if row.nominal_ms > until_ms or not row.extra:
        return None
    reason = (
        f"The rule has no instant after {format_instant(until_ms)}, up to which the schedule has"
        " fired: give one that goes on, or cancel it."
    )
    return Reply(Outcome.REJECTED, None, None, "never_fires", reason)


def oversize(tenant: Tenant, size: int) -> Reply:
    """The reply to a schedule whose fired record would not fit the tenant's topic."""
    reason = (
        f"The fired record would take {size} bytes, and {tenant.topic} takes"
        f" {tenant.max_record_bytes}: store the content elsewhere and schedule its address (claim"
        " check)."
    )
    return Reply(Outcome.REJECTED, None, None, "payload_too_large", reason)
