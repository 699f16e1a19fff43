"""`AuditEvent`: the record of a change, with the caller who asked for it and the result.

    result     DONE       it was carried out          REFUSED    the caller has no right to it
               REJECTED   the request was wrong       FAILED     belfry could not carry it out

Values of a policy are JSON, so that a reader without belfry understands them. Every text of a
caller is cut to 300 characters (`bounded`): a refused request may hold anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader

NAME: Final = "AuditEvent"
LONGEST_TEXT: Final = 300
LONGEST_VALUE: Final = 4_000

Result = Literal["UNKNOWN", "DONE", "REFUSED", "REJECTED", "FAILED"]


@dataclass(frozen=True, slots=True)
class Object:
    """One schedule of a request of many."""

    id: str
    outcome: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One field of a policy that changed; values as JSON, masked if they may be credentials."""

    field: str
    before: str | None = None
    after: str | None = None


@dataclass(slots=True, kw_only=True)
class AuditEvent:
    """Fields of the schema, in its order; `at` in epoch milliseconds.

    An event is never changed once it is made; it is not frozen, since one is made for each request.
    `via` is how the change came in (`http`, `topic`), `role` the caller's role, `count` how many
    refusals the event stands for, `source_…` the record of the topic of policies that it is about,
    and `reason` the caller's own reason.
    """

    at: int
    action: str
    result: Result = "UNKNOWN"
    via: str = "http"
    caller: str = ""
    role: str | None = None
    source_address: str | None = None
    tenant: str | None = None
    object: str | None = None
    status: int | None = None
    outcome: str | None = None
    code: str | None = None
    request_id: str | None = None
    trace_id: str | None = None
    worker: str | None = None
    count: int = 1
    objects: tuple[Object, ...] = ()
    changes: tuple[PolicyChange, ...] = ()
    source_topic: str | None = None
    source_partition: int | None = None
    source_offset: int | None = None
    reason: str | None = None


_TEXTS: Final = (
    *("action", "caller", "role", "source_address", "tenant", "object", "outcome", "code"),
    *("request_id", "trace_id", "worker", "source_topic", "reason"),
)


def bounded(event: AuditEvent) -> AuditEvent:
    """The event with texts that can be written and are cut to their longest size.

    The texts of a refused caller are arbitrary: its path may hold any characters, and very many.
    """
    texts: dict[str, Any] = {
        name: _cut(value, LONGEST_TEXT)
        for name in _TEXTS
        if (value := getattr(event, name)) is not None and not _fits(value)
    }
    if not (texts or event.objects or event.changes):
        return event
    objects = tuple(replace(each, id=_cut(each.id, LONGEST_TEXT)) for each in event.objects)
    return replace(event, **texts, objects=objects, changes=tuple(map(_bounded, event.changes)))


def encode_audit(event: AuditEvent) -> bytes:
    """Body of an audit event (no frame)."""
    return catalogue.encode(NAME, asdict(event))


def decode_audit(body: bytes, reader: RecordReader | None = None) -> AuditEvent:
    """An audit event, written with the schema of `reader` (belfry's own if none is given).

    Raises `MalformedError`.
    """
    return audit_of((reader or catalogue.own_reader(NAME)).read(body))


def audit_of(record: dict[str, Any]) -> AuditEvent:
    """An audit event from a decoded record."""
    objects = tuple(Object(**each) for each in record["objects"])
    changes = tuple(PolicyChange(**each) for each in record["changes"])
    return AuditEvent(**{**record, "objects": objects, "changes": changes})


def _bounded(change: PolicyChange) -> PolicyChange:
    values = (change.before, change.after)
    before, after = (None if each is None else _cut(each, LONGEST_VALUE) for each in values)
    return PolicyChange(change.field, before, after)


def _fits(text: str) -> bool:
    return len(text) <= LONGEST_TEXT and text.isascii()


def _cut(text: str, longest: int) -> str:
    whole = text.encode(errors="replace").decode()
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"
