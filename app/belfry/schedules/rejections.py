"""Why a request is refused: a value with a stable code, never an exception on the hot path.

A reason says what was given, what is wrong, what is allowed and what to do.  The codes are part of
the contract (`belfry-error-code`); `docs/rejections.md` explains each.

    code     instant_in_seconds
    reason   at 1796115600 is before 2001: instants are epoch milliseconds (13 digits today); if
             it counts seconds, send 1796115600000.

A program decides by the code alone; the reason may get other words in any release.  A code is never
taken away and never gets another meaning.  A refused request goes to `belfry.rejected` as it came,
with code and reason, so that it can be sent again (`docs/redrive.md`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

CODES: Final = {
    "not_a_request": "The value is neither framed Avro nor does it come with belfry headers.",
    "truncated": "The value ends in the middle of its Avro record.",
    "unknown_schema_id": "The registry does not know the schema id in front of the value.",
    "unknown_schema_fingerprint": "The single-object fingerprint is none of belfry's.",
    "schema_unavailable": "The registry did not answer within its limit.",
    "schema_not_a_request": "The writer's schema cannot be read as a ScheduleRequest.",
    "schema_unsafe": "The writer's schema is recursive or holds empty items, a bomb to decode.",
    "request_too_large": "The request is larger than belfry decodes.",
    "unreadable_batch": "Kafka holds the record in a batch that cannot be unpacked.",
    "no_tenant": "The request names no tenant.",
    "bad_tenant": "The tenant's name is not allowed.",
    "bad_schedule_id": "The schedule's id is not allowed.",
    "bad_header": "A belfry header cannot be read.",
    "unknown_header": "A header has a name of belfry's that is none of its fields.",
    "bad_request_id": "The request's id is not allowed.",
    "unknown_action": "The action is not one of those that this version knows.",
    "unknown_kind": "The kind is not one of those that this version knows.",
    "bad_fire_id": "An acknowledgement names no fire.",
    "no_instant": "The request does not say when.",
    "several_instants": "The request says when in more than one way.",
    "retries_exhausted": "The record that is put back has failed in every try.",
    "instant_in_seconds": "The instant looks like seconds; belfry counts milliseconds.",
    "instant_too_far": "The instant is more than 100 years away.",
    "bad_jitter": "The jitter is negative or longer than a year.",
    "bad_delay": "The delay is negative or longer than 100 years.",
    "bad_max_wait": "The longest wait is shorter than the delay, or belongs to another kind.",
    "bad_throttle": "The window is not positive, longer than a day, or belongs to another kind.",
    "bad_after_ack": "What a schedule waits for, or how long, cannot be, or is of another kind.",
    "bad_interval": "The interval is not positive, or longer than 100 years.",
    "bad_cron": "The cron expression cannot be read.",
    "bad_rule": "What says when cannot be read.",
    "bad_timezone": "The time zone is no IANA name.",
    "bad_window": "The bounds contradict each other, or belong to another kind.",
    "bad_max_fires": "The number of fires is not positive.",
    "bad_max_lateness": "The longest lateness is negative or longer than 100 years.",
    "unknown_misfire": "The misfire policy is not one of those that this version knows.",
    "unknown_overlap": "The overlap policy is not one of those that this version knows.",
    "bad_overlap": "The overlap policy contradicts the misfire policy, or that the group waits.",
    "no_group": "An event that a group is to wait for has none.",
    "bad_concurrency": "The number of fires at once is not 1 to 255, or contradicts serial.",
    "bad_priority": "The priority is not -9 to 9, or belongs to an event of a group.",
    "bad_ack_timeout": "The acknowledgement's time-out is not positive, or longer than a year.",
    "bad_target": "An HTTP target cannot be posted to as it is written.",
    "target_not_allowed": "The tenant's policy does not allow a target's host or secret.",
    "bad_standing": "An imported schedule's standing contradicts its rule.",
    "version_used_up": "The schedule was changed more often than its version counts.",
    "never_fires": "The rule has no instant from now on.",
    "bad_calendar": "A calendar, or what a schedule says of one, cannot be read.",
    "unknown_calendar": "The tenant has no calendar of the name that the schedule has.",
    "unknown_awaited": "Nothing of the tenant is there that could be acknowledged by this name.",
    "circular_wait": "The schedule would wait for itself, by way of others.",
    "too_many_waiting": "As many schedules wait for this acknowledgement as may.",
    "wait_of_spread_tenant": "Schedules of a spread tenant cannot wait for one another.",
    "too_many_calendars": "The tenant has as many calendars as it may have.",
    "bad_bulk": "What a bulk job is to do cannot be read.",
    "too_many_jobs": "The tenant has as many bulk jobs under way as it may have.",
    "bad_fields": "A field is longer than allowed.",
    "payload_too_large": "The fired event would not fit the output topic.",
    "check_failed": "What judges or carries out the request failed, which is a fault of belfry.",
    "bad_move": "A record that moves a key group does not fit, or nobody may move any.",
    "misrouted": "The workers do not agree on the partition that owns the request's schedule.",
    "unreadable_schedule": "A later release, newer time zone data or a key is needed to fire it.",
    "payload_away": "The schedule's payload lies in a day file, which is asked back.",
    "payload_key_missing": "The worker lacks the key that encrypts the tenant's payloads.",
    "payload_not_stored": "A large payload could not be stored where the tenant's go.",
    "tenant_held": "Nothing fires of the tenant at the moment: its topic, or its policy.",
    "too_many_requests": "The tenant sends more requests a second than its policy allows.",
    "too_many_pending": "The tenant has as many pending schedules as its policy allows.",
    "group_of_spread_tenant": "A tenant that is spread over shards cannot keep groups in order.",
    "too_many_tenants": "Tenants without a policy have as many output topics as they may have.",
    "unknown_tenant": "The tenant has no policy, and this belfry takes no unknown ones.",
    "tenant_removed": "The tenant was removed.",
    "unsigned": "The tenant has to sign its requests, and this one shows no signature.",
    "bad_signature": "The signature was not made with the tenant's secret over this record.",
    "tenant_collides": "The tenant's topic name collides with another tenant's.",
}

# Refusals that depend on the moment: on a rate, or on the operators' setup of the tenant.
# The same request may be taken in later, so they are not remembered under its id.
PASSING: Final = frozenset(
    {
        "too_many_requests",
        "too_many_pending",
        "too_many_jobs",
        "unknown_calendar",
        "too_many_calendars",
        "unknown_awaited",
        "circular_wait",
        "too_many_waiting",
        "wait_of_spread_tenant",
        "unreadable_schedule",
        "payload_away",
        "payload_key_missing",
        "payload_not_stored",
        "tenant_held",
        "too_many_tenants",
        "unknown_tenant",
        "tenant_removed",
        "target_not_allowed",
        "group_of_spread_tenant",
        "payload_too_large",
        "misrouted",
        "check_failed",
        "schema_unavailable",
    }
)


class Rejection(NamedTuple):
    """A refused request: `code` for programs, `reason` for people."""

    code: str
    reason: str
