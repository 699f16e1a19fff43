"""Why a request that is well formed is not carried out: what it rests on does not hold.

Two things may be in the way.  Of the schedule: the version that the request expects is not there
(`unexpected`), or the schedule waits or has fired within the request's `throttle_ms`
(`throttled`); both answer with a `Reply`.  Of the tenant: its name collides with another one's, it
is one unknown tenant too many, or it is spread and names a group; these are a `Rejection`, with the
sentence that says what to do.  Limits that are counted are in `limits.py`.
"""

from __future__ import annotations

from belfry.engine.reports import Reply
from belfry.engine.transitions import Asked
from belfry.schedules.identity import expected_in, generation_of
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING
from belfry.schedules.throttle import CODE, is_within
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import ENDED_MISSED, decode_marker, is_marker
from belfry.store.overlaid import Overlaid
from belfry.tenants.effective import Tenant


def unexpected(expected: int, asked: Asked) -> Reply | None:
    """The reply to a request that counts on another version or generation, or None.

    `expected` is the field `expected_version`; `schedules.identity.expected_in` says how one number
    holds both.  This is what HTTP calls If-Match (RFC 9110, 13.1.1):

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
    window_ms = asked.request["throttle_ms"]
    if window_ms is None or not asked.version or asked.request["action"] not in KEEPING:
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


def group_of_spread(tenant: Tenant) -> Rejection:
    """Why a schedule of a spread tenant may not be in a group."""
    return Rejection(
        "group_of_spread_tenant",
        f"Tenant {tenant.name} is spread over {tenant.spread} shards, and a group is kept"
        " in order on one: leave the group out, or give its schedules another tenant.",
    )


def crowded_out(tenant: Tenant) -> Rejection:
    """Why nothing is kept for a tenant without a policy, where there are too many of those."""
    return Rejection(
        "too_many_tenants",
        f"Tenant {tenant.name!r} has neither a policy nor an output topic, and tenants without a"
        " policy have as many topics as they may have (BELFRY_UNKNOWN_TENANTS_MOST): run `belfry"
        f" tenant set {tenant.name}`, or create {tenant.topic}, and send the request again.",
    )


def collision(tenant: Tenant) -> Rejection:
    """Why nothing is kept for a tenant whose name collides with another one's."""
    reason = (
        f"Tenants {tenant.name!r} and {tenant.collides_with!r} cannot both exist: in Kafka's"
        " metrics a dot and an underscore are the same, so their topics collide. Choose another"
        " name."
    )
    return Rejection("tenant_collides", reason)
