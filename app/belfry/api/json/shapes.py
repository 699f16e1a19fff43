"""Schedules and verdicts as JSON: facts of the store and the lifecycle topic, in the API's names.

The models of `schedule_answers.py` document this JSON.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from typing import Any, Final

import orjson

from belfry.api.auth.principal import Principal, Role
from belfry.client.verdict import Verdict
from belfry.engine.drained import Drained
from belfry.schedules.field import Form
from belfry.schedules.fields import EMPTY, OF_A_RULE
from belfry.schedules.identity import generation_of, partition_of_life
from belfry.schedules.instants import format_instant
from belfry.schedules.masking import masked_target
from belfry.schedules.preview import words_of
from belfry.schedules.rule import Rule, decode_rule, has_targets, targets_in
from belfry.schedules.targets import records_in
from belfry.schedules.triggers.kind import TriggerKind
from belfry.schedules.triggers.registry import BY_CODE, KINDS
from belfry.store.layout.buckets import Bucket
from belfry.store.layout.pending import Away, Encrypted, Pending, decode_headers
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN
from belfry.store.lock_lookup import HeldLock
from belfry.store.lookup import ScheduleStatus
from belfry.store.readable import why_unreadable_rule
from belfry.store.recovery import EARLIER_INPUT

# Why a payload is not shown.
AWAY: Final = "its payload lies in a day file, and comes back a day before it is due"
UNDECRYPTABLE: Final = "its payload is encrypted, and no key of its tenant's that is here opens it"


def moment(ms: int | None) -> str | None:
    """An instant as RFC 3339, null for none."""
    return None if ms is None else format_instant(ms)


def bytes_json(name: str, value: bytes | None) -> dict[str, Any]:
    """Bytes under a name that shows their form: text if they are text, else base64."""
    if value is None:
        return {f"{name}_text": None}
    try:
        return {f"{name}_text": value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def summary(standing: ScheduleStatus) -> dict[str, Any]:
    """A schedule in a list."""
    tenant, _, schedule_id = standing.name.decode().partition("/")
    found: dict[str, Any] = {"tenant": tenant, "schedule_id": schedule_id, "state": standing.state}
    row, marker = standing.pending, standing.marker
    if marker is not None:
        found["version"], found["occurrence"] = marker.version, marker.occurrence
        found["generation"] = generation_of(marker.life)
        found["due_at"], found["ended_at"] = moment(marker.due_ms), moment(marker.ended_ms)
    if row is not None:
        found |= _waiting(row)
        found["payload_bytes"] = standing.payload_bytes
    return found


def count(bucket: Bucket) -> dict[str, Any]:
    """One minute bucket as it is shown."""
    return {
        "minute": moment(bucket.minute_ms),
        "pending": bucket.waiting,
        "first_due_at": moment(bucket.first_ms),
        "last_due_at": moment(bucket.last_ms),
    }


def drained(ended: Drained) -> dict[str, Any]:
    """The end of a minute bucket as it is shown."""
    return {
        "minute": moment(ended.minute_ms),
        "drained_at": moment(ended.drained_at_ms),
        "late_ms": ended.late_ms,
    }


def lock(tenant: str, held: HeldLock) -> dict[str, Any]:
    """An ack lock."""
    fire = held.awaited
    names = {"group": LOCKS_GROUP, "schedule": LOCKS_OWN}
    return {
        "tenant": tenant,
        "schedule_id": fire.schedule_id.decode(),
        "fire_id": held.fire_id.decode(),
        "group": fire.group.decode() or None,
        "locks": [name for name, bit in names.items() if fire.locks & bit],
        "version": fire.version,
        "due_at": moment(fire.due_ms),
        "fired_at": moment(fire.fired_ms),
        "expires_at": moment(fire.until_ms),
    }


def _waiting(row: Pending) -> dict[str, Any]:
    kind = BY_CODE.get(row.kind)
    found: dict[str, Any] = {
        "version": row.version,
        "generation": generation_of(row.life),
        "occurrence": row.occurrence,
        "due_at": moment(row.due_ms),
        "kind": "UNKNOWN" if kind is None else kind.name,
        "scheduled_at": moment(row.nominal_ms),
        "accepted_at": moment(row.accepted_ms),
        "jitter_ms": row.jitter_ms or None,
        "event_type": row.event_type.decode() or None,
        "group": row.group.decode() or None,
    }
    if kind is not None and not kind.recurs:
        found |= _shown(kind, kind.said(Rule(kind.name), row.when))
    why = why_unreadable_rule(row.extra)
    if why:
        found["unreadable"] = why
    elif row.extra:
        found |= _ruled(decode_rule(row.extra))
    return found


def _ruled(rule: Rule) -> dict[str, Any]:
    """The fields of a rule; those without a value are left out."""
    found = {name: getattr(rule, name) for name in OF_A_RULE}
    if rule.awaited is not None or rule.recurs:
        kind = KINDS[rule.kind]
        found |= _shown(kind, kind.said(rule, 0))
    found |= {name: moment(getattr(rule, name)) for name in ("start_at", "end_at", "latest_at")}
    return {name: value for name, value in found.items() if value is not None}


def _shown(kind: TriggerKind, said: int | str | None) -> dict[str, Any]:
    """The value of the kind's own field."""
    shown = moment(said) if isinstance(said, int) and kind.field.form is Form.INSTANT else said
    return {kind.field.name: shown}


def _words(row: Pending) -> str:
    """A schedule's rule in English."""
    rule, kind = decode_rule(row.extra), BY_CODE[row.kind]
    asked: Any = {
        **EMPTY,
        **{name: getattr(rule, name) for name in OF_A_RULE},
        "tenant": row.tenant.decode(),
        "schedule_id": row.schedule_id.decode(),
        "kind": kind.name,
        kind.field.name: kind.said(rule, row.when),
        "jitter_ms": row.jitter_ms,
    }
    return words_of(asked)


def whole(standing: ScheduleStatus) -> dict[str, Any]:
    """A schedule with everything that it will send."""
    found = summary(standing)
    row = standing.pending
    if row is None:
        return found
    if "unreadable" not in found:
        found["words"] = _words(row)
    if row.seq < EARLIER_INPUT:
        found["source_partition"] = partition_of_life(row.life)
        found["source_offset"] = row.seq
    found |= bytes_json("key", row.key)
    if type(row.payload) in (Encrypted, Away):
        why = AWAY if type(row.payload) is Away else UNDECRYPTABLE
        found.setdefault("unreadable", why)
        return found | {"headers": _headers(row)}
    found |= payload_json(row.payload)
    found["headers"] = _headers(row)
    if has_targets(row.extra):
        found["http_targets"] = records_in(targets_in(row.extra))
    return found


def payload_json(payload: bytes | None) -> dict[str, Any]:
    """A payload as bytes, and as JSON where it is an object or a list."""
    found = bytes_json("payload", payload)
    if payload is not None and payload[:1] in (b"{", b"["):
        with suppress(orjson.JSONDecodeError):
            found["payload_json"] = orjson.loads(payload)
    return found


def source_in(standing: ScheduleStatus, partition: int) -> dict[str, Any]:
    """Nulls for the place of the request of a schedule that came to this partition from another.

    Its order here may be that of the record that brought it, which is no request.
    """
    row = standing.pending
    if row is None or partition_of_life(row.life) == partition:
        return {}
    return {"source_partition": None, "source_offset": None}


def _headers(row: Pending) -> list[dict[str, Any]]:
    """The user's headers."""
    return [
        {"name": name, **bytes_json("value", value)} for name, value in decode_headers(row.headers)
    ]


def masked_for(caller: Principal, standing: ScheduleStatus) -> dict[str, Any]:
    """The fields that replace the targets for this caller; empty if it may see them."""
    row = standing.pending
    if caller.may(Role.SCHEDULE) or row is None or not has_targets(row.extra):
        return {}
    return {"http_targets": [masked_target(each) for each in records_in(targets_in(row.extra))]}


def verdict(given: Verdict) -> dict[str, Any]:
    """A verdict; instants as text."""
    return {
        "tenant": given.tenant,
        "schedule_id": given.schedule_id,
        "outcome": given.outcome,
        "request_id": given.request_id,
        "fire_id": given.fire_id,
        "version": given.version,
        "generation": given.generation,
        "at": moment(given.at_ms),
        "due_at": moment(given.due_ms),
        "code": given.code,
        "reason": given.reason,
        "source_topic": given.source_topic,
        "source_partition": given.source_partition,
        "source_offset": given.source_offset,
    }
