"""Schedules as they stand, their last fires and ack locks: values, read from the API's JSON.

    {"schedule_id": "order-7", "state": "PENDING", "version": 3, "generation": 1234567,
     "due_at": "2026-12-01T09:00:00Z", "payload_text": "unpaid", …}
    ─► Scheduled(schedule_id="order-7", state="PENDING", version=3, due_ms=1796115600000,
                 payload=b"unpaid", …).etag == "1234567.3"

A worker answers with them over HTTP (`listing.py`), and `belfry.testing` makes the same ones in
memory, so that a program cannot tell the two apart. Names that are not known here stay in `fields`:
a client of an older release loses nothing that a newer worker tells.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any, Self, TypedDict

from belfry.schedules.identity import etag_of
from belfry.schedules.instants import parse_instant
from belfry.wire.record import Headers


class Filters(TypedDict, total=False):
    """Which schedules a list shows; all of those that are given have to fit."""

    prefix: str
    """How their ids begin."""
    state: str
    """``PENDING``, ``PAUSED``, or how they ended."""
    group: str
    """Their group."""
    event_type: str
    """Their event type."""
    due_from: int | str | datetime
    """Due at or after this instant."""
    due_until: int | str | datetime
    """Due before this instant."""


@dataclass(frozen=True, slots=True)
class PastDelivery:
    """How a delivery of a fire ended: DELIVERED or FAILED, at which attempt (from 1), and when.

    `code` says why it failed.
    """

    target: str
    outcome: str
    attempt: int
    at_ms: int
    code: str | None

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """An end of a delivery in the API's JSON."""
        same = {name: found[name] for name in ("target", "outcome", "attempt", "code")}
        return cls(**same, at_ms=parse_instant(found["at"]))


@dataclass(frozen=True, slots=True)
class PastFire:
    """A fire that was; instants in epoch milliseconds.

    It stood for `missed` late occurrences besides its own.  `fire_id` and `scheduled_ms`, its
    instant by the rule, are None if the schedule is over.  `deliveries` are ends that failed or
    took more than one attempt, at the lifecycle level ALL every end; None if it is unknown.
    """

    fire_id: str | None
    scheduled_ms: int | None
    due_ms: int
    fired_ms: int
    late_ms: int
    missed: int
    deliveries: Sequence[PastDelivery] | None = ()

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """A fire in the API's JSON."""
        scheduled_at = found["scheduled_at"]
        return cls(
            fire_id=found["fire_id"],
            scheduled_ms=None if scheduled_at is None else parse_instant(scheduled_at),
            due_ms=parse_instant(found["due_at"]),
            fired_ms=parse_instant(found["fired_at"]),
            late_ms=found["late_ms"],
            missed=found["missed"],
            deliveries=_deliveries(found.get("deliveries", ())),
        )


@dataclass(frozen=True, slots=True)
class FiresSoFar:
    """How the occurrences of a schedule went since its rule is as it is, at every lifecycle level.

    `fired` came out, of which `over_1s` were more than a second late, at most by `latest_ms`;
    `missed` did not: they were given up, or another fire stood for them.  `success_rate` and
    `share_within_1s` are from 0 to 1, None if there is nothing to divide by.
    """

    fired: int
    over_1s: int
    missed: int
    latest_ms: int
    success_rate: float | None
    share_within_1s: float | None

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Counts in the API's JSON."""
        return cls(**{each.name: found[each.name] for each in dataclass_fields(cls)})


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule as it stands; instants in epoch milliseconds.

    In a list `payload`, `key` and `headers` are left out.  `fields` is all that was answered.
    `waiting_for` says what keeps it from firing besides its due instant, such as ``ack_lock``.
    """

    tenant: str
    schedule_id: str
    state: str
    version: int
    due_ms: int
    occurrence: int = 0
    kind: str | None = None
    event_type: str | None = None
    group: str | None = None
    waiting_for: str | None = None
    payload: bytes | None = None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    fields: Mapping[str, Any] = field(default_factory=dict)
    generation: int | None = None
    last_fires: Sequence[PastFire] = ()
    """At most the last ten, the oldest first, where they were asked for."""
    fires: FiresSoFar | None = None
    """Beside `last_fires`, of what recurs and waits; None where fires before were not kept."""

    @property
    def etag(self) -> str | None:
        """What names this version of this schedule and of none after it: ``generation.version``."""
        return etag_of(self.generation, self.version)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """A schedule in the API's JSON."""
        headers = [(each["name"], _bytes(each, "value")) for each in found.get("headers", ())]
        return cls(
            tenant=found["tenant"],
            schedule_id=found["schedule_id"],
            state=found["state"],
            version=found["version"],
            due_ms=parse_instant(found["due_at"]),
            generation=found.get("generation"),
            occurrence=found.get("occurrence", 0),
            kind=found.get("kind"),
            event_type=found.get("event_type"),
            group=found.get("group"),
            waiting_for=found.get("waiting_for"),
            payload=_bytes(found, "payload"),
            key=_bytes(found, "key"),
            headers=headers,
            fields=found,
            last_fires=tuple(map(PastFire.from_json, found.get("last_fires") or ())),
            fires=FiresSoFar.from_json(counted) if (counted := found.get("fires")) else None,
        )


@dataclass(frozen=True, slots=True)
class AckLock:
    """A fire that is to be acknowledged before others go on; instants in epoch milliseconds.

    `locks` names the waiting events: those of its ``group``, of its ``schedule``, or both.
    """

    tenant: str
    schedule_id: str
    fire_id: str
    group: str | None
    locks: tuple[str, ...]
    version: int
    due_ms: int
    fired_ms: int
    expires_ms: int

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """A lock in the API's JSON."""
        return cls(
            tenant=found["tenant"],
            schedule_id=found["schedule_id"],
            fire_id=found["fire_id"],
            group=found["group"],
            locks=tuple(found["locks"]),
            version=found["version"],
            due_ms=parse_instant(found["due_at"]),
            fired_ms=parse_instant(found["fired_at"]),
            expires_ms=parse_instant(found["expires_at"]),
        )


def _deliveries(given: Sequence[Mapping[str, Any]] | None) -> Sequence[PastDelivery] | None:
    """Ends of deliveries; a worker of an older release tells none."""
    return None if given is None else tuple(map(PastDelivery.from_json, given))


def _bytes(found: Mapping[str, Any], name: str) -> bytes | None:
    """Bytes that JSON shows as text, as base64 or as JSON of their own."""
    text = found.get(f"{name}_text")
    if text is not None:
        return str(text).encode()
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded)
    if found.get(f"{name}_json") is not None:
        return json.dumps(found[f"{name}_json"]).encode()
    return None
