"""A fired event as a program of its tenant gets it: the record, and what its headers say.

An event is the user's own record with headers of belfry's behind the user's. So a program may
ignore belfry and take key and value, or ask this class which schedule and which occurrence it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from belfry.client.requests import EVENT_TYPE
from belfry.schedules.instants import parse_instant
from belfry.wire.headers import SOURCE, TENANT
from belfry.wire.record import Headers


class RequestSource(NamedTuple):
    """Where the request of an event lies: in the topic of requests."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class FiredRecord:
    """One fired event as it lies in Kafka; instants in epoch milliseconds.

    `headers` are all headers, those of belfry's own among them.  For a tenant whose delivery is
    ENVELOPE, `event` holds the fields of `FiredEvent`, and `payload` the payload within.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    event: dict[str, Any] | None = None

    @property
    def payload(self) -> bytes | None:
        """What the user scheduled."""
        return self.value if self.event is None else self.event["payload"]

    @property
    def tenant(self) -> str | None:
        """Whose event it is: by the envelope, else by the name of the topic.

        On a topic that several tenants have, belfry's header says it: a payload of somebody's may
        look like an envelope, and name anybody.
        """
        named = self.topic.partition("fired.")[2]
        if not named and (told := self.header(TENANT)) is not None:
            return told
        return named or None if self.event is None else str(self.event["tenant"])

    @property
    def own_key(self) -> bytes | None:
        """The key that the event has on a topic of its tenant's own.

        On the topic that tenants share, `key` has the tenant and a slash before it.
        """
        shared = self.topic.endswith("fired") and self.tenant is not None
        return (
            self.key.removeprefix(f"{self.tenant}/".encode()) if shared and self.key else self.key
        )

    @property
    def event_type(self) -> str | None:
        """Its type: the envelope's, else the CloudEvent's, else the header ``event-type``."""
        if self.event is not None:
            found: str | None = self.event["event_type"]
            return found
        return self.header("ce_type") or self.header(EVENT_TYPE)

    @property
    def fire_id(self) -> str | None:
        """Id of the fire, the same for every attempt: deduplicate by it."""
        return self.header("belfry-fire-id")

    @property
    def schedule_id(self) -> str | None:
        """Id of the schedule."""
        return self.header("belfry-schedule-id")

    @property
    def scheduled_at_ms(self) -> int | None:
        """Nominal instant of the occurrence, epoch ms; None where no header says one."""
        text = self.header("belfry-scheduled-at")
        try:
            return None if text is None else parse_instant(text)
        except ValueError:
            return None

    @property
    def occurrence(self) -> int | None:
        """0, 1, 2 … within one life of the schedule; -1 for a TRIGGER or a backfill."""
        text = self.header("belfry-occurrence")
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None

    @property
    def source(self) -> RequestSource | None:
        """Where its request lies; None unless the policy says `source_header`, or nobody knows."""
        topic, _, place = (self.header(SOURCE) or "").partition("/")
        partition, _, offset = place.partition("/")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            return None
        return RequestSource(topic, int(partition), int(offset))

    @property
    def backfill(self) -> str | None:
        """The id of the job, for what a backfill fires of the past."""
        return self.header("belfry-backfill")

    @property
    def redriven(self) -> str | None:
        """For an event that was sent again: the name of the redrive, ``@`` and its first offset."""
        return self.header("belfry-redriven")

    def header(self, name: str) -> str | None:
        """The last header of this name as text: belfry puts its own after the user's."""
        found = [value for header, value in self.headers if header == name and value is not None]
        return found[-1].decode(errors="replace") if found else None
